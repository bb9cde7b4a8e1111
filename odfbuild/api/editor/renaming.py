"""Rename a dataset in all files that name it, or say why that cannot be done safely.

Its chain keeps its name until `moved` in odfbuild.yaml is applied, so that is part of the change.
"""

from __future__ import annotations

from collections.abc import Iterator

from odfbuild.api.editor.column_renaming import rename_column
from odfbuild.api.editor.explanations import definition_of
from odfbuild.api.editor.places import (
    files_that_name,
    of_dataset,
    opened,
    references,
    refused,
    view_of,
)
from odfbuild.api.editor.subjects import (
    Dataset,
    NamedColumn,
    Opened,
    Span,
    Subject,
    Variable,
    View,
)
from odfbuild.api.editor.template_renaming import rename_variable, variable_uses
from odfbuild.errors import Location, PlanError
from odfbuild.odf.identity import is_alias
from odfbuild.project.config import FILE
from odfbuild.values import Value


class Edit(Value):
    """A text that replaces another one."""

    span: Span
    text: str


def renamed(view: View, subject: Subject | None, new: str) -> list[Edit]:
    """All edits that give a dataset, a column, a variable or a macro another name.

    `PlanError` E0383 where the thing has no name that can be changed here, or a use of it is not
    certain; E0384 for a name that cannot be given.
    """
    check_renameable(view, subject)
    if isinstance(subject, NamedColumn):
        assert subject.dataset is not None, "checked"
        return [Edit(*each) for each in rename_column(view, subject.dataset, subject.name, new)]
    if isinstance(subject, Variable):
        return [Edit(*each) for each in rename_variable(view, subject.name, new)]
    assert isinstance(subject, Dataset), "checked"
    return list(_dataset(view, subject.name, new))


def check_renameable(view: View, subject: Subject | None) -> None:
    """`PlanError` E0383 where nothing stands that can be renamed."""
    if isinstance(subject, NamedColumn):
        if subject.dataset is None:
            raise refused(
                f"'{subject.name}' is a column of '{subject.relation}' in this query only",
                "edit the query, in which it is made",
            )
        return
    if isinstance(subject, Variable):
        variable_uses(view, subject.name)
        return
    if not isinstance(subject, Dataset):
        raise refused(
            "this is no name of a dataset, column, variable or macro",
            "put the cursor on such a name",
        )
    if subject.alias is not None and subject.alias.lower() != subject.name.lower():
        raise refused(
            f"'{subject.alias}' is what this query calls {subject.name}",
            f"rename {subject.name} where its name stands, or change `alias` of the input by hand",
        )
    if definition_of(view, subject.name) is None:
        raise refused(
            f"this project does not define '{subject.name}', or its definition is wrong",
            "correct the definition first; names of datasets of others are in `external` of "
            "odfbuild.yaml",
        )


def _dataset(view: View, name: str, new: str) -> Iterator[Edit]:
    if not is_alias(new):
        raise PlanError(
            f"'{new}' cannot be the name of a dataset: names are letters and digits, with single "
            "'-' and '.' between them",
            code="E0384",
            help=f"write '{new.replace('_', '-')}'" if "_" in new else "choose another name",
        )
    if new.lower() != name.lower() and new.lower() in view.names:
        raise PlanError(
            f"there is a dataset '{view.names[new.lower()]}' already",
            code="E0384",
            help="choose another name",
        )
    defined = of_dataset(view, name)
    assert defined is not None, "it has a definition"
    _check_plain(view, defined, name)
    for place in references(view, name):
        there = opened(view, place.file)
        assert there is not None, "it was read"
        found = there.text[place.start : place.end]
        if found.strip("`").lower() != name.lower():
            continue  # an alias, which stays
        yield Edit(place, f"`{new}`" if found.startswith("`") else new)
    _check_templates(view, name)
    moved = _moved(view, name, new)
    if moved is not None:
        yield moved


def _check_plain(view: View, place: Span, name: str) -> None:
    there = opened(view, place.file)
    text = there.text[place.start : place.end] if there is not None else ""
    if text.lower() != name.lower():
        raise refused(
            f"a template makes the name '{name}', of `{text}`",
            "change the template by hand, and declare `moved` in odfbuild.yaml",
            location_of(there, place),
        )


def _check_templates(view: View, name: str) -> None:
    """Whoever reads it under a name that a template makes would read it no more."""
    for there in files_that_name(view, name):
        for part in there.opened.parts:
            defined = there.opened.defined_in
            outline = defined.outline
            for item in outline.items(part.document, (*part.owner, "inputs")):
                reference = outline.entry(part.document, (*item, "datasetRef"))
                if reference is not None and "{" in reference.plain:
                    names = there.aliases(part).values()
                    if name.lower() in map(str.lower, names):
                        raise refused(
                            f"a template makes the name of this input, of `{reference.plain}`",
                            "change the template by hand",
                            location_of(defined, Span(defined.file, *reference.value)),
                        )


def location_of(there: Opened | None, place: Span) -> Location | None:
    """A place as messages name it."""
    if there is None:
        return None
    line = there.text.count("\n", 0, place.start) + 1
    column = place.start - there.text.rfind("\n", 0, place.start)
    return Location(there.file, line, column)


def _moved(view: View, name: str, new: str) -> Edit | None:
    """The line of odfbuild.yaml by which the chain keeps its history; `None`: there is no chain."""
    if name not in view.found.projections:
        return None
    settings = view_of(view, FILE)
    if settings is None:
        return None
    text, outline = settings.opened.text, settings.opened.outline
    declared = outline.entry(0, ("content", "moved"))
    if declared is not None and not declared.text:
        end = text.find("\n", declared.value[0])
        below = outline.below(0, ("content", "moved"))
        indent = " " * (below[0].column if below else declared.column + 2)
        at = len(text) if end < 0 else end
        return Edit(Span(FILE, at, at), f"\n{indent}{name}: {new}")
    if declared is not None:
        at = declared.value[0] + 1
        rest = "" if text[at : at + 1] == "}" else ", "
        return Edit(Span(FILE, at, at), f"{name}: {new}{rest}")
    content = outline.below(0, ("content",))
    indent = " " * (content[0].column if content else 2)
    begin = "" if text.endswith("\n") or not text else "\n"
    at = len(text)
    return Edit(Span(FILE, at, at), f"{begin}{indent}moved:\n{indent}  {name}: {new}\n")

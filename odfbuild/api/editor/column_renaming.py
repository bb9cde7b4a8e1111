"""Rename a column of a dataset where all its uses are certain; else say which is not.

Datasets downstream keep the names of their own columns: where one hands the column on under its
name, the entry of its SELECT becomes `new AS old`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from odfbuild.api.editor.explanations import definition_of, readers_of
from odfbuild.api.editor.outline import Entry
from odfbuild.api.editor.places import last_query, opened, refused, schema_entry, view_of, views_of
from odfbuild.api.editor.sql_parts import SqlPart
from odfbuild.api.editor.subjects import Span, View, span_in
from odfbuild.errors import Location, PlanError
from odfbuild.odf.model import SetTransform
from odfbuild.project.config import FILE
from odfbuild.project.load import unit_test_files
from odfbuild.sql.sql_words import words_of

Replaced = tuple[Span, str]

_NAME = re.compile(r"[A-Za-z_]\w*")


def rename_column(view: View, dataset: str, old: str, new: str) -> Iterator[Replaced]:
    """All edits that give the column `old` of a dataset another name; errors as `renamed`."""
    _check_name(view, dataset, new)
    _check_settings(view, dataset, old)
    found = definition_of(view, dataset)
    views = views_of(view, found.file) if found is not None else []
    if found is None or not views:
        raise refused(f"the definition of '{dataset}' is wrong", "correct it first", None)
    if views[0].opened.is_template:
        raise refused(
            f"a template makes '{dataset}'",
            "change the template by hand",
            Location(views[0].opened.file),
        )
    yield from _where_it_is_made(views, found.document + views[0].shift, old, new)
    for name in readers_of(view, dataset):
        reader = definition_of(view, name)
        views = views_of(view, reader.file) if reader is not None else []
        if reader is None or not views:
            raise refused(f"'{name}' reads it, and its definition is wrong", "correct it", None)
        for below in views:
            for part in below.opened.parts:
                if part.document == reader.document + below.shift:
                    yield from _in_reader(below, part, dataset, old, new)
    yield from _in_unit_tests(view, dataset, old, new)


def _check_name(view: View, dataset: str, new: str) -> None:
    if not _NAME.fullmatch(new):
        raise PlanError(
            f"'{new}' cannot be the name of a column here: names are letters, digits and '_'",
            code="E0384",
            help="choose another name",
        )
    columns = view.columns.relation(dataset) or ()
    if any(each.name.lower() == new.lower() for each in columns):
        raise PlanError(
            f"'{dataset}' has a column '{new}' already", code="E0384", help="choose another name"
        )


def _check_settings(view: View, dataset: str, old: str) -> None:
    settings = opened(view, FILE)
    for entry in settings.outline.entries if settings is not None else ():
        names_it = entry.path[-1] == old or old in re.findall(r"\w+", entry.text)
        if names_it and entry.path[1:2] not in (("vars",), ("moved",), ("name",)):
            raise refused(
                f"odfbuild.yaml names a column '{old}', perhaps of '{dataset}'",
                "rename it there and in the definition by hand",
                _place(FILE, settings.text if settings else "", entry.value[0]),
            )


def _where_it_is_made(views: list[View], document: int, old: str, new: str) -> Iterator[Replaced]:
    query = last_query(views, document)
    if query is None:
        made = schema_entry(views[0], document, old)
        if made is None:
            raise refused(
                f"the definition does not say how '{old}' is made", "declare a schema", None
            )
        yield made, new
    else:
        yield from _in_own_query(*query, old, new)
    yield from _in_merge(views[0], document, old, new)


def _in_own_query(there: View, part: SqlPart, old: str, new: str) -> Iterator[Replaced]:
    from sqlglot import exp

    from odfbuild.sql.parsed import parsed

    file, text = there.opened.file, there.opened.text
    tree = parsed(part.sql)
    items = tree.expressions if isinstance(tree, exp.Select) else []
    item = next((each for each in items if each.alias_or_name.lower() == old.lower()), None)
    if item is None or item.is_star:
        raise refused(
            f"it is not certain what makes '{old}' in this query",
            "change the query by hand",
            _place(file, text, part.offsets[0]),
        )
    identifier = item.args["alias"] if isinstance(item, exp.Alias) else item.this
    place = identifier.meta
    start, end = place["start"], place["end"] + 1
    read = there.read(part)
    known = {each.start for each in read.columns} if read is not None else set()
    for word in words_of(part.sql):
        if word.name.lower() == old.lower() and word.start not in {*known, start}:
            raise refused(
                f"it is not certain which '{old}' this is",
                "change the query by hand",
                _place(file, text, part.offsets[word.start]),
            )
    span = span_in(file, part, start, end)
    if isinstance(item, exp.Alias):
        yield span, new
    else:
        yield Span(file, span.end, span.end), f" AS {new}"


def _in_merge(there: View, document: int, old: str, new: str) -> Iterator[Replaced]:
    for entry in there.opened.outline.entries:
        if entry.document != document or entry.plain.lower() != old.lower():
            continue
        if "merge" in entry.path:
            quoted = entry.text != entry.plain
            yield Span(there.opened.file, entry.value[0] + quoted, entry.value[1] - quoted), new
        elif "read" in entry.path or entry.path[-1] in ("eventTimeColumn", "offsetColumn"):
            raise refused(
                f"'{old}' is named here, too",
                "change the definition by hand",
                _place(there.opened.file, there.opened.text, entry.value[0]),
            )


def _in_reader(there: View, part: SqlPart, dataset: str, old: str, new: str) -> Iterator[Replaced]:
    from sqlglot import exp

    from odfbuild.sql.parsed import parsed

    file, text = there.opened.file, there.opened.text
    aliases = there.called(part, dataset)
    if not aliases and part.owner[-1:] and part.step == 0:
        return
    tree, read = parsed(part.sql), there.read(part)
    if tree is None or read is None:
        raise refused(
            "this query, which reads the dataset, is not understood",
            "change it by hand",
            _place(file, text, part.offsets[0]),
        )
    star = next((each for each in tree.find_all(exp.Star) if _selects(each)), None)
    if star is not None and any(each.name.lower() in aliases for each in read.tables):
        raise refused(
            "this query selects all columns with `*`, so its result would have another column",
            "list the columns first",
            _place(file, text, part.offsets[0]),
        )
    items = {
        each.this.meta["start"]
        for select in tree.find_all(exp.Select)
        for each in select.expressions
        if isinstance(each, exp.Column) and "start" in each.this.meta
    }
    ours = {each.start: each for each in read.columns if each.table in aliases}
    others = {each.start for each in read.columns}
    for word in words_of(part.sql):
        if word.name.lower() != old.lower():
            continue
        if word.start in ours:
            span = span_in(file, part, word.start, word.end)
            yield span, f"{new} AS {word.name}" if word.start in items else new
        elif word.start not in others and not _names_result(part.sql, word.start):
            raise refused(
                f"it is not certain which '{old}' this is",
                "change the query by hand",
                _place(file, text, part.offsets[word.start]),
            )


def _selects(star: object) -> bool:
    """Whether `*` stands for columns, and not in `count(*)`."""
    from sqlglot import exp

    parent = getattr(star, "parent", None)
    parent = parent.parent if isinstance(parent, exp.Column) else parent
    return isinstance(parent, exp.Select)


def _names_result(sql: str, at: int) -> bool:
    """Whether a word is the name that AS gives."""
    return bool(re.search(r"\bas\s+`?$", sql[:at], re.I))


def _in_unit_tests(view: View, dataset: str, old: str, new: str) -> Iterator[Replaced]:
    config = view.found.project.config
    found = unit_test_files(config.datasets, config.boundary.check_open, lambda _, __: None)
    for path in found:
        there = view_of(view, path.removeprefix(f"{config.root}/"))
        if there is None:
            continue
        for entry in there.opened.outline.entries:
            if entry.path[-1:] == (old,) and entry.key is not None and "rows" in entry.path:
                if _is_about(there, entry, dataset):
                    yield Span(there.opened.file, *entry.key), new
            elif entry.path[-1:] == ("csv",) and entry.block and _is_about(there, entry, dataset):
                yield from _in_header(there, entry, old, new)


def _is_about(there: View, entry: Entry, dataset: str) -> bool:
    """Whether records of a unit test are those of a dataset."""
    name = there.opened.outline.value(entry.document, ("content", "dataset")) or ""
    if "expect" in entry.path:
        return name.lower() == dataset.lower()
    at = entry.path.index("given") + 1 if "given" in entry.path else len(entry.path)
    if at >= len(entry.path):
        return False
    given = str(entry.path[at]).lower()
    definition = definition_of(there, name)
    for event in definition.snapshot.metadata if definition is not None else ():
        for each in event.inputs if isinstance(event, SetTransform) else ():
            reference = str(each.dataset_ref).lower()
            if given in ((each.alias or "").lower(), reference):
                return reference == dataset.lower()
    return False


def _in_header(there: View, entry: Entry, old: str, new: str) -> Iterator[Replaced]:
    text = there.opened.text
    end = text.find("\n", entry.value[0])
    for found in re.finditer(r"[^,\s]+", text[entry.value[0] : end if end > 0 else len(text)]):
        if found.group().lower() == old.lower():
            start = entry.value[0] + found.start()
            yield Span(there.opened.file, start, start + len(old)), new


def _place(file: str, text: str, index: int) -> Location:
    line = text.count("\n", 0, index) + 1
    return Location(file, line, index - text.rfind("\n", 0, index))

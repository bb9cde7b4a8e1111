"""Rewrite files of definitions in an old form; see `old_form` for what is known."""

from __future__ import annotations

from odfbuild.errors import Errors, Location, OdfbuildError
from odfbuild.odf.yaml_text import dump_yaml
from odfbuild.project.definitions import definitions_in
from odfbuild.project.old_form import Change, modernise
from odfbuild.project.rewrite import text_diff
from odfbuild.project.source import Source
from odfbuild.project.yaml.source import read_documents
from odfbuild.project.yaml.tree import UnsupportedYaml, parse, plain, render, tree_of
from odfbuild.values import Value


class Edit(Value):
    """What was done at a place of the old text. `lost`: a person has to look at it."""

    place: Location
    message: str
    lost: bool


class Migration(Value):
    """A file before and after.

    `problems` are what is still wrong with the new text, placed in it.
    """

    file: str
    before: str
    after: str
    edits: tuple[Edit, ...] = ()
    problems: tuple[OdfbuildError, ...] = ()

    @property
    def is_needed(self) -> bool:
        """Whether anything in the file is in an old form."""
        return bool(self.edits)

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty when there is none."""
        return text_diff(self.before, self.after, self.file)


def migrate(text: str, file: str, query: Source | None = None) -> Migration:
    """The text of a file of definitions in today's form; `query` is the file beside it.

    `ProjectError` when it is not YAML.
    """
    source = Source(file, text)
    try:
        tree = parse(text, file)
        changes = [modernise(each.root) for each in tree.documents]
        if not any(changes):
            return Migration(file, text, text)
        after, whole = render(tree), None
    except UnsupportedYaml as reason:
        changes, after = _from_data(text, file)
        if not any(changes):
            return Migration(file, text, text)
        whole = Edit(
            Location(file), f"comments are not kept: a file with {reason} is written anew", True
        )
    edits = [_edit(source, index, each) for index, one in enumerate(changes) for each in one]
    edits.sort(key=lambda edit: (edit.place.line or 0, edit.place.column or 0))
    return Migration(
        file, text, after, (*([whole] if whole else []), *edits), _problems(after, file, query)
    )


def _from_data(text: str, file: str) -> tuple[list[tuple[Change, ...]], str]:
    trees = [tree_of(data) for data in read_documents(text, file)]
    changes = [modernise(tree) for tree in trees]
    return changes, "---\n".join(dump_yaml(plain(tree)) for tree in trees)


def _edit(source: Source, document: int, change: Change) -> Edit:
    return Edit(source.locate(document, change.path), change.message, change.lost)


def _problems(text: str, file: str, query: Source | None) -> tuple[OdfbuildError, ...]:
    try:
        definitions_in(Source(file, text, query=query))
    except Errors as errors:
        return errors.errors
    return ()

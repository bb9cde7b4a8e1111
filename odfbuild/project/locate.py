"""From a value of a definition to its place in the project's files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from odfbuild.errors import Location
from odfbuild.project.model import Definition, Project
from odfbuild.project.source import Source, read_sources
from odfbuild.values import Value


class DefinitionPlace(Value):
    """The places of one definition; every question reads its file again."""

    project: Project
    definition: Definition

    def of(self, *paths: Sequence[str | int]) -> Location:
        """The place of the first value below `content` that the file has.

        When it has none of them, the nearest place above the last.
        """
        source = _source(self.project, self.definition)
        for path in paths:
            if source.has(self.definition.document, ("content", *path)):
                return locate_path(self.project, self.definition, path)
        return locate_path(self.project, self.definition, paths[-1])

    def in_query(
        self, path: Sequence[str | int], step: int, line: int, column: int | None = None
    ) -> Location:
        """The place of a line, or of a column in it, of query number `step` of a transform.

        Both count from 1; `path` leads to the transform.
        """
        found = locate_in_query(self.project, self.definition, path, step, line, column or 1)
        if found is None:
            return self.of(path)
        return found if column else _whole_line(found)


def locate_path(project: Project, definition: Definition, path: Sequence[str | int]) -> Location:
    """The place of a value below `content` of a definition; reads its file again."""
    source = _source(project, definition)
    return source.locate(definition.document, ("content", *path))


def locate_in_scalar(
    project: Project, definition: Definition, path: Sequence[str | int], line: int, column: int
) -> Location | None:
    """The place of line and column (from 1) of a text value below `content`, such as a query."""
    source = _source(project, definition)
    return source.locate_in_scalar(definition.document, ("content", *path), line, column)


def locate_in_query(
    project: Project,
    definition: Definition,
    path: Sequence[str | int],
    step: int,
    line: int,
    column: int,
) -> Location | None:
    """The place in query number `step` of the transform at `path` below `content`."""
    # The file may say `query` where the definition in normal form has `queries`.
    for tail in (("queries", step, "query"), ("query",)):
        found = locate_in_scalar(project, definition, (*path, *tail), line, column)
        if found is not None:
            return found
    return None


def _whole_line(place: Location) -> Location:
    """From the first character of a line, or from `place` behind it, to the last."""
    text = (place.snippet or "").rstrip()
    column = max(place.column or 1, len(text) - len(text.lstrip()) + 1)
    return replace(place, column=column, length=max(1, len(text) - column + 1))


def _source(project: Project, definition: Definition) -> Source:
    sources = read_sources(project.config, definition.file)
    return next((s for s in sources if s.instance == definition.instance), sources[0])

"""From a value of a definition to its place in the project's files."""

from __future__ import annotations

from collections.abc import Sequence

from odfbuild.errors import Location
from odfbuild.project.model import Definition, Project
from odfbuild.project.source import Source, read_sources


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


def _source(project: Project, definition: Definition) -> Source:
    sources = read_sources(project.config, definition.file)
    return next((s for s in sources if s.instance == definition.instance), sources[0])

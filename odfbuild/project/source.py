"""The YAML texts of a definition file: its own text, or the instances of a template.

Beside it may lie a file with the query: `NAME.sql` for `NAME.yaml`, `NAME.sql.j2` for
`NAME.yaml.j2`, which is rendered with the same values.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild import limits
from odfbuild.errors import Location, OdfbuildError, ProjectError
from odfbuild.project.model import Config
from odfbuild.project.unsaved import unsaved_text
from odfbuild.project.yaml import source as yaml_source
from odfbuild.store.files import TooLarge, read_bounded
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.project.template import Rendered

TEMPLATE_SUFFIX = ".yaml.j2"
YAML_SUFFIXES = (".yaml", ".yml")
QUERY_SUFFIXES = (".sql", ".sql.j2")
UNIT_TEST_SUFFIXES = tuple(f".test{suffix}" for suffix in (*YAML_SUFFIXES, TEMPLATE_SUFFIX))


def query_file_of(file: str) -> str | None:
    """What the file with the query of a definition file is called; `None`: it cannot have one."""
    if file.endswith(UNIT_TEST_SUFFIXES):
        return None
    if file.endswith(TEMPLATE_SUFFIX):
        return f"{file.removesuffix(TEMPLATE_SUFFIX)}.sql.j2"
    stem, _, suffix = file.rpartition(".")
    return f"{stem}.sql" if f".{suffix}" in YAML_SUFFIXES else None


def definition_files_of(query_file: str) -> tuple[str, ...]:
    """What the definition file beside a file with a query may be called."""
    if query_file.endswith(".j2"):
        return (f"{query_file.removesuffix('.sql.j2')}{TEMPLATE_SUFFIX}",)
    return tuple(f"{query_file.removesuffix('.sql')}{suffix}" for suffix in YAML_SUFFIXES)


class Source(Value):
    """YAML text of a file, or of one instance of a template.

    `lines` gives the template's line for each line of `text` (empty: the text is the file),
    `template` the text of the template. `query` is the text of the file beside it, if there is one.
    """

    file: str
    text: str
    instance: str | None = None
    lines: tuple[int, ...] = ()
    template: str | None = None
    query: Source | None = None

    def has(self, document: int, path: Sequence[str | int]) -> bool:
        """Whether there is a value at `path`."""
        return yaml_source.has(self.text, self.file, document, path)

    def locate(self, document: int, path: Sequence[str | int], *, value: bool = False) -> Location:
        """The place in the file of a value, or of its key."""
        find = yaml_source.locate_value if value else yaml_source.locate
        return self.in_file(find(self.text, self.file, document, path))

    def locate_in_scalar(
        self, document: int, path: Sequence[str | int], line: int, column: int
    ) -> Location | None:
        """The place in the file of line and column (from 1) of a text value."""
        if self.query is not None and path[-1] == "query" and not self.has(document, path):
            return self.query.of_line(line, column)
        place = yaml_source.locate_in_scalar(self.text, self.file, document, path, line, column)
        return self.in_file(place) if place else None

    def of_line(self, line: int, column: int) -> Location:
        """The place in the file of a line and column (from 1) of the text."""
        lines = self.text.splitlines()
        snippet = lines[line - 1] if 0 < line <= len(lines) else None
        return self.in_file(Location(self.file, line, column, snippet))

    def in_file(self, place: Location) -> Location:
        """A place in the text as a place in the file that people edit."""
        if self.template is None or place.line is None:
            return replace(place, instance=self.instance)
        if not self.lines:
            return Location(self.file, instance=self.instance)
        line = self.lines[min(place.line, len(self.lines)) - 1]
        template = self.template.splitlines()
        snippet = template[line - 1] if line <= len(template) else None
        column = place.column if snippet and (place.column or 1) <= len(snippet) else 1
        return replace(place, line=line, column=column, snippet=snippet, instance=self.instance)

    def translated(self, error: OdfbuildError) -> OdfbuildError:
        """`error` with its place in the text as a place in the file.

        What a template was rendered to is told where it says something else.
        """
        if error.location is None:
            return error
        place, rendered = self.in_file(error.location), error.location.snippet
        if self.template is not None and rendered is not None and rendered != place.snippet:
            error = error.noted(f"rendered as: {rendered}")
        return error.at(place)


def read_sources(config: Config, file: str) -> list[Source]:
    """The texts of a definition file (relative to the root); raises `ProjectError` or `Errors`."""
    text = read_text(f"{config.root}/{file}", file)
    return sources_of(text, file, config, query_beside(config, file))


def sources_of(text: str, file: str, config: Config, query: Source | None) -> list[Source]:
    """The same of a text, with the query beside it."""
    if not file.endswith(".j2"):
        return [Source(file, text, query=query)]
    from odfbuild.project.template import render_template

    beside = None if query is None else (query.file, query.text)
    return [
        Source(
            file,
            each.text,
            each.label,
            each.lines,
            text,
            _instance_of(query, each),
        )
        for each in render_template(
            text, file, config.root, config.vars, config.boundary.check_open, beside
        )
    ]


def _instance_of(query: Source | None, rendered: Rendered) -> Source | None:
    if query is None or rendered.query is None:
        return None
    text, lines = rendered.query
    return Source(query.file, text, rendered.label, lines, query.text)


def query_beside(config: Config, file: str) -> Source | None:
    """The file with the query of a definition file; raises `ProjectError` where it is no text.

    A link is followed only where definitions may lie.
    """
    name = query_file_of(file)
    path = f"{config.root}/{name}"
    if name is None or (unsaved_text(path) is None and not os.path.lexists(path)):
        return None
    try:
        config.boundary.check_open(path)
    except OdfbuildError as error:
        raise error.or_at(Location(name)) from None
    return Source(name, read_text(path, name))


def read_text(path: str | Path, file: str) -> str:
    """The text of a file, lines ended by line feeds; `ProjectError` when there is no such text."""
    try:
        text = unsaved_text(path)
        if text is None:
            text = read_bounded(path, limits.FILE_BYTES).decode()
    except UnicodeDecodeError as error:
        raise ProjectError(
            f"this is not UTF-8 text: {error.reason} at byte {error.start}",
            code="E0103",
            location=Location(file),
            help="save the file as UTF-8",
        ) from None
    except TooLarge:
        raise ProjectError(
            f"the file has more than {limits.FILE_BYTES >> 20} MiB",
            code="E0126",
            location=Location(file),
            help="move records into data files, and divide the definitions among several files",
        ) from None
    except OSError as error:
        raise ProjectError(
            f"the file cannot be read: {error.strerror}",
            code="E0103",
            location=Location(file),
            help="check that it is there and that you may read it",
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text

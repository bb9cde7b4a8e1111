"""The YAML texts of a definition file: its own text, or the instances of a template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from odfbuild import limits
from odfbuild.errors import Location, OdfbuildError, ProjectError
from odfbuild.project.model import Config
from odfbuild.project.unsaved import unsaved_text
from odfbuild.project.yaml import source as yaml_source
from odfbuild.store.files import TooLarge, read_bounded
from odfbuild.values import Value

TEMPLATE_SUFFIX = ".yaml.j2"
YAML_SUFFIXES = (".yaml", ".yml")


class Source(Value):
    """YAML text of a file, or of one instance of a template.

    `lines` gives the template's line for each line of `text` (empty: the text is the file),
    `template` the text of the template.
    """

    file: str
    text: str
    instance: str | None = None
    lines: tuple[int, ...] = ()
    template: str | None = None

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
        place = yaml_source.locate_in_scalar(self.text, self.file, document, path, line, column)
        return self.in_file(place) if place else None

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
    if not file.endswith(".j2"):
        return [Source(file, text)]
    from odfbuild.project.template import render_template

    return [
        Source(file, each.text, each.label, each.lines, text)
        for each in render_template(
            text, file, config.root, config.vars, config.boundary.check_open
        )
    ]


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

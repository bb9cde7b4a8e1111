"""Bring files of definitions into canonical form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from odfbuild.errors import OdfbuildError
from odfbuild.project.format import Formatted, format_text
from odfbuild.project.load import definition_files
from odfbuild.project.rewrite import replace_text
from odfbuild.project.source import QUERY_SUFFIXES, TEMPLATE_SUFFIX, read_text
from odfbuild.values import Value


class Formatting(Value):
    """What became of files: `files` in their order, `templates` left as they are, `errors`."""

    files: tuple[Formatted, ...]
    templates: tuple[Path, ...]
    errors: tuple[OdfbuildError, ...]

    @property
    def changed(self) -> tuple[Formatted, ...]:
        """Files that were in another form."""
        return tuple(each for each in self.files if each.is_changed)


def format_files(
    paths: Iterable[Path], *, write: bool, check_link: Callable[[str], None]
) -> Formatting:
    """Format files, and all definitions below folders; with `write` also in place.

    `check_link` raises for a link below a folder that must not be followed.
    """
    found: list[Formatted] = []
    errors: list[OdfbuildError] = []
    named = sorted({file for path in paths for file in _files(path, check_link, errors)}, key=str)
    templates = tuple(path for path in named if path.name.endswith(TEMPLATE_SUFFIX))
    for path in named:
        if path in templates:
            continue
        if path.name.endswith(QUERY_SUFFIXES):
            text = read_text(path, str(path))
            found.append(Formatted(str(path), text, text, kept="queries stay as they are"))
            continue
        try:
            found.append(format_text(read_text(path, str(path)), str(path)))
        except OdfbuildError as error:
            errors += error.apart()
    formatting = Formatting(tuple(found), templates, tuple(errors))
    if write:
        for each in formatting.changed:
            replace_text(Path(each.file), each.after, "odfbuild fmt")
    return formatting


def _files(
    path: Path, check_link: Callable[[str], None], errors: list[OdfbuildError]
) -> Iterable[Path]:
    if not path.is_dir():
        return (path,)
    return map(Path, definition_files(path, check_link, lambda _, error: errors.append(error)))

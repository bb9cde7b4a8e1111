"""Errors of a project as findings in its files: the range that is wrong, and what is said of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from odfbuild.api.editor.positions import Range, Text
from odfbuild.errors import Location, OdfbuildError
from odfbuild.project.config import FILE
from odfbuild.project.lint.finding import Finding
from odfbuild.values import Value

_MEANT = re.compile(r"^did you mean '([^']+)'\?$")
_WORD = re.compile(r"[\w.-]+")


class Diagnostic(Value):
    """Something wrong at a place, in the words of `validate`, or of `lint` where it `warns`.

    `fix` is what should stand there instead, where one word is meant.
    """

    range: Range
    code: str
    message: str
    fix: str | None = None
    warns: bool = False


Found = dict[str, list[OdfbuildError]]
"""Errors by the file that they are about, as its path below the root or an absolute one."""


def by_file(errors: Iterable[OdfbuildError]) -> Found:
    """Errors by file; those without a place are about odfbuild.yaml."""
    found: Found = {}
    for error in (part for each in errors for part in each.apart()):
        found.setdefault(error.location.file if error.location else FILE, []).append(error)
    return found


def diagnostics(
    errors: Iterable[OdfbuildError], text: Text, flaws: Iterable[Finding] = ()
) -> list[Diagnostic]:
    """What is in a file: errors, what is the same in all instances of a template once, and flaws.

    Where something is an error, its flaws are not told.
    """
    found: dict[tuple[Range, str, str], Diagnostic] = {}
    for error in errors:
        made = Diagnostic(_range(error.location, text), error.code, _message(error), _fix(error))
        found.setdefault((made.range, made.code, error.message), made)
    wrong = {each.range for each in found.values()}
    warnings = [_of_flaw(each, text) for each in flaws]
    return [*found.values(), *(each for each in warnings if each.range not in wrong)]


def _of_flaw(flaw: Finding, text: Text) -> Diagnostic:
    message = "\n".join([flaw.message, *flaw.notes, f"help: {flaw.help}"])
    warns = flaw.level != "error"
    return Diagnostic(_range(flaw.place, text), flaw.rule.code, message, warns=warns)


def _range(place: Location | None, text: Text) -> Range:
    if place is None or place.line is None:
        return text.range(0, len(text.line(0)))
    start = text.index_at(place.line, place.column or 1)
    line_end = text.index_at(place.line, 1 << 30)
    if place.column is None:
        return text.range(start, line_end)
    end = min(start + place.length, line_end)
    if place.length == 1:
        word = _WORD.match(text.text, start, line_end)
        if word is not None:
            end = word.end()
        elif text.text[start:line_end][:1].isspace():  # only the line is known
            line = text.text[start:line_end]
            start, end = start + len(line) - len(line.lstrip()), start + len(line.rstrip())
    return text.range(start, max(end, start))


def _message(error: OdfbuildError) -> str:
    lines = [error.message, *error.notes]
    if error.help:
        lines.append(f"help: {error.help}")
    if error.location is not None and error.location.instance:
        lines.append(f"in the instance {error.location.instance}")
    return "\n".join(lines)


def _fix(error: OdfbuildError) -> str | None:
    meant = _MEANT.match(error.help or "")
    return meant[1] if meant is not None else None


def path_of(root: Path, file: str) -> str:
    """The absolute path of a file that an error names."""
    return file if file.startswith("/") else f"{root}/{file}"


def texts_of(files: Iterable[str], root: Path, opened: Mapping[str, str]) -> dict[str, str]:
    """Texts of files by their absolute paths, as an editor holds them or as they are saved."""
    found: dict[str, str] = {}
    for file in files:
        path = path_of(root, file)
        try:
            found[path] = opened[path] if path in opened else Path(path).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            found[path] = ""
    return found

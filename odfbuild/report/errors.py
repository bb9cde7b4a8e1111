"""Errors as people read them: what, where, the line itself, why, and the way out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from odfbuild.errors import Errors, Location, OdfbuildError
from odfbuild.report.forms.visible import visible

_RED, _BLUE, _GREEN, _BOLD, _OFF = "\x1b[31;1m", "\x1b[34;1m", "\x1b[32m", "\x1b[1m", "\x1b[0m"


def render_error(*errors: OdfbuildError, color: bool = False) -> str:
    """Text of errors, one after the other, then where each of their codes is explained.

    Those that travel together in `Errors` have a line between them, and are counted.
    """
    paint = _paint if color else _plain
    codes = dict.fromkeys(each.code for error in errors for each in error.apart())
    lines = [f"{paint(_BLUE, 'see')}: {see(code)}\n" for code in codes]
    return "".join([*(_render(error, paint) for error in errors), *lines])


def see(code: str) -> str:
    """The command that explains a code."""
    return f"odfbuild explain {code}"


def _render(error: OdfbuildError, paint: Any) -> str:
    if isinstance(error, Errors):
        parts = [_render(each, paint) for each in error.errors]
        if len(parts) > 1:
            parts.append(f"{len(parts)} errors.\n")
        return "\n".join(parts)
    lines = [f"{paint(_RED, f'error[{error.code}]')}: {paint(_BOLD, error.message)}"]
    if error.location is not None:
        lines += _place_lines(error.location, paint)
    lines += [f"  = note: {visible(note)}" for note in error.notes]
    if error.help:
        lines.append(f"{paint(_GREEN, 'help')}: {visible(error.help)}")
    return "\n".join(lines) + "\n"


def error_to_data(error: OdfbuildError) -> list[dict[str, Any]]:
    """The same as plain data, a list of one or more."""
    return [_to_data(each) for each in error.apart()]


def _to_data(error: OdfbuildError) -> dict[str, Any]:
    place = error.location
    return {
        "code": error.code,
        "message": error.message,
        "dataset": error.dataset,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "instance": place.instance if place else None,
        "notes": list(error.notes),
        "help": error.help,
        "see": see(error.code),
    }


def render_place(place: Location, color: bool = False) -> list[str]:
    """Lines that show a place: its name, its line, and a mark below."""
    return _place_lines(place, _paint if color else _plain)


def _place_lines(place: Location, paint: Any) -> list[str]:
    lines = [f"  {paint(_BLUE, '-->')} {visible(str(place))}"]
    if place.snippet is not None and place.line is not None:
        margin = " " * len(str(place.line))
        column = max(1, place.column or 1)
        room = max(1, min(place.length, len(place.snippet) - column + 1))
        before, marked = place.snippet[: column - 1], place.snippet[column - 1 :][:room]
        room = len(visible(marked))
        lead = "".join("\t" if c == "\t" else " " for c in visible(before))
        bar = paint(_BLUE, "|")
        lines += [
            f"{margin} {bar}",
            f"{paint(_BLUE, str(place.line))} {bar} {visible(place.snippet)}",
            f"{margin} {bar} {lead}{paint(_RED, '^' * room)}",
        ]
    return lines


def _paint(code: str, text: str) -> str:
    return f"{code}{visible(text)}{_OFF}"


def _plain(code: str, text: str) -> str:
    return visible(text)


def with_errors(data: dict[str, Any], errors: Iterable[OdfbuildError]) -> dict[str, Any]:
    """Plain values of what was done, and of what is wrong with the rest, if anything is."""
    told = [each for error in errors for each in error_to_data(error)]
    return {**data, "errors": told} if told else data

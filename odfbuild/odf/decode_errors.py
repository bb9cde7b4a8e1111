"""Errors in documents that should be objects of the protocol."""

from __future__ import annotations

from typing import Any

from odfbuild.values import Value
from odfbuild.wording import closest

Path = tuple[str | int, ...]


class DecodeError(Value):
    """One thing wrong in a document: where, what, and what was probably meant.

    `kind` is `unknown_field`, `missing_field`, `invalid_type` or `invalid_value`.
    """

    path: Path
    message: str
    value: Any = None
    suggestion: str | None = None
    kind: str = "invalid_value"


class DecodeErrors(ValueError):
    """All that is wrong in a document."""

    def __init__(self, errors: list[DecodeError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(error.message for error in errors))


def wrong_type(path: Path, expected: str, data: Any) -> DecodeError:
    """A value of another type than its place has; `expected` in words."""
    message = f"expected {expected}, found {describe(data)}"
    return DecodeError(path, message, data, _respelled(expected, data), "invalid_type")


_BOOLEANS = {"yes": "true", "on": "true", "no": "false", "off": "false"}
"""Words that are true and false in YAML 1.1, and text today."""


def _respelled(expected: str, data: Any) -> str | None:
    """How the same value is written as the expected type, where that is plain."""
    is_number = isinstance(data, int | float) and not isinstance(data, bool)
    match expected, data:
        case "true or false", str():
            return _BOOLEANS.get(data.lower())
        case "a whole number", str() if data.isascii() and data.isdecimal():
            return data
        case "a string", _ if is_number:
            return f'"{data}"'
        case "a list", str() if data.isidentifier():
            return f"[{data}]"
    return None


def missing(path: Path, key: str) -> DecodeError:
    """A required key that is not there."""
    return DecodeError(path, f"'{key}' is missing", None, None, "missing_field")


def unknown(path: Path, key: Any, known: tuple[str, ...]) -> DecodeError:
    """A key that the object does not have, with the known one that it resembles."""
    return DecodeError(
        (*path, key), f"unknown key '{key}'", key, closest(str(key), known), "unknown_field"
    )


def not_one_of(path: Path, data: Any, names: tuple[str, ...]) -> DecodeError:
    """A name that is none of those allowed, with the one that it resembles."""
    return DecodeError(
        path,
        f"expected one of {', '.join(names)}; found {describe(data)}",
        data,
        closest(data, names) if isinstance(data, str) else None,
    )


def describe(data: Any) -> str:
    """What was found, in words: `a list`, `the number 5`."""
    if data is None:
        return "nothing"
    if isinstance(data, bool):
        return "true" if data else "false"
    if isinstance(data, dict):
        return "an object"
    if isinstance(data, list):
        return "a list"
    if isinstance(data, str):
        return f"the string {data!r}" if len(data) <= 40 else "a string"
    return f"the number {data}"

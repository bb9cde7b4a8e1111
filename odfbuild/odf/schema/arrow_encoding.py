"""Attributes of columns that say how Arrow lays their values out.

Sources: ODF RFC-016; reference behaviour, "ODF schema".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from odfbuild.errors import QueryError

BUFFER = "arrow.apache.org/bufferEncoding"
DATE = "arrow.apache.org/dateEncoding"
DECIMAL = "arrow.apache.org/decimalEncoding"


class InvalidAttributeError(QueryError):
    """E0532: an encoding attribute that is not well formed."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, code="E0532", help="mend or remove that attribute of the column")


_KINDS = {
    BUFFER: ("kind", ("Contiguous", "View", "RunEnd")),
    DATE: ("unit", ("Day", "Millisecond")),
}


def encoding_of(extra: Mapping[str, Any] | None) -> dict[str, dict[str, Any]] | None:
    """The encoding attributes among `extra`, in canonical spelling; `None` without any.

    Enum values may begin with a small letter. `InvalidAttributeError` for what is malformed.
    """
    found = (
        {key: extra[key] for key in (BUFFER, DATE, DECIMAL) if key in (extra or {})}
        if extra
        else {}
    )
    return {key: _read_encoding(key, value) for key, value in found.items()} or None


def _read_encoding(key: str, value: Any) -> dict[str, Any]:
    def refuse() -> InvalidAttributeError:
        return InvalidAttributeError(f"not a valid '{key}': {json.dumps(value)}")

    if not isinstance(value, Mapping):
        raise refuse()
    result = dict(value)
    if key in _KINDS:
        name, spellings = _KINDS[key]
        text = value.get(name)
        if not isinstance(text, str) or text[:1].upper() + text[1:] not in spellings:
            raise refuse()
        result[name] = text[:1].upper() + text[1:]
    elif not isinstance(value.get("bitWidth"), int):
        raise refuse()
    for name in ("offsetBitWidth", "runEndsBitWidth", "bitWidth"):
        if value.get(name) is not None and not isinstance(value[name], int):
            raise refuse()
    return result

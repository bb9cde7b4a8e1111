"""Records as plain values, as JSON can hold them."""

from __future__ import annotations

import math
from base64 import b64encode
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from odfbuild.odf.timestamp import Timestamp

if TYPE_CHECKING:
    import pyarrow as pa

OPERATIONS = ("+A", "-R", "-C", "+C")
"""Append, retract, correct from, correct to: by number of the operation column."""


def records_to_data(table: pa.Table, op_column: str = "op") -> list[dict[str, Any]]:
    """Records as plain values: operations by sign, times as RFC 3339 text, bytes as base64."""
    return [
        {
            name: _operation(value) if name == op_column else plain_value(value)
            for name, value in record.items()
        }
        for record in table.to_pylist()
    ]


def _operation(value: Any) -> Any:
    known = isinstance(value, int) and 0 <= value < len(OPERATIONS)
    return OPERATIONS[value] if known else value


def plain_value(value: Any) -> Any:
    """A value as JSON can hold it."""
    plain: Any
    match value:
        case bool() | int() | str() | None:
            plain = value
        case float():
            plain = value if math.isfinite(value) else str(value)
        case datetime():
            plain = _time(value)
        case date():
            plain = value.isoformat()
        case bytes():
            plain = b64encode(value).decode()
        case dict():
            plain = {str(key): plain_value(item) for key, item in value.items()}
        case list() | tuple():
            plain = [plain_value(item) for item in value]
        case _:
            plain = str(value)
    return plain


def _time(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return str(Timestamp.from_datetime(value))

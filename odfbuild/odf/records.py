"""Records as plain values, as JSON can hold them."""

from __future__ import annotations

import math
from base64 import b64encode
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from odfbuild.odf.timestamp import Timestamp

if TYPE_CHECKING:
    import pyarrow as pa

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OPERATIONS = ("+A", "-R", "-C", "+C")
"""Append, retract, correct from, correct to: by number of the operation column."""


def records_to_data(table: pa.Table, op_column: str = "op") -> list[dict[str, Any]]:
    """Records as plain values: operations by sign, times as RFC 3339 text, bytes as base64."""
    columns = {
        name: list(map(_operation if name == op_column else plain_value, _values(column)))
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return [{name: values[row] for name, values in columns.items()} for row in range(len(table))]


def _values(column: pa.ChunkedArray) -> list[Any]:
    """As `to_pylist`, which imports pandas, where that is installed, for the first time it sees."""
    import pyarrow as pa

    kind = column.type
    units = {"ms": timedelta(milliseconds=1), "us": timedelta(microseconds=1)}
    if not (pa.types.is_timestamp(kind) and kind.tz == "UTC" and kind.unit in units):
        found: list[Any] = column.to_pylist()
        return found
    unit = units[kind.unit]
    numbers = [number for chunk in column.chunks for number in chunk.view(pa.int64()).to_pylist()]
    return [None if number is None else _EPOCH + number * unit for number in numbers]


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

"""Columns and values of the binary log, as a SELECT gives them.

Source: MariaDB documentation, "TABLE_MAP_EVENT", "Rows Event".
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from odfbuild.ingest.fetch.database.changes.messages import RelationColumn
from odfbuild.ingest.fetch.database.changes.position import digest
from odfbuild.ingest.fetch.database.contract import Column
from odfbuild.ingest.fetch.database.mysql import as_array, kind_of
from odfbuild.ingest.fetch.database.rows import fitted

_UNSIGNED, _BINARY = 1, 2
_FIXED_TEXT, _YEAR, _BIT, _TIMESTAMPS = 254, 13, 16, (7, 17)
_BLANK_YEAR = 1900
"""What the library makes of the year 0000, and no year that the server holds."""
_BLANK_TIME = datetime(1970, 1, 1)
"""What it makes of the timestamp 0000-00-00; the server holds later ones only."""
_EMPTY_SET, _NULL = "empty set", "null"
_NO_DATE = b"0000-00-00"


class NotInLogError(ValueError):
    """A row without the value of a column."""


def relation_column(column: Any) -> RelationColumn:
    """A column as a table map of the log tells it."""
    flags = _UNSIGNED if column.unsigned else 0
    flags |= _BINARY if column.character_set_name == "binary" else 0
    digits, places = getattr(column, "precision", 0), getattr(column, "decimals", 0)
    return RelationColumn(column.name, column.type, flags | (digits << 8) | (places << 16))


def typed(columns: Sequence[RelationColumn]) -> list[Column]:
    """The columns as they are in the file."""
    return [_typed(each) for each in columns]


def _typed(column: RelationColumn) -> Column:
    kind, declared = kind_of(
        column.type,
        is_unsigned=bool(column.modifier & _UNSIGNED),
        is_binary=bool(column.modifier & _BINARY),
        digits=column.modifier >> 8 & 0xFF,
        places=column.modifier >> 16,
    )
    return Column(column.name, column.name, kind, declared)


def form_of(columns: Sequence[RelationColumn]) -> str:
    """A digest of names and types of columns in the log."""
    return form_of_typed(typed(columns))


def form_of_typed(columns: Sequence[Column]) -> str:
    """The same of columns of a SELECT, whatever their order."""
    return digest(sorted(f"{each.name}\0{each.type}" for each in columns))


def text_of(value: Any, column: Any, why_null: str) -> bytes | None:
    """A value as a SELECT gives it; `why_null` is what the library says of one that is `None`.

    Raises `NotInLogError` where the row does not have it.
    """
    if value is None:
        if why_null == _NULL:
            return None
        if why_null == _EMPTY_SET:
            return b""
        if "range" in why_null:
            return _NO_DATE
        raise NotInLogError(column.name)
    if isinstance(value, bytes):
        return value.ljust(column.max_length, b"\0") if column.type == _FIXED_TEXT else value
    if isinstance(value, set):
        return ",".join(each for each in column.set_values if each in value).encode()
    if column.type == _YEAR and value == _BLANK_YEAR:
        return b"0"
    if column.type in _TIMESTAMPS and value == _BLANK_TIME:
        return _NO_DATE
    if column.type == _BIT:
        return str(int(value, 2)).encode()
    return _spelled(value, getattr(column, "fsp", 0)).encode()


def _spelled(value: Any, places: int) -> str:
    match value:
        case datetime():
            return value.isoformat(" ", "microseconds")
        case date():
            return value.isoformat()
        case timedelta():
            return _time(value, places)
        case float():
            return repr(value)
        case Decimal():
            return format(value, "f")
    return str(value)


def _time(value: timedelta, places: int) -> str:
    sign = "-" if value < timedelta() else ""
    micros = abs(value) // timedelta(microseconds=1)
    seconds, rest = divmod(micros, 1_000_000)
    text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{rest:06d}"[: len(text) + 1 + places] if places else text


def to_arrow(texts: Sequence[bytes | None], column: Column, shown: str) -> pa.Array:
    """Values of a column. Raises `IngestError` E0466 for one that no dataset can hold."""
    return fitted(as_array(texts, column.type), column, shown)

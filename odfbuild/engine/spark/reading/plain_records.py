"""Records of small files whose values have one meaning only, read without Spark.

Spark takes a fifth of a second to plan how ten records are read, for each file anew. Here a file is
read if each value has a plain form of its declared type, of which nobody makes anything else. Any
other value, and any option that changes how values are read, leaves the whole file to Spark: what
is wrong with it is found, and told, there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.results.local_rows import MOST_BYTES, is_alike
from odfbuild.odf.model import ReadStepCsv, ReadStepNdJson

_MICROS_UTC = pa.timestamp("us", "UTC")
_UNUSUAL = re.compile(r"[\\\x00-\x08\x0b-\x1f]")
_WHOLE = re.compile(r"(0|-?[1-9]\d{0,17})", re.ASCII)
_FRACTION = re.compile(r"(?!-[0.]*$)-?(0|[1-9]\d{0,6})(\.\d{1,6})?", re.ASCII)
_DIGITS = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?", re.ASCII)
_DAY = re.compile(r"(1[6-9]|2\d)\d\d-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"(1[6-9]|2\d)\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{3})?Z?", re.ASCII)


class _UnclearError(Exception):
    """Only Spark knows what it makes of a file."""


def plain_records(task: IngestTask, columns: pa.Schema) -> pa.Table | None:
    """The records of the task's file in its order, with the declared `columns`; `None` if unclear.

    Instants have microseconds, as in results of Spark.
    """
    if not all(map(is_alike, columns)) or task.file.stat().st_size > MOST_BYTES:
        return None
    kinds = [_MICROS_UTC if pa.types.is_timestamp(each.type) else each.type for each in columns]
    try:
        match task.read:
            case ReadStepCsv():
                values = _of_csv(task, task.read, columns)
            case ReadStepNdJson():
                values = _of_json(task, task.read, columns)
            case _:
                return None
        found = [pa.array(each, kind) for each, kind in zip(values, kinds, strict=True)]
    except (_UnclearError, ValueError, OverflowError, RecursionError, pa.ArrowException):
        return None
    lacks = [a.null_count > 0 and not each.nullable for a, each in zip(found, columns, strict=True)]
    return None if any(lacks) else pa.table(found, columns.names)


def _of_csv(task: IngestTask, read: ReadStepCsv, columns: pa.Schema) -> list[list[Any]]:
    """The values of each column."""
    separator = read.separator or ","
    unusual = (read.quote not in (None, '"'), read.escape is not None, read.null_value)
    if separator not in (",", ";", "\t", "|") or any(unusual):
        raise _UnclearError
    text = _text(task, read)
    if '"' in text:
        raise _UnclearError
    lines = text.removesuffix("\n").split("\n")
    if read.header and lines.pop(0).split(separator) != columns.names:
        raise _UnclearError
    cells = [line.split(separator) for line in lines]
    if any(len(row) != len(columns) or not any(row) for row in cells):
        raise _UnclearError
    converters = [_converter(each.type) for each in columns]
    return [
        [of(cell) if (cell := row[at]) else None for row in cells]
        for at, of in enumerate(converters)
    ]


def _of_json(task: IngestTask, read: ReadStepNdJson, columns: pa.Schema) -> list[list[Any]]:
    """The values of each column; what a line has not is null."""
    return _of_lines(_text(task, read), columns)


def json_values(text: bytes, columns: pa.Schema) -> list[list[Any]] | None:
    """The values of each column, of whole lines of JSON; `None` if unclear."""
    try:
        return _of_lines(text.decode(), columns)
    except (_UnclearError, ValueError, OverflowError, RecursionError):
        return None


def _of_lines(text: str, columns: pa.Schema) -> list[list[Any]]:
    names, rows = {*columns.names}, []
    for line in text.removesuffix("\n").split("\n"):
        members = json.loads(
            line,
            object_pairs_hook=_members,
            parse_float=lambda text: float(_in(_FRACTION, text)),
            parse_int=lambda text: int(_in(_WHOLE, text)),
            parse_constant=_in_no_form,
        )
        if not isinstance(members, dict) or not members.keys() <= names:
            raise _UnclearError
        rows.append(members)
    return [[_of_member(row.get(each.name), each.type) for row in rows] for each in columns]


def _members(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _UnclearError
    return found


def _in_no_form(constant: str) -> None:
    raise _UnclearError


def _of_member(value: Any, kind: pa.DataType) -> Any:
    """A value of JSON in the type of its column."""
    t = pa.types
    if value is None:
        return None
    if isinstance(value, str) and value and (t.is_string(kind) or t.is_temporal(kind)):
        return _converter(kind)(value)
    wanted = bool if t.is_boolean(kind) else int if t.is_signed_integer(kind) else float
    plain = t.is_boolean(kind) or t.is_signed_integer(kind) or t.is_float64(kind)
    if not plain or type(value) is not wanted:
        raise _UnclearError
    return value


def _text(task: IngestTask, read: ReadStepCsv | ReadStepNdJson) -> str:
    formats = {each.lower() for each in (read.date_format, read.timestamp_format) if each}
    if (read.encoding or "utf8").lower() not in ("utf8", "utf-8") or formats - {"rfc3339"}:
        raise _UnclearError
    text = task.file.read_bytes().decode()
    if not text or text[0] == "\ufeff" or _UNUSUAL.search(text):
        raise _UnclearError
    return text


def _converter(kind: pa.DataType) -> Callable[[str], Any]:
    """What makes a value of a cell that is not empty."""
    t = pa.types
    if t.is_string(kind):
        return _as_text
    if t.is_boolean(kind):
        return _as_flag
    if t.is_signed_integer(kind):
        return lambda cell: int(_in(_WHOLE, cell))
    if t.is_float64(kind):
        return lambda cell: float(_in(_FRACTION, cell))
    if t.is_date32(kind):
        return lambda cell: date.fromisoformat(_in(_DAY, cell))
    if t.is_timestamp(kind):
        return _as_time
    if t.is_decimal128(kind):
        return lambda cell: _as_decimal(cell, kind)
    raise _UnclearError


def _in(form: re.Pattern[str], cell: str) -> str:
    if form.fullmatch(cell) is None:
        raise _UnclearError
    return cell


def _as_text(cell: str) -> str:
    if cell[0] <= " " or cell[-1] <= " ":
        raise _UnclearError
    return cell


def _as_flag(cell: str) -> bool:
    if cell not in ("true", "false"):
        raise _UnclearError
    return cell == "true"


def _as_time(cell: str) -> datetime:
    return datetime.fromisoformat(_in(_TIME, cell).removesuffix("Z") + "+00:00")


def _as_decimal(cell: str, kind: pa.DataType) -> Decimal:
    whole, _, behind = _in(_DIGITS, cell).lstrip("-").partition(".")
    if len(behind) > kind.scale or len(whole) > kind.precision - kind.scale:
        raise _UnclearError
    return Decimal(cell)

"""Records of small files whose values have one meaning only, read without Spark.

Spark takes a fifth of a second to plan how ten records are read, for each file anew. Here a file is
read if each value has a plain form of its declared type, of which nobody makes anything else. Any
other value, and any option that changes how values are read, leaves the whole file to Spark: what
is wrong with it is found, and told, there.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.reading.plain_text import Unclear, plain_lines, separator_of
from odfbuild.engine.spark.results.local_rows import MOST_BYTES, is_alike
from odfbuild.odf.model import ReadStepCsv, ReadStepNdJson

_MICROS_UTC = pa.timestamp("us", "UTC")
_WHOLE = re.compile(r"(0|-?[1-9]\d{0,17})", re.ASCII)
_FRACTION = re.compile(r"(?!-[0.]*$)-?(0|[1-9]\d{0,6})(\.\d{1,6})?", re.ASCII)
_DIGITS = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?", re.ASCII)
_DAY = re.compile(r"(1[6-9]|2\d)\d\d-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"(1[6-9]|2\d)\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{3})?Z?", re.ASCII)


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
                values = _of_csv(_text(task), task.read, columns)
            case ReadStepNdJson():
                values = json_values(_text(task), columns)
            case _:
                return None
        found = [pa.array(each, kind) for each, kind in zip(values, kinds, strict=True)]
    except (Unclear, csv.Error, ValueError, OverflowError, RecursionError, pa.ArrowException):
        return None
    lacks = [a.null_count > 0 and not each.nullable for a, each in zip(found, columns, strict=True)]
    return None if any(lacks) else pa.table(found, columns.names)


def _of_csv(text: str, read: ReadStepCsv, columns: pa.Schema) -> list[list[Any]]:
    """The values of each column."""
    lines = text.removesuffix("\n").split("\n")
    cells = [*csv.reader(lines, delimiter=read.separator or ",", strict=True)]
    if read.header and cells.pop(0) != columns.names:
        raise Unclear("another header than is declared")
    if any(len(row) != len(columns) or not any(row) for row in cells):
        raise Unclear("a line with another number of values, or without any")
    converters = [_converter(each.type) for each in columns]
    return [
        [of(cell) if (cell := row[at]) else None for row in cells]
        for at, of in enumerate(converters)
    ]


def json_values(text: str, columns: pa.Schema) -> list[list[Any]]:
    """The values of each column, of lines of JSON; what a line has not is null.

    Raises `Unclear`, or what `json.loads` does.
    """
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
            raise Unclear("a line that is no object, or has other members")
        rows.append(members)
    return [[_of_member(row.get(each.name), each.type) for row in rows] for each in columns]


def _members(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Unclear("two members of one name")
    return found


def _in_no_form(constant: str) -> None:
    raise Unclear(constant)


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
        raise Unclear("a value in a form of its own")
    return value


def _text(task: IngestTask) -> str:
    text = task.file.read_bytes()
    if not text or text.startswith(b"\xef\xbb\xbf"):
        raise Unclear("no bytes, or a mark of their order")
    return plain_lines(text, separator_of(task.read)).decode()


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
    raise Unclear("a value in a form of its own")


def _in(form: re.Pattern[str], cell: str) -> str:
    if form.fullmatch(cell) is None:
        raise Unclear("a value in a form of its own")
    return cell


def _as_text(cell: str) -> str:
    if cell[0] <= " " or cell[-1] <= " ":
        raise Unclear("a value in a form of its own")
    return cell


def _as_flag(cell: str) -> bool:
    if cell not in ("true", "false"):
        raise Unclear("a value in a form of its own")
    return cell == "true"


def _as_time(cell: str) -> datetime:
    return datetime.fromisoformat(_in(_TIME, cell).removesuffix("Z") + "+00:00")


def _as_decimal(cell: str, kind: pa.DataType) -> Decimal:
    whole, _, behind = _in(_DIGITS, cell).lstrip("-").partition(".")
    if len(behind) > kind.scale or len(whole) > kind.precision - kind.scale:
        raise Unclear("a value in a form of its own")
    return Decimal(cell)

"""Describe what is wrong with a bad record, and its place in the file."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from itertools import islice
from math import isinf
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.engine.contract import NO_DRIFT, BadRecord, Drift, IngestTask
from odfbuild.engine.spark.reading.csv_header import first_row, split
from odfbuild.engine.spark.reading.read_count import ReadCount
from odfbuild.engine.spark.reading.source_text import SourceText, shown
from odfbuild.engine.spark.results.frames import to_spark_type
from odfbuild.engine.spark.results.hidden import SEPARATOR
from odfbuild.errors import Location
from odfbuild.odf.model import ReadStep, ReadStepCsv
from odfbuild.records.uuids import is_uuid
from odfbuild.values import Value

FORM = "the form of the record"
_TIME = pa.timestamp("us", "UTC")


class Source(Value):
    """How the records of a task came to be: what explaining a bad one needs.

    `text` is `None` where the source is no text, `columns` where the data decides its schema.
    `drift` is what was fitted already, `read` how many records tasks have read of how many.
    """

    text: SourceText | None
    columns: pa.Schema | None
    drift: Drift = NO_DRIFT
    read: ReadCount | None = None


class Flaw(Value):
    """What Spark noticed of one record.

    `what` is the text of the record for the kind `row`; for `value` the column, the name of its
    type, the value and, in Parquet, the row, with `SEPARATOR` between; otherwise the column, whose
    value is `missing` or in no `year` of the calendar.
    """

    kind: str
    what: str

    @property
    def column(self) -> str:
        """The column that it is about."""
        return self._part(0)

    @property
    def type_name(self) -> str:
        """What the value is not."""
        return self._part(1)

    @property
    def value(self) -> str:
        """The value as it is written in the source."""
        return self._part(2)

    @property
    def row(self) -> int | None:
        """Number of the row, from 0, where the source is no text."""
        return int(self._part(3)) if self._part(3).isdigit() else None

    def _part(self, index: int) -> str:
        parts = self.what.split(SEPARATOR)
        return parts[index] if index < len(parts) else ""


def described(flaws: Sequence[Flaw], task: IngestTask, source: Source) -> list[BadRecord]:
    """`flaws`, of records in the order of the file, with reasons and places.

    The file is read once, up to the last of them.
    """
    waiting = [_Sought(flaw, task, source) for flaw in flaws]
    every = list(waiting)
    for number, line in _records(source.text, task.read) if source.text else ():
        if not waiting:
            break
        found = next((each for each in waiting if each.is_at(line)), None)
        if found is not None:
            found.number, found.line = number, line
            waiting.remove(found)
    return [each.found() for each in every]


def places_of(records: Collection[int], task: IngestTask, source: Source) -> dict[int, Location]:
    """Where `records` of a file stand, by their numbers from 0."""
    text, name = source.text, task.source_name
    if text is None:
        return {each: Location(name, instance=f"row {each + 1}") for each in records}
    lines = islice(enumerate(_records(text, task.read)), max(records) + 1)
    return {at: text.place(name, number, None, row) for at, (number, row) in lines if at in records}


def _records(text: SourceText, read: ReadStep) -> Iterator[tuple[int, str]]:
    """Lines that hold records, each with its number."""
    lines = ((number, line) for number, line in text.lines() if line.strip())
    return islice(lines, int(isinstance(read, ReadStepCsv) and bool(read.header)), None)


def flaw_of_row(row: str, task: IngestTask, columns: pa.Schema | None) -> str:
    """By what a record of the kind `row` is counted: its column, or its form."""
    return _reason(task, row, columns)[1]


class _Sought:
    """A flaw whose place is looked for."""

    def __init__(self, flaw: Flaw, task: IngestTask, source: Source) -> None:
        self._flaw, self._task, self._source = flaw, task, source
        self._read = task.read
        self.number: int | None = None
        self.line = flaw.what if flaw.kind == "row" else ""
        self._index = _index(flaw.column, task.read, source)
        self._nulls = {None, "", getattr(self._read, "null_value", None)}

    def is_at(self, line: str) -> bool:
        """Whether the flaw may be in this line."""
        if self._flaw.kind == "row":
            return line == self._flaw.what
        try:
            return self._is_flawed(self._cell(line))
        except (ValueError, KeyError, IndexError, AttributeError, TypeError, RecursionError):
            return False

    def _is_flawed(self, cell: Any) -> bool:
        match self._flaw.kind:
            case "missing" | "blank":
                return cell in self._nulls
            case "value" if isinstance(cell, dict | list):
                return bool(_without_nulls(cell) == _without_nulls(_as_written(self._flaw.value)))
            case "value":
                # Of a JSON number that is too large Spark tells no more than that.
                endless = self._flaw.value.endswith("Infinity") and isinstance(cell, str)
                same = str(cell) == self._flaw.value
                return cell is not None and (same or (endless and isinf(float(cell))))
        return cell not in self._nulls and not _is_time(str(cell))

    def _cell(self, line: str) -> Any:
        if isinstance(self._read, ReadStepCsv):
            return None if self._index < 0 else split(line, self._read)[self._index]
        return _as_written(line).get(self._flaw.column)

    def found(self) -> BadRecord:
        """The record, with what is known of it."""
        kind, column = self._flaw.kind, self._flaw.column
        text = self._source.text
        at: int | None = None
        label = f"column '{column}'"
        if kind == "row":
            reason, label, at = _reason(self._task, self.line, self._source.columns)
        elif kind == "value":
            reason = (
                f"'{shown(self._flaw.value)}' in column '{column}' is not {self._flaw.type_name}"
            )
        elif kind == "missing":
            reason = f"there is no value in column '{column}', which is NOT NULL"
        elif kind == "blank":
            reason = f"there is no event time in column '{column}'"
        else:
            reason = f"a time in column '{column}' is not in the years 1 to 9999"
        if text is None:
            return BadRecord(reason, Location(self._task.source_name, instance=self._row()), label)
        if isinstance(self._read, ReadStepCsv) and at is None and self.number and self._index >= 0:
            at = 1 + sum(len(cell) + 1 for cell in split(self.line, self._read)[: self._index])
        place = text.place(self._task.source_name, self.number, at, self.line)
        return BadRecord(reason, place, label)

    def _row(self) -> str | None:
        """Which row of a Parquet file it is."""
        number = self._flaw.row
        if self._flaw.kind in ("missing", "blank") and self._task.preprocess is None:
            number = _first_null(self._task, self._flaw.column)
        return None if number is None else f"row {number + 1}"


def _index(column: str, read: ReadStep, source: Source) -> int:
    """Which cell of a row of CSV the column is; -1 where that is unknown."""
    if not isinstance(read, ReadStepCsv) or source.text is None:
        return -1
    if source.columns is not None:
        return int(source.columns.get_field_index(column))
    names = first_row(source.text, read) if read.header else []
    return names.index(column) if column in names else -1


def _first_null(task: IngestTask, column: str) -> int | None:
    rows = 0
    with pq.ParquetFile(task.file) as file:
        if column not in file.schema_arrow.names:
            return None
        for batch in file.iter_batches(columns=[column]):
            at = pc.index(pc.is_null(batch.column(0)), True).as_py()
            if at >= 0:
                return rows + int(at)
            rows += batch.num_rows
    return None


def _as_written(text: str) -> Any:
    """JSON whose numbers are text, digit by digit."""
    return json.loads(text, parse_float=str, parse_int=str)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


# --- Rows that Spark could not parse ---


def _reason(task: IngestTask, row: str, columns: pa.Schema | None) -> tuple[str, str, int | None]:
    """What is wrong with a row, by what it is counted, and the column of the text where it is."""
    if isinstance(task.read, ReadStepCsv):
        return _csv_reason(task.read, row, columns)
    return *_json_reason(row, columns), None


def _csv_reason(
    read: ReadStepCsv, row: str, columns: pa.Schema | None
) -> tuple[str, str, int | None]:
    try:
        cells = split(row, read)
    except Exception:
        return "a row is not valid CSV", FORM, None
    if columns is None:
        return "a row has another number of cells than the header", FORM, None
    if len(cells) != len(columns):
        return f"a row has {len(cells)} cells where {len(columns)} are expected", FORM, None
    nulls = {"", read.null_value}
    at = 1
    for cell, field in zip(cells, columns, strict=True):
        if cell not in nulls and not _fits(cell, field.type):
            reason = f"'{shown(cell)}' in column '{field.name}' is not {type_name(field.type)}"
            return reason, f"column '{field.name}'", at
        at += len(cell) + 1
    return "a row does not fit the schema", FORM, None


def _json_reason(row: str, columns: Sequence[pa.Field] | None) -> tuple[str, str]:
    try:
        value = json.loads(row)
    except ValueError as error:
        return f"a line is not valid JSON ({error})", FORM
    except RecursionError:
        return "a line nests hundreds of values in one another", FORM
    if not isinstance(value, dict):
        return "a line is not a JSON object", FORM
    for field in columns or ():
        cell = value.get(field.name)
        text = isinstance(cell, str) and _is_number(field.type)
        if cell is not None and (text or not _fits(str(cell), field.type)):
            found = shown(json.dumps(cell))
            reason = f"{found} in column '{field.name}' is not {type_name(field.type)}"
            return reason, f"column '{field.name}'"
    return "a line does not fit the schema", FORM


def _fits(text: str, kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_string(kind):
        return True
    try:
        if text != text.strip():
            return False
        if types.is_integer(kind):
            low = -(2 ** (kind.bit_width - 1)) if types.is_signed_integer(kind) else 0
            bits = kind.bit_width - types.is_signed_integer(kind)
            whole = re.fullmatch(r"[+-]?\d+", text)
            return whole is not None and bool(low <= int(text) < 2**bits)
        if types.is_floating(kind):
            return text in ("NaN", "Infinity", "-Infinity", "Inf", "-Inf") or bool(
                re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text)
            )
        if types.is_decimal(kind):
            return Decimal(text).is_finite()
        if types.is_boolean(kind):
            return text.lower() in ("true", "false")
        if types.is_date(kind):
            date.fromisoformat(text)
        elif types.is_timestamp(kind):
            datetime.fromisoformat(text)
        elif types.is_time(kind):
            time.fromisoformat(text)
        elif types.is_nested(kind):
            return False
    except (ValueError, InvalidOperation):
        return False
    return True


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_time(text: str) -> bool:
    """Whether text is an instant of the years 1 to 9999, in RFC 3339 or in seconds since 1970."""
    if re.fullmatch(r"[+-]?\d+", text):
        return -62_135_596_800 <= int(text) < 253_402_300_800
    return _fits(text, _TIME)


def type_name(kind: pa.DataType) -> str:
    """A type as a schema in DDL says it."""
    if pa.types.is_unsigned_integer(kind):
        names = {8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT"}
        return f"{names[kind.bit_width]} UNSIGNED"
    if is_uuid(kind):
        return "UUID"
    return str(to_spark_type(kind).simpleString()).upper()

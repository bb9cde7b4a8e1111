"""Records that do not fit their schema: noticed while they are read, explained afterwards.

Spark keeps the text of a malformed row in a column of its own. A filter raises on it, because a
filter is computed whatever columns a query asks for; the place in the file is looked up only then.
With the policy to skip, such records are written aside instead and counted.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.contract import NO_DRIFT, BadRecord, Drift, IngestTask
from odfbuild.engine.spark.bad_records import BadRecords
from odfbuild.engine.spark.csv_header import split
from odfbuild.engine.spark.frames import quote, to_spark_type
from odfbuild.engine.spark.source_text import SourceText
from odfbuild.errors import IngestError, Location
from odfbuild.odf.model import ReadStepCsv

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CORRUPT = "__odfbuild_corrupt"
"""Holds the text of a row that does not fit."""
MISFIT = "__odfbuild_misfit"
"""Holds the name of a column whose value cannot be converted."""
_MARK = "odfbuild-bad-record"
_BAD_OPERATION = "odfbuild-bad-operation"
_FOUND = re.compile(_MARK + r":(\w+):([A-Za-z0-9+/=\s]*):")
_EXAMPLES = 20
_TIME = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class Source:
    """How the records of a task came to be: what explaining a bad one needs.

    `text` is `None` where the source is no text, `columns` where the data decides its schema.
    `event_time` is the column that will be converted to a time, `drift` what was fitted already.
    """

    text: SourceText | None
    columns: pa.Schema | None
    event_time: str | None = None
    drift: Drift = NO_DRIFT


# --- Noticing ---


def guard(frame: DataFrame, task: IngestTask, source: Source, bad: BadRecords) -> DataFrame:
    """`frame` without bad records, and without its columns `CORRUPT` and `MISFIT`.

    Computing it raises at a bad record (`explain` then says where), unless bad records are skipped:
    then they are counted in `bad` here and now.
    """
    flaws = _flaws(frame, source)
    names = [quote(name) for name in frame.columns if name not in (CORRUPT, MISFIT)]
    if not flaws:
        return frame.selectExpr(*names)
    found = " ".join(f"WHEN {condition} THEN {tag}" for condition, tag in flaws)
    tag = f"CASE {found} END"
    # All columns are part of the test: Spark converts only cells that are asked for, and a cell
    # that is never converted is never found to be wrong.
    every = f"CAST(struct({', '.join(names)}) AS STRING)"
    is_bad = " OR ".join(f"({condition})" for condition, _ in flaws)
    if task.skip_bad_records:
        folder = task.scratch / "bad"
        aside = frame.where(f"CASE WHEN {is_bad} THEN length({every}) >= 0 ELSE false END")
        aside.selectExpr(f"{tag} AS tag").write.parquet(str(folder))
        _count(pq.read_table(folder).column("tag"), task, source, bad)
        fails = f"length({every}) < 0"
    else:
        fails = f"raise_error(concat('{_MARK}:', {tag}, ':', {every})) IS NULL"
    return frame.where(f"CASE WHEN {is_bad} THEN {fails} ELSE true END").selectExpr(*names)


def _flaws(frame: DataFrame, source: Source) -> list[tuple[str, str]]:
    """Conditions under which a record is bad, each with SQL for `kind:what`, what in base64."""
    flaws = []
    for column, kind in ((CORRUPT, "row"), (MISFIT, "range")):
        if column in frame.columns:
            found = f"concat('{kind}:', base64(encode({column}, 'utf-8')))"
            flaws.append((f"{column} IS NOT NULL", found))
    types = {field.name: field.dataType.typeName() for field in frame.schema.fields}
    for field in source.columns or ():
        if field.name not in types:
            continue
        name = quote(field.name)
        if not field.nullable:
            flaws.append((f"{name} IS NULL", _tag("missing", field.name)))
        if pa.types.is_unsigned_integer(field.type):
            top = 2**field.type.bit_width - 1
            flaws.append((f"NOT ({name} BETWEEN 0 AND {top})", _tag("range", field.name)))
    for column, kind in types.items():
        time = quote(column)
        if column == source.event_time:
            time = as_time(column, kind)
            flaws.append((f"{quote(column)} IS NOT NULL AND {time} IS NULL", _tag("time", column)))
        if column == source.event_time or kind in ("date", "timestamp", "timestamp_ntz"):
            flaws.append((f"NOT (year({time}) BETWEEN 1 AND 9999)", _tag("year", column)))
    return flaws


def as_time(column: str, kind: str, target: str = "TIMESTAMP") -> str:
    """SQL for a timestamp from text (RFC 3339) or a number (seconds since 1970), NULL for others.

    Spark fills in what a text leaves out: it takes `10:00` for that time of the day of the run, and
    `2026` for its first instant. So a date has to stand in front.
    """
    text = quote(column)
    if kind == "string":
        return f"CASE WHEN substring({text}, 5, 1) = '-' THEN try_cast({text} AS {target}) END"
    return f"try_cast(try_cast({quote(column)} AS BIGINT) AS TIMESTAMP)"


def _tag(kind: str, column: str) -> str:
    return f"'{kind}:{base64.b64encode(column.encode()).decode()}'"


def _count(tags: pa.ChunkedArray, task: IngestTask, source: Source, bad: BadRecords) -> None:
    for tag in tags.slice(0, _EXAMPLES):
        kind, what = tag.as_py().split(":", 1)
        bad.add(_describe(kind, _decoded(what), task, source))
    bad.count += max(0, len(tags) - _EXAMPLES)


def bad_operation(column: str) -> str:
    """SQL that raises because `column` holds no operation; `explain` says so."""
    found = f"coalesce(CAST({column} AS STRING), 'NULL')"
    return f"CAST(raise_error(concat('{_BAD_OPERATION}:', {found}, ':')) AS INT)"


# --- Explaining ---


def explain(
    error: Exception, task: IngestTask, source: Source, bad: BadRecords
) -> IngestError | None:
    """What `error` says about the source, with the place; `None` when it is something else."""
    text = str(error)
    operation = re.search(_BAD_OPERATION + r":(NULL|-?\d+):", text)
    if operation is not None:
        return IngestError(
            f"a row of '{task.source_name}' has {operation.group(1)} in the column "
            f"'{task.vocab.operation_type}', which is no operation",
            code="E0434",
            dataset=task.dataset,
            notes=("0 appends, 1 retracts, 2 and 3 correct from and to",),
            help="translate it in `preprocess`",
        )
    found = _FOUND.search(text)
    if found is not None:
        kind, what = found.groups()
        return bad.error(_describe(kind, _decoded(what), task, source))
    if "FAILED_READ_FILE" in text or "CANNOT_READ_FILE" in text:
        return IngestError(
            f"'{task.source_name}' cannot be read to its end",
            code="E0423",
            location=Location(task.source_name),
            help="check that the file is complete and of the kind that `read.kind` says",
            dataset=task.dataset,
        )
    return None


def _decoded(row: str) -> str:
    return base64.b64decode(row).decode("utf-8", "replace").rstrip("\r\n")


def _describe(kind: str, what: str, task: IngestTask, source: Source) -> BadRecord:
    """`what` is the text of the row for kind `row`, otherwise the name of a column."""
    text, columns = source.text, source.columns
    if kind == "row":
        reason, column = _reason(task, what, columns)
        found = _first_line(text, lambda each: each == what, task)
        number, row = found[0] if found else None, what
    else:
        index = columns.get_field_index(what) if columns is not None else -1
        declared = None if columns is None or index < 0 else columns.field(index).type
        reason, is_it = _reason_of_column(kind, what, declared)
        nulls = {None, "", getattr(task.read, "null_value", None)}
        found = _first_line(text, lambda each: is_it(_cell(task, each, index, what), nulls), task)
        number, row = found or (None, "")
        column = None
        if kind == "range" and found is not None and columns is not None:
            reason, column = _reason(task, row, columns)
    if text is None:
        return BadRecord(reason, Location(task.source_name))
    return BadRecord(reason, text.place(task.source_name, number, column, row))


def _reason_of_column(
    kind: str, name: str, declared: pa.DataType | None
) -> tuple[str, Callable[[Any, set[Any]], bool]]:
    """What is wrong with a value, and how to recognise one in the text of the source."""
    match kind:
        case "missing":
            reason = f"there is no value in column '{name}', which is NOT NULL"
            return reason, lambda cell, nulls: cell in nulls
        case "range":
            reason = f"a value in column '{name}' is not {_name(declared)}"
            return reason, lambda cell, nulls: not _fits(str(cell), declared)
        case "time":
            reason = f"a value in column '{name}' is not a time (RFC 3339, or seconds since 1970)"
            return reason, lambda cell, nulls: cell not in nulls and not _is_time(str(cell))
    reason = f"a time in column '{name}' is not in the years 1 to 9999"
    return reason, lambda cell, nulls: cell not in nulls and not _is_time(str(cell))


def _first_line(
    text: SourceText | None, test: Callable[[str], bool], task: IngestTask
) -> tuple[int, str] | None:
    """The first line that `test` finds, passing over the header and what cannot be parsed."""
    header = isinstance(task.read, ReadStepCsv) and task.read.header
    for number, line in text.lines() if text else ():
        try:
            if not line.strip():
                continue
            if header:
                header = False
            elif test(line):
                return number, line
        except (ValueError, KeyError, IndexError, AttributeError, TypeError):
            continue
    return None


def _cell(task: IngestTask, line: str, index: int, name: str) -> Any:
    if isinstance(task.read, ReadStepCsv):
        return None if index < 0 else split(line, task.read)[index]
    return json.loads(line).get(name)


def _reason(task: IngestTask, row: str, columns: pa.Schema | None) -> tuple[str, int | None]:
    if isinstance(task.read, ReadStepCsv):
        return _csv_reason(task.read, row, columns)
    return _json_reason(row, columns), None


def _csv_reason(read: ReadStepCsv, row: str, columns: pa.Schema | None) -> tuple[str, int | None]:
    try:
        cells = split(row, read)
    except Exception:
        return "a row is not valid CSV", None
    if columns is None:
        return "a row has another number of cells than the header", None
    if len(cells) != len(columns):
        return f"a row has {len(cells)} cells where {len(columns)} are expected", None
    nulls = {"", read.null_value}
    at = 1
    for cell, field in zip(cells, columns, strict=True):
        if cell not in nulls and not _fits(cell, field.type):
            return f"'{cell}' in column '{field.name}' is not {_name(field.type)}", at
        at += len(cell) + 1
    return "a row does not fit the schema", None


def _json_reason(row: str, columns: Sequence[pa.Field] | None) -> str:
    try:
        value = json.loads(row)
    except ValueError as error:
        return f"a line is not valid JSON ({error})"
    if not isinstance(value, dict):
        return "a line is not a JSON object"
    for field in columns or ():
        cell = value.get(field.name)
        text = isinstance(cell, str) and _is_number(field.type)
        if cell is not None and (text or not _fits(str(cell), field.type)):
            return f"{json.dumps(cell)} in column '{field.name}' is not {_name(field.type)}"
    return "a line does not fit the schema"


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
            return bool(low <= int(text) < 2**bits)
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


def _name(kind: pa.DataType) -> str:
    if pa.types.is_unsigned_integer(kind):
        names = {8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT"}
        return f"{names[kind.bit_width]} UNSIGNED"
    return str(to_spark_type(kind).simpleString()).upper()

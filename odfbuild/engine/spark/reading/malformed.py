"""Detect records that do not match their schema while they are read.

Spark keeps the text of a malformed row in a column of its own. A filter raises on it, because a
filter is computed whatever columns a query asks for; the place in the file is looked up only then
(`bad_places`). With the policy to skip, such records are written aside instead and counted.
"""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.reading.bad_places import Flaw, Source, type_name
from odfbuild.engine.spark.reading.bad_records import BadRecords
from odfbuild.engine.spark.results.executor import write_parts
from odfbuild.engine.spark.results.frames import literal, quote
from odfbuild.engine.spark.results.hidden import CORRUPT, MISFIT, SEPARATOR
from odfbuild.errors import IngestError, Location
from odfbuild.odf.model import MergeStrategyUpsertStream
from odfbuild.odf.operation import RETRACT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MARK = "odfbuild-bad-record"
_BAD_OPERATION = "odfbuild-bad-operation"
_FOUND = re.compile(_MARK + r":(\w+):([A-Za-z0-9+/=\s]*):")
_YEARS = {
    "date": "DATE'0001-01-01' AND DATE'9999-12-31'",
    "timestamp": "TIMESTAMP'0001-01-01' AND TIMESTAMP'9999-12-31 23:59:59.999999'",
    "timestamp_ntz": "TIMESTAMP_NTZ'0001-01-01' AND TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'",
}


def guard(frame: DataFrame, task: IngestTask, source: Source, bad: BadRecords) -> DataFrame:
    """`frame` without bad records, and without its columns `CORRUPT` and `MISFIT`.

    Computing it raises at a bad record (`explain` then says where), unless bad records are skipped:
    then they are counted in `bad` here and now.
    """
    flaws = _flaws(frame, source)
    if task.preprocess is None and task.blank_event_times == "fail":
        flaws += _blank_times(frame, task, source)
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
        write_parts(aside.selectExpr(f"{tag} AS tag"), folder)
        tags = pq.read_table(folder).column("tag")
        bad.skip([_flaw(*tag.as_py().split(":", 1)) for tag in tags], source)
        fails = f"length({every}) < 0"
    else:
        fails = f"raise_error(concat('{_MARK}:', {tag}, ':', {every})) IS NULL"
    return frame.where(f"CASE WHEN {is_bad} THEN {fails} ELSE true END").selectExpr(*names)


def guard_times(frame: DataFrame, task: IngestTask, source: Source, bad: BadRecords) -> DataFrame:
    """`frame`, the result of preprocessing, without records that have no event time.

    As `guard`, which does it where nothing is preprocessed; no place can be told.
    """
    unplaced = replace(source, text=None)
    flaws = _blank_times(frame, task, unplaced) if task.blank_event_times == "fail" else []
    if not flaws:
        return frame
    [(condition, tag)] = flaws
    if task.skip_bad_records:
        count = frame.where(condition).count()
        bad.skip([Flaw("blank", task.vocab.event_time)] * count, unplaced)
        return frame.where(f"NOT ({condition})")
    fails = f"raise_error(concat('{_MARK}:', {tag}, ':')) IS NULL"
    return frame.where(f"CASE WHEN {condition} THEN {fails} ELSE true END")


def _blank_times(frame: DataFrame, task: IngestTask, source: Source) -> list[tuple[str, str]]:
    """The condition of a record without an event time in the column for it, where there is one.

    A record of an upsert stream that retracts needs nothing but its key.
    """
    names, vocab = frame.columns, task.vocab
    required = [field.name for field in source.columns or () if not field.nullable]
    if vocab.event_time not in names or (task.preprocess is None and vocab.event_time in required):
        return []
    blank = f"{quote(vocab.event_time)} IS NULL"
    if isinstance(task.merge, MergeStrategyUpsertStream) and vocab.operation_type in names:
        blank += f" AND NOT ({quote(vocab.operation_type)} <=> {RETRACT})"
    return [(blank, _tag("blank", literal(vocab.event_time)))]


def _flaws(frame: DataFrame, source: Source) -> list[tuple[str, str]]:
    """Conditions under which a record is bad, each with SQL for `kind:what`, what in base64."""
    flaws = []
    for column, kind in ((CORRUPT, "row"), (MISFIT, "value")):
        if column in frame.columns:
            flaws.append((f"{column} IS NOT NULL", _tag(kind, column)))
    types = {field.name: field.dataType.typeName() for field in frame.schema.fields}
    for field in source.columns or ():
        if field.name not in types:
            continue
        name = quote(field.name)
        if not field.nullable:
            flaws.append((f"{name} IS NULL", _tag("missing", literal(field.name))))
        if pa.types.is_unsigned_integer(field.type):
            top = 2**field.type.bit_width - 1
            begin = literal(SEPARATOR.join((field.name, type_name(field.type), "")))
            what = f"concat({begin}, CAST({name} AS STRING))"
            flaws.append((f"NOT ({name} BETWEEN 0 AND {top})", _tag("value", what)))
    for column, kind in types.items():
        if kind in _YEARS:
            known = f"{quote(column)} BETWEEN {_YEARS[kind]}"
            flaws.append((f"NOT ({known})", _tag("year", literal(column))))
    return flaws


def _tag(kind: str, what: str) -> str:
    return f"concat('{kind}:', base64(encode({what}, 'utf-8')))"


def _flaw(kind: str, what: str) -> Flaw:
    return Flaw(kind, base64.b64decode(what).decode("utf-8", "replace").rstrip("\r\n"))


def bad_operation(column: str) -> str:
    """SQL that raises because `column` holds no operation; `explain` says so."""
    found = f"coalesce(CAST({column} AS STRING), 'NULL')"
    return f"CAST(raise_error(concat('{_BAD_OPERATION}:', {found}, ':')) AS INT)"


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
        flaw = _flaw(*found.groups())
        if flaw.kind == "blank" and task.preprocess is not None:
            source = replace(source, text=None)
        found_there = bad.describe([flaw], source)[0]
        return bad.blank(found_there) if flaw.kind == "blank" else bad.error(found_there)
    if "FAILED_READ_FILE" in text or "CANNOT_READ_FILE" in text:
        return IngestError(
            f"'{task.source_name}' cannot be read to its end",
            code="E0423",
            location=Location(task.source_name),
            help="check that the file is complete and of the kind that `read.kind` says",
            dataset=task.dataset,
        )
    return None

"""Merge strategies: what of a batch becomes history, in which order.

Append keeps everything, ledger the rows whose key was never seen, snapshot the differences to the
current state. Keys and values are compared null-safely, and each side of a comparison is a struct
that is null only where the side is absent, so that a NULL neither loses nor repeats a row, as it
may in the reference. Duplicate keys of one batch are kept, as there.
Source: specification, "Merge Strategies"; reference behaviour, merge strategies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from odfbuild.engine.contract import EngineResult, IngestTask
from odfbuild.engine.spark.frames import quote, to_arrow_schema, to_spark_type, write_parts
from odfbuild.engine.spark.malformed import explain
from odfbuild.engine.spark.prior import current_state, seen_keys
from odfbuild.engine.spark.read import declared_columns
from odfbuild.errors import IngestError
from odfbuild.odf.model import (
    MergeStrategyAppend,
    MergeStrategyLedger,
    MergeStrategySnapshot,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROW = "__odfbuild_row"
_NEW = "__odfbuild_new"
_OLD = "__odfbuild_old"
_APPEND, _RETRACT, _CORRECT_FROM, _CORRECT_TO = 0, 1, 2, 3


def merge(spark: SparkSession, frame: DataFrame, task: IngestTask) -> EngineResult:
    """Merge `frame`, in input order, with the history of `task` and write the result.

    Raises `IngestError` for columns that are missing, reserved or changed, and for malformed rows.
    """
    declared = declared_columns(task.read)
    try:
        result = merged(spark, frame, task)
        parts = write_parts(result, task.scratch / "parts")
    except Exception as error:
        explained = explain(error, task, declared)
        if explained is None:
            raise
        raise explained from None
    return EngineResult(parts=parts, schema=_result_schema(result, task, declared))


def merged(spark: SparkSession, frame: DataFrame, task: IngestTask) -> DataFrame:
    """The lazy result of `merge`: op, event time, then the data columns of `frame`."""
    frame = _conformed(frame, task)
    strategy = task.merge
    _check_types(frame, task)
    if isinstance(strategy, MergeStrategyAppend):
        return _by_event_time(frame, task)
    if isinstance(strategy, MergeStrategyLedger):
        _check_columns(task, "primaryKey", strategy.primary_key, frame.columns)
        seen = seen_keys(spark, frame, task, strategy.primary_key)
        if seen is not None:
            frame = _unseen(frame, seen, strategy.primary_key)
        return _by_event_time(frame, task)
    if isinstance(strategy, MergeStrategySnapshot):
        _check_columns(task, "primaryKey", strategy.primary_key, frame.columns)
        if strategy.compare_columns is not None:
            _check_columns(task, "compareColumns", strategy.compare_columns, frame.columns)
        state = current_state(spark, frame, task, strategy.primary_key)
        if state is None:
            changes = _all_appended(frame)
        else:
            changes = _differences(frame, state, task, strategy)
        return _by_key(changes, task, strategy.primary_key)
    raise IngestError(
        f"the merge step '{strategy.KIND}' is not supported by this version of odfbuild",
        code="E0410",
        dataset=task.dataset,
        help="use one of: Append, Ledger, Snapshot",
    )


# --- Input ---


def _conformed(frame: DataFrame, task: IngestTask) -> DataFrame:
    """Check system columns, bring timestamps to milliseconds UTC, add event time and row number."""
    vocab = task.vocab
    reserved = {vocab.offset, vocab.system_time, vocab.operation_type}
    columns = []
    for field in frame.schema.fields:
        name, kind = quote(field.name), field.dataType.typeName()
        if field.name.lower() in {each.lower() for each in reserved}:
            raise IngestError(
                f"the data has a column '{field.name}', which is a system column",
                code="E0431",
                dataset=task.dataset,
                help="rename it in `preprocess`, or rename the system column with SetVocab",
            )
        if field.name == vocab.event_time and kind not in ("date", "timestamp", "timestamp_ntz"):
            raise IngestError(
                f"the event time column '{field.name}' is a {kind}, not a date or timestamp",
                code="E0433",
                dataset=task.dataset,
                help="declare it as TIMESTAMP or DATE, or convert it in `preprocess`",
            )
        if kind.startswith("timestamp"):
            columns.append(f"date_trunc('MILLISECOND', CAST({name} AS TIMESTAMP)) AS {name}")
        else:
            columns.append(name)
    if vocab.event_time not in frame.columns:
        columns.append(f"CAST(NULL AS {_event_time_type(task)}) AS {quote(vocab.event_time)}")
    return frame.selectExpr(*columns, f"monotonically_increasing_id() AS {_ROW}")


def _event_time_type(task: IngestTask) -> str:
    history = task.history_schema
    if history is not None and pa.types.is_date(history.field(task.vocab.event_time).type):
        return "DATE"
    return "TIMESTAMP"


def _check_types(frame: DataFrame, task: IngestTask) -> None:
    """Refuse columns whose type is no longer the committed one."""
    if task.history_schema is None:
        return
    old = {field.name: to_spark_type(field.type) for field in task.history_schema}
    for field in frame.schema.fields:
        if field.name in old and old[field.name] != field.dataType:
            raise IngestError(
                f"column '{field.name}' is {field.dataType.simpleString().upper()} in the source "
                f"and {old[field.name].simpleString().upper()} in '{task.dataset}'",
                code="E0432",
                dataset=task.dataset,
                help="convert it back in `preprocess`, or define a new dataset",
            )


def _check_columns(task: IngestTask, role: str, names: Sequence[str], found: Sequence[str]) -> None:
    from difflib import get_close_matches

    columns = [name for name in found if name != _ROW]
    if not names:
        raise IngestError(
            f"`merge.{role}` is empty",
            code="E0430",
            dataset=task.dataset,
            help=f"name at least one of: {', '.join(columns)}",
        )
    for name in names:
        if name not in columns:
            close = get_close_matches(name, columns, n=1)
            raise IngestError(
                f"`merge.{role}` names the column '{name}', which the data has not",
                code="E0430",
                dataset=task.dataset,
                notes=(f"its columns are: {', '.join(columns)}",),
                help=f"did you mean '{close[0]}'?" if close else f"correct `merge.{role}`",
            )


# --- Strategies ---


def _unseen(frame: DataFrame, seen: DataFrame, key: Sequence[str]) -> DataFrame:
    """Rows whose key is not among those `seen`."""
    keys = seen.selectExpr(*[f"{quote(k)} AS {quote('__odfbuild_key_' + k)}" for k in key])
    same = " AND ".join(f"{quote(k)} <=> {quote('__odfbuild_key_' + k)}" for k in key)
    return frame.join(keys, _expr(same), "left_anti")


def _differences(
    frame: DataFrame, state: DataFrame, task: IngestTask, strategy: MergeStrategySnapshot
) -> DataFrame:
    """Operations that turn the current state into `frame`, in one pass over the joined sides."""
    key = strategy.primary_key
    columns = [name for name in frame.columns if name != _ROW]
    compared = strategy.compare_columns or [name for name in columns if name not in key]
    new = frame.selectExpr(f"struct(*) AS {_NEW}")
    absent = {f.name: f.dataType.simpleString() for f in frame.schema.fields}
    values = [
        quote(name) if name in state.columns else f"CAST(NULL AS {absent[name]})"
        for name in columns
    ]
    old_fields = ", ".join(
        f"{value} AS {quote(name)}" for name, value in zip(columns, values, strict=True)
    )
    row = f"{quote(task.vocab.offset)} AS {_ROW}"
    old = state.selectExpr(f"struct({old_fields}, {row}) AS {_OLD}")
    same_key = " AND ".join(f"{_NEW}.{quote(k)} <=> {_OLD}.{quote(k)}" for k in key)
    changed = " OR ".join(_is_changed(name, task) for name in compared) or "false"
    sides = new.join(old, _expr(same_key), "full_outer")
    operations = (
        f"CASE WHEN {_OLD} IS NULL THEN array({_record(_APPEND, _NEW, columns)}) "
        f"WHEN {_NEW} IS NULL THEN array({_record(_RETRACT, _OLD, columns)}) "
        f"WHEN {changed} THEN array({_record(_CORRECT_FROM, _OLD, columns)}, "
        f"{_record(_CORRECT_TO, _NEW, columns)}) END"
    )
    return sides.selectExpr(f"inline({operations})")


def _is_changed(name: str, task: IngestTask) -> str:
    new, old = f"{_NEW}.{quote(name)}", f"{_OLD}.{quote(name)}"
    different = f"NOT ({new} <=> {old})"
    if name == task.vocab.event_time:
        # A batch without event time says nothing about it.
        return f"({new} IS NOT NULL AND {different})"
    return different


def _record(operation: int, side: str, columns: Sequence[str]) -> str:
    fields = [f"{side}.{quote(name)} AS {quote(name)}" for name in columns]
    return f"struct({operation} AS __odfbuild_op, {', '.join(fields)}, {side}.{_ROW} AS {_ROW})"


def _all_appended(frame: DataFrame) -> DataFrame:
    return frame.selectExpr(f"{_APPEND} AS __odfbuild_op", "*")


# --- Output ---


def _by_event_time(frame: DataFrame, task: IngestTask) -> DataFrame:
    filled = _filled(_all_appended(frame), task)
    order = [quote(task.vocab.event_time), _ROW]
    return _output(filled.orderBy(*[_expr(each) for each in order]), task)


def _by_key(changes: DataFrame, task: IngestTask, key: Sequence[str]) -> DataFrame:
    order = [quote(k) for k in key] + ["__odfbuild_op", _ROW]
    ordered = changes.orderBy(*[_expr(each).asc_nulls_first() for each in order])
    return _output(_filled(ordered, task), task)


def _filled(frame: DataFrame, task: IngestTask) -> DataFrame:
    """Give records without event time that of the source."""
    name = task.vocab.event_time
    literal = f"timestamp_millis({task.event_time.millis})"
    kind = frame.schema[name].dataType.simpleString()
    filled = f"coalesce({quote(name)}, CAST({literal} AS {kind})) AS {quote(name)}"
    return frame.selectExpr(*[filled if c == name else quote(c) for c in frame.columns])


def _output(frame: DataFrame, task: IngestTask) -> DataFrame:
    vocab = task.vocab
    hidden = ("__odfbuild_op", _ROW, vocab.event_time)
    return frame.selectExpr(
        f"CAST(__odfbuild_op AS INT) AS {quote(vocab.operation_type)}",
        quote(vocab.event_time),
        *[quote(name) for name in frame.columns if name not in hidden],
    )


def _result_schema(result: DataFrame, task: IngestTask, declared: pa.Schema | None) -> pa.Schema:
    """Schema of the result; without preprocessing columns are as declared, unsigned ones too."""
    vocab = task.vocab
    schema = to_arrow_schema(result, [vocab.operation_type, vocab.event_time])
    if declared is None or task.preprocess is not None:
        return schema
    fields = []
    for field in schema:
        if field.name in declared.names and field.name != vocab.event_time:
            wanted = declared.field(field.name)
            kind = wanted.type if pa.types.is_unsigned_integer(wanted.type) else field.type
            fields.append(pa.field(field.name, kind, wanted.nullable))
        else:
            fields.append(field)
    return pa.schema(fields)


def _expr(text: str):  # type: ignore[no-untyped-def]
    from pyspark.sql.functions import expr

    return expr(text)

"""The input of a merge: system columns checked and named, rows numbered.

Numbers of rows grow in the order of the file; they tell the last of several rows with one key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.precision import Micros, micros_of_query, micros_of_source
from odfbuild.engine.spark.results.frames import more_members, quote, to_spark_type
from odfbuild.engine.spark.results.hidden import OP, ROW
from odfbuild.errors import IngestError
from odfbuild.odf.model import (
    MergeStrategyChangelogStream,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField

_WHOLE = ("tinyint", "smallint", "int", "bigint")


def kept_micros(frame: DataFrame, task: IngestTask, columns: pa.Schema | None) -> Micros:
    """The columns of a batch whose times keep microseconds; `columns` are those of the source."""
    history = task.history_schema
    names = [name for name in frame.columns if name != task.vocab.event_time]
    if task.preprocess is not None:
        return micros_of_query(names, [columns], history)
    return micros_of_source(names, columns, history, task.vocab.event_time)


def conformed(frame: DataFrame, task: IngestTask, micros: Micros) -> DataFrame:
    """`frame` with timestamps in UTC, an event time column, and `ROW` and `OP`.

    Timestamps are cut to milliseconds but for those in `micros`.

    `OP` is what the data says where the strategy lets it, otherwise 0 (append). Raises
    `IngestError` for columns that are missing, reserved, or of a wrong type.
    """
    names = frame.schema.names
    number = ROW if ROW in names else "monotonically_increasing_id()"
    fields = [field for field in frame.schema.fields if field.name != ROW]
    _check_strategy(fields, task)
    event_time = task.vocab.event_time
    columns = []
    for field in fields:
        name = quote(field.name)
        if field.name == task.vocab.operation_type:
            continue
        if field.dataType.typeName().startswith("timestamp"):
            value = f"CAST({name} AS TIMESTAMP)"
            if field.name not in micros:
                value = f"date_trunc('MILLISECOND', {value})"
            columns.append(f"{value} AS {name}")
        else:
            columns.append(name)
    if event_time not in names:
        columns.append(f"CAST(NULL AS {_event_time_type(task)}) AS {quote(event_time)}")
    return frame.selectExpr(
        *columns,
        f"{number} AS {ROW}",
        f"{_operation(frame, task)} AS {OP}",
    )


def check_types(frame: DataFrame, task: IngestTask) -> None:
    """Raise `IngestError` when the types of columns are no longer the committed ones.

    Structures may have more members.
    """
    if task.history_schema is None:
        return
    old = {f.name: to_spark_type(f.type) for f in task.history_schema}
    changed = [
        f"column '{f.name}' is {f.dataType.simpleString().upper()} in '{task.source_name}' "
        f"and {old[f.name].simpleString().upper()} in the dataset '{task.dataset}'"
        for f in frame.schema.fields
        if f.name in old
        and f.dataType.simpleString() != old[f.name].simpleString()
        and more_members(f.dataType, old[f.name], f.name) is None
    ]
    if changed:
        raise IngestError(
            changed[0],
            code="E0432",
            dataset=task.dataset,
            notes=tuple(changed[1:]),
            help=f"convert it back in `preprocess`, or {task.another_way}",
        )


def _check_strategy(fields: Sequence[StructField], task: IngestTask) -> None:
    vocab, strategy = task.vocab, task.merge
    reserved = {vocab.offset, vocab.system_time}
    if not strategy.HAS_CHANGES:
        reserved.add(vocab.operation_type)
    seen = {each.lower() for each in reserved}
    for field in fields:
        if field.name.lower() in seen:
            raise IngestError(
                f"'{task.source_name}' has a column '{field.name}', which is a system column",
                code="E0431",
                dataset=task.dataset,
                help="rename it in `preprocess`, or rename the system column with SetVocab",
            )
        if field.name == vocab.event_time:
            _check_event_time(field, task)
    columns = [each.name for each in fields if each.name != vocab.operation_type]
    if vocab.event_time not in columns:
        columns.append(vocab.event_time)
    roles = (("primaryKey", "primary_key"), ("compareColumns", "compare_columns"))
    for role, name in roles:
        names = getattr(strategy, name, None)
        if names is not None:
            _check_columns(task, role, names, columns)


def _check_event_time(field: StructField, task: IngestTask) -> None:
    kind = field.dataType.typeName()
    if kind not in ("date", "timestamp", "timestamp_ntz"):
        raise IngestError(
            f"the event time column '{field.name}' of '{task.source_name}' is a {kind}, "
            "not a date or timestamp",
            code="E0433",
            dataset=task.dataset,
            help="declare it as TIMESTAMP or DATE, or convert it in `preprocess`",
        )


def _check_columns(
    task: IngestTask, role: str, names: Sequence[str], columns: Sequence[str]
) -> None:
    from difflib import get_close_matches

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
                f"`merge.{role}` names the column '{name}', which '{task.source_name}' has not",
                code="E0430",
                dataset=task.dataset,
                notes=(f"its columns are: {', '.join(columns)}",),
                help=f"did you mean '{close[0]}'?" if close else f"correct `merge.{role}`",
            )


def _operation(frame: DataFrame, task: IngestTask) -> str:
    """SQL for the operation of a row; a code that is none makes the query fail."""
    name = task.vocab.operation_type
    if name not in frame.schema.names:
        if isinstance(task.merge, MergeStrategyChangelogStream):
            raise IngestError(
                f"'{task.source_name}' has no column '{name}', which says what each row of a "
                "changelog is",
                code="E0434",
                dataset=task.dataset,
                notes=("0 appends, 1 retracts, 2 and 3 correct from and to",),
                help=f"compute `{name}` in `preprocess`, or use `merge.kind: UpsertStream`",
            )
        return "0"
    kind = frame.schema[name].dataType.simpleString()
    if kind not in _WHOLE:
        raise IngestError(
            f"column '{name}' of '{task.source_name}' is {kind.upper()}, "
            "but operations are whole numbers",
            code="E0434",
            dataset=task.dataset,
            notes=("0 appends, 1 retracts, 2 and 3 correct from and to",),
            help=f"declare `{name} INT`, or translate it in `preprocess`",
        )
    from odfbuild.engine.spark.reading.malformed import bad_operation

    column = quote(name)
    return (
        f"CASE WHEN {column} BETWEEN 0 AND 3 THEN CAST({column} AS INT) "
        f"ELSE {bad_operation(column)} END"
    )


def _event_time_type(task: IngestTask) -> str:
    history = task.history_schema
    if history is not None and pa.types.is_date(history.field(task.vocab.event_time).type):
        return "DATE"
    return "TIMESTAMP"

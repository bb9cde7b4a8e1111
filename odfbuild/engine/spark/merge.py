"""Merge strategies: which records of new data join the history, and with which operation.

Operations: append 0, retract 1, correct from 2, correct to 3. Keys and compared columns count NULL as
a value, so that no row is lost or repeated. Sources: metadata reference, `MergeStrategy`; RFC-015.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from odfbuild.engine.contract import EngineResult, IngestTask
from odfbuild.engine.spark.frames import (
    quote,
    read_slices,
    to_arrow_schema,
    to_arrow_type,
    to_spark_type,
    write_parts,
)
from odfbuild.engine.spark.read import POSITION, declared_columns
from odfbuild.engine.spark.transform import preprocess, total_order
from odfbuild.errors import IngestError
from odfbuild.odf.model import MergeStrategyAppend, MergeStrategyLedger, MergeStrategySnapshot

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

APPEND, RETRACT, CORRECT_FROM, CORRECT_TO = range(4)


def merge(spark: SparkSession, source: DataFrame, task: IngestTask) -> EngineResult:
    """Preprocess the rows of a source and merge them; the result in the order of offsets."""
    new = _event_times(_preprocessed(spark, source, task), task)
    _check_columns(new, task)
    strategy = task.merge
    match strategy:
        case MergeStrategyAppend():
            merged = _appended(new, task)
        case MergeStrategyLedger():
            keys = _keys(new, strategy.primary_key, task)
            merged = _appended(_unseen(spark, new, keys, task), task)
        case MergeStrategySnapshot():
            keys = _keys(new, strategy.primary_key, task)
            merged = _changes(spark, new, keys, strategy.compare_columns, task)
        case _:
            raise IngestError(
                f"merge strategy {strategy.KIND} is not supported by this release",
                code="E0430",
                dataset=task.dataset,
                help="supported are Append, Ledger and Snapshot",
            )
    schema = _result_schema(merged, task)
    return EngineResult(parts=write_parts(merged, task.scratch / "parts"), schema=schema)


def _preprocessed(spark: SparkSession, source: DataFrame, task: IngestTask) -> DataFrame:
    from pyspark.sql.functions import monotonically_increasing_id

    if task.preprocess is None:
        return source
    source.drop(POSITION).createOrReplaceTempView("input")
    frame, keeps_order = preprocess(spark, task.dataset, task.preprocess)
    if not keeps_order:
        frame = total_order(frame)
    return frame.withColumn(POSITION, monotonically_increasing_id())


def _event_times(frame: DataFrame, task: IngestTask) -> DataFrame:
    """Event time in every record: its own, else that of the source."""
    name = quote(task.vocab.event_time)
    fallback = f"TIMESTAMP '{task.event_time.to_datetime():%Y-%m-%d %H:%M:%S.%f}Z'"
    kind = next(
        (f.dataType.typeName() for f in frame.schema.fields if f.name == task.vocab.event_time),
        None,
    )
    if kind is None:
        committed = None
        if task.history_schema is not None:
            committed = task.history_schema.field(task.vocab.event_time).type
        target = to_spark_type(committed).simpleString() if committed is not None else "timestamp"
        return frame.selectExpr("*", f"CAST({fallback} AS {target}) AS {name}")
    if kind not in ("timestamp", "timestamp_ntz", "date"):
        raise IngestError(
            f"'{task.vocab.event_time}' is {kind}, not a timestamp or date",
            code="E0431",
            dataset=task.dataset,
            help="declare it as TIMESTAMP in `read.schema`, or cast it in `preprocess`",
        )
    target = "date" if kind == "date" else "timestamp"
    filled = f"COALESCE(CAST({name} AS {target}), CAST({fallback} AS {target})) AS {name}"
    return frame.selectExpr(
        *(filled if c == task.vocab.event_time else quote(c) for c in frame.columns)
    )


def _check_columns(frame: DataFrame, task: IngestTask) -> None:
    vocab = task.vocab
    for name in (vocab.offset, vocab.operation_type, vocab.system_time):
        if name in frame.columns:
            raise IngestError(
                f"the source has a column '{name}', which is a system column",
                code="E0432",
                dataset=task.dataset,
                help="rename it in `preprocess`, or choose other names with SetVocab",
            )


def _keys(frame: DataFrame, keys: Sequence[str], task: IngestTask) -> list[str]:
    names = [name for name in frame.columns if name != POSITION]
    if not keys:
        raise IngestError(
            "the primary key has no columns",
            code="E0433",
            dataset=task.dataset,
            help="list the columns that identify a record in `merge.primaryKey`",
        )
    for key in keys:
        if key not in names:
            close = get_close_matches(key, names, n=1)
            raise IngestError(
                f"primary key column '{key}' is not in the data",
                code="E0433",
                dataset=task.dataset,
                notes=(f"columns are: {', '.join(names)}",),
                help=f"did you mean '{close[0]}'?" if close else "correct `merge.primaryKey`",
            )
    return list(keys)


def _appended(frame: DataFrame, task: IngestTask) -> DataFrame:
    ordered = frame.orderBy(quote(task.vocab.event_time), POSITION)
    return _shaped(ordered.selectExpr("*", f"{APPEND} AS {quote(task.vocab.operation_type)}"), task)


def _unseen(
    spark: SparkSession, new: DataFrame, keys: list[str], task: IngestTask
) -> DataFrame:
    """Rows whose key no committed record has."""
    if task.history_schema is None or not task.history:
        return new
    _check_history(new, task)
    seen = read_slices(spark, task.history, task.history_schema, task.vocab)
    seen = seen.select(*[quote(key) for key in keys]).distinct()
    same = [new[quote(key)].eqNullSafe(seen[quote(key)]) for key in keys]
    return new.join(seen, same, "left_anti")


def _check_history(new: DataFrame, task: IngestTask) -> None:
    """Columns that a comparison needs must be there; all other differences are found later."""
    names = {name for name in new.columns if name != POSITION}
    committed = task.history_schema.names if task.history_schema is not None else []
    system = {task.vocab.offset, task.vocab.operation_type, task.vocab.system_time}
    missing = [name for name in committed if name not in names | system]
    if missing:
        raise IngestError(
            f"the source no longer has the column '{missing[0]}'",
            code="E0434",
            dataset=task.dataset,
            notes=(f"it has: {', '.join(sorted(names))}",),
            help="add it back in `preprocess`, or define a new dataset",
        )


def _changes(
    spark: SparkSession,
    new: DataFrame,
    keys: list[str],
    compared: Sequence[str] | None,
    task: IngestTask,
) -> DataFrame:
    """Differences between the current state and a snapshot, in one pass over both."""
    vocab = task.vocab
    columns = [name for name in new.columns if name != POSITION]
    data = [name for name in columns if name not in keys]
    wanted = list(compared) if compared else data
    for name in wanted:
        if name not in columns:
            close = get_close_matches(name, columns, n=1)
            raise IngestError(
                f"compared column '{name}' is not in the data",
                code="E0435",
                dataset=task.dataset,
                help=f"did you mean '{close[0]}'?" if close else "correct `merge.compareColumns`",
            )
    if task.history_schema is None or not task.history:
        first = new.selectExpr(
            *[quote(name) for name in columns], f"{APPEND} AS {quote(vocab.operation_type)}", POSITION
        )
        return _by_key(first, keys, task)
    _check_history(new, task)
    state = _current_state(spark, keys, columns, task)
    given = _given_event_time(task)
    pack = "named_struct({})".format(
        ", ".join(f"'{name}', {quote(name)}" for name in columns)
    )
    old = state.selectExpr(f"{pack} AS old", *_key_columns(keys, "o"))
    now = new.selectExpr(f"{pack} AS new", *_key_columns(keys, "n"), POSITION)
    same = " AND ".join(f"o{i} <=> n{i}" for i in range(len(keys)))
    from pyspark.sql.functions import expr

    pairs = now.join(old, expr(same), "full_outer")
    # Event time that the source does not give is the time of ingestion, which is no difference.
    watched = [n for n in wanted if n != vocab.event_time or given]
    differs = " OR ".join(f"NOT (old.{quote(n)} <=> new.{quote(n)})" for n in watched) or "false"
    changed = pairs.selectExpr(
        f"""CASE
            WHEN old IS NULL THEN array(struct({APPEND} AS o, new AS r))
            WHEN new IS NULL THEN array(struct({RETRACT} AS o, old AS r))
            WHEN {differs} THEN
                array(struct({CORRECT_FROM} AS o, old AS r), struct({CORRECT_TO} AS o, new AS r))
            ELSE array() END AS changes""",
        POSITION,
    ).selectExpr("explode(changes) AS c", POSITION)
    shaped = changed.selectExpr(
        *(f"c.r.{quote(name)} AS {quote(name)}" for name in columns),
        f"c.o AS {quote(vocab.operation_type)}",
        POSITION,
    )
    return _by_key(shaped, keys, task)


def _key_columns(keys: list[str], prefix: str) -> list[str]:
    return [f"{quote(key)} AS {prefix}{index}" for index, key in enumerate(keys)]


def _given_event_time(task: IngestTask) -> bool:
    """Whether the source itself says when its records were true."""
    declared = declared_columns(task.read)
    if task.preprocess is None and declared is not None:
        return task.vocab.event_time in declared.names
    return True


def _current_state(
    spark: SparkSession, keys: list[str], columns: list[str], task: IngestTask
) -> DataFrame:
    """The last record of each key, unless it was retracted."""
    if task.history_schema is None:
        raise AssertionError("there is no state without history")
    vocab = task.vocab
    history = read_slices(spark, task.history, task.history_schema, vocab)
    key = ", ".join(quote(name) for name in keys)
    rank = f"row_number() OVER (PARTITION BY {key} ORDER BY {quote(vocab.offset)} DESC)"
    latest = history.selectExpr("*", f"{rank} AS __rank")
    return latest.where(
        f"__rank = 1 AND {quote(vocab.operation_type)} <> {RETRACT}"
    ).select(*[quote(name) for name in columns])


def _by_key(frame: DataFrame, keys: list[str], task: IngestTask) -> DataFrame:
    """Order of change records: by key, then retractions before what replaces them."""
    op = quote(task.vocab.operation_type)
    return _shaped(frame.orderBy(*[quote(key) for key in keys], op, POSITION), task)


def _shaped(frame: DataFrame, task: IngestTask) -> DataFrame:
    """Operation, event time, then data columns in their order."""
    op, event_time = task.vocab.operation_type, task.vocab.event_time
    rest = [name for name in frame.columns if name not in (op, event_time, POSITION)]
    return frame.select(*[quote(name) for name in (op, event_time, *rest)])


def _result_schema(frame: DataFrame, task: IngestTask) -> pa.Schema:
    """Schema of the result; declared types and required columns survive where nothing reshapes them."""
    import pyarrow as pa

    vocab = task.vocab
    required = [vocab.operation_type, vocab.event_time]
    schema = to_arrow_schema(frame, required)
    declared = declared_columns(task.read) if task.preprocess is None else None
    if declared is None:
        return schema
    fields = []
    for field in schema:
        if field.name in declared.names and field.name not in required:
            wanted = declared.field(field.name)
            same = to_arrow_type(to_spark_type(wanted.type)) == field.type
            field = pa.field(field.name, wanted.type if same else field.type, wanted.nullable)
        fields.append(field)
    return pa.schema(fields)

"""Merge strategies: which records of a batch are appended, and in which order.

Append keeps everything, ledger the rows whose key was never seen, snapshot and upsert stream the
differences to the current state, changelog stream what the source says. Of duplicate keys in one
batch the last one counts for upserts, a snapshot has none (`duplicates`), others keep them.
Source: specification, "Merge Strategies"; reference behaviour, merge strategies.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.contract import EngineResult, IngestTask
from odfbuild.engine.declared import as_declared
from odfbuild.engine.precision import Micros
from odfbuild.engine.spark.merging.batch import check_types, conformed, kept_micros
from odfbuild.engine.spark.merging.changes import (
    differences,
    first_file_of_each_key,
    last_of_each_key,
    paired,
    unseen,
    with_times_of_undone,
)
from odfbuild.engine.spark.merging.duplicates import duplicate_keys
from odfbuild.engine.spark.merging.earlier_records import EarlierRecords, set_up
from odfbuild.engine.spark.merging.in_turn import (
    MOST_ROWS,
    TIMED,
    are_comparable,
    differences_in_turn,
)
from odfbuild.engine.spark.reading.bad_places import Source
from odfbuild.engine.spark.reading.bad_records import BadRecords
from odfbuild.engine.spark.reading.malformed import explain
from odfbuild.engine.spark.reading.read import read_source
from odfbuild.engine.spark.results.executor import write_parts
from odfbuild.engine.spark.results.frames import marked_uuids, quote, to_arrow_schema
from odfbuild.engine.spark.results.hidden import FILE, OP, PAIR, ROW
from odfbuild.engine.spark.results.small_jobs import compute_in_place
from odfbuild.engine.spark.results.sorted_parts import (
    in_memory,
    sorted_parts,
    sorted_runs,
    split_in_order,
)
from odfbuild.odf.model import (
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
)
from odfbuild.odf.operation import APPEND, RETRACT
from odfbuild.records.sorted_runs import sorts_alike
from odfbuild.records.uuids import Uuids
from odfbuild.wording import count

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_HIDDEN = (ROW, PAIR, FILE)
_BATCH_ROWS = 131_072


def merge(
    spark: SparkSession, frame: DataFrame, source: Source, task: IngestTask, bad: BadRecords
) -> EngineResult:
    """Merge `frame`, in input order, with the history of `task` and write the result.

    Raises `IngestError` for columns that are missing, reserved or changed, and for bad records.
    """
    warnings: tuple[str, ...] = ()
    try:
        with EarlierRecords(spark, task) as prior:
            micros = kept_micros(frame, task, source.columns)
            uuids = marked_uuids(frame)
            (warnings,) = _filled_times(frame, [task])
            keyed = partial(_keyed, task=task, micros=micros)
            is_timed = task.vocab.event_time in frame.columns
            frame = sealed(spark, keyed(frame), task)
            if isinstance(task.merge, MergeStrategySnapshot) and task.duplicate_keys != "last":
                frame = prior.read_once(frame)
                repeated = duplicate_keys(spark, frame, task, keyed)
                if repeated is not None and task.duplicate_keys == "fail":
                    raise repeated
                warnings += (repeated.message,) if repeated is not None else ()
            at_hand = prior.at_hand(frame)
            found, order = merged(at_hand or frame, task, prior, is_timed=is_timed)
            folder = task.scratch / "parts"
            if at_hand is None:
                parts, runs = sorted_runs(spark, found, order, folder)
            else:
                compute_in_place(spark)
                parts, runs = sorted_parts(spark, found, order, folder), ()
        if source.read is not None:
            source.read.check(task)
    except Exception as error:
        explained = explain(error, task, source, bad)
        if explained is None:
            raise
        raise explained from None
    return EngineResult(
        parts=parts,
        order=runs,
        schema=_result_schema(found.drop(*_HIDDEN), task, source.columns, micros, uuids),
        skipped=bad.skipped,
        drift=source.drift,
        warnings=warnings,
        sealed=task.seal is not None,
    )


def merge_together(spark: SparkSession, tasks: Sequence[IngestTask]) -> list[EngineResult] | None:
    """What `merge` gives for each of several small files in turn; `None` where that cannot be told.

    Raises whatever a bad record or a wrong header makes of it.
    """
    times = tuple(each.event_time for each in tasks)
    task = replace(tasks[0], event_times=times, apart=tasks[0].dataset != tasks[-1].dataset)
    bad = BadRecords(task)
    set_up(spark, tasks)
    found = read_source(spark, task, bad, others=tasks[1:])
    if found is None:
        return None
    frame, source = found
    filled = _filled_times(frame, tasks)
    micros = kept_micros(frame.drop(FILE), task, source.columns)
    uuids = marked_uuids(frame)
    is_timed = task.vocab.event_time in frame.columns
    frame = sealed(spark, _keyed(frame, task, micros), task)
    if isinstance(task.merge, MergeStrategySnapshot | MergeStrategyUpsertStream):
        check_types(frame, task)
        result = _output(_filled(frame, task), task)
        order: Sequence[str] = [*task.merge.primary_key, task.vocab.operation_type]
        rows = _in_turn(spark, frame, task, task.merge, len(tasks))
    else:
        with EarlierRecords(spark, task) as prior:
            result, order = merged(frame, task, prior, is_timed=is_timed)
            rows = in_memory(write_parts(result, task.scratch / "together"))
    files = None if rows is None else split_in_order(rows, FILE, order, len(tasks))
    if files is None:
        return None
    schema = _result_schema(result.drop(*_HIDDEN), task, source.columns, micros, uuids)
    is_sealed = task.seal is not None
    return [
        EngineResult(
            parts=(),
            rows=rows,
            schema=schema,
            sealed=is_sealed,
            drift=source.drift,
            warnings=told,
        )
        for rows, told in zip(files, filled, strict=True)
    ]


def _in_turn(
    spark: SparkSession,
    frame: DataFrame,
    task: IngestTask,
    strategy: MergeStrategySnapshot | MergeStrategyUpsertStream,
    files: int,
) -> pa.Table | None:
    """What files make of the state one after the other; `None` where it is left to `merge`."""
    key, event_time = strategy.primary_key, task.vocab.event_time
    assert task.history_schema is not None
    if not are_comparable(task.history_schema) or not sorts_alike(task.history_schema, key):
        return None
    timed = frame.selectExpr("*", f"{quote(event_time)} IS NOT NULL AS {TIMED}")
    rows = in_memory(write_parts(_filled(timed, task), task.scratch / "rows"))
    if rows is None or rows[FILE].null_count:
        return None
    compared, is_whole = _values(frame, key), isinstance(strategy, MergeStrategySnapshot)
    if isinstance(strategy, MergeStrategySnapshot):
        compared = list(strategy.compare_columns or compared)
        keys = rows.group_by([FILE, *key]).aggregate([])
        if task.duplicate_keys != "last" and keys.num_rows < rows.num_rows:
            return None
    with EarlierRecords(spark, task, rows) as prior:
        found = prior.current_state(frame, key) if is_whole else prior.state_of(frame, key)
        state = rows.slice(0, 0)
        if found is not None:
            state = in_memory(write_parts(found, task.scratch / "state"))
    if state is None or state.num_rows + rows.num_rows > MOST_ROWS:
        return None
    told = differences_in_turn(
        rows,
        state,
        files,
        key,
        compared,
        event_time,
        absent="retracted" if is_whole else "kept",
    )
    names = [task.vocab.operation_type if name == OP else name for name in told.column_names]
    return told.rename_columns(names)


def merged(
    frame: DataFrame, task: IngestTask, prior: EarlierRecords, *, is_timed: bool
) -> tuple[DataFrame, Sequence[str]]:
    """The lazy result of `merge` for a frame with its keys, and the columns that give its order.

    `is_timed` says that its event times are those of the source.
    Its columns are op, event time, the data columns of `frame`, and hidden ones that only order.
    """
    check_types(frame, task)
    strategy = task.merge
    match strategy:
        case MergeStrategyAppend():
            return _by_event_time(frame, task)
        case MergeStrategyLedger():
            seen = prior.seen_keys(frame, strategy.primary_key)
            if seen is not None:
                frame = unseen(frame, seen, strategy.primary_key)
            if FILE in frame.columns and not task.apart:
                frame = first_file_of_each_key(frame, strategy.primary_key)
            return _by_event_time(frame, task)
        case MergeStrategyChangelogStream():
            file = [FILE] if FILE in frame.columns else []
            if task.of_changes and not is_timed:
                state = prior.state_of(frame, strategy.primary_key)
                apart = file if task.apart else []
                key = [*strategy.primary_key, *apart]
                frame = with_times_of_undone(_filled(frame, task), state, key, file, task.vocab)
            changes = paired(frame, [*strategy.primary_key, *file])
        case MergeStrategyUpsertStream():
            changes = _upserted(frame, task, prior, strategy)
        case MergeStrategySnapshot():
            changes = _replaced(frame, task, prior, strategy)
    return _by_key(changes, task, strategy.primary_key)


def _keyed(frame: DataFrame, task: IngestTask, micros: Micros) -> DataFrame:
    """`frame` as a merge takes it in, with its keys as they are compared."""
    frame = conformed(frame, task, micros)
    # Committed records have an event time, so a key without one would never be found again.
    return _filled(frame, task) if task.vocab.event_time in task.merge.key else frame


# --- Strategies ---


def _replaced(
    frame: DataFrame, task: IngestTask, prior: EarlierRecords, strategy: MergeStrategySnapshot
) -> DataFrame:
    key = strategy.primary_key
    if task.duplicate_keys == "last":
        frame = last_of_each_key(frame, key)
    compared = strategy.compare_columns or _values(frame, key)
    state = prior.current_state(frame, key)
    if state is None:
        return _in_place(frame)
    return differences(frame, state, key, compared, task.vocab, absent="retracted")


def _upserted(
    frame: DataFrame, task: IngestTask, prior: EarlierRecords, strategy: MergeStrategyUpsertStream
) -> DataFrame:
    key = strategy.primary_key
    last = last_of_each_key(frame, key)
    state = prior.state_of(last, key)
    if state is None:
        kept = last.where(f"{OP} != {RETRACT}")
        return _in_place(kept.drop(OP).selectExpr("*", f"{APPEND} AS {OP}"))
    return differences(last, state, key, _values(frame, key), task.vocab, absent="kept")


def _values(frame: DataFrame, key: Sequence[str]) -> list[str]:
    return [name for name in frame.columns if name not in (ROW, OP, FILE, *key)]


def _in_place(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("*", f"{ROW} AS {PAIR}")


# --- Output ---


def _by_event_time(frame: DataFrame, task: IngestTask) -> tuple[DataFrame, Sequence[str]]:
    return _output(_filled(frame, task), task), [task.vocab.event_time, ROW]


def _by_key(
    changes: DataFrame, task: IngestTask, key: Sequence[str]
) -> tuple[DataFrame, Sequence[str]]:
    return _output(_filled(changes, task), task), [*key, PAIR, task.vocab.operation_type]


def _filled(frame: DataFrame, task: IngestTask) -> DataFrame:
    """Give records without event time that of the source."""
    name = task.vocab.event_time
    times = [f"timestamp_millis({each.millis})" for each in task.event_times or [task.event_time]]
    alike = len({*times}) == 1
    literal = times[0] if alike else f"element_at(array({', '.join(times)}), {FILE})"
    kind = frame.schema[name].dataType.simpleString()
    filled = f"coalesce({quote(name)}, CAST({literal} AS {kind})) AS {quote(name)}"
    return frame.selectExpr(*[filled if c == name else quote(c) for c in frame.columns])


def _filled_times(frame: DataFrame, tasks: Sequence[IngestTask]) -> list[tuple[str, ...]]:
    """What is told, for each file, of records that get an event time though a column is for it."""
    name = tasks[0].vocab.event_time
    if tasks[0].blank_event_times != "fill" or name not in frame.columns:
        return [()] * len(tasks)
    blank = frame.where(f"{quote(name)} IS NULL")
    if len(tasks) == 1:
        numbers = {1: blank.count()}
    else:
        numbers = {row[0]: row[1] for row in blank.groupBy(FILE).count().collect()}
    return [_filled_time(task, numbers.get(at, 0)) for at, task in enumerate(tasks, 1)]


def _filled_time(task: IngestTask, number: int) -> tuple[str, ...]:
    records = f"{count(number, 'record')} of '{task.source_name}'"
    return (f"{records} had no event time and got {task.event_time}",) if number else ()


def _output(frame: DataFrame, task: IngestTask) -> DataFrame:
    vocab = task.vocab
    first = (OP, vocab.event_time)
    return frame.selectExpr(
        f"CAST({OP} AS INT) AS {quote(vocab.operation_type)}",
        quote(vocab.event_time),
        *[quote(name) for name in frame.columns if name not in first],
    )


def _result_schema(
    result: DataFrame,
    task: IngestTask,
    declared: pa.Schema | None,
    micros: Micros,
    uuids: Uuids,
) -> pa.Schema:
    vocab = task.vocab
    schema = to_arrow_schema(result, [vocab.operation_type, vocab.event_time], micros, uuids)
    return result_schema(schema, task, declared)


def result_schema(schema: pa.Schema, task: IngestTask, declared: pa.Schema | None) -> pa.Schema:
    """`schema` of the result; without preprocessing columns are as declared, with attributes."""
    vocab = task.vocab
    if declared is None or task.preprocess is not None:
        return schema
    return as_declared(schema, declared, vocab)


def sealed(spark: SparkSession, frame: DataFrame, task: IngestTask) -> DataFrame:
    """The records of `frame` as `task.seal` encrypts them; `frame` where it does not."""
    if task.seal is None:
        return frame
    plain, folder = task.scratch / "plain", task.scratch / "sealed"
    folder.mkdir()
    for part in write_parts(frame, plain):
        with pq.ParquetFile(part) as source:
            columns = source.schema_arrow
            with pq.ParquetWriter(folder / part.name, columns, compression="lz4") as writer:
                for batch in source.iter_batches(_BATCH_ROWS):
                    writer.write_batch(task.seal(batch).cast(columns))
    shutil.rmtree(plain)
    return spark.read.schema(frame.schema).parquet(str(folder))

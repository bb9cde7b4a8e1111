"""Merge a small file without Spark: its records, and the earlier ones that it needs, are in memory.

Records are those of `plain_records`, so that values are few, of simple types and already as they
are compared. Where anything would be told, refused or decided by Spark, nothing is done here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.engine.contract import EngineResult, IngestTask
from odfbuild.engine.precision import micros_in
from odfbuild.engine.spark.merging.in_turn import (
    TIMED,
    are_comparable,
    differences_in_turn,
    numbers_of,
)
from odfbuild.engine.spark.merging.merge import result_schema
from odfbuild.engine.spark.reading.plain_records import plain_records
from odfbuild.engine.spark.reading.read import is_regular
from odfbuild.engine.spark.results.hidden import FILE, OP, PAIR, ROW
from odfbuild.engine.spark.results.sorted_parts import split_in_order
from odfbuild.fallbacks import falling_back
from odfbuild.odf.model import (
    MergeStrategyAppend,
    MergeStrategyChangelogStream,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
)
from odfbuild.odf.operation import APPEND, CORRECT_FROM, CORRECT_TO, RETRACT
from odfbuild.odf.schema.arrow_schema import declared_columns

_MOST_EARLIER = 20_000
_MOST_BLOCKS = 256
"""Earlier records of so many blocks are read here; of more, side-cars know what is needed."""
_MICROS_UTC = pa.timestamp("us", "UTC")
_KNOWN = (
    MergeStrategyAppend
    | MergeStrategyLedger
    | MergeStrategySnapshot
    | MergeStrategyChangelogStream
    | MergeStrategyUpsertStream
)
"""The strategies that `_merged` knows; any other one is left to Spark."""


def merge_in_memory(task: IngestTask) -> EngineResult | None:
    """What `merge` gives for a file; `None` where it takes Spark to tell."""
    with falling_back(__name__, f"Spark reads a file of '{task.dataset}'"):
        return _in_memory(task)
    return None


def _in_memory(task: IngestTask) -> EngineResult | None:
    columns = declared_columns(task.read)
    if columns is None or not _is_plain(task, columns):
        return None
    rows = plain_records(task, columns)
    if rows is None:
        return None
    rows = _taken_in(rows, task)
    merged = None if rows is None else _merged(rows, task)
    if rows is None or merged is None:
        return None
    changes, order = merged
    files = split_in_order(changes, FILE, order, 1)
    if files is None:
        return None
    names = [task.vocab.operation_type if name == OP else name for name in changes.column_names]
    return EngineResult(
        parts=(), rows=files[0].rename_columns(names), schema=_schema(task, columns)
    )


def appended_schema(task: IngestTask) -> pa.Schema | None:
    """The schema of the result where plain records are appended; `None` where it takes Spark."""
    columns = declared_columns(task.read)
    if columns is None or not isinstance(task.merge, MergeStrategyAppend):
        return None
    return _schema(task, columns) if _is_plain(task, columns) else None


def _is_plain(task: IngestTask, columns: pa.Schema) -> bool:
    """Whether columns, keys and history are such that nothing has to be said of them."""
    vocab, merge = task.vocab, task.merge
    if not isinstance(merge, _KNOWN):
        return False
    if not is_regular(task) or task.preprocess or task.seal or task.of_changes or task.event_times:
        return False
    names = [each.name for each in columns]
    reserved = {vocab.offset, vocab.system_time}
    reserved |= set() if merge.HAS_CHANGES else {vocab.operation_type}
    if len({each.lower() for each in (*names, *reserved)}) < len(names) + len(reserved):
        return False
    if vocab.event_time in names:
        kind = columns.field(vocab.event_time).type
        if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            return False
    if vocab.operation_type in names:
        if not pa.types.is_signed_integer(columns.field(vocab.operation_type).type):
            return False
    elif isinstance(merge, MergeStrategyChangelogStream):
        return False
    if not isinstance(merge, MergeStrategyAppend):
        data = {*names} - {vocab.operation_type}
        compared = getattr(merge, "compare_columns", None) or ()
        if not merge.primary_key or not {*merge.primary_key, *compared} <= data:
            return False
    return task.history_schema is None or _is_as_before(task, columns, task.history_schema)


def _is_as_before(task: IngestTask, columns: pa.Schema, history: pa.Schema) -> bool:
    """Whether a file has just the columns of the dataset, and these are comparable."""
    vocab = task.vocab
    system = (vocab.offset, vocab.operation_type, vocab.system_time)
    before = {each.name: each.type for each in history if each.name not in system}
    found = {each.name: each.type for each in columns if each.name != vocab.operation_type}
    found.setdefault(vocab.event_time, pa.timestamp("ms", "UTC"))
    millis = before[vocab.event_time]
    if pa.types.is_timestamp(found[vocab.event_time]) and pa.types.is_timestamp(millis):
        found[vocab.event_time] = millis
    return found == before and are_comparable(history)


def _taken_in(rows: pa.Table, task: IngestTask) -> pa.Table | None:
    """`rows` with an event time, `FILE`, `ROW`, `OP` and `TIMED`, in the precision of the dataset.

    `None` where a row has no event time in the column for it, or no operation.
    """
    vocab, number = task.vocab, rows.num_rows
    operations = pa.array(np.zeros(number, np.int32))
    if vocab.operation_type in rows.column_names:
        operations = rows[vocab.operation_type].cast(pa.int32()).combine_chunks()
        rows = rows.drop_columns([vocab.operation_type])
        valid = pc.and_(pc.greater_equal(operations, APPEND), pc.less_equal(operations, CORRECT_TO))
        if operations.null_count or not pc.all(valid, min_count=0).as_py():
            return None
    is_timed = vocab.event_time in rows.column_names
    if is_timed:
        if rows[vocab.event_time].null_count:
            return None
    elif isinstance(task.merge, MergeStrategyAppend) or (
        vocab.event_time not in task.merge.primary_key
    ):
        times = np.full(number, task.event_time.millis * 1000, np.int64)
        rows = rows.append_column(vocab.event_time, pa.array(times).cast(_MICROS_UTC))
    else:
        return None
    hidden = {
        FILE: np.ones(number, np.int32),
        ROW: np.arange(number, dtype=np.int64),
        TIMED: np.full(number, is_timed),
    }
    for name, values in hidden.items():
        rows = rows.append_column(name, pa.array(values))
    return rows.append_column(OP, operations)


def _merged(rows: pa.Table, task: IngestTask) -> tuple[pa.Table, Sequence[str]] | None:
    """The records with their operations, and the columns that give their order."""
    merge, vocab = task.merge, task.vocab
    earlier = None
    if not isinstance(merge, MergeStrategyAppend | MergeStrategyChangelogStream):
        earlier = _earlier(task)
        if earlier is None and task.history_schema is not None:
            return None
    match merge:
        case MergeStrategyAppend():
            return rows, [vocab.event_time, ROW]
        case MergeStrategyLedger():
            if earlier is not None:
                rows = _unseen(rows, earlier, merge.primary_key)
            return rows, [vocab.event_time, ROW]
        case MergeStrategyChangelogStream():
            rows = rows.append_column(PAIR, pa.array(_pairs(rows, merge.primary_key), pa.int64()))
            return rows, [*merge.primary_key, PAIR, OP]
    key, is_whole = merge.primary_key, isinstance(merge, MergeStrategySnapshot)
    hidden = (ROW, OP, FILE, TIMED, *key)
    compared = [name for name in rows.column_names if name not in hidden]
    if isinstance(merge, MergeStrategySnapshot):
        compared = list(merge.compare_columns or compared)
        distinct = len({*numbers_of(rows, key)})
        if task.duplicate_keys != "last" and distinct < rows.num_rows:
            return None
    data = rows.drop_columns([FILE, ROW, OP, TIMED])
    state = data.slice(0, 0) if earlier is None else _state(earlier, key, task, data.schema)
    told = differences_in_turn(
        rows,
        state,
        1,
        key,
        compared,
        vocab.event_time,
        absent="retracted" if is_whole else "kept",
    )
    return told, [*key, OP]


def _earlier(task: IngestTask) -> pa.Table | None:
    """All earlier records, oldest first; `None` where there are none, or they are not read here."""
    schema = task.history_schema
    if schema is None or not task.history.is_short(_MOST_EARLIER, _MOST_BLOCKS):
        return None
    tables = [pq.read_table(file) for file in task.history.files()]
    kinds = {each.name: each.type for each in schema}
    if any({f.name: f.type for f in table.schema} != kinds for table in tables):
        return None
    names = schema.names
    plain = [table.select(names).replace_schema_metadata(None) for table in tables]
    empty = pa.schema([pa.field(name, kinds[name]) for name in names]).empty_table()
    return pa.concat_tables([empty, *plain], promote_options="permissive")


def _unseen(rows: pa.Table, earlier: pa.Table, key: Sequence[str]) -> pa.Table:
    """Rows whose key no earlier record has."""
    wanted = rows.select(list(key))
    both = pa.concat_tables([earlier.select(list(key)).cast(wanted.schema), wanted])
    numbers = numbers_of(both, key)
    seen = {*numbers[: earlier.num_rows]}
    new = [each not in seen for each in numbers[earlier.num_rows :]]
    return rows.filter(pa.array(new, pa.bool_()))


def _state(earlier: pa.Table, key: Sequence[str], task: IngestTask, schema: pa.Schema) -> pa.Table:
    """The latest record of each key, unless that is a retraction, with the columns of `schema`."""
    vocab = task.vocab
    earlier = earlier.sort_by(vocab.offset)
    newest = {number: at for at, number in enumerate(numbers_of(earlier, key))}
    operations = earlier[vocab.operation_type].to_pylist()
    kept = sorted(at for at in newest.values() if operations[at] != RETRACT)
    return earlier.take(pa.array(kept, pa.int64())).select(schema.names).cast(schema)


def _pairs(rows: pa.Table, key: Sequence[str]) -> list[int]:
    """`PAIR` of the rows of a changelog: the n-th correction to of a key stands with its n-th from.

    As `changes.paired` has it.
    """
    keys, operations = numbers_of(rows, key), rows[OP].to_pylist()
    begun: Counter[tuple[int, int]] = Counter()
    firsts: dict[tuple[int, int], int] = {}
    places: list[tuple[int, int] | None] = []
    for at, (number, operation) in enumerate(zip(keys, operations, strict=True)):
        if operation not in (CORRECT_FROM, CORRECT_TO):
            places.append(None)
            continue
        begun[number, operation] += 1
        place = (number, begun[number, operation])
        places.append(place)
        if operation == CORRECT_FROM:
            firsts[place] = at
    return [at if place is None else firsts.get(place, at) for at, place in enumerate(places)]


def _schema(task: IngestTask, columns: pa.Schema) -> pa.Schema:
    """The schema of the result."""
    vocab, history = task.vocab, task.history_schema
    known = history.names if history is not None else ()
    new = micros_in(columns) - {vocab.event_time, *known}
    micros = micros_in(history) | new
    kinds = {each.name: each.type for each in columns if each.name != vocab.operation_type}
    time = kinds.pop(vocab.event_time, pa.timestamp("ms", "UTC"))
    fields = [pa.field(vocab.operation_type, pa.int32(), nullable=False)]
    for name, kind in {vocab.event_time: time, **kinds}.items():
        unit = pa.timestamp("us" if name in micros else "ms", "UTC")
        exact = unit if pa.types.is_timestamp(kind) else kind
        fields.append(pa.field(name, exact, nullable=name != vocab.event_time))
    return result_schema(pa.schema(fields), task, columns)

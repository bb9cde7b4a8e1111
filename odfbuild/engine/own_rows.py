"""Rows that odfbuild wrote itself, and of which a merge changes nothing but their order.

A database gives typed values, and fetching checks them: nothing is left for Spark to read. If
nothing is compared with earlier records either, and nothing is queried, the rows are the result.
Whatever is not certain to be what Spark makes of them is left to Spark, also all that is wrong:
it knows how to tell it. Rows that are not in order already are sorted in files of bounded size.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.engine.contract import EngineResult, IngestTask
from odfbuild.engine.declared import as_declared
from odfbuild.engine.precision import micros_of_source
from odfbuild.odf.model import (
    MergeStrategyAppend,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    ReadStepParquet,
)
from odfbuild.odf.schema.arrow_schema import declared_columns
from odfbuild.records.sorted_runs import ascends, is_sorted, merged, sorts_alike

_ROW = "__odfbuild_row"
_RUN_BYTES = 64 << 20
"""Bytes of rows that are sorted in memory; some times as much is used while doing it."""
_MOST_RUNS = 64
"""Files that are merged while they are read; each takes some memory."""
_BATCH_ROWS = 65_536


def records_of_own_rows(task: IngestTask) -> EngineResult | None:
    """What an engine makes of `task.file`, which odfbuild wrote; `None`: an engine has to tell."""
    declared = declared_columns(task.read)
    if declared is None or not _is_plain(task, declared):
        return None
    with pq.ParquetFile(task.file, pre_buffer=False) as file:
        found, metadata = file.schema_arrow, file.metadata
        schema = _result_schema(task, declared, found)
        if schema is None or _has_blanks(metadata, found, _required(task, declared)):
            return None
        size = sum(metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups))
    order = _order(task, schema, found)
    if order is None:
        return None
    is_keyed = isinstance(task.merge, MergeStrategySnapshot | MergeStrategyUpsertStream)
    parts: tuple[Path, ...] = (task.file,)
    by: tuple[str, ...] = ()
    if order and not is_sorted(parts, order, strictly=is_keyed):
        if size > _RUN_BYTES * _MOST_RUNS:
            return None
        folder = task.scratch / "own-rows"
        parts, by = _sorted_runs(task, schema, order, folder), (*order, _ROW)
        if is_keyed and not ascends(merged(parts, by, order), strictly=True):
            shutil.rmtree(folder)
            return None
    time = None if task.vocab.event_time in found.names else task.event_time
    return EngineResult(parts=parts, schema=schema, order=by, event_time=time)


def _is_plain(task: IngestTask, declared: pa.Schema) -> bool:
    """Whether the result is the rows of the file, in some order, as far as the task tells."""
    merge, vocab = task.merge, task.vocab
    system = {each.lower() for each in (vocab.offset, vocab.operation_type, vocab.system_time)}
    names = [each.lower() for each in declared.names]
    is_alone = task.preprocess is None and task.seal is None and not task.of_changes
    is_first = task.history_schema is None and (
        isinstance(merge, MergeStrategyLedger | MergeStrategyUpsertStream)
        or (isinstance(merge, MergeStrategySnapshot) and task.duplicate_keys != "last")
    )
    return (
        isinstance(task.read, ReadStepParquet)
        and is_alone
        and (is_first or isinstance(merge, MergeStrategyAppend))
        and len({*names}) == len(names)
        and not {*names} & system
    )


def _result_schema(task: IngestTask, declared: pa.Schema, found: pa.Schema) -> pa.Schema | None:
    """The schema of the result; `None` where it is not certain that columns stay what they are."""
    vocab, history = task.vocab, task.history_schema
    if vocab.operation_type in found.names or not {*declared.names} <= {*found.names}:
        return None
    names = [each for each in declared.names if each != vocab.event_time]
    micros = micros_of_source(names, declared, history, vocab.event_time)
    kinds = {}
    for field in declared:
        kind = kept_kind(found.field(field.name).type, field.type, keeps=field.name in micros)
        if kind is None or (history is not None and not _stays(history, field.name, kind)):
            return None
        kinds[field.name] = kind
    time = kinds.get(vocab.event_time, _MILLIS)
    if not (pa.types.is_timestamp(time) or pa.types.is_date(time)):
        return None
    if history is not None and not _stays(history, vocab.event_time, time):
        return None
    system = [
        pa.field(vocab.operation_type, pa.int32(), nullable=False),
        pa.field(vocab.event_time, time, nullable=False),
    ]
    schema = pa.schema([*system, *(pa.field(name, kinds[name]) for name in names)])
    return as_declared(schema, declared, vocab)


_MILLIS, _MICROS = pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")


def kept_kind(found: pa.DataType, declared: pa.DataType, *, keeps: bool) -> pa.DataType | None:
    """The type of a column in the result; `None` where values would have to be converted."""
    t = pa.types
    if found == _MICROS and t.is_timestamp(declared) and declared.tz == "UTC":
        return _MICROS if keeps else _MILLIS
    wider = (
        (t.is_signed_integer(found) and t.is_signed_integer(declared))
        and found.bit_width <= declared.bit_width
    ) or (
        (t.is_decimal128(found) and t.is_decimal128(declared))
        and found.scale <= declared.scale
        and found.precision - found.scale <= declared.precision - declared.scale
    )
    same = (t.is_boolean, t.is_float32, t.is_float64, t.is_string, t.is_binary, t.is_date32)
    alike = found == declared and any(test(found) for test in same)
    return declared if wider or alike else None


def _stays(history: pa.Schema, name: str, kind: pa.DataType) -> bool:
    return name not in history.names or history.field(name).type == kind


def _required(task: IngestTask, declared: pa.Schema) -> set[str]:
    required = {each.name for each in declared if not each.nullable}
    return required | ({task.vocab.event_time} & {*declared.names})


def _has_blanks(metadata: pq.FileMetaData, found: pa.Schema, names: set[str]) -> bool:
    """Whether any of the columns has a NULL, or the file does not tell."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for name in names if group.num_rows else ():
            about = group.column(found.get_field_index(name)).statistics
            if about is None or not about.has_null_count or about.null_count:
                return True
    return False


def _order(task: IngestTask, schema: pa.Schema, found: pa.Schema) -> Sequence[str] | None:
    """The columns of the file by which records are ordered, those that are equal as in the file.

    None at all where the file's order is that of the result. `None`: Arrow has another order, or a
    key is not compared as it is in the file.
    """
    time, merge = task.vocab.event_time, task.merge
    order: Sequence[str] = (time,) if time in found.names else ()
    if not isinstance(merge, MergeStrategyAppend):
        named = {*merge.primary_key, *(getattr(merge, "compare_columns", None) or ())}
        if not merge.primary_key or not named <= {*schema.names} - {task.vocab.operation_type}:
            return None
        if not isinstance(merge, MergeStrategyLedger):
            order = merge.primary_key
    if any(each not in found.names for each in order) or not sorts_alike(found, order):
        return None
    is_cut = any(
        each != time and found.field(each).type != schema.field(each).type == _MILLIS
        for each in order
    )
    return None if is_cut else order


def _sorted_runs(
    task: IngestTask, schema: pa.Schema, order: Sequence[str], folder: Path
) -> tuple[Path, ...]:
    """Files of the records in a new `folder`, each in order, with `_ROW` as its last column."""
    folder.mkdir()
    parts: list[Path] = []
    waiting: list[pa.RecordBatch] = []
    size = rows = 0

    def write() -> None:
        whole = pa.Table.from_batches(waiting).combine_chunks()
        keys = [(name, "ascending", "at_start") for name in (*order, _ROW)]
        parts.append(folder / f"run-{len(parts)}.parquet")
        ordered = whole.take(pc.sort_indices(whole, sort_keys=keys))
        pq.write_table(ordered, parts[-1], compression="lz4", use_dictionary=False)

    with pq.ParquetFile(task.file, pre_buffer=False) as file:
        names = [each for each in schema.names if each in file.schema_arrow.names]
        for batch in file.iter_batches(_BATCH_ROWS, columns=names):
            numbers = pa.array(np.arange(rows, rows + batch.num_rows))
            time = batch.schema.get_field_index(task.vocab.event_time)
            columns = list(batch.columns)
            if time >= 0 and columns[time].type == _MICROS:
                # Its committed form decides the order.
                columns[time] = pc.floor_temporal(columns[time], unit="millisecond")
            waiting.append(
                pa.RecordBatch.from_arrays([*columns, numbers], names=[*batch.schema.names, _ROW])
            )
            rows += batch.num_rows
            size += batch.nbytes
            if size >= _RUN_BYTES:
                write()
                waiting, size = [], 0
    if waiting:
        write()
    return tuple(parts)

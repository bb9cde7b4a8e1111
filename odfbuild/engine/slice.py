"""Turn the parts of an engine into the one data file of a transaction.

Adds offsets and system time, brings types to their committed form, and takes row count, largest
event time and the logical hash in the same pass over the data. Writes to a staging file only.
Sources: Open Data Fabric, "Data Slices", "Common data schema"; the layout is what peers write
(offset int64, op int32, system and event times in milliseconds UTC).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.engine.contract import EngineResult
from odfbuild.engine.precision import has_micros
from odfbuild.errors import QueryError
from odfbuild.odf.digest import LogicalHasher
from odfbuild.odf.model import DataSlice, OffsetInterval
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.records.arrays import of_numbers, one_of
from odfbuild.records.personal.values import Convert
from odfbuild.records.pipeline import Worker, ahead
from odfbuild.records.required import all_optional, as_required, missing_in
from odfbuild.records.slice_file import SliceFile
from odfbuild.records.sorted_runs import merged
from odfbuild.records.uuids import NoUuidError, from_text
from odfbuild.values import Value

_BATCH_ROWS = 131_072
_FEW_BYTES = 256 << 10
"""Up to this size of the parts of a result, threads cost more than they save."""
_AHEAD = 2
_MILLIS_UTC = pa.timestamp("ms", "UTC")


class StagedSlice(Value):
    """A data file that is complete but not yet part of any chain.

    `ahead` records lie too far in the future to count in `max_event_time`.
    """

    path: Path
    data: DataSlice
    max_event_time: Timestamp | None
    ahead: int = 0

    @property
    def records(self) -> int:
        """Number of records in the file."""
        return self.data.records


def dataset_schema(result: pa.Schema, vocab: Vocabulary) -> pa.Schema:
    """Schema of the data files made from engine results with schema `result`.

    System columns first, then data columns in the order of the result. Event time is required;
    times of system columns are milliseconds in UTC, the only form that the specification allows;
    others keep microseconds where they have them. Attributes
    stay.
    """
    event_time = result.field(vocab.event_time).type
    return pa.schema(
        [
            pa.field(vocab.offset, pa.int64(), nullable=False),
            pa.field(vocab.operation_type, pa.int32(), nullable=False),
            pa.field(vocab.system_time, _MILLIS_UTC, nullable=False),
            pa.field(
                vocab.event_time,
                _MILLIS_UTC if pa.types.is_timestamp(event_time) else event_time,
                nullable=False,
                metadata=result.field(vocab.event_time).metadata,
            ),
            *(
                column.with_type(_committed_type(column.type))
                for column in result
                if column.name not in (vocab.operation_type, vocab.event_time)
            ),
        ],
        result.metadata,
    )


def committed(schema: pa.Schema) -> pa.Schema:
    """`schema` with the types in which columns of an engine's result are committed."""
    fields = [column.with_type(_committed_type(column.type)) for column in schema]
    return pa.schema(fields, schema.metadata)


def write_slice(
    result: EngineResult,
    *,
    dataset: str,
    schema: pa.Schema,
    vocab: Vocabulary,
    first_offset: int,
    system_time: Timestamp,
    target: Path,
    counts_until: Timestamp | None = None,
    sealing: Convert | None = None,
) -> StagedSlice | None:
    """Write the records of `result` to `target` with offsets from `first_offset`.

    `sealing` encrypts what is personal; all else is as for `write_records`.
    """
    most = 0 if _are_few(result) else _AHEAD
    records = ahead(records_of(result, vocab), most)
    return write_records(
        records,
        dataset=dataset,
        schema=schema,
        vocab=vocab,
        first_offset=first_offset,
        system_time=system_time,
        target=target,
        counts_until=counts_until,
        sealing=None if result.sealed else sealing,
        most=most,
    )


def write_records(
    records: Iterable[pa.RecordBatch],
    *,
    dataset: str,
    schema: pa.Schema,
    vocab: Vocabulary,
    first_offset: int,
    system_time: Timestamp,
    target: Path,
    counts_until: Timestamp | None = None,
    sealing: Convert | None = None,
    most: int = 0,
) -> StagedSlice | None:
    """Write `records`, as `records_of` gives them, to `target` with offsets from `first_offset`.

    `schema` is the dataset's. Records of a time after `counts_until` do not count in the largest
    event time. Up to `most` batches wait for each thread that takes part; 0: there is one thread.
    Returns `None`, and leaves no file, when there are no records.
    Raises `QueryError` when a required column holds nulls.
    """
    hasher = LogicalHasher(schema)
    hashed = Worker(hasher.update, most)
    file: SliceFile | None = None
    rows = ahead_of_time = 0
    latest: int | None = None
    try:
        # Reading and merging, finishing, hashing and writing all work outside of Python's lock.
        parts = _evenly(records, _BATCH_ROWS)
        if sealing is not None:
            parts = map(sealing, parts)
        finished = _finished(parts, schema, vocab, first_offset, system_time, dataset)
        for batch in ahead(finished, most):
            if file is None:
                file = SliceFile(target, schema, vocab, most)
            hashed.give(batch)
            file.give(batch)
            rows += batch.num_rows
            times = batch.column(vocab.event_time)
            if counts_until is not None:
                times = times.filter(pc.less_equal(times, _as_time(counts_until, times.type)))
                ahead_of_time += batch.num_rows - len(times)
            if len(times):
                highest = _max_millis(times)
                latest = highest if latest is None else max(latest, highest)
        if file is None:
            return None
        hashed.finish()
        digest, size = file.finish()
    finally:
        hashed.stop()
        if file is not None:
            file.close()
    return StagedSlice(
        path=target,
        data=DataSlice(
            logical_hash=hasher.finish(),
            physical_hash=digest,
            offset_interval=OffsetInterval(start=first_offset, end=first_offset + rows - 1),
            size=size,
        ),
        max_event_time=None if latest is None else Timestamp.from_millis(latest),
        ahead=ahead_of_time,
    )


def _are_few(result: EngineResult) -> bool:
    return sum(part.stat().st_size for part in result.parts) <= _FEW_BYTES


def records_of(result: EngineResult, vocab: Vocabulary) -> Iterator[pa.RecordBatch]:
    """The records of a result in their order, without columns that served the engine only."""
    if result.event_time is not None:
        for batch in records_of(replace(result, event_time=None), vocab):
            times = np.full(batch.num_rows, result.event_time.millis, np.int64)
            yield batch.append_column(vocab.event_time, of_numbers(times, _MILLIS_UTC))
        return
    columns = None
    if result.schema is not None:
        columns = list(dict.fromkeys([vocab.operation_type, *result.schema.names]))
    if result.rows is not None:
        present = [each for each in columns or () if each in result.rows.schema.names]
        yield from result.rows.select(present).to_batches()
        return
    if result.order:
        known = pq.read_schema(result.parts[0]).names
        columns = None if columns is None else [each for each in columns if each in known]
        yield from merged(result.parts, result.order, columns)
        return
    for part in result.parts:
        with pq.ParquetFile(part, pre_buffer=False) as file:
            for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
                if batch.num_rows:
                    yield batch


def _evenly(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same records, `rows` at a time: bytes of the file do not tell how they were computed."""
    waiting: list[pa.RecordBatch] = []
    number = 0
    for batch in batches:
        waiting.append(batch)
        number += batch.num_rows
        while number >= rows:
            missing = rows - (number - waiting[-1].num_rows)
            last = waiting.pop()
            yield from _joined([*waiting, last.slice(0, missing)])
            waiting = [last.slice(missing)] if missing < last.num_rows else []
            number -= rows
    if number:
        yield from _joined(waiting)


def _joined(batches: Sequence[pa.RecordBatch]) -> Sequence[pa.RecordBatch]:
    """One batch; more only where text is too long for one."""
    if len(batches) == 1:
        return batches
    return pa.Table.from_batches(batches).combine_chunks().to_batches()  # type: ignore[no-any-return]


def _finished(
    parts: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    vocab: Vocabulary,
    first_offset: int,
    system_time: Timestamp,
    dataset: str,
) -> Iterator[pa.RecordBatch]:
    """The records with their system columns, in the types of the dataset."""
    for part in parts:
        yield _finish(part, schema, vocab, first_offset, system_time, dataset)
        first_offset += part.num_rows


def _finish(
    part: pa.RecordBatch,
    schema: pa.Schema,
    vocab: Vocabulary,
    first_offset: int,
    system_time: Timestamp,
    dataset: str,
) -> pa.RecordBatch:
    rows = part.num_rows
    system = {
        vocab.offset: of_numbers(
            np.arange(first_offset, first_offset + rows, dtype=np.int64), pa.int64()
        ),
        vocab.system_time: of_numbers(np.full(rows, system_time.millis, np.int64), _MILLIS_UTC),
    }
    columns = []
    for column in schema:
        if column.name in system:
            # A chain of a peer may have another integer type here.
            values = system[column.name]
        elif column.name == vocab.operation_type and column.name not in part.schema.names:
            values = of_numbers(np.zeros(rows, np.int32), pa.int32())
        else:
            values = part.column(column.name)
        # Before the conversion, which refuses some of them in words of its own and keeps others.
        missing = missing_in(values, column, column.name)
        if missing is not None:
            raise _null_in_required(dataset, *missing)
        try:
            columns.append(_convert(values, column.type))
        except NoUuidError as error:
            raise _no_uuid(dataset, column.name, str(error)) from None
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _convert(values: pa.Array, target: pa.DataType) -> pa.Array:
    if values.type == target:
        return values
    if pa.types.is_string(values.type) and target in (pa.uuid(), pa.binary(16)):
        return from_text(values, target)
    both = pa.types.is_timestamp(values.type) and pa.types.is_timestamp(target)
    if both and target.unit == "ms" and values.type.unit in ("us", "ns"):
        # A plain cast to milliseconds rounds toward zero, which moves instants before 1970 forward.
        earliest = pc.min(values).value
        if earliest is not None and earliest < 0:
            values = pc.floor_temporal(values, unit="millisecond")
        values = values.cast(target, safe=False)
    if pa.types.is_time(values.type) and pa.types.is_time(target):
        return values.cast(target, safe=False)  # as many digits as are declared
    # A cast asks for members also where their struct is null.
    optional = all_optional(target)
    values = values.cast(optional)
    return values if optional == target else as_required(values, pa.field("", target))


def _committed_type(found: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(found):
        return pa.timestamp("us", "UTC") if has_micros(found) else _MILLIS_UTC
    if pa.types.is_large_string(found) or pa.types.is_string_view(found):
        return pa.string()
    if pa.types.is_large_binary(found) or pa.types.is_binary_view(found):
        return pa.binary()
    return found


def _max_millis(values: pa.Array) -> int:
    top = pc.max(values)
    if pa.types.is_timestamp(values.type):
        return int(top.value)
    # A date counts as its midnight in UTC.
    return int(top.cast(pa.timestamp("ms")).value)


def _as_time(moment: Timestamp, kind: pa.DataType) -> pa.Scalar:
    """A moment as a value of a column of event times, rounded down."""
    return one_of(moment.millis, _MILLIS_UTC).cast(kind, safe=False)


def _no_uuid(dataset: str, column: str, text: str) -> QueryError:
    return QueryError(
        f"column '{column}' holds UUIDs, and a new record has '{text[:40]}' in it",
        code="E0489",
        dataset=dataset,
        help=f"give '{column}' a UUID or NULL in the query, or give the text another name",
    )


def _null_in_required(dataset: str, column: str, count: int) -> QueryError:
    return QueryError(
        f"column '{column}' is required, but {count} new records have no value in it",
        code="E0520",
        dataset=dataset,
        help=f"give '{column}' a value in the query, or filter these records out",
    )

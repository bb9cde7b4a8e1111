"""What executors do with a piece of a source's object: read it, and write the slice of its records.

As `tasks`, in Python workers of Spark. Records are those that Spark makes of the object, in the
order of their event times; values of which that is not certain are left to Spark (`Unclear`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.engine.own_rows import kept_kind
from odfbuild.engine.spark.pieces.tasks import (
    NotByTasks,
    Writing,
    own_folder,
    told_of,
    written,
)
from odfbuild.engine.spark.reading.plain_columns import columns_of
from odfbuild.engine.spark.reading.plain_text import Unclear, lines_in, plain_lines, separator_of
from odfbuild.errors import EngineProblem
from odfbuild.odf.model import ReadStep, ReadStepParquet
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.remote import CREDENTIALS, is_failure, why
from odfbuild.store.remote_object import OpenedObject, RemoteObject, Replaced
from odfbuild.values import Value

COUNT = pa.schema([("piece", pa.int32()), ("records", pa.int64())])
"""What a task tells of the records in a piece."""
_MICROS_UTC = pa.timestamp("us", "UTC")
_INSTANTS = frozenset({pa.timestamp("ms", "UTC"), _MICROS_UTC})
_BATCH_ROWS = 65_536


class ReadingRoot(Value):
    """How pieces of an object are read: from one byte, or row group of Parquet, up to another.

    `columns` are those that are declared. Records without an event time get `event_time`, which
    a column called `time` has else.
    """

    dataset: str
    source: RemoteObject
    read: ReadStep
    columns: pa.Schema
    time: str
    event_time: Timestamp
    pieces: tuple[tuple[int, int], ...]


def count(how: ReadingRoot, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many records pieces of text have, whose numbers come in `batches`."""
    with told_of(), reading(how.source, how.dataset) as opened:
        separator = separator_of(how.read)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                text = plain_lines(opened.bytes(*how.pieces[number]), separator)
                yield pa.record_batch([[number], [lines_in(text)]], schema=COUNT)


def write(
    how: ReadingRoot, writing: Writing, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write slices of pieces, whose numbers come in `batches`, and tell what became of them."""
    with told_of(), own_folder() as folder:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                with reading(how.source, how.dataset) as opened:
                    rows = _in_order(_rows(how, opened, *how.pieces[number]), how)
                yield written(writing, number, rows, folder)


@contextmanager
def reading(source: RemoteObject, dataset: str) -> Iterator[OpenedObject]:
    """The object of a source, which has to stay what it was; `EngineProblem` E1685 or E1686."""
    try:
        opened = OpenedObject(source)
        yield opened
        opened.check()
    except Unclear as error:
        raise NotByTasks(f"it has {error}") from None
    except Replaced as error:
        raise EngineProblem(
            f"{source.address} is not what it was when this step began: {error}",
            code="E1686",
            dataset=dataset,
            notes=("nothing was committed",),
            help="run the same command again when nobody writes there",
        ) from None
    except Exception as error:
        if not is_failure(error):
            raise
        raise EngineProblem(
            f"a worker, or this machine, cannot read {source.address}: {why(error)}",
            code="E1685",
            dataset=dataset,
            notes=("nothing was committed",),
            help=f"{CREDENTIALS}; workers need them in their environment, such as by "
            "spark.executorEnv.NAME in `engine.conf`",
        ) from None


def check_columns(file: pq.ParquetFile, columns: pa.Schema) -> None:
    """Raise `Unclear` unless all values of a Parquet file stay what they are."""
    found = file.schema_arrow
    if {*found.names} != {*columns.names} or len(found.names) != len(columns.names):
        raise Unclear("other columns than are declared")
    if any(b"legacy" in key for key in file.metadata.metadata or {}):
        raise Unclear("times of an old calendar")
    for field in columns:
        kind = found.field(field.name).type
        instants = pa.types.is_timestamp(field.type) and kind in _INSTANTS
        if not instants and kept_kind(kind, field.type, keeps=True) is None:
            raise Unclear(f"{kind} in column '{field.name}', which is declared otherwise")


def _rows(how: ReadingRoot, opened: OpenedObject, start: int, end: int) -> pa.Table:
    """The records of a piece in the order of the object, with an event time."""
    if isinstance(how.read, ReadStepParquet):
        with opened.file() as file, pq.ParquetFile(file, pre_buffer=False) as parquet:
            check_columns(parquet, how.columns)
            rows = _as_declared(parquet.read_row_groups([*range(start, end)]), how.columns)
    else:
        rows = pa.Table.from_batches(columns_of(opened.bytes(start, end), how.read, how.columns))
    if how.time not in rows.schema.names:
        times = np.full(rows.num_rows, how.event_time.millis * 1000, np.int64)
        return rows.append_column(how.time, pa.array(times).cast(_MICROS_UTC))
    if rows[how.time].null_count:
        raise Unclear("a record without event time")
    return rows


def _as_declared(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    found = []
    for field in columns:
        values = rows[field.name]
        if values.null_count and not field.nullable:
            raise Unclear(f"nothing in column '{field.name}', which is required")
        found.append(values.cast(_MICROS_UTC if pa.types.is_timestamp(field.type) else field.type))
    return pa.table(found, columns.names)


def _in_order(rows: pa.Table, how: ReadingRoot) -> Iterator[pa.RecordBatch]:
    """The records by event time as it is committed, those of one time as they came."""
    times = rows[how.time]
    if pa.types.is_timestamp(times.type):
        times = pc.floor_temporal(times, unit="millisecond").cast(pa.int64())
    else:
        times = times.cast(pa.int32()).cast(pa.int64())
    numbers = times.to_numpy()
    if (numbers[1:] < numbers[:-1]).any():
        rows = rows.take(pa.array(np.argsort(numbers, kind="stable")))
    yield from rows.to_batches(_BATCH_ROWS)

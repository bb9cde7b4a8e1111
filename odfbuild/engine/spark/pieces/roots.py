"""Let executors read an object of a source: each task a piece of it, of which it writes a slice.

Text is cut behind ends of lines, which are ends of records as long as no quoted value has one;
Parquet by its row groups. The coordinator looks at the places where it cuts, and at footers.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.in_pieces import RootTask, WrittenPiece, WrittenRoot
from odfbuild.engine.spark.merging.in_memory import appended_schema
from odfbuild.engine.spark.pieces import root_tasks
from odfbuild.engine.spark.pieces.run import (
    Workplace,
    by_tasks,
    check_stored,
    ddl,
    piece_of,
    wrong,
)
from odfbuild.engine.spark.pieces.tasks import REPORT, NotByTasks, Writing
from odfbuild.engine.spark.reading.plain_text import Unclear, plain_lines, separator_of
from odfbuild.engine.spark.results.local_rows import is_alike
from odfbuild.odf.model import ReadStep, ReadStepCsv, ReadStepParquet
from odfbuild.odf.schema.arrow_schema import declared_columns
from odfbuild.store.remote_object import OpenedObject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK = 8 << 10
"""Bytes that are read at a time where the end of a line is looked for."""
_LONGEST_LINE = 16 << 20
_Piece = tuple[int, int]


def write_root(spark: SparkSession, task: RootTask, scratch: Path, cluster: str) -> WrittenRoot:
    """See `RootTask`."""
    ingest = task.ingest
    schema, columns = appended_schema(ingest), declared_columns(ingest.read)
    if schema is None or columns is None or not all(map(is_alike, columns)):
        return WrittenRoot(why="its definition is not that simple")
    place = Workplace(task.dataset, task.storage, scratch, cluster)
    try:
        with root_tasks.reading(task.source, task.dataset) as opened:
            pieces, counts = _cut(opened, ingest.read, task, columns)
        how = root_tasks.ReadingRoot(
            task.dataset,
            task.source,
            ingest.read,
            columns,
            ingest.vocab.event_time,
            ingest.event_time,
            pieces,
        )
        with by_tasks(spark, place, None):
            writing = partial(
                Writing,
                task.dataset,
                task.schema_of(schema),
                ingest.vocab,
                system_time=task.system_time,
                storage=task.storage,
            )
            return WrittenRoot(_written(spark, task, how, counts, writing))
    except NotByTasks as error:
        return WrittenRoot(why=error.message)


def _written(
    spark: SparkSession,
    task: RootTask,
    how: root_tasks.ReadingRoot,
    counts: Sequence[int] | None,
    writing: Callable[[tuple[int, ...]], Writing],
) -> tuple[WrittenPiece, ...]:
    size = len(how.pieces)
    numbers = spark.range(0, size, 1, size)
    if counts is None:
        rows = numbers.mapInArrow(partial(root_tasks.count, how), ddl(root_tasks.COUNT)).collect()
        found = {row.piece: row.records for row in rows}
        if len(rows) != size or len(found) != size:
            raise wrong(task.dataset, f"of {size} pieces {len(rows)} were counted")
        counts = [found[number] for number in range(size)]
    offsets = tuple(accumulate(counts, initial=task.first_offset))
    write = partial(root_tasks.write, how, writing(offsets))
    rows = numbers.mapInArrow(write, ddl(REPORT)).collect()
    if sorted((row.piece, row.records) for row in rows) != [*enumerate(counts)]:
        raise wrong(task.dataset, "pieces have other records than were counted")
    by_number = {row.piece: row for row in rows}
    pieces = tuple(piece_of(by_number[number], offsets[number]) for number in range(size))
    check_stored(task.dataset, task.storage, pieces)
    return pieces


def _cut(
    opened: OpenedObject, read: ReadStep, task: RootTask, columns: pa.Schema
) -> tuple[tuple[_Piece, ...], Sequence[int] | None]:
    """The pieces of an object, and how many records each has, if that is known."""
    most = task.piece_bytes
    if isinstance(read, ReadStepParquet):
        return _row_groups(opened, most, columns)
    separator, size = separator_of(read), task.source.size
    first = opened.bytes(0, min(_LOOK, size)) if size else b""
    if not first or first.startswith(b"\xef\xbb\xbf"):
        raise Unclear("no bytes, or a mark of their order")
    start = 0
    if isinstance(read, ReadStepCsv) and read.header and separator is not None:
        header, _, _ = first.partition(b"\n")
        names = plain_lines(header + b"\n", separator).decode()
        if next(csv.reader([names], delimiter=separator), None) != columns.names:
            raise Unclear("another header than is declared")
        start = len(header) + 1
    if start >= size:
        raise Unclear("no records")
    cuts = [start]
    while cuts[-1] + most < size:
        cuts.append(_end_of_line(opened, cuts[-1] + most - 1, size))
    if cuts[-1] < size:
        cuts.append(size)
    return tuple(pairwise(cuts)), None


def _end_of_line(opened: OpenedObject, at: int, size: int) -> int:
    """Where the line that has the byte `at` is over, its end included."""
    start = at
    while at < size and at - start < _LONGEST_LINE:
        found = opened.bytes(at, min(at + _LOOK, size))
        end = found.find(b"\n")
        if end >= 0:
            return at + end + 1
        at += len(found)
    if at < size:
        raise Unclear("a line of more than 16 MiB")
    return size


def _row_groups(
    opened: OpenedObject, most: int, columns: pa.Schema
) -> tuple[tuple[_Piece, ...], Sequence[int]]:
    with opened.file() as file, pq.ParquetFile(file, pre_buffer=False) as parquet:
        root_tasks.check_columns(parquet, columns)
        metadata = parquet.metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    pieces: list[_Piece] = []
    counts: list[int] = []
    taken = most
    for number, group in enumerate(groups):
        bytes = sum(group.column(each).total_compressed_size for each in range(group.num_columns))
        if taken + bytes > most:
            pieces.append((number, number))
            counts.append(0)
            taken = 0
        pieces[-1] = (pieces[-1][0], number + 1)
        counts[-1] += group.num_rows
        taken += bytes
    if not sum(counts):
        raise Unclear("no records")
    return tuple(pieces), counts

"""Records in the order of a number, kept beside a chain, so that few are found without the rest.

The number of a record, its place, follows from its key: a hash, or a time. A segment is a file of
records in order of places, in small batches, and the first place of each batch is known: to find
the records of a key, a batch of each segment is read, whatever the history is. New records make a
new segment, and segments of like size become one (the logarithmic method), so keeping up costs what
the new records cost.
Source: Bentley and Saxe, "Decomposable searching problems" (1980), for the growth of segments.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.records.arrays import numbers_in, of_numbers
from odfbuild.records.key_hash import Hashes
from odfbuild.store.side_cars import SideCar, SideCarFolder

_PLACE = "__odfbuild_place"
_BATCH_ROWS = 256
_BATCH_BYTES = 1 << 14
"""A batch is decoded to find one record in it."""
_TOGETHER = 1024
"""Batches that are looked at together."""
PIECE_BYTES = 64 << 20
"""Records of that size are sorted in memory."""
LAST = np.iinfo(np.uint64).max


class Segments:
    """Segments in `folder`; `place` tells the places of records, and `codec` how they are packed.

    `wanted` leaves out records that others of the same place make useless; no segment has them. It
    is given records in the order of places, those of one place in the order in which they came.

    Notes of a segment are the first places of its batches, as bytes, and what its maker notes.
    """

    def __init__(
        self,
        folder: SideCarFolder,
        place: Callable[[pa.Table], Hashes],
        codec: str | None = "lz4",
        wanted: Callable[[pa.Table], pa.Table] | None = None,
    ) -> None:
        self.folder = folder
        self._place = place
        self._codec = codec
        self._wanted = wanted

    def open(self, file: SideCar) -> Segment:
        """A segment as it lies on disk: only what is looked at is read."""
        return Segment(self.folder.path(file), np.frombuffer(file.notes[0], np.uint64))

    def grown(
        self,
        files: Sequence[SideCar],
        records: Iterable[pa.Table],
        note: Callable[[pa.Table], Any],
        joined: Callable[[Sequence[Any]], Any],
    ) -> list[SideCar]:
        """`files`, and a segment with `records` of one schema, merged with those of like size.

        Its maker tells the `note` of some records, and what is `joined` of notes.
        """
        kept = list(files)
        runs = [self.written(each, note(each)) for each in pieces(records)]
        if not runs:
            return kept
        schema = self.open(runs[0]).schema
        total = sum(run.records for run in runs)
        while kept and kept[-1].records < 2 * total and self.open(kept[-1]).schema == schema:
            total += kept[-1].records
            runs.insert(0, kept.pop())
        if len(runs) > 1:
            runs = [self._write(self._merged(runs), joined([run.notes[1] for run in runs]))]
        return [*kept, *runs]

    def written(self, records: pa.Table, note: Any) -> SideCar:
        """A segment of these records."""
        return self._write([self._sorted(records)], note)

    def packed(self, file: SideCar) -> SideCar:
        """The same segment in fewer bytes: to look into it takes longer."""
        return self._write(self._merged([file]), file.notes[1], "zstd")

    def _sorted(self, records: pa.Table) -> pa.Table:
        places = of_numbers(self._place(records), pa.uint64())
        return self._in_order(records.append_column(_PLACE, places))

    def _in_order(self, records: pa.Table) -> pa.Table:
        """Those that are wanted, in order of their places."""
        places = _places(records.combine_chunks())
        order = np.argsort(places, kind=None if self._wanted is None else "stable")
        records, places = records.take(of_numbers(order, pa.int64())), places[order]
        if self._wanted is None or not (places[1:] == places[:-1]).any():
            return records
        return self._wanted(records)

    def _merged(self, files: Sequence[SideCar]) -> Iterator[pa.Table]:
        """The records of segments, a range of places after the other."""
        opened = [self.open(file) for file in files]
        firsts = np.sort(np.concatenate([each.firsts for each in opened]))
        cuts, counts = np.unique(firsts[_TOGETHER::_TOGETHER], return_counts=True)
        # A place that many records share is a range of its own, and in order already.
        cuts = np.unique(np.concatenate([cuts, cuts[counts > 1] + np.uint64(1)]))
        lowest = np.concatenate([np.zeros(1, np.uint64), cuts[cuts > 0]])
        highest = np.concatenate([lowest[1:] - np.uint64(1), np.full(1, LAST, np.uint64)])
        for low, high in zip(lowest, highest, strict=True):
            tables = (t for each in opened for t in each.placed(low, high))
            if low == high and self._wanted is None:
                yield from tables
            elif found := list(tables):
                yield self._in_order(pa.concat_tables(found))

    def _write(self, tables: Iterable[pa.Table], note: Any, codec: str | None = None) -> SideCar:
        """Write tables of one schema, one after the other in order of places."""
        options = pa.ipc.IpcWriteOptions(compression=codec or self._codec, use_threads=False)
        name = f"{secrets.token_hex(8)}.arrow"
        firsts: list[Hashes] = []
        writer: pa.RecordBatchFileWriter | None = None
        rows = 0
        with pa.OSFile(str(self.folder.folder / name), "wb") as sink:
            for table in tables:
                if writer is None:
                    writer = pa.ipc.new_file(sink, table.schema, options=options)
                whole = table.combine_chunks()
                size = _BATCH_BYTES * table.num_rows // max(1, whole.nbytes)
                size = min(_BATCH_ROWS, max(1, size))
                firsts.append(_places(whole)[::size])
                writer.write_table(whole, max_chunksize=size)
                rows += table.num_rows
            if writer is not None:
                writer.close()
        return self.folder.describe(name, rows, (np.concatenate(firsts).tobytes(), note))


class Segment:
    """A file of records, mapped, not read; `firsts` are the first places of its batches."""

    def __init__(self, file: Path, firsts: Hashes) -> None:
        self.firsts = firsts
        options = pa.ipc.IpcReadOptions(use_threads=False)
        self._source = pa.ipc.open_file(pa.memory_map(str(file)), options=options)
        self.schema = self._source.schema

    def all(self) -> pa.Table:
        """All records."""
        return self._source.read_all().drop_columns([_PLACE])

    def between(self, lowest: Hashes, highest: Hashes) -> Iterator[pa.Table]:
        """Records whose place is from one of `lowest` to the `highest` beside it, in order."""
        for table in self.placed(lowest, highest):
            yield table.drop_columns([_PLACE])

    def placed(self, lowest: Hashes, highest: Hashes) -> Iterator[pa.Table]:
        """The same, with their places."""
        # Records of one place may begin in the batch before the one that begins with it.
        starts = np.maximum(np.searchsorted(self.firsts, lowest, "left"), 1) - 1
        stops = np.searchsorted(self.firsts, highest, "right")
        batches = np.flatnonzero(_are_within(len(self.firsts), starts, stops))
        for at in range(0, len(batches), _TOGETHER):
            read = [self._source.get_batch(int(n)) for n in batches[at : at + _TOGETHER]]
            table = pa.Table.from_batches(read).combine_chunks()
            places = _places(table)
            starts = np.searchsorted(places, lowest, "left")
            stops = np.searchsorted(places, highest, "right")
            rows = np.flatnonzero(_are_within(len(places), starts, stops))
            yield table.take(of_numbers(rows, pa.int64()))


def _are_within(
    length: int, starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Which of the numbers below `length` are in one of the ranges `[start, stop)`."""
    opened = np.bincount(np.ravel(starts), minlength=length + 1)
    closed = np.bincount(np.ravel(stops), minlength=length + 1)
    found: npt.NDArray[np.bool_] = np.cumsum(opened - closed)[:length] > 0
    return found


def schema_of(file: Path) -> pa.Schema:
    """The columns of a slice, by which records of slices go into segments together."""
    return pq.read_schema(file).remove_metadata()


def records_in(files: Iterable[Path], columns: Collection[str] | None = None) -> Iterator[pa.Table]:
    """The records of slices, or those of the `columns` that these have."""
    for file in files:
        with pq.ParquetFile(file, memory_map=True) as source:
            names = columns and [name for name in columns if name in source.schema_arrow.names]
            for group in range(source.num_row_groups):
                yield source.read_row_group(group, names).replace_schema_metadata(None)


def pieces(records: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same records in tables of about `PIECE_BYTES`."""
    waiting: list[pa.Table] = []
    size = 0
    for table in records:
        waiting.append(table)
        size += table.nbytes
        if size >= PIECE_BYTES:
            yield pa.concat_tables(waiting)
            waiting, size = [], 0
    if any(each.num_rows for each in waiting):
        yield pa.concat_tables(waiting)


def _places(records: pa.Table) -> Hashes:
    """Those of records in one piece."""
    column = records[_PLACE]
    return numbers_in(column.chunk(0), np.uint64) if column.num_chunks else np.empty(0, np.uint64)

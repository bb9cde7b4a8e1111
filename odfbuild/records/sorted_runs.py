"""Merge files that are in order into one stream that is, in bounded memory.

Of each file one batch of rows is looked at. Rows up to the batch that ends first may be given out,
because whatever follows in any file comes later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_ROWS = 1 << 20
"""Looked at together, of all files."""
_LARGEST_BATCH = 131_072
_BUFFER_BYTES = 1 << 18

Key = tuple[tuple[bool, Any], ...]


def merged(
    files: Sequence[Path], order: Sequence[str], columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Rows of Parquet `files`, each in `order`, in that order: ascending, nulls first.

    `columns` are those wanted, all by default. Rows that are equal in all columns of `order` come
    in any order. Columns of `order` are whole numbers, text, times, dates or decimals.
    """
    read = None if columns is None else list(dict.fromkeys([*columns, *order]))
    size = min(_LARGEST_BATCH, max(1024, _ROWS // max(1, len(files))))
    for batch in _in_order([_Run(file, order, read, size) for file in files], order):
        yield batch if columns is None else batch.select(list(columns))


def _in_order(runs: list[_Run], order: Sequence[str]) -> Iterator[pa.RecordBatch]:
    keys = [(name, "ascending", "at_start") for name in order]
    waiting = [run for run in runs if run.has_rows()]
    while waiting:
        if len(waiting) == 1:
            yield from waiting[0].rest()
            return
        bound = min(run.last() for run in waiting)
        taken = [batch for run in waiting if (batch := run.take(bound)).num_rows]
        if len(taken) == 1:
            yield taken[0]
        else:
            both = pa.Table.from_batches(taken).combine_chunks().to_batches()[0]
            yield both.take(pc.sort_indices(both, sort_keys=keys))
        waiting = [run for run in waiting if run.has_rows()]


class _Run:
    """One file, and how far it was read."""

    def __init__(
        self, file: Path, order: Sequence[str], columns: list[str] | None, size: int
    ) -> None:
        self._order = order
        self._batches = _batches(file, columns, size)
        self._batch: pa.RecordBatch | None = None

    def has_rows(self) -> bool:
        """Whether there are rows to look at; reads on where there are none."""
        while self._batch is None or not self._batch.num_rows:
            self._batch = next(self._batches, None)
            if self._batch is None:
                return False
        return True

    def last(self) -> Key:
        """The key of the last row that is looked at."""
        return self._key(self._rows.num_rows - 1)

    def take(self, bound: Key) -> pa.RecordBatch:
        """The rows that are looked at up to `bound`."""
        low, high = 0, self._rows.num_rows
        while low < high:
            middle = (low + high) // 2
            if self._key(middle) <= bound:
                low = middle + 1
            else:
                high = middle
        taken, self._batch = self._rows.slice(0, low), self._rows.slice(low)
        return taken

    def rest(self) -> Iterator[pa.RecordBatch]:
        """All rows that are left."""
        yield self._rows
        yield from self._batches

    @property
    def _rows(self) -> pa.RecordBatch:
        assert self._batch is not None
        return self._batch

    def _key(self, row: int) -> Key:
        return tuple(_comparable(self._rows.column(name)[row].as_py()) for name in self._order)


def _batches(file: Path, columns: list[str] | None, size: int) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(file, pre_buffer=False, buffer_size=_BUFFER_BYTES) as opened:
        yield from opened.iter_batches(size, columns=columns)


def _comparable(value: Any) -> tuple[bool, Any]:
    """Null first; text by its bytes in UTF-8, as Spark and Arrow compare it."""
    if isinstance(value, str):
        value = value.encode()
    return (value is not None, value)

"""Whether files are in order, and one ordered stream of several, in bounded memory.

Of each file one batch of rows is looked at. Rows up to the batch that ends first may be given out,
because whatever follows in any file comes later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


def sorts_alike(schema: pa.Schema, order: Sequence[str]) -> bool:
    """Whether Arrow orders values of these types as Spark does."""
    t = pa.types
    tests = (t.is_integer, t.is_string, t.is_timestamp, t.is_date, t.is_decimal)
    return all(any(test(schema.field(name).type) for test in tests) for name in order)


def is_sorted(parts: Sequence[Path], order: Sequence[str], *, strictly: bool = False) -> bool:
    """Whether rows stand in order already; `False` also when it cannot be told cheaply.

    `strictly`: and no two of them are equal in all columns of `order`.
    """
    if not all(sorts_alike(pq.read_schema(part), order) for part in parts):
        return False
    return ascends(_keys(parts, order), strictly=strictly)


def ascends(batches: Iterable[pa.RecordBatch], *, strictly: bool = False) -> bool:
    """Whether rows ascend by their columns; `False` also where one of them is null."""
    before: pa.RecordBatch | None = None
    for batch in filter(len, batches):
        if any(column.null_count for column in batch.columns):
            return False
        keys = batch if before is None else pa.concat_batches([before, batch])
        if not _ascends(keys.columns, strictly=strictly):
            return False
        before = keys.slice(len(keys) - 1)
    return True


def _keys(parts: Sequence[Path], order: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for part in parts:
        with pq.ParquetFile(part, pre_buffer=False) as file:
            for batch in file.iter_batches(columns=list(order)):
                yield batch.select(list(order))


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


def _ascends(columns: Sequence[pa.Array], *, strictly: bool) -> bool:
    """Whether rows (without nulls) ascend by the first column, within it by the next, and so on."""
    rows = len(columns[0])
    undecided = None  # rows that equal the one before in all columns so far
    for column in columns:
        one, two = column.slice(0, rows - 1), column.slice(1)
        falls = pc.greater(one, two)
        if undecided is not None:
            falls = pc.and_(falls, undecided)
        if pc.any(falls).as_py():
            return False
        equal = pc.equal(one, two)
        undecided = equal if undecided is None else pc.and_(undecided, equal)
        if not pc.any(undecided).as_py():
            return True
    return not strictly

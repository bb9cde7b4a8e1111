"""Which keys a dataset has seen, without reading its history.

All keys up to a block are kept in a few sorted segments beside the chain. A new slice adds a
segment, and segments of like size become one (the logarithmic method), so both looking up and
keeping up cost what the batch costs, not what the history costs. Segments are searched by hash and
hold the keys themselves, so what is found is exact once compared.
Source: Bentley and Saxe, "Decomposable searching problems" (1980), for the growth of segments.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.errors import ChainError
from odfbuild.fallbacks import fell_back
from odfbuild.records.arrays import numbers_in, of_numbers
from odfbuild.records.key_hash import Hashes, comparable_type, hash_rows
from odfbuild.records.uuids import is_uuid, to_text
from odfbuild.store.committed import Committed, CommittedSlice
from odfbuild.store.disposable import prepare_cache_folder
from odfbuild.store.side_cars import SideCar, SideCarFolder

_HASH = "__odfbuild_hash"
_BATCH_ROWS = 131_072
SEGMENT_ROWS = 1 << 20
"""Segments do not grow beyond this, so that making one needs a bounded amount of memory."""


class KeyIndex:
    """Keys, with these columns, in everything that was committed when it was read."""

    def __init__(self, folder: SideCarFolder, schema: pa.Schema, files: list[SideCar]) -> None:
        self._folder = folder
        self._schema = schema
        self._files = files

    def find(self, keys: pa.Table) -> pa.Table:
        """Seen keys, at least those that are among `keys`; rows may repeat.

        `keys` has the columns of the index, in types that can be cast to theirs.
        """
        wanted = _comparable(keys, self._schema)
        hashes = np.unique(hash_rows(wanted))
        ranges = [_range_of(column) for column in wanted.columns]
        found = [pa.Table.from_batches([], self._schema)]
        for file in self._files:
            if len(hashes) and _may_hold(file.notes, ranges):
                found.append(_look_up(self._folder.path(file), hashes))
        # In one piece: Spark takes a table that begins with an empty piece for an empty one.
        return pa.concat_tables(found).combine_chunks()


def key_index(committed: Committed, schema: pa.Schema, key: Sequence[str]) -> KeyIndex | None:
    """The index of `key` over everything that is `committed`, brought up to its head.

    `schema` is that of the dataset. `None` where there can be none: keys of nested types, no folder
    for side-cars, or one that cannot be written to.
    """
    if committed.side_cars is None or committed.head is None:
        return None
    types = [comparable_type(schema.field(name).type) for name in key]
    if None in types:
        return None
    kept = pa.schema(list(zip(key, types, strict=True)))
    name = hashlib.sha256(str(kept).encode()).hexdigest()
    folder = SideCarFolder(committed.side_cars / f"keys-{name[:16]}", name.encode())
    try:
        files = _caught_up(committed, folder, kept)
    except (OSError, pa.ArrowException) as error:
        # A full disk, a folder that is read-only, a bad slice.
        fell_back(__name__, f"keys {', '.join(key)} have no index", error)
        return None
    return KeyIndex(folder, kept, files)


# --- Keeping up ---


def _caught_up(committed: Committed, folder: SideCarFolder, schema: pa.Schema) -> list[SideCar]:
    """The segments after those of slices that they do not cover yet are added."""
    kept = folder.load()
    files: list[SideCar] = []
    try:
        slices = committed.slices(kept.covered if kept else None)
        files = list(kept.files) if kept else []
    except ChainError:  # the chain was rewritten
        kept = None
        slices = committed.slices()
    if kept is not None and kept.covered == committed.head:
        return files
    prepare_cache_folder(folder.folder)
    for table in _pieces(slices, schema):
        files.append(_write_segment(folder, _sorted(table)))
        while len(files) > 1 and _should_merge(files[-2], files[-1]):
            pair = [_open(folder.path(file)) for file in files[-2:]]
            files[-2:] = [_write_segment(folder, _resorted(pa.concat_tables(pair)))]
    assert committed.head is not None
    return list(folder.save(committed.head, files).files)


def _should_merge(older: SideCar, newer: SideCar) -> bool:
    together = older.records + newer.records
    return together <= SEGMENT_ROWS and older.records < 2 * newer.records


def _pieces(slices: Sequence[CommittedSlice], schema: pa.Schema) -> Iterator[pa.Table]:
    """The keys in `slices`, in tables of at most `SEGMENT_ROWS` rows."""
    waiting: list[pa.Table] = []
    rows = 0
    for table in _keys(slices, schema):
        if waiting and rows + table.num_rows > SEGMENT_ROWS:
            yield pa.concat_tables(waiting)
            waiting, rows = [], 0
        waiting.append(table)
        rows += table.num_rows
    if waiting:
        yield pa.concat_tables(waiting)


def _keys(slices: Sequence[CommittedSlice], schema: pa.Schema) -> Iterator[pa.Table]:
    for each in slices:
        with pq.ParquetFile(each.file) as file:
            there = [name for name in schema.names if name in file.schema_arrow.names]
            for batch in file.iter_batches(min(_BATCH_ROWS, SEGMENT_ROWS), columns=there):
                yield _comparable(pa.Table.from_batches([batch]), schema)


def _comparable(keys: pa.Table, schema: pa.Schema) -> pa.Table:
    """`keys` in the columns and types of `schema`; a column that is not there is null."""
    columns = [
        _cast(keys[field.name], field.type)
        if field.name in keys.column_names
        else pa.nulls(keys.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    # In a file that says nothing of Arrow's types, a UUID is 16 bytes.
    if is_uuid(column.type) or pa.types.is_fixed_size_binary(column.type):
        return pa.chunked_array(map(to_text, column.chunks), pa.large_string())
    return column.cast(kind, safe=False)


# --- Segments ---


def _sorted(keys: pa.Table) -> pa.Table:
    return _resorted(keys.add_column(0, _HASH, of_numbers(hash_rows(keys), pa.uint64())))


def _resorted(segment: pa.Table) -> pa.Table:
    order = np.argsort(_hashes(segment.combine_chunks()), kind="stable")
    return segment.take(of_numbers(order, pa.int64()))


def _hashes(segment: pa.Table) -> Hashes:
    column = segment[_HASH]
    return numbers_in(column.chunk(0) if column.num_chunks else column, np.uint64)


def _write_segment(folder: SideCarFolder, segment: pa.Table) -> SideCar:
    name = f"{secrets.token_hex(8)}.arrow"
    segment = segment.combine_chunks()
    file = str(folder.folder / name)
    with pa.OSFile(file, "wb") as sink, pa.ipc.new_file(sink, segment.schema) as writer:
        writer.write_table(segment, max_chunksize=max(1, segment.num_rows))
    ranges = [_range_of(column) for column in segment.columns[1:]]
    return folder.describe(name, segment.num_rows, ranges)


def _open(file: Path) -> pa.Table:
    """A segment as it lies on disk: only what is looked at is read."""
    return pa.ipc.open_file(pa.memory_map(str(file))).read_all()


def _look_up(file: Path, hashes: Hashes) -> pa.Table:
    segment = _open(file)
    kept = _hashes(segment)
    first = np.searchsorted(kept, hashes, "left")
    there = first < len(kept)
    there[there] = kept[first[there]] == hashes[there]
    first = first[there]
    counts = np.searchsorted(kept, hashes[there], "right") - first
    # Several rows may share a hash: they stand together.
    places = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    return segment.drop_columns([_HASH]).take(of_numbers(places, pa.int64()))


# --- Ranges ---


def _range_of(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    """Least and greatest value, as integers, text or bytes; `None` when they say too little."""
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    elif not (pa.types.is_integer(kind) or pa.types.is_large_string(kind)):
        return None
    if column.null_count or not len(column):
        return None
    ends = pc.min_max(column)
    return ends["min"].as_py(), ends["max"].as_py()


def _may_hold(kept: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether ranges meet in all columns of the key."""
    for one, other in zip(kept, wanted, strict=True):
        if one and other and (one[1] < other[0] or other[1] < one[0]):
            return False
    return True

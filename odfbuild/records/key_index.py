"""Which keys a dataset has seen, without reading its history.

All keys up to a block are kept in segments beside the chain, by their hashes, so what is found is
exact once compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.fallbacks import fell_back
from odfbuild.records.key_hash import comparable_type, hash_rows
from odfbuild.records.segments import Segments
from odfbuild.records.uuids import is_uuid, to_text
from odfbuild.store.committed import Committed, CommittedSlice
from odfbuild.store.disposable import prepare_cache_folder
from odfbuild.store.side_cars import SideCar, SideCarFolder

_BATCH_ROWS = 131_072


class KeyIndex:
    """Keys, with these columns, in everything that was committed when it was read."""

    def __init__(self, segments: Segments, schema: pa.Schema, files: Sequence[SideCar]) -> None:
        self._segments = segments
        self._schema = schema
        self._files = files

    def find(self, keys: pa.Table) -> pa.Table:
        """Seen keys, at least those that are among `keys`; rows may repeat.

        `keys` has the columns of the index, in types that can be cast to theirs.
        """
        wanted = _comparable(keys, self._schema)
        hashes = np.unique(hash_rows(wanted))
        ranges = _ranges_of(wanted)
        found = [pa.Table.from_batches([], self._schema)]
        for file in self._files:
            if len(hashes) and _may_hold(file.notes[1], ranges):
                found += self._segments.open(file).between(hashes, hashes)
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
    folder = SideCarFolder(committed.side_cars / f"keys-{name[:16]}", b"keys 2\n" + name.encode())
    segments = Segments(folder, hash_rows, None)
    try:
        return KeyIndex(segments, kept, _caught_up(committed, segments, kept))
    except (OSError, pa.ArrowException) as error:
        # A full disk, a folder that is read-only, a bad slice.
        fell_back(__name__, f"keys {', '.join(key)} have no index", error)
        return None


def _caught_up(committed: Committed, segments: Segments, schema: pa.Schema) -> Sequence[SideCar]:
    """The segments after the keys of slices that they do not cover yet are added."""
    kept, slices = committed.behind(segments.folder)
    files = kept.files if kept else ()
    if kept is not None and kept.covered == committed.head:
        return files
    prepare_cache_folder(segments.folder.folder)
    grown = segments.grown(files, _keys(slices, schema), _ranges_of, _joined)
    return segments.folder.save(committed.head, grown).files


def _keys(slices: Sequence[CommittedSlice], schema: pa.Schema) -> Iterator[pa.Table]:
    for each in slices:
        with pq.ParquetFile(each.file) as file:
            there = [name for name in schema.names if name in file.schema_arrow.names]
            for batch in file.iter_batches(_BATCH_ROWS, columns=there):
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


# --- Ranges ---


def _ranges_of(keys: pa.Table) -> list[tuple[Any, Any] | None]:
    return [_range_of(column) for column in keys.columns]


def _joined(ranges: Sequence[Sequence[tuple[Any, Any] | None]]) -> list[tuple[Any, Any] | None]:
    """The ranges of all columns that hold several of them."""
    found: list[tuple[Any, Any] | None] = []
    for column in zip(*ranges, strict=True):
        known = [each for each in column if each]
        whole = len(known) == len(column)
        found.append((min(k[0] for k in known), max(k[1] for k in known)) if whole else None)
    return found


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

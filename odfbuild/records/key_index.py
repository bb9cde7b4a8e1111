"""What merges look up by key, without reading the history: known keys, or the newest records.

Everything up to a block is kept in segments beside the chain, in the order of hashes of keys, so
what is found is exact once compared. Of records, each segment has the newest one of a key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.fallbacks import fell_back
from odfbuild.records.key_hash import comparable_type, hash_rows
from odfbuild.records.segments import LAST, Segments, records_in, schema_of
from odfbuild.records.uuids import is_uuid, to_text
from odfbuild.store.committed import Committed
from odfbuild.store.disposable import prepare_cache_folder
from odfbuild.store.side_cars import SideCar, SideCarFolder, by_key_folder

_FORM = b"looked up by merges 1\n"


class KeyIndex:
    """What was committed when it was read, by the columns `key`."""

    def __init__(self, segments: Segments, key: pa.Schema, files: Sequence[SideCar]) -> None:
        self._segments = segments
        self._key = key
        self._files = files

    def find(self, keys: pa.Table) -> pa.Table:
        """Seen keys, at least those that are among `keys`; rows may repeat.

        `keys` has the columns of the index, in types that can be cast to theirs.
        """
        found = [pa.Table.from_batches([], self._key), *chain(*self._tables(keys))]
        # In one piece: Spark takes a table that begins with an empty piece for an empty one.
        return pa.concat_tables(found).combine_chunks()

    def copy(self, keys: pa.Table | None, folder: Path) -> tuple[Path, ...]:
        """Files in `folder` with all records, or at least those that have one of `keys`.

        Each has one record of a key at most, and one of a later file replaces it.
        """
        folder.mkdir(exist_ok=True)
        files = []
        for number, tables in enumerate(self._tables(keys)):
            found = filter(len, tables)
            if (first := next(found, None)) is not None:
                files.append(folder / f"{number}.parquet")
                with pq.ParquetWriter(files[-1], first.schema, use_dictionary=False) as writer:
                    for table in chain([first], found):
                        writer.write_table(table)
        return tuple(files)

    def _tables(self, keys: pa.Table | None) -> Iterator[Iterator[pa.Table]]:
        """What each segment has, of the `keys` at least."""
        lowest, highest = np.zeros(1, np.uint64), np.full(1, LAST)
        ranges: Sequence[Any] = [None] * len(self._key)
        if keys is not None:
            wanted = comparable(keys, self._key)
            lowest = highest = np.unique(hash_rows(wanted))
            ranges = _ranges_of(wanted)
        for file in self._files:
            if len(lowest) and _may_hold(file.notes[1], ranges):
                yield self._segments.open(file).between(lowest, highest)


def key_index(
    committed: Committed, schema: pa.Schema, key: Sequence[str], offset: str | None = None
) -> KeyIndex | None:
    """Keys of everything that is `committed`, brought up to its head, or the records of keys.

    `schema` is that of the dataset, and `offset` the column by which records are the newest ones.
    `None` where there can be none: keys of nested types, or of floating ones, of which two may be
    equal; no folder for side-cars, or one that cannot be written to.
    """
    if committed.side_cars is None or committed.head is None:
        return None
    types = [comparable_type(schema.field(name).type) for name in key]
    if None in types or (offset and any(map(pa.types.is_floating, types))):
        return None
    kept = pa.schema(list(zip(key, types, strict=True)))
    name = f"{offset} {kept}"
    segments = Segments(
        SideCarFolder(by_key_folder(committed.side_cars, name), _FORM + name.encode()),
        lambda records: hash_rows(comparable(records, kept)),
        "zstd" if offset else None,
        partial(_newest, key=kept, offset=offset) if offset else None,
    )
    try:
        return KeyIndex(segments, kept, _caught_up(committed, segments, kept, offset is not None))
    except (OSError, pa.ArrowException) as error:
        # A full disk, a folder that is read-only, a bad slice.
        fell_back(__name__, f"keys {', '.join(key)} have no index", error)
        return None


def _caught_up(
    committed: Committed, segments: Segments, key: pa.Schema, whole: bool
) -> Sequence[SideCar]:
    """The segments with the slices that they did not cover yet: of keys, or of whole records."""
    kept, slices = committed.behind(segments.folder)
    files: Sequence[SideCar] = kept.files if kept else ()
    if kept is not None and kept.covered == committed.head:
        return files
    prepare_cache_folder(segments.folder.folder)
    for _, alike in groupby((each.file for each in slices), schema_of if whole else _alike):
        records = records_in(alike, None if whole else key.names)
        if not whole:
            records = (comparable(each, key) for each in records)
        files = segments.grown(files, records, lambda t: _ranges_of(comparable(t, key)), _joined)
    return segments.folder.save(committed.head, files).files


def _alike(_: Path) -> None:
    """Keys are in segments together whatever slices they come from."""


def _newest(records: pa.Table, key: pa.Schema, offset: str) -> pa.Table:
    """The newest record of each key."""
    keys = comparable(records, key).append_column(offset, records[offset])
    newest = keys.group_by(key.names, use_threads=False).aggregate([(offset, "max")])
    wanted = newest[f"{offset}_max"].combine_chunks()
    return records.filter(pc.is_in(records[offset], value_set=wanted))


def comparable(keys: pa.Table, schema: pa.Schema) -> pa.Table:
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

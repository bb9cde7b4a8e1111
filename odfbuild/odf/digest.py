"""Hashes of data: logical (the records, whatever file they are in) and physical (the file).

The logical hash is arrow-digest's record digest, version 0, over SHA3-256: a header of column names
and levels, then one digest for each leaf column. Row order, column order, names and types count;
nullability, metadata and batch boundaries do not. Values are encoded by whole columns, and columns
are hashed in parallel. Source: Open Data Fabric, "Data Hashing"; arrow-digest.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odfbuild.errors import QueryError
from odfbuild.odf.multihash import ARROW0_SHA3_256, SHA3_256, Multihash

_PARALLEL_BYTES = 1 << 20
_READ_BYTES = 1 << 20
_UNITS = {"s": 0, "ms": 1, "us": 2, "ns": 3}


class UnsupportedType(QueryError):
    """E0530: a column of a type that has no logical hash, so that no dataset can hold it."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            problem,
            code="E0530",
            help="cast the column, turn a map into a list or text, or leave it out",
        )


class LogicalHasher:
    """Logical hash of a stream of record batches that have `schema`."""

    def __init__(self, schema: pa.Schema) -> None:
        self._header = hashlib.sha3_256()
        self._columns: list[Any] = []
        self._prefixes: list[bytes] = []
        self._pool: ThreadPoolExecutor | None = None
        for field in schema:
            self._register(field, 0)

    def _register(self, field: pa.Field, level: int) -> None:
        name = field.name.encode()
        self._header.update(struct.pack("<Q", len(name)) + name + struct.pack("<Q", level))
        if pa.types.is_struct(field.type):
            for child in field.type:
                self._register(child, level + 1)
            return
        try:
            prefix = type_prefix(_stored(field.type))
        except UnsupportedType as error:
            raise UnsupportedType(f"column '{field.name}': {error}") from None
        self._prefixes.append(prefix)
        self._columns.append(hashlib.sha3_256(prefix))

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the records of a batch; `ValueError` when its columns are not those of the schema."""
        if batch.num_rows == 0:
            return
        columns = (
            array.storage if isinstance(array, pa.ExtensionArray) else array
            for array in batch.columns
        )
        leaves = [leaf for array in columns for leaf in _leaves(array)]
        if [type_prefix(array.type) for array, _ in leaves] != self._prefixes:
            raise ValueError(f"the batch has other columns than the schema: {batch.schema}")
        work = zip(self._columns, leaves, strict=True)
        if batch.nbytes < _PARALLEL_BYTES:
            for column, (array, valid) in work:
                _feed(column, array, valid)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="digest")
        for done in [self._pool.submit(_feed, c, array, valid) for c, (array, valid) in work]:
            done.result()

    def finish(self) -> Multihash:
        """The hash of everything added so far; ends the stream."""
        if self._pool is not None:
            self._pool.shutdown()
        total = self._header.copy()
        for column in self._columns:
            total.update(column.digest())
        return Multihash.of(ARROW0_SHA3_256, total.digest())


def array_digest(array: pa.Array) -> bytes:
    """Digest of a single array that is not a struct (arrow-digest, array digest)."""
    hasher = hashlib.sha3_256(type_prefix(array.type))
    if len(array):
        _feed(hasher, array, _own_validity(array))
    return hasher.digest()


def physical_hash(path: Path) -> tuple[Multihash, int]:
    """SHA3-256 of a file, and its size in bytes."""
    hasher = hashlib.sha3_256()
    size = 0
    with path.open("rb") as file:
        while chunk := file.read(_READ_BYTES):
            hasher.update(chunk)
            size += len(chunk)
    return Multihash.of(SHA3_256, hasher.digest()), size


# --- Types ---


def _stored(kind: pa.DataType) -> pa.DataType:
    """What values are stored as: of a UUID, 16 bytes."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def type_prefix(kind: pa.DataType) -> bytes:
    """What a column's hash starts with, so that equal bytes of unequal types differ."""
    types = pa.types
    if types.is_boolean(kind):
        return struct.pack("<H", 5)
    if types.is_integer(kind):
        return struct.pack("<HBQ", 1, types.is_signed_integer(kind), kind.bit_width)
    if types.is_floating(kind):
        return struct.pack("<HQ", 2, kind.bit_width)
    if _is_binary(kind):
        return struct.pack("<H", 3)
    if _is_text(kind):
        return struct.pack("<H", 4)
    if types.is_decimal(kind):
        return struct.pack("<HQQq", 6, kind.bit_width, kind.precision, kind.scale)
    if types.is_date(kind):
        return struct.pack("<HQH", 7, kind.bit_width, 0 if types.is_date32(kind) else 1)
    if types.is_time(kind):
        return struct.pack("<HQH", 8, kind.bit_width, _UNITS[kind.unit])
    if types.is_timestamp(kind):
        zone = b"\0" if kind.tz is None else struct.pack("<Q", len(kind.tz)) + kind.tz.encode()
        return struct.pack("<HH", 9, _UNITS[kind.unit]) + zone
    if _is_list(kind):
        if pa.types.is_struct(kind.value_type):
            raise UnsupportedType("lists of structs have no logical hash")
        return struct.pack("<H", 11) + type_prefix(kind.value_type)
    raise UnsupportedType(f"{kind} has no logical hash")


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_binary(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
        or types.is_binary_view(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


# --- Which values count as null ---

Validity = Any
"""A boolean array, true where a value is there; `None`: all are."""


def _own_validity(array: pa.Array) -> Validity:
    return _mask(array) if array.null_count else None


def _mask(array: pa.Array) -> np.ndarray:
    return np.asarray(pc.is_valid(array).to_numpy(zero_copy_only=False), dtype=bool)


def _leaves(array: pa.Array) -> Iterator[tuple[pa.Array, Validity]]:
    """The leaf columns below a top-level column, depth first."""
    own = _own_validity(array)
    if pa.types.is_struct(array.type):
        yield from _members(array, own)
    else:
        yield array, own


def _members(array: pa.Array, parent: Validity) -> Iterator[tuple[pa.Array, Validity]]:
    for index in range(array.type.num_fields):
        child = array.field(index)
        combined = _combine(parent, _own_validity(child))
        if pa.types.is_struct(child.type):
            yield from _members(child, combined)
        else:
            yield child, None if combined is None or combined.all() else combined


def _combine(parent: Validity, own: Validity) -> Validity:
    """The reference's rule for members of structs, which peers' hashes depend on.

    Two bitmaps are ORed, so that only what is null at both levels is null. Once nothing is, nulls
    further down do not count either, which is why a bitmap without nulls is kept here.
    """
    if parent is None:
        return own
    if own is None:
        return parent
    return parent if parent.all() else parent | own


# --- Values as bytes ---


def _feed(hasher: Any, array: pa.Array, valid: Validity) -> None:
    kind = array.type
    if pa.types.is_boolean(kind) or _width(kind) is not None:
        hasher.update(np.ascontiguousarray(_fixed(array, valid)[0]).data)
    else:
        data, _ = _encode(array, valid)
        hasher.update(np.ascontiguousarray(data).data)


def _encode(array: pa.Array, valid: Validity) -> tuple[np.ndarray, np.ndarray]:
    """Encoded values as one byte array, and where each begins (one more offset than values)."""
    if pa.types.is_boolean(array.type) or _width(array.type) is not None:
        data, sizes = _fixed(array, valid)
        return data, _offsets(sizes)
    payload, lengths = _payload(array, valid)
    # A prefix says how many bytes follow, or how many items of a list.
    counts = _list_counts(array)[1] if _is_list(array.type) else lengths
    return _prefixed(counts, payload, lengths, valid)


def _width(kind: pa.DataType) -> int | None:
    """Bytes of a fixed-width value; `None` for values of varying length."""
    if _is_binary(kind) or _is_text(kind) or _is_list(kind):
        return None
    return int(kind.bit_width) // 8


def _fixed(array: pa.Array, valid: Validity) -> tuple[np.ndarray, np.ndarray]:
    rows = len(array)
    if pa.types.is_boolean(array.type):
        raw = pa.Array.from_buffers(
            array.type, rows, [None, array.buffers()[1]], offset=array.offset
        )
        data = np.asarray(raw.to_numpy(zero_copy_only=False), dtype=np.uint8) + np.uint8(1)
        if valid is not None:
            data = np.where(valid, data, np.uint8(0)).astype(np.uint8)
        return data, np.ones(rows, np.int64)
    width = int(array.type.bit_width) // 8
    start = array.offset * width
    flat = np.frombuffer(array.buffers()[1], np.uint8)[start : start + rows * width]
    if valid is None:
        return flat, np.full(rows, width, np.int64)
    matrix = flat.reshape(rows, width).copy()
    matrix[~valid] = 0
    # A null keeps its first byte, which is zero now; a value keeps all of its bytes.
    keep = np.repeat(valid[:, None], width, axis=1)
    keep[:, 0] = True
    return matrix[keep], np.where(valid, width, 1).astype(np.int64)


def _offsets(sizes: np.ndarray) -> np.ndarray:
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def _payload(array: pa.Array, valid: Validity) -> tuple[np.ndarray, np.ndarray]:
    """Bytes behind the length prefixes of all values that are there, and their sizes (0: null)."""
    kind = array.type
    if _is_list(kind):
        return _list_payload(array, valid)
    if pa.types.is_fixed_size_binary(kind):
        width = kind.byte_width
        start = array.offset * width
        flat = np.frombuffer(array.buffers()[1], np.uint8)[start : start + len(array) * width]
        if valid is None:
            return flat, np.full(len(array), width, np.int64)
        return flat.reshape(len(array), width)[valid].ravel(), np.where(valid, width, 0)
    plain = array.cast(pa.large_binary())
    offsets = np.frombuffer(plain.buffers()[1], np.int64)[
        plain.offset : plain.offset + len(plain) + 1
    ]
    lengths = np.diff(offsets)
    body = plain.buffers()[2]
    data = np.frombuffer(body, np.uint8) if body is not None else np.empty(0, np.uint8)
    data = data[offsets[0] : offsets[-1]]
    if valid is None:
        return data, lengths
    if (lengths[~valid] == 0).all():
        return data, lengths
    return data[np.repeat(valid, lengths)], np.where(valid, lengths, 0)


def _list_payload(array: pa.Array, valid: Validity) -> tuple[np.ndarray, np.ndarray]:
    first, counts = _list_counts(array)
    items = array.values.slice(first, int(counts.sum()))
    data, item_offsets = _encode(items, _own_validity(items))
    sizes = np.diff(item_offsets[_offsets(counts)])
    if valid is None or not sizes[~valid].any():
        return data, sizes
    return data[np.repeat(valid, sizes)], np.where(valid, sizes, 0)


def _list_counts(array: pa.Array) -> tuple[int, np.ndarray]:
    """Where the items of the first list begin, and how many each list has, also under nulls."""
    kind = array.type
    if pa.types.is_fixed_size_list(kind):
        return array.offset * kind.list_size, np.full(len(array), kind.list_size, np.int64)
    if not len(array):
        return 0, np.empty(0, np.int64)
    layout = np.int64 if pa.types.is_large_list(kind) else np.int32
    offsets = np.frombuffer(array.buffers()[1], layout)[
        array.offset : array.offset + len(array) + 1
    ].astype(np.int64)
    return int(offsets[0]), np.diff(offsets)


def _prefixed(
    counts: np.ndarray, payload: np.ndarray, lengths: np.ndarray, valid: Validity
) -> tuple[np.ndarray, np.ndarray]:
    rows = len(counts)
    prefix = counts.astype("<u8").view(np.uint8).reshape(rows, 8)
    prefix_sizes = np.full(rows, 8, np.int64)
    if valid is not None:
        prefix = prefix.copy()
        prefix[~valid] = 0
        keep = np.repeat(valid[:, None], 8, axis=1)
        keep[:, 0] = True
        prefix, prefix_sizes = prefix[keep], np.where(valid, 8, 1).astype(np.int64)
    joined = pc.binary_join_element_wise(
        _binary(prefix.ravel(), prefix_sizes),
        _binary(payload, lengths),
        pa.scalar(b"", pa.large_binary()),
    )
    offsets = np.frombuffer(joined.buffers()[1], np.int64)[: rows + 1]
    body = joined.buffers()[2]
    data = np.frombuffer(body, np.uint8) if body is not None else np.empty(0, np.uint8)
    return data[offsets[0] : offsets[-1]], offsets - offsets[0]


def _binary(data: np.ndarray, sizes: np.ndarray) -> pa.Array:
    buffers = [None, pa.py_buffer(_offsets(sizes)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), buffers)

"""Hashes of keys, 64 bits a row, computed column by column.

Keys that Spark's `<=>` calls equal hash equal: NULL is a value, the two zeros and all NaNs are one.
Equal hashes say nothing: whoever needs to know compares the keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odfbuild.records.arrays import numbers_in
from odfbuild.records.uuids import is_uuid

Hashes = np.ndarray[Any, np.dtype[np.uint64]]

_BATCH_ROWS = 65_536
_NULL = np.uint64(0x9E3779B97F4A7C15)
_BASE = np.uint64(0x00000100000001B3)


def comparable_type(kind: pa.DataType) -> pa.DataType | None:
    """The one type in which keys of committed type `kind` are compared; `None`: not supported.

    It is the type that Spark gives such a column, so unsigned integers widen.
    """
    types = pa.types
    if kind in _WIDER:
        return _WIDER[kind]
    if is_uuid(kind):
        return pa.large_string()
    if types.is_timestamp(kind):
        return pa.timestamp("us" if kind.unit in ("us", "ns") else "ms", "UTC")
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return pa.large_string()
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.large_binary()
    plain = types.is_signed_integer(kind) or types.is_date32(kind) or types.is_boolean(kind)
    if plain or types.is_float32(kind) or types.is_float64(kind) or types.is_decimal128(kind):
        return kind
    return None


_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


def hash_rows(keys: pa.Table) -> Hashes:
    """The hash of each row of `keys`, whose columns have comparable types."""
    parts = [_hash_batch(batch) for batch in keys.to_batches(_BATCH_ROWS)]
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def _hash_batch(batch: pa.RecordBatch) -> Hashes:
    total = np.zeros(batch.num_rows, np.uint64)
    for column in batch.columns:
        values = _hash_values(column)
        if column.null_count:
            values = np.where(column.is_null().to_numpy(zero_copy_only=False), _NULL, values)
        total = _mixed(total * _BASE + values)
    return total


def _hash_values(column: pa.Array) -> Hashes:
    """A number for each value; anything for nulls."""
    kind = column.type
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return _hash_bytes(column)
    if pa.types.is_decimal128(kind):
        halves = np.frombuffer(column.buffers()[1], np.uint64)
        low, high = halves[::2], halves[1::2]
        start, stop = column.offset, column.offset + len(column)
        return low[start:stop] ^ _mixed(high[start:stop])
    if pa.types.is_floating(kind):
        # Adding zero makes one of both zeros; there are many NaNs.
        numbers = np.array(_filled(column, 0), np.float64) + 0.0
        numbers[np.isnan(numbers)] = np.nan
        return np.asarray(numbers.view(np.uint64))
    if pa.types.is_boolean(kind):
        return np.asarray(_filled(column, False), np.uint64)
    if pa.types.is_date32(kind):
        days = numbers_in(_filled(column.cast(pa.int32()), 0), np.int32)
        return days.astype(np.int64).view(np.uint64)
    return numbers_in(_filled(column.cast(pa.int64()), 0), np.int64).view(np.uint64)


def _filled(column: pa.Array, value: float) -> pa.Array:
    """`column` with `value` in place of nulls; PyArrow loads pandas to take a value."""
    return pc.fill_null(column, value) if column.null_count else column


def _hash_bytes(column: pa.Array) -> Hashes:
    """Eight bytes after the other are mixed into the length of each value."""
    _, offset_buffer, data_buffer = column.buffers()
    bounds = np.frombuffer(offset_buffer, np.int64)[column.offset : column.offset + len(column) + 1]
    first, last = int(bounds[0]), int(bounds[-1])
    data = np.zeros(last - first + 8, np.uint8)
    if data_buffer is not None:
        data[:-8] = np.frombuffer(data_buffer, np.uint8)[first:last]
    # The eight bytes that begin at each byte, as a number.
    words: Hashes = np.ndarray(last - first + 1, np.uint64, buffer=data, strides=(1,))
    left = np.diff(bounds)
    total = _mixed(left.astype(np.uint64))
    rows = np.flatnonzero(left)
    at, left = bounds[rows] - first, left[rows]
    while len(rows):
        found = words[at]
        short = left < 8
        found[short] &= (np.uint64(1) << (left[short].astype(np.uint64) * 8)) - np.uint64(1)
        total[rows] = _mixed(total[rows] * _BASE + found)
        more = left > 8
        rows, at, left = rows[more], at[more] + 8, left[more] - 8
    return total


def _mixed(values: Hashes) -> Hashes:
    """Spread every bit over all others (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))

"""The vectorised digest against a model that encodes one value after the other."""

import hashlib
import struct
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odfbuild.odf.digest import LogicalHasher, UnsupportedType, array_digest, physical_hash
from odfbuild.odf.multihash import ARROW0_SHA3_256, Multihash

INTS = {
    pa.int8(): "<b",
    pa.int16(): "<h",
    pa.int32(): "<i",
    pa.int64(): "<q",
    pa.uint8(): "<B",
    pa.uint16(): "<H",
    pa.uint32(): "<I",
    pa.uint64(): "<Q",
}


def prefix(kind: pa.DataType) -> bytes:
    t = pa.types
    if t.is_boolean(kind):
        return struct.pack("<H", 5)
    if t.is_integer(kind):
        return struct.pack("<HBQ", 1, t.is_signed_integer(kind), kind.bit_width)
    if t.is_floating(kind):
        return struct.pack("<HQ", 2, kind.bit_width)
    if t.is_decimal(kind):
        return struct.pack("<HQQq", 6, kind.bit_width, kind.precision, kind.scale)
    if t.is_date(kind):
        return struct.pack("<HQH", 7, 32, 0)
    if t.is_timestamp(kind):
        return struct.pack("<HHQ", 9, 1, 3) + b"UTC"
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        return struct.pack("<H", 11) + prefix(kind.value_type)
    text = t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind)
    return struct.pack("<H", 4 if text else 3)


def encode(value: Any, kind: pa.DataType) -> bytes:
    t = pa.types
    if value is None:
        return b"\0"
    if t.is_boolean(kind):
        return b"\2" if value else b"\1"
    if kind in INTS:
        return struct.pack(INTS[kind], value)
    if t.is_floating(kind):
        return struct.pack("<d" if kind.bit_width == 64 else "<f", value)
    if t.is_decimal(kind):
        number = int(value.scaleb(kind.scale))
        return number.to_bytes(kind.bit_width // 8, "little", signed=True)
    if t.is_date(kind):
        return struct.pack("<i", value)
    if t.is_timestamp(kind):
        return struct.pack("<q", value)
    if isinstance(value, list):
        items = b"".join(encode(item, kind.value_type) for item in value)
        return struct.pack("<Q", len(value)) + items
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def integers(kind: pa.DataType) -> st.SearchStrategy[int]:
    bits, signed = kind.bit_width, pa.types.is_signed_integer(kind)
    low = -(2 ** (bits - 1)) if signed else 0
    return st.integers(low, low + 2**bits - 1)


TEXT = st.text(st.characters(codec="utf-8"), max_size=5)
SCALARS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    *((kind, integers(kind)) for kind in INTS),
    (pa.bool_(), st.booleans()),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.float32(), st.floats(allow_nan=False, width=32)),
    (pa.string(), TEXT),
    (pa.large_string(), TEXT),
    (pa.string_view(), TEXT),
    (pa.binary(), st.binary(max_size=5)),
    (pa.binary_view(), st.binary(max_size=20)),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.decimal128(10, 2), st.integers(-(10**9), 10**9).map(lambda n: Decimal(n).scaleb(-2))),
    (pa.date32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.timestamp("ms", "UTC"), st.integers(-(2**63), 2**63 - 1)),
]


def nested(
    kind: pa.DataType, values: st.SearchStrategy[Any]
) -> list[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    items = st.lists(st.none() | values, max_size=4)
    return [
        (pa.list_(kind), items),
        (pa.large_list(kind), items),
        (pa.list_(kind, 2), st.lists(st.none() | values, min_size=2, max_size=2)),
        (pa.list_(pa.list_(kind)), st.lists(st.none() | items, max_size=3)),
    ]


COLUMNS = [*SCALARS, *(each for pair in SCALARS for each in nested(*pair))]


def build(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(values, kind)


@given(st.data(), st.sampled_from(COLUMNS), st.integers(0, 3), st.integers(0, 3))
@settings(max_examples=500, deadline=None)
def test_any_array_or_slice_of_it_is_hashed_value_by_value(
    data: st.DataObject,
    column: tuple[pa.DataType, st.SearchStrategy[Any]],
    first: int,
    less: int,
) -> None:
    kind, strategy = column
    values = data.draw(st.lists(st.none() | strategy, max_size=12))
    array = build(values, kind).slice(first)
    array = array.slice(0, max(len(array) - less, 0))
    kept = values[first:]
    kept = kept[: max(len(kept) - less, 0)]
    content = prefix(kind) + b"".join(encode(value, kind) for value in kept)
    assert array_digest(array) == hashlib.sha3_256(content).digest()


@given(
    st.lists(st.tuples(st.none() | st.integers(0, 9), st.none() | TEXT), max_size=20),
    st.lists(st.integers(0, 20), max_size=4),
)
@settings(max_examples=100, deadline=None)
def test_batch_boundaries_do_not_count(
    rows: list[tuple[int | None, str | None]], cuts: list[int]
) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    table = pa.table([[a for a, _ in rows], [b for _, b in rows]], schema=schema)
    hasher = LogicalHasher(schema)
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    for low, high in pairwise(bounds):
        for batch in table.slice(low, high - low).to_batches():
            hasher.update(batch)
    header = struct.pack("<Q", 1) + b"a" + bytes(8) + struct.pack("<Q", 1) + b"b" + bytes(8)
    columns = [
        hashlib.sha3_256(prefix(f.type) + b"".join(encode(r[i], f.type) for r in rows)).digest()
        for i, f in enumerate(schema)
    ]
    expected = hashlib.sha3_256(header + b"".join(columns)).digest()
    assert hasher.finish() == Multihash.of(ARROW0_SHA3_256, expected)


def test_large_batches_hash_the_same_in_parallel_as_in_small_pieces() -> None:
    rows = 300_000
    table = pa.table(
        {
            "n": np.arange(rows),
            "t": pa.array([None if i % 7 == 0 else str(i) for i in range(rows)]),
            "f": np.linspace(0, 1, rows),
        }
    )
    whole, pieces = LogicalHasher(table.schema), LogicalHasher(table.schema)
    for batch in table.combine_chunks().to_batches():
        whole.update(batch)
    for batch in table.to_batches(max_chunksize=1000):
        pieces.update(batch)
    assert whole.finish() == pieces.finish()


def test_a_column_that_cannot_be_hashed_is_named() -> None:
    schema = pa.schema([("ok", pa.int32()), ("m", pa.map_(pa.string(), pa.int32()))])
    with pytest.raises(UnsupportedType, match="column 'm'"):
        LogicalHasher(schema)


def test_a_file_is_hashed_with_its_size(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"foo" * 1_000_000)
    assert physical_hash(file) == (Multihash.sha3_256(b"foo" * 1_000_000), 3_000_000)


def test_a_batch_of_other_types_is_not_hashed_as_if_it_fitted() -> None:
    hasher = LogicalHasher(pa.schema([("a", pa.int64())]))
    with pytest.raises(ValueError, match="other columns"):
        hasher.update(pa.record_batch({"a": pa.array([1], pa.int32())}))
    hasher = LogicalHasher(pa.schema([("a", pa.string())]))
    hasher.update(pa.record_batch({"a": pa.array(["x"], pa.large_string())}))

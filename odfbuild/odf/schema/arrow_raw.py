"""The raw form of a schema: a bare Arrow IPC `Schema` table, as blocks up to protocol 0.36 hold it.

Built field by field in the order in which the reference's Arrow library does it, because the bytes
are part of the hash of the block. Source: Arrow `Schema.fbs`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from odfbuild.errors import QueryError

UNITS = ("s", "ms", "us", "ns")


class UnsupportedSchemaError(QueryError):
    """E0531: a type that the other form of schema cannot express; the message names the column."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            problem,
            code="E0531",
            help="cast the column to a type that datasets can hold, such as STRING or TIMESTAMP",
        )


def from_raw(raw: bytes) -> pa.Schema:
    """Read a bare IPC `Schema` table; `ValueError` when it is not one.

    Arrow reads schemas only inside a `Message`. Offsets in FlatBuffers are relative, so a message
    table put in front of the bytes can point at the schema in them.
    """
    root = struct.unpack_from("<I", raw)[0] if len(raw) >= 8 else len(raw)
    if root >= len(raw):
        raise ValueError(f"not an Arrow schema: its table is not in its {len(raw)} bytes")
    vtable = struct.pack("<HHHHH", 10, 12, 8, 10, 4)  # sizes; version, header_type, header
    table = struct.pack("<iIhBx", 12, 32 + root - 20, 4, 1)  # metadata version 5, Schema
    front = (struct.pack("<I", 16) + vtable).ljust(16, b"\0") + table.ljust(16, b"\0")
    message = front + raw
    message += bytes(-len(message) % 8)
    framed = struct.pack("<II", 0xFFFFFFFF, len(message)) + message
    try:
        return pa.ipc.read_schema(pa.py_buffer(framed))
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"not an Arrow schema: {error}") from error


def to_raw(schema: pa.Schema) -> bytes:
    """Write a bare IPC `Schema` table; `UnsupportedSchemaError` for types that it cannot hold."""
    import flatbuffers

    builder = flatbuffers.Builder(1024)
    fields = [_raw_field(builder, field) for field in schema]
    vector = _offsets(builder, fields)
    metadata = _raw_metadata(builder, schema.metadata)
    builder.StartObject(4)
    builder.PrependUOffsetTRelativeSlot(1, vector, 0)
    if metadata:
        builder.PrependUOffsetTRelativeSlot(2, metadata, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def _raw_field(builder: Any, field: pa.Field) -> int:
    metadata = _raw_metadata(builder, field.metadata)
    name = builder.CreateString(field.name)
    try:
        tag, kind, children = _raw_type(builder, field.type)
    except UnsupportedSchemaError as error:
        raise UnsupportedSchemaError(f"column '{field.name}': {error}") from None
    builder.StartObject(7)
    builder.PrependUOffsetTRelativeSlot(0, name, 0)
    builder.PrependUint8Slot(2, tag, 0)
    builder.PrependBoolSlot(1, field.nullable, False)
    builder.PrependUOffsetTRelativeSlot(5, children, 0)
    builder.PrependUOffsetTRelativeSlot(3, kind, 0)
    if metadata:
        builder.PrependUOffsetTRelativeSlot(6, metadata, 0)
    return int(builder.EndObject())


def _raw_type(builder: Any, kind: pa.DataType) -> tuple[int, int, int]:
    """Union tag, type table and vector of children."""
    t = pa.types
    if t.is_integer(kind):
        children = _offsets(builder, [])
        builder.StartObject(2)
        builder.PrependBoolSlot(1, t.is_signed_integer(kind), False)
        builder.PrependInt32Slot(0, kind.bit_width, 0)
        return 2, builder.EndObject(), children
    if t.is_floating(kind):
        children = _offsets(builder, [])
        builder.StartObject(1)
        builder.PrependInt16Slot(0, {16: 0, 32: 1, 64: 2}[kind.bit_width], 0)
        return 3, builder.EndObject(), children
    if t.is_timestamp(kind):
        zone = builder.CreateString(kind.tz or "")
        builder.StartObject(2)
        builder.PrependInt16Slot(0, UNITS.index(kind.unit), 0)
        if kind.tz:
            builder.PrependUOffsetTRelativeSlot(1, zone, 0)
        return 10, builder.EndObject(), _offsets(builder, [])
    if t.is_time(kind):
        builder.StartObject(2)
        builder.PrependInt32Slot(1, kind.bit_width, 32)
        builder.PrependInt16Slot(0, UNITS.index(kind.unit), 1)
        return 9, builder.EndObject(), _offsets(builder, [])
    if t.is_map(kind):
        entries = pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)
        child = _raw_field(builder, entries)
        builder.StartObject(1)
        builder.PrependBoolSlot(0, kind.keys_sorted, False)
        return 17, builder.EndObject(), _offsets(builder, [child])
    for matches, tag, slots in _RAW_TYPES:
        if matches(kind):
            members = [kind.field(i) for i in range(kind.num_fields)]
            below = [_raw_field(builder, member) for member in members]
            values = slots(kind)
            builder.StartObject(max(len(values), 1) if values else 0)
            for slot, (width, value, default) in enumerate(values):
                getattr(builder, f"Prepend{width}Slot")(slot, value, default)
            return tag, builder.EndObject(), _offsets(builder, below)
    raise UnsupportedSchemaError(f"{kind} is not supported")


_Slots = tuple[tuple[str, Any, Any], ...]
_t = pa.types


def _no_slots(_: pa.DataType) -> _Slots:
    return ()


_RAW_TYPES: tuple[
    tuple[Callable[[pa.DataType], bool], int, Callable[[pa.DataType], _Slots]], ...
] = (
    (_t.is_null, 1, _no_slots),
    (_t.is_binary, 4, _no_slots),
    (_t.is_string, 5, _no_slots),
    (_t.is_boolean, 6, _no_slots),
    (
        _t.is_decimal,
        7,
        lambda k: (("Int32", k.precision, 0), ("Int32", k.scale, 0), ("Int32", k.bit_width, 128)),
    ),
    (_t.is_date32, 8, lambda _: (("Int16", 0, 1),)),
    (_t.is_date64, 8, lambda _: (("Int16", 1, 1),)),
    (_t.is_list, 12, _no_slots),
    (_t.is_struct, 13, _no_slots),
    (_t.is_fixed_size_binary, 15, lambda k: (("Int32", k.byte_width, 0),)),
    (_t.is_fixed_size_list, 16, lambda k: (("Int32", k.list_size, 0),)),
    (_t.is_duration, 18, lambda k: (("Int16", UNITS.index(k.unit), 1),)),
    (_t.is_large_binary, 19, _no_slots),
    (_t.is_large_string, 20, _no_slots),
    (_t.is_large_list, 21, _no_slots),
    (_t.is_binary_view, 23, _no_slots),
    (_t.is_string_view, 24, _no_slots),
)


def _offsets(builder: Any, items: list[int]) -> int:
    builder.StartVector(4, len(items), 4)
    for item in reversed(items):
        builder.PrependUOffsetTRelative(item)
    return int(builder.EndVector())


def _raw_metadata(builder: Any, metadata: Mapping[bytes, bytes] | None) -> int:
    pairs = []
    for key, value in sorted((metadata or {}).items()):
        names = builder.CreateString(key.decode()), builder.CreateString(value.decode())
        builder.StartObject(2)
        builder.PrependUOffsetTRelativeSlot(0, names[0], 0)
        builder.PrependUOffsetTRelativeSlot(1, names[1], 0)
        pairs.append(int(builder.EndObject()))
    return _offsets(builder, pairs) if pairs else 0

"""The raw form of a schema: a bare Arrow IPC `Schema` table, as blocks up to protocol 0.36 hold it.

Built field by field in the order in which the reference's Arrow library does it, because the bytes
are part of the hash of the block. Source: Arrow `Schema.fbs`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from odfbuild.errors import QueryError
from odfbuild.odf.flatbuffers.tables import BROKEN, Source, blob, follow, layout, spend
from odfbuild.odf.schema import arrow
from odfbuild.odf.schema.arrow import UNITS

_MAX_DEPTH = 120
"""The limit for types in types: Arrow follows 128 tables."""


class UnsupportedSchemaError(QueryError):
    """E0531: a type that the other form of schema cannot express; the message names the column."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            problem,
            code="E0531",
            help="cast the column to a type that datasets can hold, such as STRING or TIMESTAMP",
        )


# --- Reading ---


def read_raw(raw: bytes) -> arrow.Schema:
    """Read a bare IPC `Schema` table; `ValueError` when it is not one."""
    source = Source(raw)
    try:
        table = _Table(source, follow(source, 0), 3)
        return arrow.schema([_field(each, 1) for each in table.tables(1, 7)], _metadata(table, 2))
    except BROKEN as error:
        raise ValueError(f"not an Arrow schema: {error}") from None


class _Table:
    """A table in a buffer: what stands in its slots."""

    def __init__(self, source: Source, at: int, slots: int) -> None:
        spend(source, 1)
        self.source = source
        self.places = [offset and at + offset for offset in layout(source, at, slots)]

    def number(self, slot: int, form: str, absent: int = 0) -> int:
        at = self.places[slot]
        return int(struct.unpack_from(form, self.source.data, at)[0]) if at else absent

    def bytes(self, slot: int) -> bytes:
        at = self.places[slot]
        return blob(self.source, at) if at else b""

    def table(self, slot: int, slots: int) -> _Table:
        at = self.places[slot]
        if not at:
            raise ValueError("a column has no type")
        return _Table(self.source, follow(self.source, at), slots)

    def tables(self, slot: int, slots: int) -> list[_Table]:
        at = self.places[slot]
        if not at:
            return []
        start = follow(self.source, at)
        count = struct.unpack_from("<I", self.source.data, start)[0]
        spend(self.source, count)
        places = range(start + 4, start + 4 + 4 * count, 4)
        return [_Table(self.source, follow(self.source, each), slots) for each in places]


def _field(table: _Table, depth: int) -> arrow.Field:
    if depth > _MAX_DEPTH:
        raise ValueError(f"types are nested more than {_MAX_DEPTH} deep")
    inner = tuple(_field(each, depth + 1) for each in table.tables(5, 7))
    kind = _type(table, inner)
    if table.places[4]:
        kind = _dictionary(table.table(4, 3), kind)
    nullable = bool(table.number(1, "<b"))
    return arrow.Field(table.bytes(0).decode(), kind, nullable, _metadata(table, 6))


def _metadata(table: _Table, slot: int) -> dict[bytes, bytes] | None:
    return {each.bytes(0): each.bytes(1) for each in table.tables(slot, 2)} or None


def _dictionary(encoding: _Table, values: arrow.Type) -> arrow.Type:
    index = _integer(encoding.table(1, 2)) if encoding.places[1] else arrow.Type("int32")
    fields = arrow.Field("indices", index), arrow.Field("values", values)
    return arrow.Type("dictionary", fields, sorted=bool(encoding.number(2, "<b")))


def _type(field: _Table, inner: tuple[arrow.Field, ...]) -> arrow.Type:
    tag, table = field.number(2, "<B"), field.table(3, 3)
    name = _NAMES.get(tag)
    match tag:
        case 2:
            return _integer(table)
        case 3:
            return arrow.Type(arrow.FLOATS[table.number(0, "<H")])
        case 7:
            return _decimal(table)
        case 8:
            return arrow.Type(("date32", "date64")[table.number(0, "<H", 1)])
        case 9:
            kind = arrow.time(UNITS[table.number(0, "<H", 1)])
            if kind.bits != table.number(1, "<i", 32):
                raise ValueError(f"{kind} has another number of bits")
            return kind
        case 10:
            zone = table.bytes(1).decode()
            return arrow.Type("timestamp", unit=UNITS[table.number(0, "<H")], zone=zone or None)
        case 15:
            return arrow.Type("fixed_size_binary", size=_size(table))
        case 16 if len(inner) == 1:
            return arrow.Type("fixed_size_list", inner, size=_size(table))
        case 17 if len(inner) == 1 and len(inner[0].type.fields) == 2:
            return arrow.Type("map", inner[0].type.fields, sorted=bool(table.number(0, "<b")))
        case 18:
            return arrow.Type("duration", unit=UNITS[table.number(0, "<H", 1)])
    if name is None or (name in arrow.LISTS and len(inner) != 1):
        raise ValueError(f"type {tag} of a column with {len(inner)} inner ones")
    return arrow.Type(name, inner)


def _integer(table: _Table) -> arrow.Type:
    bits = table.number(0, "<i")
    if bits not in (8, 16, 32, 64):
        raise ValueError(f"an integer of {bits} bits")
    return arrow.Type(f"{'' if table.number(1, '<b') else 'u'}int{bits}")


def _decimal(table: _Table) -> arrow.Type:
    bits, precision = table.number(2, "<i", 128), table.number(0, "<i")
    if not 1 <= precision <= arrow.MOST_DIGITS.get(bits, 0):
        raise ValueError(f"a decimal of {precision} digits in {bits} bits")
    return arrow.decimal(precision, table.number(1, "<i"), bits)


def _size(table: _Table) -> int:
    size = table.number(0, "<i")
    if size < 0:
        raise ValueError(f"a fixed length of {size}")
    return size


# --- Writing ---


def write_raw(schema: arrow.Schema) -> bytes:
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


def _raw_field(builder: Any, field: arrow.Field) -> int:
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


def _raw_type(builder: Any, kind: arrow.Type) -> tuple[int, int, int]:
    """Union tag, type table and vector of children."""
    name = kind.name
    if name in arrow.INTEGERS:
        children = _offsets(builder, [])
        builder.StartObject(2)
        builder.PrependBoolSlot(1, name in arrow.SIGNED, False)
        builder.PrependInt32Slot(0, kind.bits, 0)
        return 2, builder.EndObject(), children
    if name in arrow.FLOATS:
        children = _offsets(builder, [])
        builder.StartObject(1)
        builder.PrependInt16Slot(0, arrow.FLOATS.index(name), 0)
        return 3, builder.EndObject(), children
    if name == "timestamp":
        zone = builder.CreateString(kind.zone or "")
        builder.StartObject(2)
        builder.PrependInt16Slot(0, UNITS.index(str(kind.unit)), 0)
        if kind.zone:
            builder.PrependUOffsetTRelativeSlot(1, zone, 0)
        return 10, builder.EndObject(), _offsets(builder, [])
    if name in arrow.TIMES:
        builder.StartObject(2)
        builder.PrependInt32Slot(1, kind.bits, 32)
        builder.PrependInt16Slot(0, UNITS.index(str(kind.unit)), 1)
        return 9, builder.EndObject(), _offsets(builder, [])
    if name == "map":
        entries = arrow.Field("entries", arrow.struct(kind.fields), nullable=False)
        child = _raw_field(builder, entries)
        builder.StartObject(1)
        builder.PrependBoolSlot(0, kind.sorted, False)
        return 17, builder.EndObject(), _offsets(builder, [child])
    tag, values = _plain(kind)
    below = [_raw_field(builder, member) for member in kind.fields]
    builder.StartObject(len(values))
    for slot, (width, value, default) in enumerate(values):
        getattr(builder, f"Prepend{width}Slot")(slot, value, default)
    return tag, builder.EndObject(), _offsets(builder, below)


_Slots = tuple[tuple[str, int, int], ...]
"""The width and the value of each slot, and the value that is not written."""


def _plain(kind: arrow.Type) -> tuple[int, _Slots]:
    """The tag of a type, and the slots of its table."""
    if kind.name in arrow.DECIMALS:
        sizes = ("Int32", kind.precision, 0), ("Int32", kind.scale, 0), ("Int32", kind.bits, 128)
        return 7, sizes
    match kind.name:
        case "date32":
            return 8, (("Int16", 0, 1),)
        case "date64":
            return 8, (("Int16", 1, 1),)
        case "fixed_size_binary":
            return 15, (("Int32", kind.size, 0),)
        case "fixed_size_list":
            return 16, (("Int32", kind.size, 0),)
        case "duration":
            return 18, (("Int16", UNITS.index(str(kind.unit)), 1),)
    if kind.name not in _TAGS:
        raise UnsupportedSchemaError(f"{kind} is not supported")
    return _TAGS[kind.name], ()


_NAMES = {
    1: "null",
    4: "binary",
    5: "string",
    6: "bool",
    11: "interval",
    12: "list",
    13: "struct",
    14: "union",
    19: "large_binary",
    20: "large_string",
    21: "large_list",
    22: "run_end_encoded",
    23: "binary_view",
    24: "string_view",
    25: "list_view",
    26: "large_list_view",
}
"""Types whose table holds nothing that is needed here."""
_UNWRITTEN = ("interval", "union", "run_end_encoded", "list_view", "large_list_view")
"""Types that the reference does not write."""
_TAGS = {name: tag for tag, name in _NAMES.items() if name not in _UNWRITTEN}


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

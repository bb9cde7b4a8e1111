"""Blocks as bytes: FlatBuffers in the order that makes hashes agree between implementations.

Every table is written in two phases: first all that lives out of line, in slot order and depth
first, then the table with all its fields in slot order. The reader is our own: it checks every
offset, so that arbitrary bytes give an error and nothing else, and it needs no heavy import.
Sources: Open Data Fabric, "Metadata Block Hashing"; FlatBuffers internals.
"""

from __future__ import annotations

import struct
from calendar import isleap
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any

from odfbuild.odf.extra import extra_from_json, extra_to_json
from odfbuild.odf.identity import DatasetAlias, DatasetId, parse_ref
from odfbuild.odf.introspect import (
    Field,
    FieldType,
    Scalar,
    Table,
    Union,
    Vector,
    fields_of,
    slot_count,
)
from odfbuild.odf.model import MetadataBlock
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp

if TYPE_CHECKING:
    from flatbuffers import Builder

MANIFEST_KIND = 0x400000
"""Multicodec number of metadata blocks."""
WRITTEN_VERSION = 3
READ_VERSIONS = (2, 3)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_DEPTH = 64
_MAX_ITEMS = 1_000_000


class MalformedBlock(ValueError):
    """Bytes that are not a metadata block."""


class UnsupportedVersion(MalformedBlock):
    """A block in a Manifest version that this release does not read."""


def block_hash(data: bytes) -> Multihash:
    """The hash that names a block: SHA3-256 over the whole Manifest."""
    return Multihash.sha3_256(data)


# --- Writing ---


def encode_block(block: MetadataBlock, version: int = WRITTEN_VERSION) -> bytes:
    """The Manifest bytes of a block, in Manifest version 3 or 2."""
    if version not in READ_VERSIONS:
        raise ValueError(f"Manifest version {version} cannot be written")
    builder = _new_builder()
    builder.Finish(_write_table(builder, block, 4 if version >= 3 else 1))
    content = bytes(builder.Output())
    outer = _new_builder()
    vector = outer.CreateByteVector(content)
    outer.StartObject(3)
    outer.PrependInt64Slot(0, MANIFEST_KIND, 0)
    outer.PrependInt32Slot(1, version, 0)
    outer.PrependUOffsetTRelativeSlot(2, vector, 0)
    outer.Finish(outer.EndObject())
    return bytes(outer.Output())


def _new_builder() -> Builder:
    import flatbuffers
    from flatbuffers._version import __version__

    # Earlier releases share tables' layouts that differ in size: readable, but with other hashes.
    if tuple(int(part) for part in __version__.split(".")[:3]) < (25, 12, 19):
        raise RuntimeError(f"flatbuffers {__version__} is too old: 25.12.19 or newer is needed")
    return flatbuffers.Builder(256)


def _write_table(builder: Builder, value: Any, timestamp_align: int) -> int:
    cls = type(value)
    prepared = []
    for field in fields_of(cls):
        item = getattr(value, field.name)
        offset = None
        if item is not None:
            offset = _write_out_of_line(builder, field.type, item, timestamp_align)
        prepared.append((field, item, offset))
    builder.StartObject(slot_count(cls))
    for field, item, offset in prepared:
        if item is not None:
            _add(builder, field, item, offset, timestamp_align)
    return int(builder.EndObject())


def _write_out_of_line(builder: Builder, kind: FieldType, value: Any, align: int) -> int | None:
    match kind:
        case Vector(item):
            offsets = [_write_element(builder, item, each, align) for each in value]
            builder.StartVector(4, len(offsets), 4)
            for offset in reversed(offsets):
                builder.PrependUOffsetTRelative(offset)
            return int(builder.EndVector())
        case Table() | Union():
            return _write_table(builder, value, align)
        case Scalar("string" | "ref" | "alias"):
            return int(builder.CreateString(str(value)))
        case Scalar("bytes"):
            return int(builder.CreateByteVector(value))
        case Scalar("multihash" | "id"):
            return int(builder.CreateByteVector(value.binary))
        case Scalar("open_map"):
            text = builder.CreateString(extra_to_json(value))
            builder.StartObject(1)
            builder.PrependUOffsetTRelativeSlot(0, text, 0)
            return int(builder.EndObject())
    return None


def _write_element(builder: Builder, kind: Scalar | Table | Union, value: Any, align: int) -> int:
    offset = _write_out_of_line(builder, kind, value, align)
    if offset is None:
        raise TypeError(f"the protocol has no vectors of {kind}")
    if isinstance(kind, Union):
        builder.StartObject(2)
        builder.PrependUint8Slot(0, _tag(kind, value), 0)
        builder.PrependUOffsetTRelativeSlot(1, offset, 0)
        return int(builder.EndObject())
    return offset


def _tag(union: Union, value: Any) -> int:
    return union.members.index(type(value)) + 1


def _add(builder: Builder, field: Field, value: Any, offset: int | None, align: int) -> None:
    kind, slot = field.type, field.slot
    if isinstance(kind, Union):
        builder.PrependUint8Slot(slot, _tag(kind, value), 0)
        builder.PrependUOffsetTRelativeSlot(slot + 1, offset, 0)
    elif offset is not None:
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    elif isinstance(kind, Scalar) and kind.wire == "timestamp":
        builder.Prep(align, 16)
        builder.head -= 16
        builder.Bytes[builder.head : builder.head + 16] = _pack_timestamp(value)
        builder.Slot(slot)
    elif isinstance(kind, Scalar):
        number = value.value if isinstance(value, Enum) else value
        # An optional scalar is written whenever it is there, also when it is zero.
        default = None if field.optional else 0
        getattr(builder, f"Prepend{_SCALARS[kind.wire][1]}Slot")(slot, number, default)


_SCALARS = {
    "bool": ("<?", "Bool"),
    "u64": ("<Q", "Uint64"),
    "u32": ("<I", "Uint32"),
    "i32": ("<i", "Int32"),
    "i16": ("<h", "Int16"),
    "enum32": ("<i", "Int32"),
    "enum16": ("<h", "Int16"),
}


def _pack_timestamp(value: Timestamp) -> bytes:
    seconds, nanos = divmod(value.ns, 1_000_000_000)
    days, of_day = divmod(seconds, 86_400)
    day = _EPOCH + timedelta(days=days)
    return struct.pack("<iHxxII", day.year, day.timetuple().tm_yday, of_day, nanos)


# --- Reading ---


def decode_block(data: bytes) -> MetadataBlock:
    """Read Manifest bytes of version 2 or 3; `MalformedBlock` for anything else."""
    try:
        return _decode(bytes(data))
    except MalformedBlock:
        raise
    except (ValueError, TypeError, OverflowError, struct.error, RecursionError) as error:
        raise MalformedBlock(f"not a metadata block: {error}") from None


def manifest_version(data: bytes) -> int:
    """The Manifest version of block bytes."""
    return int(_Reader(bytes(data)).root().scalar(1, "<i", 0))


def _decode(data: bytes) -> MetadataBlock:
    manifest = _Reader(data).root()
    kind = manifest.scalar(0, "<q", 0)
    if kind != MANIFEST_KIND:
        raise MalformedBlock(f"manifest kind 0x{kind:x} is not a metadata block")
    version = manifest.scalar(1, "<i", 0)
    if version not in READ_VERSIONS:
        raise UnsupportedVersion(f"Manifest version {version} is not supported (2 and 3 are)")
    content = manifest.byte_vector(2)
    if content is None:
        raise MalformedBlock("the manifest has no content")
    block = _Reader(content).root().read(MetadataBlock, 0)
    if not isinstance(block, MetadataBlock):
        raise MalformedBlock("the content is not a metadata block")
    return block


class _Reader:
    """Bounds-checked access to a buffer; counts what it reads, so that no input is expensive."""

    __slots__ = ("budget", "data", "size")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)
        self.budget = min(_MAX_ITEMS, 4 * len(data) + 64)

    def number(self, layout: str, at: int) -> Any:
        if at < 0 or at + struct.calcsize(layout) > self.size:
            raise MalformedBlock(f"offset {at} is outside of {self.size} bytes")
        return struct.unpack_from(layout, self.data, at)[0]

    def follow(self, at: int) -> int:
        offset = int(self.number("<I", at))
        if offset == 0 or at + offset >= self.size:
            raise MalformedBlock(f"reference at {at} leads outside of {self.size} bytes")
        return at + offset

    def root(self) -> _Table:
        return _Table(self, self.follow(0))

    def spend(self, count: int) -> None:
        self.budget -= count
        if self.budget < 0:
            raise MalformedBlock("more items than the bytes can hold")

    def blob(self, at: int) -> bytes:
        length = int(self.number("<I", at))
        if at + 4 + length > self.size:
            raise MalformedBlock(f"{length} bytes at {at} do not fit")
        self.spend(length // 64 + 1)
        return self.data[at + 4 : at + 4 + length]

    def text(self, at: int) -> str:
        return self.blob(at).decode("utf-8")


class _Table:
    """A table of the buffer; slots are looked up in its layout."""

    __slots__ = ("at", "layout", "length", "reader")

    def __init__(self, reader: _Reader, at: int) -> None:
        reader.spend(1)
        self.reader = reader
        self.at = at
        self.layout = at - int(reader.number("<i", at))
        self.length = int(reader.number("<H", self.layout))
        if self.length < 4 or self.layout + self.length > reader.size:
            raise MalformedBlock(f"layout of the table at {at} is broken")

    def position(self, slot: int) -> int | None:
        entry = 4 + 2 * slot
        if entry + 2 > self.length:
            return None
        offset = int(self.reader.number("<H", self.layout + entry))
        return self.at + offset if offset else None

    def scalar(self, slot: int, layout: str, default: Any) -> Any:
        at = self.position(slot)
        return default if at is None else self.reader.number(layout, at)

    def byte_vector(self, slot: int) -> bytes | None:
        at = self.position(slot)
        return None if at is None else self.reader.blob(self.reader.follow(at))

    def read(self, cls: type, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise MalformedBlock("objects are nested too deeply")
        values = {}
        for field in fields_of(cls):
            value = self._field(field, depth)
            if value is None and not field.optional:
                value = _absent(field, cls)
            values[field.name] = value
        return cls(**values)

    def _field(self, field: Field, depth: int) -> Any:
        kind = field.type
        if isinstance(kind, Union):
            return self._union(kind, field.slot, depth)
        at = self.position(field.slot)
        if at is None:
            return None
        if isinstance(kind, Vector):
            return self._vector(kind, self.reader.follow(at), depth)
        if isinstance(kind, Table):
            return _Table(self.reader, self.reader.follow(at)).read(kind.cls, depth + 1)
        return self._scalar(kind, at)

    def _union(self, union: Union, slot: int, depth: int) -> Any:
        tag = int(self.scalar(slot, "<B", 0))
        at = self.position(slot + 1)
        if tag == 0 or at is None:
            return None
        if tag > len(union.members):
            raise MalformedBlock(f"unknown tag {tag} of a union")
        return _Table(self.reader, self.reader.follow(at)).read(union.members[tag - 1], depth + 1)

    def _vector(self, vector: Vector, at: int, depth: int) -> tuple[Any, ...]:
        count = int(self.reader.number("<I", at))
        if at + 4 + 4 * count > self.reader.size:
            raise MalformedBlock(f"{count} items at {at} do not fit")
        self.reader.spend(count)
        places = [self.reader.follow(at + 4 + 4 * index) for index in range(count)]
        item = vector.item
        if isinstance(item, Scalar):
            return tuple(self.reader.text(place) for place in places)
        if isinstance(item, Table):
            return tuple(_Table(self.reader, place).read(item.cls, depth + 1) for place in places)
        wrapped = [_Table(self.reader, place)._union(item, 0, depth + 1) for place in places]
        if any(value is None for value in wrapped):
            raise MalformedBlock("an item of a list has no value")
        return tuple(wrapped)

    def _scalar(self, kind: Scalar, at: int) -> Any:
        reader = self.reader
        match kind.wire:
            case "string":
                return reader.text(reader.follow(at))
            case "ref":
                return parse_ref(reader.text(reader.follow(at)))
            case "alias":
                return DatasetAlias.parse(reader.text(reader.follow(at)))
            case "bytes":
                return reader.blob(reader.follow(at))
            case "multihash":
                return Multihash.from_bytes(reader.blob(reader.follow(at)))
            case "id":
                return DatasetId.from_bytes(reader.blob(reader.follow(at)))
            case "timestamp":
                return _unpack_timestamp(reader, at)
            case "open_map":
                return _read_open_map(_Table(reader, reader.follow(at)))
        number = reader.number(_SCALARS[kind.wire][0], at)
        return kind.python(number) if issubclass(kind.python, Enum) else number


def _read_open_map(table: _Table) -> dict[str, Any]:
    at = table.position(0)
    return extra_from_json("{}" if at is None else table.reader.text(table.reader.follow(at)))


def _unpack_timestamp(reader: _Reader, at: int) -> Timestamp:
    if at + 16 > reader.size:
        raise MalformedBlock("a timestamp does not fit")
    year, ordinal, of_day, nanos = struct.unpack_from("<iHxxII", reader.data, at)
    in_range = 1 <= year <= 9999 and of_day < 86_400 and nanos < 1_000_000_000
    if not (in_range and 1 <= ordinal <= 365 + isleap(year)):
        raise MalformedBlock("a timestamp is out of range")
    days = (datetime(year, 1, 1, tzinfo=UTC) - _EPOCH).days + ordinal - 1
    return Timestamp((days * 86_400 + of_day) * 1_000_000_000 + nanos)


def _absent(field: Field, cls: type) -> Any:
    kind = field.type
    if isinstance(kind, Scalar) and kind.wire in _SCALARS:
        if issubclass(kind.python, Enum):
            return kind.python(0)
        return False if kind.wire == "bool" else 0
    if isinstance(kind, Vector):
        return ()
    raise MalformedBlock(f"{cls.__name__} has no {field.key}")

"""Blocks as bytes: FlatBuffers in the order that makes hashes agree between implementations.

Every table is written in two phases: first all that lives out of line, in slot order and depth
first, then the table with all its fields in slot order. `flatbuffers_reader` is the other way.
Sources: Open Data Fabric, "Metadata Block Hashing"; FlatBuffers internals.
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any

from odfbuild.odf.extra_attributes import extra_to_json
from odfbuild.odf.flatbuffers.reader import (
    MANIFEST_KIND,
    READ_VERSIONS,
    UnsupportedVersion,
    decode_block,
    decode_message,
    manifest_version,
)
from odfbuild.odf.flatbuffers.tables import MalformedBlock
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

__all__ = [
    "MANIFEST_KIND",
    "READ_VERSIONS",
    "WRITTEN_VERSION",
    "MalformedBlock",
    "UnsupportedVersion",
    "block_hash",
    "decode_block",
    "decode_message",
    "encode_block",
    "encode_message",
    "manifest_version",
]

WRITTEN_VERSION = 3
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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


def encode_message(message: Any) -> bytes:
    """The bytes of a message to or from an engine (`model.messages`): its table as the root."""
    builder = _new_builder()
    builder.Finish(_write_table(builder, message, 4))
    return bytes(builder.Output())


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
        getattr(builder, f"Prepend{_SCALARS[kind.wire]}Slot")(slot, number, default)


_SCALARS = {
    "bool": "Bool",
    "u64": "Uint64",
    "u32": "Uint32",
    "i32": "Int32",
    "i16": "Int16",
    "enum32": "Int32",
    "enum16": "Int16",
}


def _pack_timestamp(value: Timestamp) -> bytes:
    seconds, nanos = divmod(value.ns, 1_000_000_000)
    days, of_day = divmod(seconds, 86_400)
    day = _EPOCH + timedelta(days=days)
    return struct.pack("<iHxxII", day.year, day.timetuple().tm_yday, of_day, nanos)

"""Decode blocks: a reader of FlatBuffers, generated once for each class.

It needs no heavy import, and reads whole layouts of tables at once, since the chains of a project
are thousands of small blocks. Bytes that are no block give an error (see `flatbuffers_tables`).
Sources: FlatBuffers internals; Open Data Fabric, `opendatafabric.fbs`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Container, Mapping
from enum import Enum
from functools import cache, partial
from typing import Any, TypeVar, cast

from odfbuild.odf.extra_attributes import extra_from_json
from odfbuild.odf.flatbuffers.tables import (
    BROKEN,
    MalformedBlock,
    Source,
    blob,
    follow,
    layout,
    manifest,
    nested,
    spend,
    timestamp,
)
from odfbuild.odf.identity import DatasetAlias, DatasetId, parse_ref
from odfbuild.odf.introspect import Field, Scalar, Table, Union, Vector, fields_of, slot_count
from odfbuild.odf.model import AddData, DataSlice, ExecuteTransform, MetadataBlock
from odfbuild.odf.multihash import Multihash

MANIFEST_KIND = 0x400000
"""Multicodec number of metadata blocks."""
READ_VERSIONS = (2, 3)

BRIEFLY: Mapping[type, tuple[str, ...]] = {
    AddData: ("new_data", "new_watermark"),
    ExecuteTransform: ("new_data", "new_watermark"),
    DataSlice: ("offset_interval", "size"),
}
"""Fields of which a projection needs those of every block.

It needs the others of the newest block only, and data blocks are nearly all of a long chain. What
is not read is empty: `None`, no items, a hash of no bytes.
"""

T = TypeVar("T")

_MAX_DEPTH = 64

_EVENT = next(field for field in fields_of(MetadataBlock) if field.name == "event")
_EVENTS = cast(Union, _EVENT.type).members

_U32 = struct.Struct("<I").unpack_from


class UnsupportedVersion(MalformedBlock):
    """A block in a Manifest version that this release does not read."""


def decode_block(data: bytes, brief: Container[type] = ()) -> MetadataBlock:
    """Read Manifest bytes of version 2 or 3; `MalformedBlock` for anything else.

    Of events of a class in `brief`, only what adds up over a chain is read (see `BRIEFLY`).
    """
    try:
        return _decode(data, brief)
    except MalformedBlock:
        raise
    except BROKEN as error:
        raise MalformedBlock(f"not a metadata block: {error}") from None


def decode_place(data: bytes) -> tuple[int, Multihash | None]:
    """The number of a block, and the one before it; `MalformedBlock` as `decode_block`.

    What the block says is not looked at.
    """
    try:
        source, at = _opened(data)
        found = layout(source, at, slot_count(MetadataBlock))
        values: list[Any] = [
            read(source, at + found[slot], 0) if found[slot] else absent and absent()
            for _, slot, read, absent in _place_fields()
        ]
    except MalformedBlock:
        raise
    except BROKEN as error:
        raise MalformedBlock(f"not a metadata block: {error}") from None
    number, before = values
    return number, before


def decode_message(kind: type[T], data: bytes) -> T:
    """Read a message of an engine (`model.messages`); `MalformedBlock` for anything else."""
    source = Source(data)
    try:
        return cast(T, _object_reader(kind)(source, follow(source, 0), 0))
    except MalformedBlock:
        raise
    except BROKEN as error:
        raise MalformedBlock(f"not a {kind.__name__}: {error}") from None


def manifest_version(data: bytes) -> int:
    """The Manifest version of block bytes; `MalformedBlock` where there is none."""
    try:
        return manifest(data)[1]
    except BROKEN as error:
        raise MalformedBlock(f"not a manifest: {error}") from None


def _opened(data: bytes) -> tuple[Source, int]:
    """The buffer of the block in a manifest, and where it stands there."""
    kind, version, content = manifest(data)
    if kind != MANIFEST_KIND:
        raise MalformedBlock(f"manifest kind 0x{kind:x} is not a metadata block")
    if version not in READ_VERSIONS:
        raise UnsupportedVersion(f"Manifest version {version} is not supported (2 and 3 are)")
    if not content:
        raise MalformedBlock("the manifest has no content")
    inner = Source(nested(data, content))
    return inner, follow(inner, 0)


def _decode(data: bytes, brief: Container[type]) -> MetadataBlock:
    inner, at = _opened(data)
    in_brief = brief and _event_class(inner, at) in brief
    block: MetadataBlock = (_brief_reader if in_brief else _object_reader)(MetadataBlock)(
        inner, at, 0
    )
    return block


def _event_class(source: Source, block: int) -> type | None:
    tag = layout(source, block, slot_count(MetadataBlock))[_EVENT.slot]
    number = source.data[block + tag] if tag else 0
    return _EVENTS[number - 1] if 1 <= number <= len(_EVENTS) else None


Read = Callable[[Source, int, int], Any]
"""Reads what stands at a place, or is referred to from there, at some depth."""
_ReadUnion = Callable[[Source, int, int, int], Any]
"""Reads what a union holds, from the places of its tag and of its value."""


# --- Readers of objects ---


def _make_object_reader(cls: type, brief: bool = False) -> Read:
    """A reader of tables of one class, in full or of the fields in `BRIEFLY` only."""
    slots = slot_count(cls)
    read_fields = [
        field
        for field in fields_of(cls)
        if not brief or cls not in BRIEFLY or field.name in BRIEFLY[cls]
    ]
    unread = {field.name: _empty(field) for field in fields_of(cls) if field not in read_fields}
    unions = [_union_field(field, cls, brief) for field in read_fields if _is_union(field)]
    others = [_other_field(field, cls, brief) for field in read_fields if not _is_union(field)]

    def read(source: Source, at: int, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise MalformedBlock("objects are nested too deeply")
        source.budget -= 1
        if source.budget < 0:
            raise MalformedBlock("more items than the bytes can hold")
        found = layout(source, at, slots)
        values = unread.copy()
        for name, slot, read_field, absent in others:
            offset = found[slot]
            if offset:
                values[name] = read_field(source, at + offset, depth)
            elif absent:
                values[name] = absent()
        for name, slot, read_union, absent in unions:
            tag, value = found[slot], found[slot + 1]
            member = read_union(source, at + tag, at + value, depth) if tag and value else None
            values[name] = absent() if member is None and absent else member
        return cls(**values)

    return read


_object_reader: Callable[[type], Read] = cache(_make_object_reader)
_brief_reader: Callable[[type], Read] = cache(partial(_make_object_reader, brief=True))


@cache
def _place_fields() -> tuple[tuple[str, int, Read, _Absent], ...]:
    names = ("sequence_number", "prev_block_hash")
    known = {field.name: field for field in fields_of(MetadataBlock)}
    return tuple(_other_field(known[name], MetadataBlock, False) for name in names)


_Absent = Callable[[], Any] | None
"""`None`: what is absent is `None`, as its field says."""


def _is_union(field: Field) -> bool:
    return isinstance(field.type, Union)


def _union_field(field: Field, cls: type, brief: bool) -> tuple[str, int, _ReadUnion, _Absent]:
    """The name of a field, its slot, its reader, and what it is when absent."""
    read = _union(cast(Union, field.type).members, brief)
    return field.name, field.slot, read, _absence(field, cls)


def _other_field(field: Field, cls: type, brief: bool) -> tuple[str, int, Read, _Absent]:
    read = _reader_of(cast("Scalar | Table | Vector", field.type), brief)
    return field.name, field.slot, read, _absence(field, cls)


def _empty(field: Field) -> Any:
    """What a field holds that was not read."""
    if field.optional:
        return None
    return () if isinstance(field.type, Vector) else _UNREAD


_UNREAD = Multihash(b"")


def _absence(field: Field, cls: type) -> _Absent:
    if field.optional:
        return None
    kind = field.type
    if isinstance(kind, Vector):
        return tuple
    if isinstance(kind, Scalar) and kind.wire in _NUMBERS:
        zero: Any = False if kind.wire == "bool" else 0
        value = kind.python(0) if issubclass(kind.python, Enum) else zero
        return lambda: value

    def refuse() -> Any:
        raise MalformedBlock(f"{cls.__name__} has no {field.key}")

    return refuse


def _union(members: tuple[type, ...], brief: bool = False) -> _ReadUnion:
    reader_of = _brief_reader if brief else _object_reader
    readers: list[Read | None] = [None] * len(members)

    def read(source: Source, tag_at: int, at: int, depth: int) -> Any:
        tag = source.data[tag_at]
        if tag == 0:
            return None
        if tag > len(readers):
            raise MalformedBlock(f"unknown tag {tag} of a union")
        # Classes may hold themselves: their readers are made when they are first needed.
        reader = readers[tag - 1]
        if reader is None:
            reader = readers[tag - 1] = reader_of(members[tag - 1])
        return reader(source, follow(source, at), depth + 1)

    return read


def _reader_of(kind: Scalar | Table | Vector, brief: bool = False) -> Read:
    if isinstance(kind, Table):
        return _table(kind.cls, brief)
    if isinstance(kind, Vector):
        return _vector(kind.item)
    if kind.wire not in _NUMBERS:
        return _SCALARS[kind.wire]
    number = struct.Struct(_NUMBERS[kind.wire]).unpack_from
    if issubclass(kind.python, Enum):
        python = kind.python
        return lambda source, at, _: python(number(source.data, at)[0])
    return lambda source, at, _: number(source.data, at)[0]


def _table(cls: type, brief: bool) -> Read:
    reader_of = _brief_reader if brief else _object_reader

    def read(source: Source, at: int, depth: int) -> Any:
        return reader_of(cls)(source, follow(source, at), depth + 1)

    return read


def _vector(item: Scalar | Table | Union) -> Read:
    element = _wrapped(item.members) if isinstance(item, Union) else _reader_of(item)

    def read(source: Source, at: int, depth: int) -> tuple[Any, ...]:
        start = follow(source, at) + 4
        count = _U32(source.data, start - 4)[0]
        if start + 4 * count > source.size:
            raise MalformedBlock(f"{count} items at {start} do not fit")
        spend(source, count)
        return tuple(
            [element(source, place, depth) for place in range(start, start + 4 * count, 4)]
        )

    return read


def _wrapped(members: tuple[type, ...]) -> Read:
    """An item of a vector of unions is a table with a tag and a value."""
    union = _union(members)

    def read(source: Source, at: int, depth: int) -> Any:
        spend(source, 1)
        table = follow(source, at)
        tag, value = layout(source, table, 2)
        made = union(source, table + tag, table + value, depth + 1) if tag and value else None
        if made is None:
            raise MalformedBlock("an item of a list has no value")
        return made

    return read


# --- Readers of scalars ---


def _text(source: Source, at: int, _: int = 0) -> str:
    return blob(source, at).decode("utf-8")


def _open_map(source: Source, at: int, _: int) -> dict[str, Any]:
    spend(source, 1)
    table = follow(source, at)
    (offset,) = layout(source, table, 1)
    return extra_from_json(_text(source, table + offset) if offset else "{}")


_NUMBERS = {
    "bool": "<?",
    "u64": "<Q",
    "u32": "<I",
    "i32": "<i",
    "i16": "<h",
    "enum32": "<i",
    "enum16": "<h",
}

_SCALARS: dict[str, Read] = {
    "string": _text,
    "ref": lambda source, at, _: parse_ref(_text(source, at)),
    "alias": lambda source, at, _: DatasetAlias.parse(_text(source, at)),
    "bytes": lambda source, at, _: blob(source, at),
    "multihash": lambda source, at, _: Multihash.from_bytes(blob(source, at)),
    "id": lambda source, at, _: DatasetId.from_bytes(blob(source, at)),
    "timestamp": lambda source, at, _: timestamp(source.data, at),
    "open_map": _open_map,
}

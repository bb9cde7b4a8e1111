"""Blocks out of bytes: a reader of FlatBuffers that is made once for each class.

It checks every offset and counts what it reads, so that arbitrary bytes give an error and nothing
else: no crash, no hang, no large allocation. It needs no heavy import, and reads whole layouts of
tables at once, since the chains of a project are thousands of small blocks.
Sources: FlatBuffers internals; Open Data Fabric, `opendatafabric.fbs`.
"""

from __future__ import annotations

import struct
from calendar import isleap
from collections.abc import Callable
from datetime import date
from enum import Enum
from functools import cache, partial
from typing import Any, TypeVar, cast

from odfbuild.odf.extra import extra_from_json
from odfbuild.odf.identity import DatasetAlias, DatasetId, parse_ref
from odfbuild.odf.introspect import Field, Scalar, Table, Union, Vector, fields_of, slot_count
from odfbuild.odf.model import MetadataBlock
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp

MANIFEST_KIND = 0x400000
"""Multicodec number of metadata blocks."""
READ_VERSIONS = (2, 3)

T = TypeVar("T")

_MAX_DEPTH = 64
_MAX_ITEMS = 1_000_000

_U8 = struct.Struct("<B").unpack_from
_U16 = struct.Struct("<H").unpack_from
_U32 = struct.Struct("<I").unpack_from
_I32 = struct.Struct("<i").unpack_from
_I64 = struct.Struct("<q").unpack_from
_TIMESTAMP = struct.Struct("<iHxxII").unpack_from
_EPOCH = date(1970, 1, 1).toordinal()


class MalformedBlock(ValueError):
    """Bytes that are not a metadata block."""


class UnsupportedVersion(MalformedBlock):
    """A block in a Manifest version that this release does not read."""


def decode_block(data: bytes) -> MetadataBlock:
    """Read Manifest bytes of version 2 or 3; `MalformedBlock` for anything else."""
    return _guarded(_decode, data)


def decode_message(kind: type[T], data: bytes) -> T:
    """Read a message of an engine (`model.messages`); `MalformedBlock` for anything else."""
    return _guarded(
        lambda source: cast(T, _object_reader(kind)(source, _follow(source, 0), 0)),
        data,
        f"a {kind.__name__}",
    )


def manifest_version(data: bytes) -> int:
    """The Manifest version of block bytes; `MalformedBlock` where there is none."""
    return _guarded(lambda source: _manifest(source)[1], data)


def _guarded(read: Callable[[_Source], T], data: bytes, what: str = "a metadata block") -> T:
    try:
        return read(_Source(bytes(data)))
    except MalformedBlock:
        raise
    except (ValueError, TypeError, OverflowError, struct.error, RecursionError) as error:
        raise MalformedBlock(f"not {what}: {error}") from None


def _decode(source: _Source) -> MetadataBlock:
    kind, version, content = _manifest(source)
    if kind != MANIFEST_KIND:
        raise MalformedBlock(f"manifest kind 0x{kind:x} is not a metadata block")
    if version not in READ_VERSIONS:
        raise UnsupportedVersion(f"Manifest version {version} is not supported (2 and 3 are)")
    if not content:
        raise MalformedBlock("the manifest has no content")
    inner = _Source(_blob(source, content))
    block: MetadataBlock = _object_reader(MetadataBlock)(inner, _follow(inner, 0), 0)
    return block


def _manifest(source: _Source) -> tuple[int, int, int]:
    """Kind, version and where the content is, 0 for nowhere."""
    at = _follow(source, 0)
    kind, version, content = _layout(source, at, 3)
    return (
        _I64(source.data, at + kind)[0] if kind else 0,
        _I32(source.data, at + version)[0] if version else 0,
        at + content if content else 0,
    )


class _Source:
    """A buffer, and how much may still be read of it: offsets may lead to the same place twice."""

    __slots__ = ("budget", "data", "size")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)
        self.budget = min(_MAX_ITEMS, 4 * len(data) + 64)


Read = Callable[[_Source, int, int], Any]
"""Reads what stands at a place, or is referred to from there, at some depth."""


def _spend(source: _Source, count: int) -> None:
    source.budget -= count
    if source.budget < 0:
        raise MalformedBlock("more items than the bytes can hold")


def _follow(source: _Source, at: int) -> int:
    offset: int = _U32(source.data, at)[0]
    if offset == 0 or at + offset >= source.size:
        raise MalformedBlock(f"reference at {at} leads outside of {source.size} bytes")
    return at + offset


def _blob(source: _Source, at: int) -> bytes:
    start = _follow(source, at) + 4
    end = start + _U32(source.data, start - 4)[0]
    if end > source.size:
        raise MalformedBlock(f"{end - start} bytes at {start} do not fit")
    _spend(source, (end - start) // 64 + 1)
    return source.data[start:end]


def _layout(source: _Source, at: int, slots: int) -> tuple[int, ...]:
    """For each of the first `slots` fields of the table `at`: how far from there, 0 if absent."""
    data = source.data
    start = at - _I32(data, at)[0]
    if start < 0:
        raise MalformedBlock(f"layout of the table at {at} is broken")
    length = _U16(data, start)[0]
    if length < 4 or start + length > source.size:
        raise MalformedBlock(f"layout of the table at {at} is broken")
    written = (length - 4) >> 1
    found = _shorts(min(written, slots))(data, start + 4)
    return found if written >= slots else found + (0,) * (slots - written)


@cache
def _shorts(count: int) -> Callable[[bytes, int], tuple[int, ...]]:
    return struct.Struct(f"<{count}H").unpack_from


# --- Readers of objects ---


def _make_object_reader(cls: type) -> Read:
    """A reader of tables of one class."""
    slots = slot_count(cls)
    fields = [_field(field, cls) for field in fields_of(cls)]
    new = object.__new__

    def read(source: _Source, at: int, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise MalformedBlock("objects are nested too deeply")
        _spend(source, 1)
        layout = _layout(source, at, slots)
        # Slots are filled directly: the generated `__init__` takes twice the time, checks nothing.
        made: Any = new(cls)
        for put, slot, members, read_field, absent in fields:
            offset = layout[slot]
            value: Any = None
            if members is not None:
                if offset and layout[slot + 1]:
                    value = _union(source, at + offset, at + layout[slot + 1], members, depth)
            elif offset:
                value = read_field(source, at + offset, depth)
            put(made, absent() if value is None else value)
        return made

    return read


_object_reader: Callable[[type], Read] = cache(_make_object_reader)

_Members = tuple[type, ...] | None


def _field(
    field: Field, cls: type
) -> tuple[Callable[[Any, Any], None], int, _Members, Read, Callable[[], Any]]:
    """How to set a field, its slot, its members if it is a union, its reader, and its absence."""
    put = vars(cls)[field.name].__set__
    absent = partial(_nothing) if field.optional else partial(_absent, field, cls)
    kind = field.type
    if isinstance(kind, Union):
        return put, field.slot, kind.members, _never, absent
    return put, field.slot, None, _reader_of(kind), absent


def _nothing() -> None:
    return None


def _absent(field: Field, cls: type) -> Any:
    kind = field.type
    if isinstance(kind, Scalar) and kind.wire in _NUMBERS:
        if issubclass(kind.python, Enum):
            return kind.python(0)
        return False if kind.wire == "bool" else 0
    if isinstance(kind, Vector):
        return ()
    raise MalformedBlock(f"{cls.__name__} has no {field.key}")


def _never(source: _Source, at: int, depth: int) -> Any:
    raise AssertionError("a union is read by its tag")


def _union(source: _Source, tag_at: int, at: int, members: tuple[type, ...], depth: int) -> Any:
    tag: int = _U8(source.data, tag_at)[0]
    if tag == 0:
        return None
    if tag > len(members):
        raise MalformedBlock(f"unknown tag {tag} of a union")
    return _object_reader(members[tag - 1])(source, _follow(source, at), depth + 1)


def _reader_of(kind: Scalar | Table | Vector) -> Read:
    if isinstance(kind, Table):
        return _table(kind.cls)
    if isinstance(kind, Vector):
        return _vector(kind.item)
    if kind.wire not in _NUMBERS:
        return _SCALARS[kind.wire]
    number = struct.Struct(_NUMBERS[kind.wire]).unpack_from
    if issubclass(kind.python, Enum):
        python = kind.python
        return lambda source, at, _: python(number(source.data, at)[0])
    return lambda source, at, _: number(source.data, at)[0]


def _table(cls: type) -> Read:
    def read(source: _Source, at: int, depth: int) -> Any:
        # Classes may hold themselves: their readers are made when they are first needed.
        return _object_reader(cls)(source, _follow(source, at), depth + 1)

    return read


def _vector(item: Scalar | Table | Union) -> Read:
    element = _wrapped(item.members) if isinstance(item, Union) else _reader_of(item)

    def read(source: _Source, at: int, depth: int) -> tuple[Any, ...]:
        start = _follow(source, at) + 4
        count = _U32(source.data, start - 4)[0]
        if start + 4 * count > source.size:
            raise MalformedBlock(f"{count} items at {start} do not fit")
        _spend(source, count)
        return tuple(
            [element(source, place, depth) for place in range(start, start + 4 * count, 4)]
        )

    return read


def _wrapped(members: tuple[type, ...]) -> Read:
    """An item of a vector of unions is a table with a tag and a value."""

    def read(source: _Source, at: int, depth: int) -> Any:
        _spend(source, 1)
        table = _follow(source, at)
        tag, value = _layout(source, table, 2)
        made = None
        if tag and value:
            made = _union(source, table + tag, table + value, members, depth + 1)
        if made is None:
            raise MalformedBlock("an item of a list has no value")
        return made

    return read


# --- Readers of scalars ---


def _text(source: _Source, at: int, _: int = 0) -> str:
    return _blob(source, at).decode("utf-8")


def _open_map(source: _Source, at: int, _: int) -> dict[str, Any]:
    _spend(source, 1)
    table = _follow(source, at)
    (offset,) = _layout(source, table, 1)
    return extra_from_json(_text(source, table + offset) if offset else "{}")


def unpack_timestamp(data: bytes, at: int) -> Timestamp:
    """The 16-byte struct of year, day of the year, second of the day and nanosecond."""
    year, ordinal, of_day, nanos = _TIMESTAMP(data, at)
    in_range = 1 <= year <= 9999 and of_day < 86_400 and nanos < 1_000_000_000
    if not (in_range and 1 <= ordinal <= 365 + isleap(year)):
        raise MalformedBlock("a timestamp is out of range")
    days = date(year, 1, 1).toordinal() - _EPOCH + ordinal - 1
    return Timestamp((days * 86_400 + of_day) * 1_000_000_000 + nanos)


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
    "bytes": lambda source, at, _: _blob(source, at),
    "multihash": lambda source, at, _: Multihash.from_bytes(_blob(source, at)),
    "id": lambda source, at, _: DatasetId.from_bytes(_blob(source, at)),
    "timestamp": lambda source, at, _: unpack_timestamp(source.data, at),
    "open_map": _open_map,
}

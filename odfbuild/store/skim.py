"""Read of an older data block only what adds up over a chain: offsets, bytes, watermark.

A projection needs every field of the newest block of each kind, and of the older data blocks, which
are nearly all of a long chain, five numbers. They are read here straight from the tables,
in a fifth of the time of a full read. Anything that is not exactly as expected is left to the real
reader. Source: the slot tables of the specification's FlatBuffers schema; `odf.flatbuffers_form`.
"""

from __future__ import annotations

import struct
from collections.abc import Container
from datetime import date

from odfbuild.odf.model import (
    AddData,
    DataSlice,
    ExecuteTransform,
    MetadataBlock,
    OffsetInterval,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp

_U16 = struct.Struct("<H").unpack_from
_U32 = struct.Struct("<I").unpack_from
_I32 = struct.Struct("<i").unpack_from
_I64 = struct.Struct("<q").unpack_from
_U64 = struct.Struct("<Q").unpack_from
_TIMESTAMP = struct.Struct("<iHxxII").unpack_from

_MANIFEST_KIND = 0x400000
_VERSIONS = (2, 3)
_UNREAD = Multihash(b"")
_EPOCH = date(1970, 1, 1).toordinal()

# Tag in the union of events → class, slot of the slice, slot of the watermark.
_DATA_EVENTS: dict[int, tuple[type[AddData | ExecuteTransform], int, int]] = {
    1: (AddData, 2, 4),
    2: (ExecuteTransform, 3, 5),
}


def skim(data: bytes, superseded: Container[type]) -> MetadataBlock | None:
    """The block with a data event of which only offsets, size and watermark are true.

    Hashes of the slice, checkpoint, state and inputs are left out. `None`, and the block has to be
    read in full, unless its event is of a class in `superseded` and its bytes are plain to read.
    """
    try:
        return _skim(data, superseded)
    except (struct.error, ValueError, IndexError):
        return None


def _skim(data: bytes, superseded: Container[type]) -> MetadataBlock | None:
    manifest = _U32(data, 0)[0]
    kind, version, content = (_slot(data, manifest, slot) for slot in (0, 1, 2))
    if (
        not (kind and version and content)
        or _I64(data, kind)[0] != _MANIFEST_KIND
        or _I32(data, version)[0] not in _VERSIONS
    ):
        return None
    base = _follow(data, content) + 4
    block = base + _U32(data, base)[0]
    tag = _slot(data, block, 3)
    found = _DATA_EVENTS.get(data[tag]) if tag else None
    if found is None or found[0] not in superseded:
        return None
    cls, slice_slot, watermark_slot = found
    at_time, prev, number, at_event = (_slot(data, block, slot) for slot in (0, 1, 2, 4))
    if not (at_time and prev and number and at_event):
        return None
    event = _follow(data, at_event)
    new_data, watermark = _slot(data, event, slice_slot), _slot(data, event, watermark_slot)
    return MetadataBlock(
        system_time=_timestamp(data, at_time),
        prev_block_hash=_multihash(data, prev),
        sequence_number=_U64(data, number)[0],
        event=_event(
            cls,
            _slice(data, _follow(data, new_data)) if new_data else None,
            _timestamp(data, watermark) if watermark else None,
        ),
    )


def _event(
    cls: type[AddData | ExecuteTransform], new_data: DataSlice | None, watermark: Timestamp | None
) -> AddData | ExecuteTransform:
    if cls is AddData:
        return AddData(new_data=new_data, new_watermark=watermark)
    return ExecuteTransform(query_inputs=(), new_data=new_data, new_watermark=watermark)


def _slot(data: bytes, table: int, slot: int) -> int:
    """Where a field of a table is; 0 when it is absent."""
    layout = table - _I32(data, table)[0]
    entry = 4 + 2 * slot
    if layout < 0 or entry >= _U16(data, layout)[0]:
        return 0
    offset: int = _U16(data, layout + entry)[0]
    return table + offset if offset else 0


def _follow(data: bytes, at: int) -> int:
    target: int = at + _U32(data, at)[0]
    return target


def _multihash(data: bytes, at: int) -> Multihash:
    vector = _follow(data, at)
    start = vector + 4
    return Multihash.from_bytes(data[start : start + _U32(data, vector)[0]])


def _timestamp(data: bytes, at: int) -> Timestamp:
    year, ordinal, of_day, nanos = _TIMESTAMP(data, at)
    days = date(year, 1, 1).toordinal() - _EPOCH + ordinal - 1
    return Timestamp((days * 86_400 + of_day) * 1_000_000_000 + nanos)


def _slice(data: bytes, table: int) -> DataSlice:
    at_interval, size = _slot(data, table, 2), _slot(data, table, 3)
    interval = _follow(data, at_interval)
    if not at_interval:
        raise ValueError("a slice has offsets")
    start, end = _slot(data, interval, 0), _slot(data, interval, 1)
    return DataSlice(
        logical_hash=_UNREAD,
        physical_hash=_UNREAD,
        offset_interval=OffsetInterval(
            start=_U64(data, start)[0] if start else 0, end=_U64(data, end)[0] if end else 0
        ),
        size=_U64(data, size)[0] if size else 0,
    )

"""The messages of the engine protocol: FlatBuffers in an envelope, without generated code.

A field of a table is known by its number: the order of fields in the schemas of the specification.
"""

from datetime import UTC, datetime, timedelta

import flatbuffers
from flatbuffers import encode, number_types, packer
from flatbuffers.table import Table

SUCCESS, INVALID_QUERY, INTERNAL_ERROR = 2, 3, 4


class Fields:
    """A table of a request; a field that is absent reads as nothing."""

    def __init__(self, data: bytes, position: int):
        self._table = Table(data, position)

    def _at(self, number: int) -> int:
        offset = self._table.Offset(4 + 2 * number)
        return offset and self._table.Pos + offset

    def _elements(self, number: int, size: int = 4) -> list[int]:
        offset = self._table.Offset(4 + 2 * number)
        count = self._table.VectorLen(offset) if offset else 0
        return [self._table.Vector(offset) + size * n for n in range(count)]

    def number(self, number: int) -> int:
        at = self._at(number)
        return self._table.Get(number_types.Uint64Flags, at) if at else 0

    def text(self, number: int) -> str:
        at = self._at(number)
        return self._table.String(at).decode() if at else ""

    def texts(self, number: int) -> list[str]:
        return [self._table.String(at).decode() for at in self._elements(number)]

    def table(self, number: int) -> "Fields | None":
        at = self._at(number)
        return Fields(self._table.Bytes, self._table.Indirect(at)) if at else None

    def tables(self, number: int) -> "list[Fields]":
        places = [self._table.Indirect(at) for at in self._elements(number)]
        return [Fields(self._table.Bytes, at) for at in places]

    def raw(self, number: int) -> bytes:
        return bytes(self._table.Bytes[at] for at in self._elements(number, size=1))

    def time(self, number: int) -> datetime:
        """A struct: year, day of the year, seconds of the day, nanoseconds; cut to milliseconds."""
        get, at = self._table.Get, self._at(number)
        year, day = get(number_types.Int32Flags, at), get(number_types.Uint16Flags, at + 4)
        seconds, nanos = (get(number_types.Uint32Flags, at + n) for n in (8, 12))
        passed = timedelta(days=day - 1, seconds=seconds, milliseconds=nanos // 10**6)
        return datetime(year, 1, 1, tzinfo=UTC) + passed


def request(message: bytes) -> Fields:
    """The root of a request. The envelope is Protocol Buffers: a tag, a length, the content."""
    start = next(n for n in range(1, len(message)) if message[n] < 0x80) + 1
    content = message[start:]
    return Fields(content, encode.Get(packer.uoffset, content, 0))


def success(interval: tuple[int, int] | None = None, watermark: datetime | None = None) -> bytes:
    """The offsets of new records, and the watermark after them."""
    builder = flatbuffers.Builder()
    offsets = None
    if interval is not None:
        builder.StartObject(2)
        builder.PrependUint64Slot(0, interval[0], 0)
        builder.PrependUint64Slot(1, interval[1], 0)
        offsets = builder.EndObject()
    builder.StartObject(2)
    if offsets is not None:
        builder.PrependUOffsetTRelativeSlot(0, offsets, 0)
    if watermark is not None:
        builder.Prep(4, 16)  # a struct is written backwards
        builder.PrependUint32(watermark.microsecond * 1000)
        builder.PrependUint32(watermark.hour * 3600 + watermark.minute * 60 + watermark.second)
        builder.Pad(2)
        builder.PrependUint16(watermark.timetuple().tm_yday)
        builder.PrependInt32(watermark.year)
        builder.PrependStructSlot(1, builder.Offset(), 0)
    return _response(builder, SUCCESS)


def failure(kind: int, *texts: str) -> bytes:
    """`INVALID_QUERY` and why; `INTERNAL_ERROR`, a message and a backtrace."""
    builder = flatbuffers.Builder()
    offsets = [builder.CreateString(each) for each in texts]
    builder.StartObject(2)
    for number, offset in enumerate(offsets):
        builder.PrependUOffsetTRelativeSlot(number, offset, 0)
    return _response(builder, kind)


def _response(builder: flatbuffers.Builder, kind: int) -> bytes:
    value = builder.EndObject()
    builder.StartObject(2)
    builder.PrependUint8Slot(0, kind, 0)
    builder.PrependUOffsetTRelativeSlot(1, value, 0)
    builder.Finish(builder.EndObject())
    content = bytes(builder.Output())
    length = [len(content) >> shift & 0x7F | 0x80 for shift in (0, 7, 14, 21)]
    return bytes([0x0A, *length, len(content) >> 28]) + content

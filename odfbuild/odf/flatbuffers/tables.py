"""Tables, texts and layouts in a buffer of FlatBuffers, whose every offset is checked.

What is read is counted, so that arbitrary bytes give an error and nothing else: no crash, no hang,
no large allocation. Source: FlatBuffers internals, "Encoding".
"""

from __future__ import annotations

import struct
from calendar import isleap
from collections.abc import Callable
from datetime import date
from functools import cache, lru_cache

from odfbuild.odf.timestamp import Timestamp

_U16 = struct.Struct("<H").unpack_from
_U32 = struct.Struct("<I").unpack_from
I32 = struct.Struct("<i").unpack_from
_I64 = struct.Struct("<q").unpack_from
_TIMESTAMP = struct.Struct("<iHxxII").unpack_from
_EPOCH = date(1970, 1, 1).toordinal()

_MAX_ITEMS = 1_000_000

BROKEN = (ValueError, TypeError, IndexError, OverflowError, struct.error, RecursionError)
"""What reading bytes may raise that are not what they should be."""


class MalformedBlock(ValueError):
    """Bytes that are not a metadata block."""


class Source:
    """A buffer, and how much may still be read of it: offsets may lead to the same place twice."""

    __slots__ = ("budget", "data", "size")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)
        self.budget = min(_MAX_ITEMS, 4 * len(data) + 64)


def spend(source: Source, count: int) -> None:
    """Count what is read; `MalformedBlock` when it is more than the bytes can hold."""
    source.budget -= count
    if source.budget < 0:
        raise MalformedBlock("more items than the bytes can hold")


def follow(source: Source, at: int) -> int:
    """Where the reference at `at` leads to."""
    offset: int = _U32(source.data, at)[0]
    if offset == 0 or at + offset >= source.size:
        raise MalformedBlock(f"reference at {at} leads outside of {source.size} bytes")
    return at + offset


def nested(data: bytes, at: int) -> bytes:
    """The buffer to which the reference at `at` leads."""
    start = at + _U32(data, at)[0] + 4
    end: int = start + _U32(data, start - 4)[0]
    if end > len(data):
        raise MalformedBlock(f"{end - start} bytes at {start} do not fit")
    return data[start:end]


def blob(source: Source, at: int) -> bytes:
    """The bytes, or those of the text, to which the reference at `at` leads."""
    data = source.data
    start = at + _U32(data, at)[0] + 4
    length: int = _U32(data, start - 4)[0]
    end = start + length
    if end > source.size:
        raise MalformedBlock(f"{length} bytes at {start} do not fit")
    source.budget -= (length >> 6) + 1
    if source.budget < 0:
        raise MalformedBlock("more items than the bytes can hold")
    return data[start:end]


def layout(source: Source, at: int, slots: int) -> tuple[int, ...]:
    """How far each of the first `slots` fields of the table at `at` is from there, 0 if absent."""
    data = source.data
    start = at - I32(data, at)[0]
    length = _U16(data, start)[0] if start >= 0 else 0
    if length < 4 or start + length > source.size:
        raise MalformedBlock(f"layout of the table at {at} is broken")
    return _offsets(data[start + 4 : start + min(length, 4 + 2 * slots)], slots)


@lru_cache(4_096)  # tables of one kind are laid out in a few ways, in thousands of blocks
def _offsets(written: bytes, slots: int) -> tuple[int, ...]:
    count = len(written) >> 1
    return _shorts(count)(written, 0) + (0,) * (slots - count)


@cache
def _shorts(count: int) -> Callable[[bytes, int], tuple[int, ...]]:
    return struct.Struct(f"<{count}H").unpack_from


def manifest(data: bytes) -> tuple[int, int, int]:
    """Kind and version of a manifest, and where its content is, 0 for nowhere."""
    try:
        return _manifest_in(data[:_START])
    except BROKEN:
        return _manifest(data)  # its table stands elsewhere, or nowhere


_START = 64
"""Bytes in which writers put all of a manifest but its content: the same in thousands of blocks."""


def _manifest(data: bytes) -> tuple[int, int, int]:
    source = Source(data)
    at = follow(source, 0)
    kind, version, content = layout(source, at, 3)
    return (
        _I64(data, at + kind)[0] if kind else 0,
        I32(data, at + version)[0] if version else 0,
        at + content if content else 0,
    )


_manifest_in = lru_cache(256)(_manifest)


def timestamp(data: bytes, at: int) -> Timestamp:
    """The 16-byte struct of year, day of the year, second of the day and nanosecond."""
    year, ordinal, of_day, nanos = _TIMESTAMP(data, at)
    if of_day >= 86_400 or nanos >= 1_000_000_000:
        raise MalformedBlock("a timestamp is out of range")
    return Timestamp((_days(year, ordinal) * 86_400 + of_day) * 1_000_000_000 + nanos)


@lru_cache(4_096)  # blocks of a project are of few days
def _days(year: int, ordinal: int) -> int:
    """Days since 1970-01-01."""
    if not (1 <= year <= 9999 and 1 <= ordinal <= 365 + isleap(year)):
        raise MalformedBlock("a timestamp is out of range")
    return date(year, 1, 1).toordinal() - _EPOCH + ordinal - 1

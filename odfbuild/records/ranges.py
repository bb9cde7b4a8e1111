"""Sets of offsets as intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Ranges = tuple[tuple[int, int], ...]
"""Offsets as intervals, both ends included, in order and apart."""


def ranges_of(offsets: Iterable[int]) -> Ranges:
    """The intervals that hold `offsets`, which may come in any order and twice."""
    found: list[tuple[int, int]] = []
    for offset in sorted(set(offsets)):
        if found and offset == found[-1][1] + 1:
            found[-1] = (found[-1][0], offset)
        else:
            found.append((offset, offset))
    return tuple(found)


def union_of(several: Iterable[Ranges]) -> Ranges:
    """The intervals that hold all that one of `several` holds."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(piece for ranges in several for piece in ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def overlap_of(one: Ranges, other: Ranges) -> Ranges:
    """The intervals that hold what both hold."""
    found = []
    at, there = 0, 0
    while at < len(one) and there < len(other):
        (first, last), (start, end) = one[at], other[there]
        if first <= end and start <= last:
            found.append((max(first, start), min(last, end)))
        if last < end:
            at += 1
        else:
            there += 1
    return tuple(found)


def offsets_of(ranges: Ranges) -> Iterator[int]:
    """Every offset of these intervals."""
    for first, last in ranges:
        yield from range(first, last + 1)


def size_of(ranges: Ranges) -> int:
    """How many offsets there are in these intervals."""
    return sum(last - first + 1 for first, last in ranges)

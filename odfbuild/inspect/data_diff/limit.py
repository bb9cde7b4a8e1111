"""How much of the inputs is read where not all of them fit into a limit. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

_T = TypeVar("_T")

LIMIT_BYTES = 256_000_000
"""What is read by default, of all changed queries together."""


def within(sizes: Mapping[_T, int], limit: int) -> dict[_T, int]:
    """Bytes to be read of each, `limit` in total: small ones are read whole, and large ones alike.

    So a small input of a join has the partners of those records of the large one that are read.
    """
    left, found = limit, dict.fromkeys(sizes, 0)
    waiting = sorted(sizes, key=lambda each: sizes[each])
    while waiting:
        share = left // len(waiting)
        smallest = waiting.pop(0)
        found[smallest] = min(sizes[smallest], share)
        left -= found[smallest]
    return found


def newest(records: int, size: int, read: int) -> int:
    """How many of the newest records `read` of `size` bytes are, at least one if any is read."""
    if read >= size:
        return records
    return min(records, max(1, records * read // size)) if read else 0

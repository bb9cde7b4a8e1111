"""Packs: consecutive blocks of a chain in one file, so that a long chain is few files.

A pack ends with the block whose number is a multiple of its size less one, and is named by the hash
of that block. A block names the one before it, so this hash decides all bytes of the pack. A pack
of 1 000 stands in for twenty of 50. Layout: `MAGIC`, the number of blocks (4 bytes), for each the
bytes of its hash (34) and its length (4), then the blocks themselves, oldest first; numbers are
big-endian. Pure.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from itertools import pairwise

from odfbuild.odf.multihash import Multihash
from odfbuild.values import Value

SIZES = (1_000, 50)
"""Numbers of blocks that a pack may have, the largest first."""

MAGIC = b"odfbuild pack 1\n"
_COUNT = struct.Struct(">I")
_ENTRY = struct.Struct(">34sI")
_SHA3_256 = bytes.fromhex("1620")


class Link(Value):
    """The bytes of a block, and what they say of its place in the chain."""

    hash: Multihash
    data: bytes
    number: int
    before: Multihash | None

    @classmethod
    def of(cls, data: bytes) -> Link:
        """The block in these bytes; `ValueError` when there is none."""
        from odfbuild.odf.flatbuffers.reader import decode_place

        return cls(Multihash.sha3_256(data), data, *decode_place(data))


def size_of_pack(number: int) -> int:
    """How many blocks the pack has that ends with that block; 1 where none does."""
    return next((size for size in SIZES if (number + 1) % size == 0), 1)


class Cut(Value):
    """How blocks are written: by themselves, in packs, and which are the last of a pack.

    `ends` complete packs whose first blocks are written already.
    """

    loose: tuple[Link, ...]
    packs: tuple[tuple[Link, ...], ...]
    ends: tuple[Link, ...]


def cut(links: Sequence[Link]) -> Cut:
    """Cut blocks of one chain, oldest first, into packs that are complete and what remains."""
    consecutive = all(b.before == a.hash for a, b in pairwise(links))
    if not consecutive:
        return Cut(tuple(links), (), ())
    loose: list[Link] = []
    packs: list[tuple[Link, ...]] = []
    ends: list[Link] = []
    end = len(links)
    while end > 0:
        last = links[end - 1]
        size = size_of_pack(last.number)
        if 1 < size <= end:
            packs.append(tuple(links[end - size : end]))
            end -= size
            continue
        loose.append(last)
        if size > 1:
            ends.append(last)
        end -= 1
    return Cut(tuple(loose[::-1]), tuple(packs[::-1]), tuple(ends[::-1]))


class Pack:
    """The blocks of a pack by their hashes, which fit their bytes; `data` are its own bytes."""

    def __init__(
        self, blocks: dict[Multihash, bytes], before: Multihash | None, data: bytes
    ) -> None:
        self.blocks = blocks
        self.before = before
        self.data = data

    @classmethod
    def parse(cls, data: bytes, last: Multihash) -> Pack:
        """Read the pack that ends with the block `last`; `ValueError` when it is damaged."""
        if not data.startswith(MAGIC) or len(data) < len(MAGIC) + _COUNT.size:
            raise ValueError("it does not begin like a pack")
        [count] = _COUNT.unpack_from(data, len(MAGIC))
        index = len(MAGIC) + _COUNT.size
        at = index + count * _ENTRY.size
        if not 0 < count <= SIZES[0] or at > len(data):
            raise ValueError(f"it cannot have {count} blocks")
        blocks: dict[Multihash, bytes] = {}
        for hash, length in _ENTRY.iter_unpack(data[index:at]):
            block = data[at : at + length]
            if _SHA3_256 + hashlib.sha3_256(block).digest() != hash:
                raise ValueError(f"block number {len(blocks)} in it does not match its hash")
            blocks[Multihash.from_bytes(hash)] = block
            at += length
        if at != len(data) or next(reversed(blocks)) != last:
            raise ValueError(f"it does not end with block {last}")
        return cls(blocks, Link.of(next(iter(blocks.values()))).before, data)


def pack(links: Sequence[Link]) -> bytes:
    """The bytes of a pack with these blocks, oldest first."""
    entries = (_ENTRY.pack(each.hash.binary, len(each.data)) for each in links)
    return b"".join([MAGIC, _COUNT.pack(len(links)), *entries, *(each.data for each in links)])

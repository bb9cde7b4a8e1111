"""The chain of a dataset here, as blocks and bytes, for whoever compares or sends it."""

from __future__ import annotations

from odfbuild.odf.model import MetadataBlock
from odfbuild.odf.multihash import Multihash
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.packs import Link, pack, size_of_pack

LocalBlock = tuple[Multihash, bytes, MetadataBlock]


def local_chain(
    store: DatasetStore, head: Multihash, after: Multihash | None = None
) -> list[LocalBlock]:
    """Blocks of `(after, head]`, oldest first; from the seed on when `after` is not among them."""
    found: list[LocalBlock] = []
    current: Multihash | None = head
    while current is not None and current != after:
        data = store.read_raw(current)
        block = store.decode(current, data)
        found.append((current, data, block))
        current = block.prev_block_hash
    found.reverse()
    return found


def pack_at(store: DatasetStore, end: Multihash) -> bytes | None:
    """The pack of blocks here that ends with the block `end`; `None` where none does."""
    links = [Link.of(store.read_raw(end))]
    size = size_of_pack(links[0].number)
    if size == 1:
        return None
    if store.blocks is not None and (data := store.blocks.pack(end)) is not None:
        return data
    while len(links) < size and links[-1].before is not None:
        links.append(Link.of(store.read_raw(links[-1].before)))
    return pack(links[::-1])


def blocks_behind(store: DatasetStore, head: Multihash, block: Multihash) -> int | None:
    """How many blocks follow `block` in the history of `head`; `None` when it is not in it.

    Reads no more than those that follow.
    """
    if block == head:
        return 0
    if not store.has_block(block):
        return None
    number = store.read_block(block).sequence_number
    current, behind = head, 0
    while current != block:
        found = store.read_block(current)
        if found.sequence_number <= number or found.prev_block_hash is None:
            return None
        current, behind = found.prev_block_hash, behind + 1
    return behind

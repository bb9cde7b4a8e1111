"""Find objects of a storage that no known block refers to, once they are old enough.

Runs that were killed leave such objects, and steps whose tasks ran twice, resets, rebuilds and
deleted datasets. The storage has no heads: what is in use is told by blocks, of all chains and
branches that are known here, of history that was left as well. An object that a block of an unknown
clone refers to looks like garbage, so there is a grace period, and callers say what they know.
Source: Open Data Fabric, "Dataset Layout".
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from odfbuild.odf.multihash import Multihash
from odfbuild.store.garbage import has_links
from odfbuild.store.packs import Pack
from odfbuild.store.storage import PROBES, Storage
from odfbuild.store.stored_blocks import BLOCKS, PACKS
from odfbuild.values import Value

_LARGEST = 1 << 28


class StoredObject(Value):
    """A file of a storage that can go: its name there, and its size in bytes."""

    name: str
    size: int


def blocks_below(*folders: Path) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of all blocks in chains below folders, of no repository of Git."""
    for folder in folders:
        for place, inner, files in os.walk(folder):
            inner[:] = [name for name in inner if name not in (".git", "data", "checkpoints")]
            if Path(place).name == BLOCKS:
                for name in files:
                    if Multihash.of_file(name) is not None:
                        yield name, Path(place, name).read_bytes()


def stored_blocks(storage: Storage) -> Iterator[bytes]:
    """All blocks that lie in the storage itself (`chains: storage`), of whatever clone."""
    for file in storage.files(BLOCKS):
        data = storage.read(file.name, _LARGEST)
        if data is not None:
            yield data
    for file in storage.files(PACKS):
        end = Multihash.of_file(file.name.rpartition("/")[2])
        data = storage.read(file.name, _LARGEST) if end is not None else None
        if data is not None and end is not None:
            yield from Pack.parse(data, end).blocks.values()


def referred_to(blocks: Iterable[bytes]) -> tuple[set[str], bool]:
    """Names of the objects that blocks refer to, and whether records may link further ones.

    `ValueError` where one of them cannot be read.
    """
    from odfbuild.odf.flatbuffers.reader import decode_block
    from odfbuild.odf.model import AddData, ExecuteTransform

    found: set[str] = set()
    linked = False
    for data in blocks:
        linked = linked or has_links(data)
        event = decode_block(data).event
        if isinstance(event, AddData | ExecuteTransform):
            if event.new_data is not None:
                found.add(f"data/{event.new_data.physical_hash}")
            if event.new_checkpoint is not None:
                found.add(f"checkpoints/{event.new_checkpoint.physical_hash}")
    return found, linked


def written_before(storage: Storage, before: float) -> list[StoredObject]:
    """Objects that were written before `before` (seconds since 1970), used or not."""
    return [
        StoredObject(file.name, file.bytes)
        for kind in ("data", "checkpoints", PROBES)
        for file in storage.files(kind)
        if file.written < before
    ]

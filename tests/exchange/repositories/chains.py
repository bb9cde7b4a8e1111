"""Chains that travel: with data, checkpoints, another Manifest, rewritten, or wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

from odfbuild.odf.flatbuffers.form import encode_block
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import (
    AddData,
    Checkpoint,
    DatasetKind,
    MetadataBlock,
    MetadataEvent,
    Seed,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.workspace import Workspace
from tests.store.chains import NOW, SCHEMA, add_slice, create, info, slice_file, workspace

__all__ = ["NOW", "SCHEMA", "add_slice", "create", "info", "workspace"]


def published(root: Path, name: str = "prices") -> DatasetStore:
    """A root of five blocks, with two slices, in a project of its own."""
    store = create(workspace(root), name, info("one"))
    grow(store, 0)
    grow(store, 3)
    return store


def grow(store: DatasetStore, first: int) -> None:
    """Three more records."""
    add_slice(store, store.path.parent / "staged", first, 3)


def commit(
    store: DatasetStore, events: list[MetadataEvent], *, version: int = 3, seed: bytes | None = None
) -> Multihash:
    """Append blocks of that Manifest version, unchecked; from a new Seed with that key on."""
    head = store.head() if seed is None else None
    number = 0 if head is None else store.read_block(head).sequence_number + 1
    if seed is not None:
        events = [Seed(dataset_id=DatasetId(seed), dataset_kind=DatasetKind.Root), *events]
    for event in events:
        block = MetadataBlock(
            system_time=NOW, prev_block_hash=head, sequence_number=number, event=event
        )
        head = store.put_block(encode_block(block, version))
        number += 1
    assert head is not None
    store.swap_head(store.head(), head)
    return head


def with_checkpoints(store: DatasetStore) -> None:
    """Slices with one checkpoint that several blocks share."""
    text = b"the state of an engine"
    hash = Multihash.sha3_256(text)
    file = store.path.parent / "checkpoint"
    file.write_bytes(text)
    store.put_object("checkpoints", file, hash)
    before = None
    for first in (0, 2, 4):
        staged = store.path.parent / "staged"
        data = slice_file(staged, first, 2)
        store.put_object("data", staged, data.physical_hash)
        event = AddData(
            prev_offset=first - 1 if first else None,
            prev_checkpoint=before,
            new_data=data,
            new_checkpoint=Checkpoint(physical_hash=hash, size=len(text)),
        )
        store.append(store.head(), (event,) if first else (SCHEMA, event), NOW)
        before = hash


def with_object(store: DatasetStore, size: int) -> None:
    """A checkpoint of so many bytes, a multiple of a mebibyte."""
    file = store.path.parent / "object"
    with file.open("wb") as out:
        for number in range(size >> 20):
            out.write(number.to_bytes(8, "big") * (1 << 17))
    hash = Multihash.of_contents(file)
    store.put_object("checkpoints", file, hash)
    event = AddData(new_checkpoint=Checkpoint(physical_hash=hash, size=size))
    store.append(store.head(), [event], NOW)


def files(store: DatasetStore) -> dict[str, bytes]:
    """All that travels, file by file."""
    return {
        str(file.relative_to(store.path)): file.read_bytes()
        for folder in ("refs", "blocks", "data", "checkpoints")
        for file in sorted((store.path / folder).glob("*"))
    }


def later(seconds: int) -> Timestamp:
    return Timestamp(NOW.ns + seconds * 10**9)


def everything(root: Path) -> dict[str, bytes]:
    """Every file below `root` but for those of the cache."""
    return {
        str(file.relative_to(root)): file.read_bytes()
        for file in sorted(root.rglob("*"))
        if file.is_file() and ".odfbuild" not in file.parts
    }


def copied(store: DatasetStore, target: Path, name: str = "prices") -> DatasetStore:
    """The dataset as a clone of the project would have it."""
    shutil.copytree(store.path, target / "chains" / name)
    return workspace(target).dataset(name)


def space_of(store: DatasetStore) -> Workspace:
    return workspace(store.path.parent.parent)

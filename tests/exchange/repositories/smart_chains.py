"""Real chains, as stores on disk and as what travels."""

from __future__ import annotations

from pathlib import Path

from odfbuild.exchange.repositories.accept import objects_in
from odfbuild.exchange.repositories.contract import ObjectFile, Publication, RawBlock
from odfbuild.odf.flatbuffers.reader import decode_block
from odfbuild.odf.model import AddData, Checkpoint, SetInfo
from odfbuild.odf.multihash import Multihash
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.workspace import Workspace
from tests.exchange.repositories.strict_peer import Chain
from tests.store.chains import NOW, SCHEMA, add_slice, create, slice_file, workspace

NAME = "net.example.prices"


def prices(root: Path, slices: int = 2, name: str = NAME) -> DatasetStore:
    """A root dataset in a workspace of its own: seed, schema, slices of three records."""
    store = create(workspace(root), name)
    grow(store, root, slices)
    return store


def grow(store: DatasetStore, root: Path, slices: int) -> None:
    """Add slices."""
    state = store.rule_state(store.head())
    first = state.data.last_offset + 1 if state.data else 0
    for at in range(first, first + 3 * slices, 3):
        add_slice(store, root / "staged", at, 3)


def with_shared_checkpoint(root: Path) -> DatasetStore:
    """Three blocks of data that all name the same checkpoint."""
    store = create(workspace(root), NAME)
    data = b"how far the source was read"
    (root / "checkpoint").write_bytes(data)
    checkpoint = Checkpoint(physical_hash=Multihash.sha3_256(data), size=len(data))
    store.put_object("checkpoints", root / "checkpoint", checkpoint.physical_hash)
    for at in range(0, 9, 3):
        made = slice_file(root / "staged", at, 3)
        store.put_object("data", root / "staged", made.physical_hash)
        event = AddData(
            prev_offset=at - 1 if at else None,
            prev_checkpoint=checkpoint.physical_hash if at else None,
            new_data=made,
            new_checkpoint=checkpoint,
        )
        store.append(store.head(), (event,) if at else (SCHEMA, event), NOW)
    return store


def note(store: DatasetStore, text: str) -> None:
    """Add a block without data."""
    store.append(store.head(), [SetInfo(description=text)], NOW)


def raw_blocks(store: DatasetStore, after: Multihash | None = None) -> list[RawBlock]:
    """The blocks behind one, oldest first."""
    found = [RawBlock(hash, store.read_raw(hash)) for hash, _ in store.walk(store.head(), after)]
    return found[::-1]


def objects_of(block: RawBlock) -> list[ObjectFile]:
    """The objects of a block."""
    return list(objects_in(decode_block(block.data)))


def publication(
    store: DatasetStore, expected: Multihash | None = None, *, force: bool = False
) -> Publication:
    """What a push of a dataset adds to one with that head."""
    after = expected
    if force:
        hashes = {hash for hash, _ in store.walk(store.head())}
        after = expected if expected in hashes else None
    blocks = raw_blocks(store, after)
    objects = [each for block in blocks for each in objects_of(block)]
    files = {each.hash: store.object_path(each.kind, each.hash) for each in objects}
    return Publication(expected=expected, blocks=blocks, objects=objects, files=files, force=force)


def in_memory(store: DatasetStore) -> Chain:
    """The dataset as a strict peer holds it."""
    chain = Chain([(str(block.hash), block.data) for block in raw_blocks(store)])
    for block in raw_blocks(store):
        for each in objects_of(block):
            data = store.object_path(each.kind, each.hash).read_bytes()
            chain.objects[each.kind, str(each.hash)] = data
    return chain


def of_workspace(space: Workspace, name: str = NAME) -> Chain:
    """A dataset of a workspace as a strict peer would hold it."""
    return in_memory(space.dataset(name))

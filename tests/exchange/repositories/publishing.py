"""What pushing a whole chain hands to a repository, made from the files of a dataset."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from odfbuild.exchange.repositories.contract import ObjectFile, Publication, RawBlock
from odfbuild.odf.model import AddData, ExecuteTransform, MetadataBlock
from odfbuild.odf.multihash import Multihash
from odfbuild.store.dataset import DatasetStore


def publication(
    store: DatasetStore, expected: Multihash | None = None, *, force: bool = False
) -> Publication:
    """All blocks behind `expected`, or from the seed on where the history is replaced."""
    head = store.head()
    walked = [*store.walk(head, None if force else expected)][::-1]
    objects = objects_of(block for _, block in walked)
    return Publication(
        expected=expected,
        blocks=[RawBlock(hash, store.read_raw(hash)) for hash, _ in walked],
        objects=objects,
        files={each.hash: store.object_path(each.kind, each.hash) for each in objects},
        force=force,
    )


def objects_of(blocks: Iterable[MetadataBlock]) -> list[ObjectFile]:
    """What these blocks refer to; an object may come twice."""
    return [each for block in blocks for each in _objects(block.event)]


def _objects(event: object) -> list[ObjectFile]:
    if not isinstance(event, AddData | ExecuteTransform):
        return []
    found = []
    if event.new_data is not None:
        found.append(ObjectFile("data", event.new_data.physical_hash, event.new_data.size))
    if event.new_checkpoint is not None:
        made = event.new_checkpoint
        found.append(ObjectFile("checkpoints", made.physical_hash, made.size))
    return found


def tree(folder: Path) -> dict[str, bytes]:
    """All files below a folder, by their paths in it."""
    files = (each for each in sorted(folder.rglob("*")) if each.is_file())
    return {str(each.relative_to(folder)): each.read_bytes() for each in files}

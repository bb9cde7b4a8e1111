"""What on disk belongs to branches of a dataset and to nothing else.

A block, slice or checkpoint belongs to them when no other reference of the dataset leads to it.
Where no other reference is left, all of the dataset does, with its private key.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.errors import IntegrityError
from odfbuild.odf.multihash import Multihash
from odfbuild.store.branches import info_file
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.garbage import Reachable, reachable
from odfbuild.store.summaries import summary_file
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.odf.identity import DatasetId
    from odfbuild.store.workspace import Workspace


class OwnFiles(Value, kw_only=True):
    """Files that only some branches of a dataset need: of their histories, and `beside` these.

    `alone`: without these branches no dataset is left. `keys` are private keys that go with them.
    """

    blocks: tuple[Path, ...]
    objects: tuple[Path, ...]
    beside: tuple[Path, ...]
    alone: bool = False
    keys: tuple[Path, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all files of chains that are here; keys do not count."""
        return sum(map(_size, (*self.blocks, *self.objects, *self.beside)))


def own_files(
    workspace: Workspace, store: DatasetStore, branches: Collection[str], *, keep_key: bool = False
) -> OwnFiles:
    """What only these branches of a dataset need; with `keep_key` private keys stay.

    Of a damaged branch no history is part of it. `IntegrityError` when anything else is damaged:
    nobody knows then what that needs.
    """
    references = store.references()
    ours = {name: head for name, head in references.items() if name in branches}
    if len(ours) == len(references):
        return OwnFiles(
            blocks=tuple(_files_in(store.path / "blocks")),
            objects=(*_files_in(store.path / "data"), *_files_in(store.path / "checkpoints")),
            beside=(*_files_in(store.path / "refs"), *_files_in(store.path / "info")),
            alone=True,
            keys=() if keep_key else tuple(_keys(workspace, store, ours.values())),
        )
    needed = reachable(store, *(head for name, head in references.items() if name not in ours))
    own = _intact(store, ours.values())
    data = frozenset() if needed.linked else own.data - needed.data
    return OwnFiles(
        blocks=tuple(store.block_path(each) for each in own.blocks - needed.blocks),
        objects=(
            *(store.object_path("data", each) for each in data),
            *(
                store.object_path("checkpoints", each)
                for each in own.checkpoints - needed.checkpoints
            ),
        ),
        beside=tuple(
            file
            for name in ours
            for file in (
                store.path / "refs" / name,
                info_file(store.folder, name),
                summary_file(store.folder, name),
            )
        ),
    )


def _keys(workspace: Workspace, store: DatasetStore, heads: Iterable[Multihash]) -> Iterator[Path]:
    """Files of private keys that no dataset needs but the one with these heads."""
    found: set[DatasetId] = set()
    for head in heads:
        with contextlib.suppress(IntegrityError):
            found.add(store.identity(head))
    deleted = {each.identity for each in workspace.deleted()}
    for identity in sorted(found):
        file = workspace.keys / identity.multibase
        in_use = identity.multibase in deleted or workspace.resolve(identity) is not None
        if file.is_file() and not in_use:
            yield file


def _intact(store: DatasetStore, heads: Iterable[Multihash]) -> Reachable:
    """What heads lead to whose chains are not damaged."""
    found = []
    for head in heads:
        with contextlib.suppress(IntegrityError):
            found.append(reachable(store, head))
    return Reachable(
        frozenset().union(*(each.blocks for each in found)),
        frozenset().union(*(each.data for each in found)),
        frozenset().union(*(each.checkpoints for each in found)),
        any(each.linked for each in found),
    )


def _files_in(folder: Path) -> Iterator[Path]:
    return (file for file in sorted(folder.rglob("*")) if not file.is_dir())


def _size(file: Path) -> int:
    try:
        return file.lstat().st_size
    except FileNotFoundError:
        return 0

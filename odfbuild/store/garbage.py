"""Find and remove files of datasets that no history refers to, once they are old enough.

What any reference leads to is kept: the head of a dataset, and its branches. Garbage is left by
runs that were killed, by resets, rebuilds and deletions. What is young may belong
to a commit that is going on, also of another tool, and what was taken away may be wanted back: so
there is a grace period. What a commit uses again, or a reset lets go of, is made to look young.
Sources: Open Data Fabric, "Dataset Layout"; reference behaviour, "gc".
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from odfbuild.odf.multihash import Multihash
from odfbuild.store.branches import has_references
from odfbuild.store.creation import clear_unfinished
from odfbuild.store.dataset import FOLDERS, MARKER, DatasetStore
from odfbuild.store.deleted import bin_entries, remove_for_good
from odfbuild.store.engine_folders import abandoned_engine_folders
from odfbuild.store.files import PENDING, folder_lock
from odfbuild.store.side_cars import BY_KEY, MANIFEST, MERGED
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.store.workspace import Workspace

Kind = Literal[
    "block",
    "data",
    "checkpoint",
    "staging",
    "scratch",
    "side-cars",
    "unfinished dataset",
    "deleted dataset",
]

DISPOSABLE: frozenset[Kind] = frozenset({"staging", "scratch", "side-cars"})
"""What killed runs leave, and what is made again when it is needed."""

# Slices may refer to other objects of the dataset; blocks that allow it say one of these.
_LINKS = (b"ObjectLink", b"linkedObjects")


def has_links(block: bytes) -> bool:
    """Whether records of the dataset to which a block belongs may link objects of it."""
    return any(word in block for word in _LINKS)


class Garbage(Value):
    """A file or folder that can go; `size` in bytes, `dataset` is empty for the cache."""

    dataset: str
    kind: Kind
    path: Path
    size: int


class Reachable(Value):
    """What the history of a dataset refers to.

    `linked`: records may link other objects in `data/`, so all of these count as referred to.
    """

    blocks: frozenset[Multihash]
    data: frozenset[Multihash]
    checkpoints: frozenset[Multihash]
    linked: bool


def reachable(store: DatasetStore, *heads: Multihash) -> Reachable:
    """Everything that `heads` lead to; `IntegrityError` when a chain is damaged."""
    from odfbuild.odf.model import AddData, ExecuteTransform

    blocks: set[Multihash] = set()
    data: set[Multihash] = set()
    checkpoints: set[Multihash] = set()
    linked = False
    for head in heads:
        current: Multihash | None = head
        while current is not None and current not in blocks:
            raw = store.read_raw(current)
            linked = linked or has_links(raw)
            block = store.decode(current, raw)
            blocks.add(current)
            if isinstance(block.event, AddData | ExecuteTransform):
                if block.event.new_data is not None:
                    data.add(block.event.new_data.physical_hash)
                if block.event.new_checkpoint is not None:
                    checkpoints.add(block.event.new_checkpoint.physical_hash)
            current = block.prev_block_hash
    return Reachable(frozenset(blocks), frozenset(data), frozenset(checkpoints), linked)


def renew(store: DatasetStore, head: Multihash) -> None:
    """Make all that `head` leads to look new, because a reset is about to let go of it.

    So the grace period begins when files became garbage, and not when they were written.
    """
    found = reachable(store, head)
    files = [store.block_path(each) for each in found.blocks]
    files += [store.object_path("data", each) for each in found.data]
    files += [store.object_path("checkpoints", each) for each in found.checkpoints]
    for file in files:
        # It may be in the storage alone, or belong to somebody else.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            os.utime(file)


def find_in_dataset(store: DatasetStore, before: float) -> Iterator[Garbage]:
    """Garbage of one dataset whose time of change is before `before` (seconds since 1970).

    The caller has claimed the dataset. What its owner withdrew is garbage, too. `IntegrityError`
    when its chain is damaged: nothing is garbage then.
    """
    references = store.references()
    if not references:
        return
    kept = reachable(store, *references.values())
    withdrawn = {hash for _, hash in store.withdrawn()}
    kinds: tuple[tuple[Literal["blocks", "data", "checkpoints"], Kind, frozenset[Multihash]], ...]
    kinds = (
        ("blocks", "block", kept.blocks),
        ("data", "data", kept.data - withdrawn),
        ("checkpoints", "checkpoint", kept.checkpoints - withdrawn),
    )
    for folder, kind, wanted in kinds:
        for hash in store.stored(folder):
            is_linked = folder == "data" and kept.linked and hash not in withdrawn
            if hash not in wanted and not is_linked:
                yield from _aged(store.name, kind, store.path / folder / str(hash), before)
    for place in (store.path, *(store.path / name for name in FOLDERS)):
        for staged in place.glob(f"{PENDING}*"):
            yield from _aged(store.name, "staging", staged, before)
    for file in (
        *(store.path / "info").glob("branches/*"),
        *(store.path / "info").glob("summaries/*"),
    ):
        if file.name not in references:  # a branch whose creation or deletion was cut off
            yield from _aged(store.name, "staging", file, before)


def find_unfinished(workspace: Workspace, before: float) -> Iterator[Garbage]:
    """Datasets whose creation was cut off before they had a head."""
    if not workspace.state.is_dir():
        return
    for marker in (*workspace.state.glob(f"*/{MARKER}"), *workspace.state.glob(f"*/*/{MARKER}")):
        folder = marker.parent
        if not has_references(folder):
            name = str(folder.relative_to(workspace.state))
            yield from _aged(name, "unfinished dataset", folder, before)


def find_staged(workspace: Workspace, before: float) -> Iterator[Garbage]:
    """Staging files beside the datasets, and beside the keys."""
    for folder in (workspace.state, workspace.keys):
        for staged in folder.glob(f"{PENDING}*"):
            yield from _aged("", "staging", staged, before)


def find_deleted(workspace: Workspace, before: float) -> Iterator[Garbage]:
    """Datasets that were put into the bin before that time."""
    for folder in bin_entries(workspace.state):
        name = folder / "chain" / "info" / "alias"
        dataset = name.read_text("utf-8") if name.is_file() else ""
        yield from _aged(dataset, "deleted dataset", folder, before)


def find_scratch(workspace: Workspace, before: float) -> Iterator[Garbage]:
    """Scratch folders that killed runs left in the cache, and those of their engines."""
    base = workspace.cache / "scratch"
    here = base.iterdir() if base.is_dir() else ()
    for folder in (*here, *abandoned_engine_folders(base)):
        yield from _aged("", "scratch", folder, before)


def find_side_cars(workspace: Workspace, before: float) -> Iterator[Garbage]:
    """Side-cars of datasets that are gone, or have another name by now, and those by key.

    Those are made for whoever looks up few keys, and look new as long as somebody does. So folders
    of other releases go, too.
    """
    base = workspace.cache / "side-cars"
    found = {f.parent if f.name == MANIFEST else f for f in base.rglob("*.bin")}
    for each in sorted(found.union(base.rglob(BY_KEY))):
        is_kept = each.suffix == ".bin" or each.name == MERGED
        if not (is_kept and has_references(workspace.state / each.parent.relative_to(base))):
            yield from _aged("", "side-cars", each, before)


def remove(workspace: Workspace, garbage: Iterable[Garbage]) -> None:
    """Remove what was found; what is gone already, or came to life since, is left alone."""
    for each in garbage:
        if each.kind == "unfinished dataset":
            busy_or_gone = contextlib.suppress(BlockingIOError, FileNotFoundError)
            with busy_or_gone, folder_lock(each.path, wait=False):
                if not has_references(each.path):
                    clear_unfinished(each.path, workspace.keys)
        elif each.kind == "deleted dataset":
            remove_for_good(workspace.keys, each.path)
        elif each.path.is_dir():
            shutil.rmtree(each.path, ignore_errors=True)
        else:
            each.path.unlink(missing_ok=True)


def _aged(dataset: str, kind: Kind, path: Path, before: float) -> Iterator[Garbage]:
    newest, size = _newest_and_size(path)
    if newest < before:
        yield Garbage(dataset, kind, path, size)


def _newest_and_size(path: Path) -> tuple[float, int]:
    """Latest time of change, and bytes, of a file or of all in a folder."""
    try:
        info = path.lstat()
    except FileNotFoundError:
        return 0.0, 0
    newest, size = info.st_mtime, 0 if stat.S_ISDIR(info.st_mode) else info.st_size
    if stat.S_ISDIR(info.st_mode):
        for root, _, names in os.walk(path):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    inner = (Path(root) / name).lstat()
                    newest, size = max(newest, inner.st_mtime), size + inner.st_size
    return newest, size

"""Create a dataset: a key pair, a Seed, its first events, and then a head.

A marker file in the folder names the identity that is being made, from before the key is stored
until after the head is there, so that an attempt that died can be told from anything else and
cleared away, key included. While it works, the creator holds the lock of the folder.
Source: Open Data Fabric, "Dataset Identity"; reference behaviour, order of creation.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.errors import ChainError, StaleHeadError
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.multihash import Multihash
from odfbuild.store.branches import has_references
from odfbuild.store.dataset import FOLDERS, MARKER, DatasetStore
from odfbuild.store.files import (
    PENDING,
    beside,
    folder_lock,
    make_folder,
    names_like,
    sync,
    write_file,
)
from odfbuild.store.keys import new_pair, prepare_key_folder

if TYPE_CHECKING:
    from odfbuild.odf.model import DatasetKind, MetadataEvent
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.store.storage import ObjectKind

_GITIGNORE = b"""\
# Data and checkpoints live beside the chains, but outside Git; so do files that are being written.
**/data/f1620*
**/checkpoints/f1620*
.pending-*
"""

StagedObjects = Sequence[tuple[Path, Multihash]]


def create_dataset(
    state: Path,
    keys: Path,
    store: DatasetStore,
    kind: DatasetKind,
    events: Sequence[MetadataEvent],
    system_time: Timestamp,
    objects: StagedObjects = (),
    checkpoints: StagedObjects = (),
    identity: tuple[DatasetId, bytes] | None = None,
) -> DatasetId:
    """Create the dataset in `store`; see `Workspace.create`."""
    from odfbuild.odf.model import Seed

    prepare_state_folder(state)
    with reserve(state, keys, store):
        try:
            dataset_id, pem = identity or new_pair()
            needed = {"data": bool(objects), "checkpoints": bool(checkpoints)}
            folders = [name for name in FOLDERS if needed.get(name, True)]
            mark(store, dataset_id.multibase, folders)
            with beside(
                partial(store_key, keys, dataset_id, pem),
                partial(write_file, store.path / "info" / "alias", store.name.encode()),
            ):
                store.put_objects("data", objects)
                store.put_objects("checkpoints", checkpoints)
            seed = Seed(dataset_id=dataset_id, dataset_kind=kind)
            store.append(None, (seed, *events), system_time)
        except BaseException:
            if store.head() is None:
                clear_unfinished(store.path, keys)
            raise
        (store.path / MARKER).unlink(missing_ok=True)
    return dataset_id


@contextlib.contextmanager
def receiving(state: Path, keys: Path, store: DatasetStore) -> Iterator[None]:
    """Hold the folder of a dataset that comes from elsewhere, and has no head here yet.

    Its chain is made by whoever holds this; it has no private key here. An attempt that ends early
    leaves the objects that it had, so that the next one goes on from there.
    """
    prepare_state_folder(state)
    with reserve(state, keys, store, resume=True):
        try:
            mark(store, "", FOLDERS)
            write_file(store.path / "info" / "alias", store.name.encode())
            yield
        except BaseException:
            kinds: tuple[ObjectKind, ...] = ("data", "checkpoints")
            if store.head() is None and not any(any(store.stored(kind)) for kind in kinds):
                clear_unfinished(store.path, keys)
            raise
        (store.path / MARKER).unlink(missing_ok=True)


def mark(store: DatasetStore, identity: str, folders: Sequence[str]) -> None:
    """Mark the folder of a dataset with what is being made, and fill it, at the price of one."""
    write_file(store.path / MARKER, identity.encode(), list_synced=False)
    for name in folders:
        (store.path / name).mkdir(exist_ok=True)
    sync(store.path)


def rename_dataset(state: Path, old: str, new: str) -> None:
    """Move a dataset to another alias in one step; see `Workspace.rename`."""
    source = DatasetStore(state / old, old)
    target = DatasetStore(state / new, new)
    prepare_state_folder(state)
    with folder_lock(state):
        if source.head() is None:
            if target.head() is not None:
                return
            raise StaleHeadError(
                f"'{old}' is gone, so it cannot be renamed to '{new}'",
                code="E0701",
                dataset=new,
                help="run `odfbuild plan` again, then apply",
            )
        _check_free(state, target)
        in_branches = sorted(target.references())
        if in_branches:
            raise ChainError(
                f"'{old}' cannot be renamed to '{new}': that name is in use in branches",
                code="E0622",
                dataset=new,
                notes=(f"branches: {', '.join(in_branches)}",),
                help=f"promote them first, or `odfbuild branch delete {in_branches[0]}`",
            )
        if target.path.is_dir() and any(target.path.iterdir()):
            raise ChainError(
                f"'{old}' cannot be renamed to '{new}': that folder has no head, but other files",
                code="E0622",
                dataset=new,
                notes=(f"folder: {target.path}",),
                help="move the folder away",
            )
        with folder_lock(source.path):
            # The alias first: whoever is killed in between does all of it again.
            write_file(source.path / "info" / "alias", new.encode())
            make_folder(target.path.parent)
            source.path.replace(target.path)
    sync(target.path.parent)
    sync(source.path.parent)


def prepare_state_folder(state: Path) -> None:
    """Create the folder of all chains, with a `.gitignore` for its data."""
    make_folder(state)
    ignore = state / ".gitignore"
    if not ignore.exists():
        write_file(ignore, _GITIGNORE)


@contextlib.contextmanager
def reserve(
    state: Path, keys: Path, store: DatasetStore, *, resume: bool = False
) -> Iterator[None]:
    """Make the dataset's folder and hold its lock; the name must be free and nobody else at it.

    The lock of `state` is held only while names are compared. With `resume` what an unfinished
    `receiving` left stays.
    """
    with ExitStack() as stack:
        with folder_lock(state):
            _check_free(state, store)
            if store.path.is_dir():
                try:
                    stack.enter_context(folder_lock(store.path, wait=False))
                except BlockingIOError:
                    raise StaleHeadError(
                        f"'{store.name}' is being created by another process",
                        code="E0701",
                        dataset=store.name,
                        help="wait until it is done, then run `odfbuild plan` again",
                    ) from None
                _refuse_foreign(store)
                if not (resume and _was_received(store.path)):
                    clear_unfinished(store.path, keys, keep_folder=True)
            else:
                make_folder(store.path)
                stack.enter_context(folder_lock(store.path))
        yield


def store_key(keys: Path, dataset_id: DatasetId, pem: bytes) -> None:
    """Store a private key, once the folder of the dataset is marked with its DID."""
    prepare_key_folder(keys)
    # Staged under the DID, so that clearing finds it also when we are killed before the rename.
    write_file(keys / dataset_id.multibase, pem, mode=0o600, token=dataset_id.multibase)


def clear_unfinished(folder: Path, keys: Path, *, keep_folder: bool = False) -> None:
    """Remove what an unfinished creation left in `folder`, and its key; needs the lock.

    Of a folder that holds a dataset, be it in a branch, nothing that any reference may need.
    """
    marker = folder / MARKER
    used = _identities(folder)
    for name in () if used else FOLDERS:
        shutil.rmtree(folder / name, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        dataset_id = marker.read_text(encoding="ascii")
        if dataset_id and dataset_id not in used:
            (keys / dataset_id).unlink(missing_ok=True)
            (keys / f"{PENDING}{dataset_id}").unlink(missing_ok=True)
        # Last, so that whoever is killed here leaves a folder that is still recognised.
        marker.unlink()
    for staged in folder.glob(f"{PENDING}*"):
        staged.unlink(missing_ok=True)
    if not keep_folder:
        with contextlib.suppress(OSError):
            folder.rmdir()
        with contextlib.suppress(OSError):
            sync(folder.parent)


def _identities(folder: Path) -> set[str]:
    """The identities of the dataset in `folder` on the head and in branches."""
    store = DatasetStore(folder)
    return {store.identity(block).multibase for block in store.references().values()}


def _was_received(folder: Path) -> bool:
    """Whether the unfinished dataset came from elsewhere: its marker names no identity."""
    marker = folder / MARKER
    return marker.is_file() and not marker.read_bytes()


def _check_free(state: Path, store: DatasetStore) -> None:
    """`StaleHeadError` when the dataset exists, `ChainError` when its name collides."""
    store.check_head(None)
    account, _, name = store.name.rpartition("/")
    parent = state / account if account else state
    twin = (account and _twin(state, account)) or _twin(parent, name, datasets=True)
    if twin is not None:
        raise ChainError(
            f"'{store.name}' and '{twin.relative_to(state)}' differ only in letter case",
            code="E0620",
            dataset=store.name,
            help="use the existing name, or another one",
        )
    if account and has_references(parent):
        raise ChainError(
            f"'{store.name}' cannot be inside '{account}', which is a dataset itself",
            code="E0621",
            dataset=store.name,
            help="choose another account name",
        )


def _refuse_foreign(store: DatasetStore) -> None:
    """`ChainError` unless the folder is empty, or holds an unfinished creation or branches."""
    if has_references(store.path):
        return
    found = {item.name for item in store.path.iterdir()}
    if MARKER in found and found <= {*FOLDERS, MARKER} | {
        n for n in found if n.startswith(PENDING)
    }:
        return
    strangers = sorted(n for n in found if not n.startswith(PENDING))
    if strangers:
        raise ChainError(
            f"'{store.name}' cannot be created: its folder has no head, but other files",
            code="E0622",
            dataset=store.name,
            notes=(f"folder: {store.path}", f"in it: {', '.join(strangers[:5])}"),
            help="if this was a dataset, restore refs/head; otherwise move the folder away",
        )


def _twin(folder: Path, name: str, *, datasets: bool = False) -> Path | None:
    """An entry of `folder` that differs from `name` only in case."""
    for other in names_like(folder, name):
        if other != name and (not datasets or has_references(folder / other)):
            return folder / other
    return None

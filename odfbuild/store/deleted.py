"""Deleted datasets: they are in a bin until `gc` removes them.

`<state>/.bin/<time>-<identity>/chain` is the folder of the dataset as it was. Its private key stays
among the keys, and what a broker handed over for it lies beside the chain as `inbox`.
"""

from __future__ import annotations

import contextlib
import shutil
from datetime import UTC, datetime
from pathlib import Path

from odfbuild.errors import PlanError
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.files import folder_lock, make_folder, sync, write_file
from odfbuild.values import Value

_FOLDER = ".bin"
_TIME = "%Y%m%dT%H%M%S%fZ"


class Deleted(Value):
    """A dataset in the bin; `identity` is the name of its private key."""

    folder: Path
    name: str
    head: Multihash
    identity: str

    @property
    def time(self) -> Timestamp:
        """When it was deleted."""
        moment = datetime.strptime(self.folder.name.partition("-")[0], _TIME)
        return Timestamp.parse(moment.replace(tzinfo=UTC).isoformat())

    @property
    def inbox(self) -> Path:
        """Where messages lie that came for it and that its chain does not hold."""
        return self.folder / "inbox"


def delete_dataset(
    state: Path, store: DatasetStore, head: Multihash, dataset_id: DatasetId
) -> Deleted:
    """Put the dataset in `store` into the bin; see `Workspace.delete`."""
    bin = state / _FOLDER
    make_folder(bin)
    # What is deleted is no longer part of what Git carries.
    write_file(bin / ".gitignore", b"*\n")
    folder = bin / f"{datetime.now(UTC).strftime(_TIME)}-{dataset_id.multibase}"
    with folder_lock(state), folder_lock(store.path):
        with folder_lock(store.path / "refs"):
            store.check_head(head)
            make_folder(folder)
            store.path.replace(folder / "chain")
        sync(folder)
        sync(store.path.parent)
    if store.path.parent != state:
        with contextlib.suppress(OSError):
            store.path.parent.rmdir()  # the last one of an account
    return Deleted(folder, store.name, head, dataset_id.multibase)


def deleted_datasets(state: Path) -> list[Deleted]:
    """What is in the bin, the newest last."""
    found = []
    for folder in sorted((state / _FOLDER).glob("*-*")):
        head = DatasetStore(folder / "chain").head()
        if head is not None:
            name = (folder / "chain" / "info" / "alias").read_text("utf-8")
            found.append(Deleted(folder, name, head, folder.name.partition("-")[2]))
    return found


def restore_dataset(state: Path, deleted: Deleted) -> None:
    """Take a dataset out of the bin again; `PlanError` E0393 when its name is in use."""
    target = state / deleted.name
    with folder_lock(state):
        if target.exists():
            raise PlanError(
                f"'{deleted.name}' cannot be restored: its name is in use again",
                code="E0393",
                dataset=deleted.name,
                help="delete or rename the other one first",
            )
        make_folder(target.parent)
        (deleted.folder / "chain").replace(target)
    sync(target.parent)
    shutil.rmtree(deleted.folder, ignore_errors=True)


def remove_for_good(keys: Path, folder: Path) -> None:
    """Empty the bin of one entry, with the private key of the dataset in it."""
    if (folder / "chain").is_dir():
        (keys / folder.name.partition("-")[2]).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def bin_entries(state: Path) -> list[Path]:
    """The folders in the bin, those of interrupted deletions and restorations included."""
    return sorted((state / _FOLDER).glob("*-*"))

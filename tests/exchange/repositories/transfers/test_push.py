"""Chains are published: what is missing there, append-only, and never over another dataset."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from odfbuild.exchange.repositories.contract import Progress, Publication
from odfbuild.exchange.repositories.outcome import Transfer, TransferStatus
from odfbuild.exchange.repositories.pull import Pull, pull
from odfbuild.exchange.repositories.push import Push, push
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.storage import Storage
from odfbuild.store.workspace import Workspace
from tests.exchange.repositories.chains import (
    NOW,
    commit,
    create,
    everything,
    files,
    grow,
    info,
    published,
    space_of,
    with_checkpoints,
    workspace,
)
from tests.exchange.repositories.peers import Peer


@pytest.fixture
def mine(tmp_path: Path) -> DatasetStore:
    return published(tmp_path / "here")


@pytest.fixture
def there(tmp_path: Path) -> Peer:
    return Peer(tmp_path / "there" / "prices")


def send(store: DatasetStore, peer: Peer, **options: Any) -> Transfer:
    """Push one dataset; `dry_run`, the workspace as `space`, and the options of `Push`."""
    dry_run = options.pop("dry_run", False)
    space: Workspace = options.pop("space", space_of(store))
    wanted = Push(name=store.name, address=peer.address, open=lambda: peer, **options)
    [found] = push(space, [wanted], dry_run=dry_run)
    return found


def refused(store: DatasetStore, peer: Peer, code: str, **options: Any) -> Transfer:
    """Push one dataset, which is refused with that code and changes nothing there."""
    before = everything(peer.folder)
    found = send(store, peer, **options)
    assert found.status is TransferStatus.FAILED
    assert found.error is not None
    assert found.error.code == code, found.error
    assert found.error.help
    assert everything(peer.folder) == before
    return found


def test_what_is_pushed_is_identical_file_by_file(mine: DatasetStore, there: Peer) -> None:
    """Scenario 31."""
    found = send(mine, there)
    assert (found.status, found.blocks, found.records) == (TransferStatus.NEW, 5, 6)
    assert (found.before, found.after, found.objects) == (None, mine.head(), 2)
    assert files(there.store) == files(mine)


@pytest.mark.parametrize("shape", ["seed", "manifest 2", "checkpoints"])
def test_chains_of_every_shape_are_published(tmp_path: Path, there: Peer, shape: str) -> None:
    """Scenario 3, and a checkpoint that three blocks share."""
    mine = create(workspace(tmp_path / "here"), "prices")
    if shape == "manifest 2":
        commit(mine, [info("old")], version=2)
    elif shape == "checkpoints":
        with_checkpoints(mine)
    assert send(mine, there).status is TransferStatus.NEW
    assert files(there.store) == files(mine)


def test_only_what_is_missing_there_is_sent(mine: DatasetStore, there: Peer) -> None:
    """Scenarios 33 and 34."""
    send(mine, there)
    assert send(mine, there).status is TransferStatus.UP_TO_DATE
    grow(mine, 6)
    mine.append(mine.head(), (info("two"),), NOW)
    found = send(mine, there)
    assert (found.status, found.blocks, found.objects) == (TransferStatus.UPDATED, 2, 1)
    assert there.asked == ["info/signed-head"]  # of the second push, which had nothing to send
    assert files(there.store) == files(mine)


def test_pushing_changes_no_file_of_the_project(
    tmp_path: Path, mine: DatasetStore, there: Peer
) -> None:
    before = everything(tmp_path / "here")
    send(mine, there)
    assert everything(tmp_path / "here") == before


def test_a_dry_run_sends_nothing(mine: DatasetStore, there: Peer) -> None:
    found = send(mine, there, dry_run=True)
    assert (found.status, found.blocks) == (TransferStatus.NEW, 5)
    assert not there.folder.exists()


def test_blocks_of_another_writer_are_told_and_kept(
    mine: DatasetStore, there: Peer, tmp_path: Path
) -> None:
    """Scenarios 8, 35 and 36: another writer pushed one block."""
    send(mine, there)
    there.store.append(there.head(), (info("theirs"),), NOW)
    found = refused(mine, there, "E1027")
    assert found.error is not None
    assert "1 block" in found.error.message
    found = send(mine, there, replace=True)
    assert (found.status, found.lost_blocks) == (TransferStatus.REPLACED, 1)
    assert there.head() == mine.head()


def test_a_history_that_differs_is_replaced_by_name_alone(mine: DatasetStore, there: Peer) -> None:
    """Scenarios 6, 7 and 38: the whole chain goes, when one block of another writer is given up."""
    send(mine, there)
    common = mine.head()
    there.store.append(there.head(), (info("x"), info("y")), NOW)
    mine.append(common, (info("mine"),), NOW)
    found = refused(mine, there, "E1028")
    assert found.error is not None
    assert found.error.notes[:3] == (
        f"the last common block is {common}",
        "only here:  1 block",
        "only there: 2 blocks with 0 records",
    )
    found = send(mine, there, replace=True)
    assert (found.status, found.lost_blocks) == (TransferStatus.REPLACED, 2)
    assert there.head() == mine.head()


def test_a_dataset_is_never_replaced_by_another_one(
    mine: DatasetStore, there: Peer, tmp_path: Path
) -> None:
    """Scenario 49, the half of pushing: also not when a reset is allowed."""
    send(mine, there)
    other = published(tmp_path / "other")
    refused(other, there, "E1029")
    refused(other, there, "E1029", replace=True)


def test_missing_objects_are_named_and_nothing_is_sent(mine: DatasetStore, there: Peer) -> None:
    for file in mine.path.glob("data/*"):
        file.unlink()
    found = refused(mine, there, "E1030")
    assert found.error is not None
    assert found.error.message.startswith("2 objects of 'prices' are neither here nor")


def test_objects_come_from_the_storage_of_the_project(
    tmp_path: Path, mine: DatasetStore, there: Peer
) -> None:
    storage = tmp_path / "storage"
    shutil.move(mine.path / "data", storage / "data")
    root = tmp_path / "here"
    space = Workspace(
        root / "chains", root / ".odfbuild-keys", root / ".odfbuild", Storage(str(storage), root)
    )
    assert send(mine, there, space=space).status is TransferStatus.NEW
    assert files(there.store) == files(mine)


def test_an_object_with_other_bytes_is_not_published(mine: DatasetStore, there: Peer) -> None:
    file = next(iter(mine.path.glob("data/*")))
    file.write_bytes(b"x" * file.stat().st_size)
    found = send(mine, there)
    assert found.error is not None
    assert found.error.code == "E0813"
    assert there.head() is None


def test_of_two_pushes_at_once_one_wins_and_the_other_is_told(
    mine: DatasetStore, there: Peer, tmp_path: Path
) -> None:
    """Scenario 62."""
    send(mine, there)
    root = tmp_path / "clone"
    shutil.copytree(tmp_path / "here", root)
    clone = workspace(root).dataset("prices")
    mine.append(mine.head(), (info("mine"),), NOW)
    clone.append(clone.head(), (info("theirs"),), NOW)
    barrier = Barrier(2)

    class Late(Peer):
        def publish(self, publication: Publication, progress: Progress | None = None) -> None:
            barrier.wait(60)
            super().publish(publication, progress)

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda store: send(store, Late(there.folder)), (mine, clone)))
    failed = [each for each in found if each.error is not None]
    assert len(failed) == 1
    assert failed[0].error is not None
    assert failed[0].error.exit_code == 5
    winner = next(store for store, each in zip((mine, clone), found, strict=True) if not each.error)
    assert there.head() == winner.head()
    space = workspace(tmp_path / "reader")
    wanted = Pull(name="prices", address="", reference="r/prices", open=lambda: there)
    assert pull(space, [wanted])[0].status is TransferStatus.NEW

"""Pushes that are killed at any step: what is seen is whole, and the next push ends the same."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from odfbuild.exchange.repositories.open import Remotes
from odfbuild.exchange.repositories.simple import SimpleDataset
from odfbuild.odf.multihash import Multihash
from odfbuild.store import place
from odfbuild.store.dataset import DatasetStore
from tests.exchange.repositories.publishing import objects_of, publication, tree
from tests.forks import FORKS
from tests.servers.objects import BUCKET, s3_endpoint
from tests.store.chains import add_slice, create, info, workspace

NAME = "org.example.prices"
SECONDS = 300
WRITES = ("upload", "write", "swap")


class Deadly:
    """A place whose process is killed at its n-th write: before it, or behind it where `late`."""

    def __init__(self, place: Any, step: int, *, late: bool) -> None:
        self._place, self._left, self._late = place, step, late
        self._mutex = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._place, name)
        if name not in WRITES:
            return method

        def counted(*arguments: Any) -> Any:
            with self._mutex:
                self._left -= 1
                last = self._left == 0
                if last and not self._late:
                    os.kill(os.getpid(), signal.SIGKILL)
                answer = method(*arguments)
                if last:
                    os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return counted


def push(
    environment: dict[str, str],
    root: Path,
    address: str,
    expected: Multihash | None,
    step: int,
    late: bool,
) -> None:
    """Push the dataset in `root`; killed at a step if there are so many."""
    os.environ.update(environment)
    made = publication(DatasetStore(root, NAME), expected)
    with Remotes(root, {}) as remotes:
        there = remotes.writable(address)
        assert isinstance(there, SimpleDataset)
        there._place = Deadly(there._place, step, late=late)
        there.publish(made)


def killed_at_every_step(
    store: DatasetStore,
    address: str,
    expected: Multihash | None,
    empty: Any,
    *,
    late: bool = True,
) -> int:
    """Push from the same state, killed at one step after the other; how many steps there are."""
    with Remotes(store.path, {}) as remotes:
        there = remotes.writable(address)
    for step in range(1, 100):
        for behind in (False, True) if late else (False,):
            empty()
            child = FORKS.Process(
                target=push,
                args=(dict(os.environ), store.path, address, expected, step, behind),
            )
            child.start()
            child.join(SECONDS)
            head = there.head()
            if child.exitcode == 0:
                assert head == store.head()
                return step - 1
            assert child.exitcode == -signal.SIGKILL
            assert head in (expected, store.head())
            check_whole(there, store, head)
            if head != store.head():
                there.publish(publication(store, head))
            assert there.head() == store.head()
            check_whole(there, store, store.head())
    raise AssertionError("the push never ended")


def check_whole(there: Any, store: DatasetStore, head: Multihash | None) -> None:
    """Whoever pulls now gets all of a history."""
    if head is None:
        return
    folder = store.path.parent / "whole"
    shutil.rmtree(folder, ignore_errors=True)
    with there.offer(head, None) as offer:
        assert offer.blocks[-1].hash == head
        offer.download(objects_of(block for _, block in store.walk(head)), folder)


@pytest.fixture
def store(tmp_path: Path) -> DatasetStore:
    made = create(workspace(tmp_path / "project"), NAME, info("prices"))
    add_slice(made, tmp_path / "one", 0, 10)
    return made


def test_a_push_to_a_folder_may_be_killed_at_every_file(
    store: DatasetStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "LEFT_OVER_SECONDS", -1)
    there, before = tmp_path / "published" / NAME, tmp_path / "before"

    def empty() -> None:
        shutil.rmtree(there, ignore_errors=True)
        if before.exists():
            shutil.copytree(before, there)

    # An object, four blocks, the alias and the head; one more asks whether conditions hold.
    assert killed_at_every_step(store, str(there), None, empty) == 8
    chain = {name: data for name, data in tree(store.path).items() if name != "info/config"}
    assert tree(there) == chain
    shutil.copytree(there, before)
    known = store.head()
    add_slice(store, tmp_path / "two", 10, 5)
    assert killed_at_every_step(store, str(there), known, empty) == 5
    assert tree(there) == tree(store.path)


def test_a_push_to_a_bucket_may_be_killed_at_every_object(
    store: DatasetStore, tmp_path: Path
) -> None:
    with s3_endpoint() as endpoint:

        def empty() -> None:
            found = endpoint.client.list_objects_v2(Bucket=BUCKET).get("Contents", [])
            for each in found:
                endpoint.client.delete_object(Bucket=BUCKET, Key=each["Key"])

        address = f"s3://{BUCKET}/{NAME}"
        assert killed_at_every_step(store, address, None, empty, late=False) == 8


def test_staging_files_of_a_push_that_was_killed_in_a_file_are_removed_later(
    store: DatasetStore, tmp_path: Path
) -> None:
    there = tmp_path / "published" / NAME
    (there / "data").mkdir(parents=True)
    old, new = there / "data" / ".pending-old", there / "data" / ".pending-new"
    for each in (old, new):
        each.write_bytes(b"half")
    os.utime(old, (1, 1))
    with Remotes(tmp_path, {}) as remotes:
        remotes.writable(str(there)).publish(publication(store))
    assert (old.exists(), new.exists()) == (False, True)

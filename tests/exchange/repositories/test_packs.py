"""Packs of blocks beside the blocks: odfbuild reads them, other peers need not know of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from odfbuild.errors import IntegrityError
from odfbuild.exchange.repositories.history import local_chain
from odfbuild.exchange.repositories.open import Remotes
from odfbuild.exchange.repositories.push import Push, push
from odfbuild.exchange.repositories.smart import client
from odfbuild.odf.multihash import Multihash
from odfbuild.store import packs, stored_blocks
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.workspace import Workspace
from tests.exchange.repositories.serving import project, served
from tests.store.chains import NOW, create, info, workspace

NAME = "net.example.long"
SIZES = (20, 5)


@pytest.fixture(autouse=True)
def small_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (packs, stored_blocks):
        monkeypatch.setattr(module, "SIZES", SIZES)
    monkeypatch.setattr("odfbuild.exchange.repositories.push.SIZES", SIZES)


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    """A project with a dataset of 58 blocks."""
    space = workspace(tmp_path / "project")
    store = create(space, NAME, *(info(str(number)) for number in range(56)))
    store.append(store.head(), [info("last")], NOW)
    return space


def pushed(space: Workspace, root: Path) -> Path:
    """The folder to which the dataset was pushed."""
    with Remotes(root, {}) as remotes:
        address = f"{(root / 'hub').as_uri()}/{NAME}"
        wanted = Push(name=NAME, address=address, open=lambda: remotes.writable(address))
        [done] = push(space, [wanted])
    assert done.error is None
    return root / "hub" / NAME


def offered(root: Path, after: Multihash | None = None) -> list[bytes]:
    with Remotes(root, {}) as remotes:
        there = remotes.dataset(f"{(root / 'hub').as_uri()}/{NAME}")
        head = there.head()
        assert head is not None
        with there.offer(head, after) as offer:
            return [each.data for each in offer.blocks]


def chain(store: DatasetStore) -> list[tuple[Multihash, bytes]]:
    head = store.head()
    assert head is not None
    return [(hash, data) for hash, data, _ in local_chain(store, head)]


def test_a_push_lays_packs_beside_the_blocks_that_other_peers_read(
    space: Workspace, tmp_path: Path
) -> None:
    hub = pushed(space, tmp_path)
    blocks = chain(space.dataset(NAME))
    assert {each.name: each.read_bytes() for each in (hub / "blocks").iterdir()} == {
        str(hash): data for hash, data in blocks
    }
    ends = [19, 39, 44, 49, 54]
    assert {each.name for each in (hub / "packs").iterdir()} == {str(blocks[n][0]) for n in ends}


def test_blocks_come_in_packs(space: Workspace, tmp_path: Path) -> None:
    hub = pushed(space, tmp_path)
    blocks = chain(space.dataset(NAME))
    for hash, _ in blocks[:55]:
        (hub / "blocks" / str(hash)).unlink()
    assert offered(tmp_path) == [data for _, data in blocks]
    assert offered(tmp_path, blocks[30][0]) == [data for _, data in blocks[31:]]


def test_without_packs_single_blocks_come(space: Workspace, tmp_path: Path) -> None:
    shutil.rmtree(pushed(space, tmp_path) / "packs")
    assert offered(tmp_path) == [data for _, data in chain(space.dataset(NAME))]


def test_a_damaged_pack_is_told(space: Workspace, tmp_path: Path) -> None:
    hub = pushed(space, tmp_path)
    hash, _ = chain(space.dataset(NAME))[39]
    file = hub / "packs" / str(hash)
    file.write_bytes(file.read_bytes()[:-1] + b"X")
    with pytest.raises(IntegrityError) as caught:
        offered(tmp_path)
    assert caught.value.code == "E1671"
    assert caught.value.notes == (f"file: packs/{hash}",)


def test_a_server_gives_very_many_blocks_in_packs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "SIZES", (1_000, 50))
    monkeypatch.setattr(client, "_MANY", 100)
    space = project(tmp_path)
    store = create(space, NAME, *(info(str(number)) for number in range(118)))
    with served(tmp_path) as server, Remotes(tmp_path, {}) as remotes:
        there = remotes.dataset(f"odf+{server.address}/{NAME}")
        head = there.head()
        assert head is not None
        with there.offer(head, None) as offer:
            assert [(each.hash, each.data) for each in offer.blocks] == chain(store)
        log = server.log()
    assert log.count(f"GET /{NAME}/packs/") == 2
    assert f"/{NAME}/pull" not in log

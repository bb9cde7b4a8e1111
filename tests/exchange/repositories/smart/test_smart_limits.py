"""How much a transfer may be, and what it costs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odfbuild.errors import RepositoryError
from odfbuild.exchange.repositories.smart import connection
from odfbuild.exchange.repositories.smart.client import SmartDataset
from odfbuild.odf.model import AddData, DataSlice, OffsetInterval
from odfbuild.odf.multihash import Multihash
from tests.exchange.repositories.killable import Killable
from tests.exchange.repositories.serving import project
from tests.exchange.repositories.smart_chains import NAME, in_memory, prices, publication
from tests.exchange.repositories.strict_peer import StrictServer, serving
from tests.store.chains import NOW, SCHEMA, create, info, workspace


def test_61_a_message_that_is_too_long_is_refused_before_it_is_sent(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "MAX_MESSAGE", 1_000)
    store = prices(tmp_path)
    with serving(StrictServer()) as server:
        with pytest.raises(RepositoryError) as error:
            SmartDataset(server.url(NAME)).publish(publication(store))
        assert error.value.code == "E1049"
        server.datasets[NAME] = in_memory(store)
        with (
            pytest.raises(RepositoryError) as error,
            SmartDataset(server.url(NAME)).offer(store.head(), None),
        ):
            pass
        assert error.value.code == "E1049"


def test_61_a_long_message_is_sent_in_frames_that_peers_take(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "MAX_FRAME", 1_000)
    store = prices(tmp_path)
    with serving(StrictServer()) as server:
        SmartDataset(server.url(NAME)).publish(publication(store))
        assert server.datasets[NAME] == in_memory(store)
        assert server.complaints == []


def test_a_head_that_is_not_there_any_more_is_told(tmp_path):
    store = prices(tmp_path)
    gone = Multihash.sha3_256(b"gone")
    with (
        serving(StrictServer(datasets={NAME: in_memory(store)})) as server,
        pytest.raises(RepositoryError),
        SmartDataset(server.url(NAME)).offer(gone, None),
    ):
        pass


@pytest.mark.parametrize(
    ("blocks", "size"),
    [(300, 24 << 20), pytest.param(10_000, 1 << 30, marks=pytest.mark.slow)],
    ids=["some", "10 000 blocks and 1 GB"],
)
def test_long_histories_and_large_objects_need_little_memory(tmp_path, monkeypatch, blocks, size):
    monkeypatch.setenv("ODFBUILD_TEST_PEAK", "1")
    long_chain(tmp_path / "mine", blocks, size)
    project(tmp_path / "hub")
    with Killable() as killable, killable.server(tmp_path / "hub") as address:
        url = f"{address}/net.example.long"
        pushed = int(killable.client("push", url, tmp_path / "mine"))
        pulled = int(killable.client("pull", url, tmp_path / "ours"))
        served = killable.server_peak()
    assert max(pushed, pulled, served) < 300 << 10, (pushed, pulled, served)
    [mine], ours = workspace(tmp_path / "mine").aliases(), workspace(tmp_path / "ours")
    assert ours.dataset("pulled").head() == workspace(tmp_path / "mine").dataset(mine).head()


def long_chain(root: Path, blocks: int, size: int) -> None:
    """A dataset with so many blocks, one of them with an object of that size."""
    store = create(workspace(root), NAME, SCHEMA)
    staged = root / "staged"
    with staged.open("wb") as file:
        for _ in range(size >> 20):
            file.write(os.urandom(1 << 20))
    data = DataSlice(
        logical_hash=Multihash.sha3_256(b"not looked at"),
        physical_hash=Multihash.of_contents(staged),
        offset_interval=OffsetInterval(start=0, end=0),
        size=size,
    )
    store.put_object("data", staged, data.physical_hash)
    events = [info(f"note {number}") for number in range(blocks - 3)]
    store.append(store.head(), [*events, AddData(new_data=data)], NOW)

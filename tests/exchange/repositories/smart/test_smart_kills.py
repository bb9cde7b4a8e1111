"""`kill -9` of either side, at every message, every object and every change of a file.

Nothing half done is ever visible, the next attempt ends with the same bytes, and what was complete
is not transferred again.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from odfbuild.exchange.repositories.smart.client import SmartDataset
from odfbuild.odf.multihash import Multihash
from odfbuild.store.dataset import DatasetStore
from tests.exchange.repositories.killable import TOKEN, Killable
from tests.exchange.repositories.serving import project
from tests.exchange.repositories.smart_chains import in_memory, of_workspace, prices
from tests.exchange.repositories.strict_peer import Chain
from tests.store.chains import workspace

every = pytest.mark.parametrize("stride", [pytest.param(1, marks=pytest.mark.slow), 13])
"""Each step where there is time, and some of them always."""

STEPS = 1_000


@pytest.fixture(scope="module")
def killable():
    with Killable() as made:
        yield made


@pytest.fixture
def source(tmp_path: Path) -> DatasetStore:
    """A dataset of two objects."""
    return prices(tmp_path / "source", 2)


def there(root: Path, name: str) -> Chain | None:
    """What a project has, as it lies in its files."""
    space = workspace(root)
    return of_workspace(space, name) if space.find(name) else None


@every
def test_a_server_that_is_killed_during_a_push_has_all_of_it_or_nothing(
    killable, source, tmp_path, stride
):
    chain = in_memory(source)
    for kill_at in range(0, STEPS, stride):
        root = tmp_path / f"hub-{kill_at}"
        project(root)
        with killable.server(root, kill_at) as address:
            first = killable.client("push", f"{address}/net.example.a", tmp_path / "source")
        assert there(root, "net.example.a") in (None, chain), kill_at
        with killable.server(root) as address:
            again = killable.client("push", f"{address}/net.example.a", tmp_path / "source")
        assert again == "done", kill_at
        assert there(root, "net.example.a") == chain, kill_at
        shutil.rmtree(root)
        if first == "done":
            break
    assert kill_at > 20


@every
def test_a_client_that_is_killed_during_a_push_leaves_nothing_half_done(killable, tmp_path, stride):
    root = tmp_path / "hub"
    project(root)
    with killable.server(root) as address:
        for kill_at in range(0, STEPS, min(stride, 3)):
            name, ours = f"net.example.n{kill_at}", tmp_path / f"ours-{kill_at}"
            chain = in_memory(prices(ours, 2))
            first = killable.client("push", f"{address}/{name}", ours, kill_at)
            head = SmartDataset(f"{address}/{name}", TOKEN).head()
            assert head in (None, Multihash.parse(chain.head))
            assert killable.client("push", f"{address}/{name}", ours) == "done", kill_at
            assert there(root, name) == chain
            if first == "done":
                break
    assert kill_at > 5


@every
def test_a_client_that_is_killed_during_a_pull_leaves_nothing_half_done(
    killable, source, tmp_path, stride
):
    chain, root = in_memory(source), tmp_path / "hub"
    project(root)
    with killable.server(root) as address:
        url = f"{address}/net.example.a"
        assert killable.client("push", url, tmp_path / "source") == "done"
        for kill_at in range(0, STEPS, stride):
            ours = tmp_path / f"ours-{kill_at}"
            first = killable.client("pull", url, ours, kill_at)
            assert there(ours, "pulled") in (None, chain), kill_at
            assert killable.client("pull", url, ours) == "done", kill_at
            assert there(ours, "pulled") == chain, kill_at
            if first == "done":
                break
    assert kill_at > 5


@every
def test_a_server_that_is_killed_during_a_pull_is_asked_again(killable, source, tmp_path, stride):
    chain, root = in_memory(source), tmp_path / "hub"
    project(root)
    with killable.server(root) as address:
        assert killable.client("push", f"{address}/net.example.a", tmp_path / "source") == "done"
    for kill_at in range(0, STEPS, min(stride, 2)):
        ours = tmp_path / f"ours-{kill_at}"
        with killable.server(root, kill_at) as address:
            first = killable.client("pull", f"{address}/net.example.a", ours)
        assert there(ours, "pulled") == (chain if first == "done" else None)
        with killable.server(root) as address:
            assert killable.client("pull", f"{address}/net.example.a", ours) == "done"
        assert there(ours, "pulled") == chain
        if first == "done":
            break
    assert kill_at >= 4

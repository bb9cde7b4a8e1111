"""What tests ask of the shared server `hub`, through a client as strict as the reference."""

from __future__ import annotations

from pathlib import Path

from odfbuild.store.dataset import DatasetStore
from tests.exchange.repositories import strict_peer
from tests.exchange.repositories.serving import ALICE, Served
from tests.exchange.repositories.smart_chains import (
    in_memory,
    of_workspace,
    publication,
    raw_blocks,
)
from tests.exchange.repositories.strict_peer import (
    Chain,
    StrictClient,
    ok,
    pack,
    plan_of,
)
from tests.store.chains import NOW, info


def client(hub: Served, name: str, token: str | None = ALICE) -> StrictClient:
    return StrictClient(hub.url(name), token)


def on(hub: Served, name: str) -> Chain:
    """What the server's project has."""
    return of_workspace(hub.space, name)


def there(hub: Served, store: DatasetStore, name: str) -> None:
    """Put a dataset with its objects into the server's project, as if it had been pushed."""
    client(hub, name).push(in_memory(store))


def shorter(store: DatasetStore, blocks: int) -> DatasetStore:
    """The same dataset with another block in place of its newest ones."""
    onto = raw_blocks(store)[blocks - 1].hash
    store.append(store.head(), [info("another history")], NOW, onto=onto)
    return store


def bearer(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def publication_of(root: Path):
    return publication(DatasetStore(root / "chains" / "net.example.prices", "x"))


def begin_push(frames: strict_peer.Frames, chain: Chain, current: str | None = None) -> None:
    blocks = chain.behind(current)
    frames.send(
        {
            "current_head": current,
            "transfer_plan": plan_of(blocks),
            "force_update_if_diverged": False,
            "visibility_for_created_dataset": "Private",
        }
    )
    ok(frames.receive())
    frames.send({"new_blocks": pack(blocks)})
    ok(frames.receive())

"""Signed heads on `odfbuild serve`, and what our own client tells of it.

Numbers in names are those of the scenarios in the table of docs/compatibility.md.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from odfbuild.errors import IntegrityError, RepositoryError
from odfbuild.exchange.repositories.contract import Publication
from odfbuild.exchange.repositories.outcome import TransferStatus
from odfbuild.exchange.repositories.pull import Pull, pull
from odfbuild.exchange.repositories.push import Push, push
from odfbuild.exchange.repositories.signing import sign_head
from odfbuild.exchange.repositories.smart.client import SmartDataset
from odfbuild.odf.signed_head import FILE, SignedHead
from odfbuild.store.dataset import DatasetStore
from tests.exchange.repositories.hub import bearer, client, on, there
from tests.exchange.repositories.serving import ALICE
from tests.exchange.repositories.smart_chains import (
    grow,
    in_memory,
    of_workspace,
    prices,
    publication,
)
from tests.store.chains import workspace


def test_a_push_brings_the_signature_of_the_head(hub, name, tmp_path):
    store, signed = signed_prices(tmp_path)
    dataset = SmartDataset(hub.url(name), ALICE)
    dataset.publish(replace(publication(store), info={FILE: signed}))
    assert dataset.info(FILE) == signed
    assert httpx.get(hub.url(f"{name}/info/{FILE}")).content == signed


def signed_prices(root: Path) -> tuple[DatasetStore, bytes]:
    store = prices(root)
    space = workspace(root)
    signed = sign_head(space, store.name, space.projection(store.name))
    assert signed is not None
    return store, signed.encode()


def test_a_signature_can_come_after_the_head(hub, name, tmp_path):
    store, signed = signed_prices(tmp_path)
    there(hub, store, name)
    dataset = SmartDataset(hub.url(name), ALICE)
    assert dataset.info(FILE) is None
    only = Publication(expected=store.head(), blocks=(), objects=(), files={}, info={FILE: signed})
    dataset.publish(only)
    assert dataset.info(FILE) == signed
    for wrong in (b"{}", signed.replace(b"2", b"3"), bytes(5_000)):
        answer = httpx.put(hub.url(f"{name}/info/{FILE}"), content=wrong, headers=bearer(ALICE))
        assert answer.status_code in (400, 413)
    assert httpx.put(hub.url(f"{name}/info/alias"), content=b"x", headers=bearer(ALICE)).is_error
    assert dataset.info(FILE) == signed


def test_a_forged_signature_makes_the_push_fail(hub, name, tmp_path):
    store, _ = signed_prices(tmp_path / "a")
    _, other = signed_prices(tmp_path / "b")
    with pytest.raises(RepositoryError) as error:
        SmartDataset(hub.url(name), ALICE).publish(replace(publication(store), info={FILE: other}))
    assert "signature" in error.value.message
    assert client(hub, name).head() is None


def test_a_server_that_has_the_key_signs_what_it_serves(hub):
    signed = SignedHead.parse(httpx.get(hub.url(f"acc/prices/info/{FILE}")).content)
    assert signed.holds
    assert signed.statement.head == hub.space.dataset("acc/prices").head()


def test_an_object_that_is_damaged_here_is_not_sent_to_its_end(hub, name, tmp_path):
    store = prices(tmp_path, 1)
    pushed = publication(store)
    [file] = pushed.files.values()
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    with pytest.raises(IntegrityError) as error:
        SmartDataset(hub.url(name), ALICE).publish(pushed)
    assert error.value.code == "E0813"
    assert client(hub, name).head() is None


def test_49_50_two_projects_share_a_dataset_through_the_server(hub, name, tmp_path):
    """With `push` and `pull` as the program runs them: new, grown, up to date, another dataset."""
    mine, ours = tmp_path / "mine", tmp_path / "ours"
    store = prices(mine)
    address = f"{hub.url(name)}"

    def pushed(root: Path):
        [alias] = workspace(root).aliases()
        wanted = Push(name=alias, address=address, open=lambda: SmartDataset(address, ALICE))
        [made] = push(workspace(root), [wanted])
        return made

    def pulled():
        wanted = Pull(
            name="prices", address=address, reference=address, open=lambda: SmartDataset(address)
        )
        [made] = pull(workspace(ours), [wanted])
        return made

    assert pushed(mine).status is TransferStatus.NEW
    assert (pulled().status, pulled().status) == (TransferStatus.NEW, TransferStatus.UP_TO_DATE)
    grow(store, mine, 2)
    assert pushed(mine).blocks == 2
    assert pulled().blocks == 2
    assert of_workspace(workspace(ours), "prices") == in_memory(store)
    prices(tmp_path / "other")
    assert pushed(tmp_path / "other").error.code == "E1029"
    assert on(hub, name) == in_memory(store)

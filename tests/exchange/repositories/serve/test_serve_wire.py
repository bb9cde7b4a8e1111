"""What peers of `odfbuild serve` may send, in which order, and when a transfer is cut off.

Numbers in names are those of the scenarios in the table of docs/compatibility.md.
"""

from __future__ import annotations

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from odfbuild.errors import StaleHeadError
from odfbuild.exchange.repositories.smart.client import SmartDataset
from odfbuild.store.dataset import DatasetStore
from tests.exchange.repositories import strict_peer
from tests.exchange.repositories.hub import begin_push, client, on, there
from tests.exchange.repositories.serving import ALICE
from tests.exchange.repositories.smart_chains import (
    in_memory,
    note,
    objects_of,
    prices,
    publication,
    raw_blocks,
    with_shared_checkpoint,
)
from tests.exchange.repositories.strict_peer import (
    Chain,
    Complaint,
    Gone,
    ok,
    pack,
    plan_of,
    reference,
)
from tests.store.chains import NOW, info


def test_59_a_ping_is_answered_and_none_is_sent(hub, name, tmp_path):
    there(hub, prices(tmp_path), name)
    with client(hub, name).open("pull") as frames:
        frames.frame(9, b"are you there")
        assert frames._exactly(2 + 13) == b"\x8a\x0dare you there"
        frames.send({"force_update_if_diverged": False})
        ok(frames.receive())


@pytest.mark.parametrize("what", ["a name with ./", "a link", "other bytes", "a bomb", "no gzip"])
def test_60_a_wrong_archive_is_refused_before_anything_is_stored(hub, name, tmp_path, what):
    from tests.exchange.repositories.smart.test_smart_client import WRONG

    chain = in_memory(prices(tmp_path))
    wrong = WRONG[what](chain)
    with client(hub, name).open("push") as frames, pytest.raises(Gone) as gone:
        frames.send(
            {
                "current_head": None,
                "transfer_plan": {**plan_of(chain.blocks), "num_blocks": wrong["num_blocks"]},
                "force_update_if_diverged": False,
                "visibility_for_created_dataset": "Private",
            }
        )
        ok(frames.receive())
        frames.send({"new_blocks": wrong})
        frames.receive()
    assert gone.value.code == 1011
    error = json.loads(gone.value.reason)["Err"]["Internal"]
    assert error["phase"] == {"Push": "MetadataRequest"}
    assert "archive" in error["error_message"]
    assert not (hub.root / "chains" / name).exists()


def test_60_plan_and_archive_have_to_agree(hub, name, tmp_path):
    chain = in_memory(prices(tmp_path))
    with client(hub, name).open("push") as frames, pytest.raises(Gone) as gone:
        frames.send(
            {
                "transfer_plan": {**plan_of(chain.blocks), "num_blocks": 9},
                "force_update_if_diverged": False,
                "visibility_for_created_dataset": "Private",
            }
        )
        ok(frames.receive())
        frames.send({"new_blocks": pack(chain.blocks)})
        frames.receive()
    assert "differ" in gone.value.reason


def test_56_a_chain_that_breaks_a_rule_is_refused(hub, name, tmp_path):
    from odfbuild.odf.flatbuffers.form import encode_block
    from odfbuild.odf.model import MetadataBlock

    store = prices(tmp_path)
    chain = in_memory(store)
    broken = encode_block(
        MetadataBlock(
            system_time=NOW,
            prev_block_hash=store.head(),
            sequence_number=9,
            event=info("a gap in the numbers"),
        )
    )
    chain.blocks.append((strict_peer.sha3(broken), broken))
    with pytest.raises(Gone) as gone:
        client(hub, name).push(chain)
    assert "breaks a rule" in gone.value.reason
    assert not (hub.root / "chains" / name).exists()


def test_62_of_two_pushes_onto_one_head_one_wins(hub, name, tmp_path):
    store = prices(tmp_path / "a", 0)
    there(hub, store, name)
    head = str(store.head())
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    other = DatasetStore(tmp_path / "b" / "chains" / store.name, store.name)
    note(store, "mine")
    note(other, "theirs")
    ready = threading.Barrier(2)

    def push(chain: Chain) -> str:
        with client(hub, name).open("push") as frames:
            begin_push(frames, chain, head)
            frames.send({"object_files": [], "is_truncated": False})
            ok(frames.receive())
            frames.send({"details": "Complete"})
            ready.wait()
            frames.send({})
            try:
                assert frames.receive() == {}
            except Gone as gone:
                return gone.reason
        return "won"

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(push, [in_memory(store), in_memory(other)]))
    assert outcomes.count("won") == 1
    assert sum("the head moved" in each for each in outcomes) == 1
    winner = (store, other)[outcomes.index("won")]
    assert on(hub, name) == in_memory(winner)


def test_62_our_client_is_told_that_another_writer_won(hub, name, tmp_path):
    store = prices(tmp_path / "a", 0)
    there(hub, store, name)
    before = store.head()
    note(store, "mine")
    dataset = SmartDataset(hub.url(name), ALICE)
    mine = publication(store, before)
    dataset.publish(mine)
    with pytest.raises(StaleHeadError):
        dataset.publish(mine)


def test_63_a_push_without_its_objects_is_not_committed(hub, name, tmp_path):
    chain = in_memory(prices(tmp_path))
    with pytest.raises(Gone) as gone:
        client(hub, name).push(chain, upload=False)
    assert "were not sent" in gone.value.reason
    assert client(hub, name).head() is None


def test_63_an_object_with_other_bytes_is_not_taken(hub, name, tmp_path):
    chain = in_memory(prices(tmp_path, 1))
    [(key, data)] = chain.objects.items()
    chain.objects[key] = data[:-1] + b"!"
    with pytest.raises(Complaint, match=r"PUT 400 .*do not hash"):
        client(hub, name).push(chain)
    chain.objects[key] = data + b"more"
    with pytest.raises(Complaint, match=r"PUT 400 .*Content-Length"):
        client(hub, name).push(chain)
    assert client(hub, name).head() is None
    left = [each for each in (hub.root / ".odfbuild").rglob("*") if name in str(each)]
    assert not [each for each in left if each.is_file() and each.name.startswith(".pending")]


def test_63_objects_that_no_push_has_announced_are_not_taken(hub, name, tmp_path):
    data = b"anything"
    path = f"data/{strict_peer.sha3(data)}"
    assert client(hub, name).request("PUT", path, data)[0] == 409
    chain = in_memory(prices(tmp_path))
    with client(hub, name).open("push") as frames, pytest.raises(Gone) as gone:
        begin_push(frames, chain)
        strange = reference("data", strict_peer.sha3(data), len(data))
        frames.send({"object_files": [strange], "is_truncated": False})
        frames.receive()
    assert "in none of the blocks" in gone.value.reason


def test_65_a_checkpoint_of_several_blocks_is_asked_for_once(hub, name, tmp_path):
    chain = in_memory(with_shared_checkpoint(tmp_path))
    client(hub, name).push(chain)
    assert on(hub, name) == chain
    got = Chain()
    client(hub, name).pull(got)
    assert got == chain


@pytest.mark.parametrize("cut", range(7))
def test_66_a_push_that_is_cut_at_any_step_converges_when_it_is_repeated(hub, name, tmp_path, cut):
    chain = in_memory(prices(tmp_path))
    with pytest.raises(Gone):
        client(hub, name).push(chain, cut=cut)
    assert client(hub, name).head() is None, "a head is there before all of it is"
    client(hub, name).push(chain)
    assert on(hub, name) == chain
    puts = [line for line in hub.log().splitlines() if f"PUT /{name}/" in line]
    assert len(puts) == 2


def test_67_errors_fit_into_a_close_even_when_names_are_long(hub, tmp_path):
    name = f"net.example.{'long-name-' * 8}x"
    chain = in_memory(prices(tmp_path))
    with pytest.raises(Gone) as gone:
        client(hub, name).push(chain, upload=False)
    assert json.loads(gone.value.reason)["Err"]["Internal"]["phase"] == {"Push": "CompleteRequest"}


def test_a_peer_of_the_specification_is_understood(hub, name, tmp_path):
    """Names in camelCase, an archive in base64, and no fields that only the reference has."""
    import base64

    store = prices(tmp_path, 0)
    chain = in_memory(store)
    offered = {"Sec-WebSocket-Protocol": "odf/smart-transfer-protocol/v1"}
    with client(hub, name).open("push", **offered) as frames:
        frames.send({"datasetId": "x", "sizeEstimation": {"numBlocks": 1, "numObjects": 0}})
        ok(frames.receive())
        payload = base64.b64encode(bytes(pack(chain.blocks)["payload"])).decode()
        frames.send(
            {
                "newBlocks": {
                    "objectsCount": 1,
                    "objectType": "MetadataBlock",
                    "mediaType": "application/tar+gzip",
                    "encoding": "base64",
                    "payload": payload,
                }
            }
        )
        ok(frames.receive())
        frames.send({"objectFiles": []})
        ok(frames.receive())
        frames.send({"details": "Complete"})
        frames.send({})
        assert frames.receive() == {}
    assert on(hub, name) == chain


def test_a_subprotocol_of_others_is_not_taken(hub, name, tmp_path):
    there(hub, prices(tmp_path), name)
    for offered in ("chat", "chat, superchat", "a/b;c"):
        with client(hub, name).open("pull", **{"Sec-WebSocket-Protocol": offered}) as frames:
            frames.send({"force_update_if_diverged": False})
            ok(frames.receive())


def test_17_a_dataset_of_an_account(hub, name, tmp_path):
    chain, got = in_memory(prices(tmp_path)), Chain()
    client(hub, f"acc/{name}").push(chain)
    assert on(hub, f"acc/{name}") == chain
    assert client(hub, f"ACC/{name}", None).pull(got) == 4
    assert got == chain


def test_objects_may_come_in_pages(hub, name, tmp_path, monkeypatch):
    monkeypatch.setattr("odfbuild.exchange.repositories.smart.client._PAGE", 2)
    store = prices(tmp_path, 5)
    SmartDataset(hub.url(name), ALICE).publish(publication(store))
    assert on(hub, name) == in_memory(store)


def test_our_client_and_our_server_speak_with_each_other(hub, name, tmp_path):
    store = with_shared_checkpoint(tmp_path / "a")
    dataset = SmartDataset(hub.url(name), ALICE)
    moved: list[int] = []
    dataset.publish(publication(store), moved.append)
    assert on(hub, name) == in_memory(store)
    assert sum(moved) == sum(map(len, in_memory(store).objects.values()))
    before = store.head()
    grow_with(store, tmp_path)
    dataset.publish(publication(store, before))
    reader = SmartDataset(hub.url(name))
    with reader.offer(reader.head(), before) as offer:
        objects = [each for block in offer.blocks for each in objects_of(block)]
        offer.download(objects, tmp_path / "got")
    assert offer.blocks == tuple(raw_blocks(store, before))


def grow_with(store: DatasetStore, root: Path) -> None:
    note(store, "more")

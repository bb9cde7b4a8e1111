"""How a server ends, whom it lets in, and what it does with peers that are slow or too many."""

from __future__ import annotations

import signal
import socket
import sys
import time
from pathlib import Path

import httpx
import pytest

from odfbuild.errors import EnvironmentProblem, Errors
from odfbuild.exchange.repositories.serve.rights import Rights
from odfbuild.exchange.repositories.serve.site import Site
from odfbuild.exchange.repositories.smart.client import SmartDataset
from odfbuild.exchange.repositories.smart.messages import Refused
from odfbuild.project.config import load_config
from odfbuild.project.settings.serving import Access
from tests.exchange.repositories.serving import ALICE, Served, project, served
from tests.exchange.repositories.smart_chains import in_memory, of_workspace, prices, publication
from tests.exchange.repositories.strict_peer import (
    Chain,
    Complaint,
    Gone,
    StrictClient,
    objects_of,
    ok,
    pack,
    plan_of,
    reference,
)
from tests.store.chains import create, info

NAME = "net.example.prices"

TIGHT = f"""\
kind: Machine
version: 1
content:
  serve:
    idleSeconds: 3
    maxConnections: 8
    graceSeconds: 3
    access: [{{token: {ALICE}, name: alice, write: ["*"]}}, {{read: ["*"]}}]
"""


@pytest.fixture(scope="module")
def tight(tmp_path_factory: pytest.TempPathFactory):
    with served(tmp_path_factory.mktemp("tight") / "hub", access=TIGHT) as server:
        create(server.space, NAME, info("of the server"))
        yield server


def connect(server: Served) -> socket.socket:
    host, port = server.address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), 10)


def begin(frames, chain: Chain) -> None:
    frames.send(
        {
            "current_head": None,
            "transfer_plan": plan_of(chain.blocks),
            "force_update_if_diverged": False,
            "visibility_for_created_dataset": "Private",
        }
    )
    ok(frames.receive())
    frames.send({"new_blocks": pack(chain.blocks)})
    ok(frames.receive())


# --- The end ---


def test_a_transfer_under_way_finishes_before_the_server_ends(tmp_path):
    chain = in_memory(prices(tmp_path / "a"))
    with served(tmp_path / "hub") as hub:
        client = StrictClient(hub.url("net.example.a"), ALICE)
        with client.open("push") as frames:
            begin(frames, chain)
            hub.process.send_signal(signal.SIGTERM)
            while not httpx.get(hub.url("system/health")).json()["draining"]:
                time.sleep(0.02)
            with pytest.raises(Complaint, match=r"^503 "), client.open("push"):
                pass
            newest_first = [each for _, data in reversed(chain.blocks) for each in objects(data)]
            frames.send({"object_files": newest_first, "is_truncated": False})
            for each in ok(frames.receive())["object_transfer_strategies"]:
                client.send_object(each, chain)
            frames.send({"details": "Complete"})
            frames.send({})
            assert frames.receive() == {}
            frames.close()
        assert hub.process.wait(60) == 0
        assert of_workspace(hub.space, "net.example.a") == chain


def objects(data: bytes) -> list[dict]:
    return [reference(*each) for each in objects_of(data)]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_idle_server_ends_at_the_first_signal(tmp_path, sent):
    with served(tmp_path / "hub") as hub:
        began = time.monotonic()
        assert hub.stop(sent) == 0
        assert time.monotonic() - began < 60


def test_a_second_signal_ends_it_whatever_is_under_way(tmp_path):
    chain = in_memory(prices(tmp_path / "a"))
    with (
        served(tmp_path / "hub") as hub,
        StrictClient(hub.url("net.example.a"), ALICE).open("push") as frames,
    ):
        begin(frames, chain)
        hub.process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert hub.process.poll() is None
        hub.process.send_signal(signal.SIGINT)
        assert hub.process.wait(60) is not None


def test_a_transfer_that_takes_too_long_is_given_up_at_the_end(tmp_path):
    with (
        served(tmp_path / "hub", access=TIGHT.replace("idleSeconds: 3", "idleSeconds: 600")) as hub,
        StrictClient(hub.url("net.example.a"), ALICE).open("push"),
    ):
        began = time.monotonic()
        assert hub.stop() == 0
        assert 2 < time.monotonic() - began < 300


# --- Limits ---


def test_a_connection_that_asks_nothing_is_closed(tight):
    with connect(tight) as wire:
        wire.sendall(b"GET /info HTT")
        assert wire.recv(100) == b""


def test_a_dialogue_in_which_nothing_is_said_is_closed(tight):
    with (
        StrictClient(tight.url(NAME), ALICE).open("push") as frames,
        pytest.raises(Gone) as gone,
    ):
        frames.receive()
    assert gone.value.code == 1011
    assert "no message came" in gone.value.reason


def test_an_upload_that_stops_is_given_up(tight, tmp_path):
    chain = in_memory(prices(tmp_path, 1))
    client = StrictClient(tight.url("net.example.slow"), ALICE)
    [((kind, hash), data)] = chain.objects.items()
    with client.open("push") as frames:
        begin(frames, chain)
        frames.send(
            {
                "object_files": [
                    {"object_type": "DataSlice", "physical_hash": hash, "size": len(data)}
                ],
                "is_truncated": False,
            }
        )
        ok(frames.receive())
        with connect(tight) as wire:
            wire.sendall(
                f"PUT /net.example.slow/{kind}/{hash} HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {ALICE}\r\nContent-Length: {len(data)}\r\n\r\n".encode()
                + data[:10]
            )
            assert wire.recv(100).split()[1] == b"408"
    assert not list((tight.root / ".odfbuild").rglob(".pending-*"))


def test_more_connections_than_allowed_are_answered_503(tight):
    time.sleep(4)  # until those of other tests are gone
    waiting = [connect(tight) for _ in range(8)]
    try:
        assert httpx.get(tight.url("info")).status_code == 503
    finally:
        for each in waiting:
            each.close()
    for _ in range(50):
        if httpx.get(tight.url("info")).status_code == 200:
            return
        time.sleep(0.1)
    raise AssertionError("the server does not recover")


def test_a_server_that_cannot_write_says_so_and_goes_on(tmp_path):
    with served(tmp_path / "hub") as hub:
        (hub.root / "chains").write_text("no folder")
        client = StrictClient(hub.url("net.example.a"), ALICE)
        with pytest.raises(Gone) as gone:
            client.push(in_memory(prices(tmp_path / "a")))
        assert (gone.value.code, "CompleteRequest" in gone.value.reason) == (1011, True)
        assert gone.value.reason in hub.log()
        (hub.root / "chains").unlink()
        (hub.root / "odfbuild.yaml").write_text("no project")
        with pytest.raises(Complaint, match="InitialRequest"):
            client.push(in_memory(prices(tmp_path / "b")))
        assert httpx.get(hub.url("system/health")).status_code == 200


# --- Who is let in ---


def test_without_rules_this_machine_reads_and_nobody_writes(tmp_path):
    with served(tmp_path / "hub", access=None) as hub:
        create(hub.space, NAME, info("of the server"))
        assert StrictClient(hub.url(NAME)).head()
        with pytest.raises(Complaint, match=r"^401 "):
            StrictClient(hub.url("net.example.a")).push(in_memory(prices(tmp_path / "a")))


def test_a_token_of_the_environment_reads_and_writes_all_but_replaces_nothing(tmp_path):
    token = {"ODFBUILD_SERVE_TOKEN": "token-in-the-environment"}
    with served(tmp_path / "hub", "--host", "0.0.0.0", access=None, env=token) as hub:
        url = hub.url("net.example.a").replace("0.0.0.0", "127.0.0.1")
        dataset = SmartDataset(url, token["ODFBUILD_SERVE_TOKEN"])
        dataset.publish(publication(prices(tmp_path / "a")))
        assert dataset.head() == hub.space.dataset("net.example.a").head()
        assert SmartDataset(url).head() is None


def test_all_wrong_rules_are_told_at_once():
    with pytest.raises(Errors) as errors:
        Rights(
            [
                Access(token="short", read=("*",)),
                Access(token="long-enough-for-everybody"),
                Access(write=("*",)),
                Access(token="with a space in the middle", read=("*",)),
            ]
        )
    assert [each.code for each in errors.value.errors] == ["E1052"] * 4


# --- Without the libraries ---


def test_without_the_extras_the_way_out_is_told(tmp_path, monkeypatch):
    from odfbuild.exchange.repositories.serve.server import Listening, serve
    from odfbuild.project.config import load_config

    project(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(EnvironmentProblem) as error:
        patch.setitem(sys.modules, "uvicorn", None)
        serve(load_config(tmp_path), Listening("127.0.0.1", 0), print, print)
    assert error.value.code == "E0903"
    assert "odfbuild[serve]" in error.value.help
    with monkeypatch.context() as patch, pytest.raises(EnvironmentProblem) as error:
        patch.setitem(sys.modules, "websockets.sync.client", None)
        store = prices(tmp_path / "a")
        SmartDataset("odf+http://127.0.0.1:9/prices").publish(publication(store))
    assert error.value.code == "E0903"
    assert "odfbuild[share]" in error.value.help


def test_a_history_too_long_for_a_message_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("odfbuild.exchange.repositories.serve.site.MOST_BLOCKS", 3)
    project(tmp_path / "hub")
    site = Site(load_config(tmp_path / "hub"))
    store = create(site.workspace, NAME, *(info(str(number)) for number in range(4)))
    seed = store.seed(store.head())
    second = next(hash for hash, block in store.walk(store.head()) if block.sequence_number == 1)
    assert len(site.blocks(store, second, None, force=False)) == 3
    with pytest.raises(Refused) as refused:
        site.blocks(store, seed, None, force=False)
    assert "4 new blocks, and a message of this protocol holds 3" in str(refused.value.failure)

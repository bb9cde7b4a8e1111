"""What `odfbuild serve` refuses, hides and bounds.

Numbers in names are those of the scenarios in the table of docs/compatibility.md.
"""

from __future__ import annotations

import gzip
import socket
from pathlib import Path

import httpx
import pytest

from tests.exchange.repositories.hub import bearer, client, on, shorter, there
from tests.exchange.repositories.serving import ALICE, BOB, project, served
from tests.exchange.repositories.smart_chains import (
    in_memory,
    prices,
)
from tests.exchange.repositories.strict_peer import (
    Complaint,
    Gone,
    batch,
    objects_of,
    ok,
    plan_of,
)
from tests.store.chains import create, info


def test_a_project_that_builds_a_dataset_takes_no_push_of_it(tmp_path):
    root = tmp_path / "hub"
    with served(root) as hub:
        (root / "datasets").mkdir()
        (root / "datasets" / "mine.yaml").write_text(
            "kind: DatasetSnapshot\nversion: 1\ncontent:\n  name: net.example.mine\n  kind: Root\n"
            "  metadata: []\n"
        )
        with pytest.raises(Complaint, match="builds that dataset itself"):
            client(hub, "net.example.MINE").push(in_memory(prices(tmp_path / "a")))
        assert hub.stop() == 0


@pytest.mark.parametrize(
    "message",
    [
        '{"current_head": 5}',
        "[]",
        "no json",
        "[" * 100_000,
        '{"transfer_plan": {"num_blocks": -1, "num_objects": 0}}',
        '{"transfer_plan": {"num_blocks": true, "num_objects": 0}}',
    ],
    ids=range(6),
)
def test_messages_that_are_none_end_the_dialogue_with_a_reason(hub, name, message):
    with client(hub, name).open("push") as frames, pytest.raises(Gone) as gone:
        frames.frame(1, message.encode())
        frames.receive()
    assert gone.value.code == 1011


def test_bytes_where_text_is_due_end_the_dialogue(hub, name):
    with client(hub, name).open("push") as frames, pytest.raises(Gone) as gone:
        frames.frame(2, b"{}")
        frames.receive()
    assert gone.value.code == 1011


def test_61_a_message_of_more_than_64_mib_is_not_read(hub, name):
    with client(hub, name).open("push") as frames, pytest.raises((Gone, OSError)):
        frames.write(b"\x81\xff" + (65 << 20).to_bytes(8, "big") + bytes(4))
        frames.receive()
    assert httpx.get(hub.url("system/health")).status_code == 200


def test_links_in_a_project_show_no_files_of_the_machine(hub, tmp_path):
    store = create(hub.space, "net.example.linked", info("from Git"))
    hash = "f1620" + "cd" * 32
    (store.path / "data").mkdir(exist_ok=True)
    (store.path / "data" / hash).symlink_to("/etc/passwd")
    (store.path / "info" / "alias").unlink()
    (store.path / "info" / "alias").symlink_to("/etc/passwd")
    (store.path / "blocks" / hash).symlink_to("/etc/passwd")
    for path in (f"data/{hash}", "info/alias", f"blocks/{hash}"):
        assert httpx.get(hub.url(f"net.example.linked/{path}")).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "../../etc/passwd",
        "%2e%2e/%2e%2e/etc/passwd",
        "net.example.x/../../data/x",
        "acc/prices/data/..%2f..%2frefs%2fhead",
        "acc/prices/info/..%2f..%2fodfbuild.yaml",
        "acc/prices/refs/head%00",
        "%00/refs/head",
    ],
)
def test_paths_lead_nowhere_but_to_datasets(hub, path):
    host, port = hub.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as wire:
        wire.sendall(f"GET /{path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        answer = wire.recv(4096)
    assert answer.split()[1] in (b"400", b"404")
    assert b"root:" not in answer
    assert b"kind: Project" not in answer


def test_another_name_for_this_machine_is_not_answered(hub):
    """A page in a browser must not read what is served to this machine alone (DNS rebinding)."""
    for headers in ({"Host": "evil.example"}, {"Host": "127.0.0.1.evil.example:80"}):
        assert httpx.get(hub.url("datasets"), headers=headers).status_code == 421
    with (
        pytest.raises(Complaint, match=r"^421 "),
        client(hub, "acc/prices").open("pull", Host="evil.example"),
    ):
        pass


def test_the_access_log_holds_no_token_and_no_control_characters(hub):
    host, port = hub.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as wire:
        wire.sendall(
            f"GET /x\x1b[31m?token={ALICE} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
        )
        wire.recv(4096)
    httpx.get(hub.url("%1b%5b31m/refs/head"), headers=bearer(ALICE))
    assert ALICE not in hub.log()
    assert "\x1b" not in hub.log()
    assert " alice GET " in hub.log()


def test_a_decompression_bomb_does_not_fill_the_memory(hub, name):
    payload = gzip.compress(bytes(300 << 20), 9)
    with client(hub, name).open("push") as frames, pytest.raises(Gone):
        frames.send(
            {
                "transfer_plan": plan_of([]) | {"num_blocks": 1},
                "force_update_if_diverged": False,
                "visibility_for_created_dataset": "Private",
            }
        )
        ok(frames.receive())
        frames.send({"new_blocks": batch(1, payload)})
        frames.receive()
    status = Path(f"/proc/{hub.process.pid}/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    assert int(peak.split()[1]) < 500_000


def test_a_signature_of_a_dataset_that_is_not_there_is_answered_404(hub, name):
    url = hub.url(f"{name}/info/signed-head")
    answer = httpx.put(url, content=b"anything", headers=bearer(ALICE))
    assert answer.status_code == 404


@pytest.mark.parametrize("version", ["1" * 5_000, "-" + "1" * 5_000, "\u0661".encode().hex(), "+1"])
@pytest.mark.parametrize("verb", ["pull", "push"])
def test_a_version_of_any_length_is_answered_400(hub, name, verb, version):
    create(hub.space, f"{name}.{verb}", info("there"))
    peer = client(hub, f"{name}.{verb}")
    with pytest.raises(Complaint, match=r"^400 "), peer.open(verb, version):
        pass


@pytest.mark.parametrize("http", ["1.1", "1.0"])
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "acc/prices/refs/head"), ("PUT", "acc/prices/info/signed-head")]
)
def test_a_request_with_two_ends_is_refused_and_nothing_behind_it_is_read(hub, method, path, http):
    """RFC 9112, 6.1: a proxy may take what follows for part of it."""
    host = hub.address.removeprefix("http://")
    length = "Content-Length: 5\r\n" if http == "1.1" else ""
    first = (
        f"{method} /{path} HTTP/{http}\r\nHost: {host}\r\n{length}"
        "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    )
    second = f"GET /system/health HTTP/1.1\r\nHost: {host}\r\n\r\n"
    name, port = host.split(":")
    with socket.create_connection((name, int(port)), 60) as wire:
        wire.sendall((first + second).encode())
        answer = b""
        while more := wire.recv(4096):
            answer += more
    assert answer.split()[1] == b"400"
    assert answer.count(b"HTTP/1.1") == 1


@pytest.fixture
def stored(tmp_path):
    """A server whose project has a storage, in it a dataset for all and a longer one for few."""
    root = tmp_path / "hub"
    project(root)
    text = (root / "odfbuild.yaml").read_text()
    (root / "odfbuild.yaml").write_text(f"{text}  storage: ./shared\n")
    with served(root) as hub:
        client(hub, "net.example.open").push(in_memory(prices(tmp_path / "a", 2)))
        client(hub, "secret.closed").push(in_memory(prices(tmp_path / "b", 3)))
        yield hub


def test_an_object_in_the_storage_is_given_under_the_name_of_its_own_dataset_only(stored):
    """A storage keeps the objects of all datasets under their hashes."""
    seen = on(stored, "net.example.open").objects
    hidden = set(on(stored, "secret.closed").objects) - set(seen)
    assert len(seen) == 2
    assert len(hidden) == 1
    for kind, hash in hidden:
        asked = f"{kind}/{hash}"
        assert httpx.get(stored.url(f"net.example.open/{asked}")).status_code == 404
        assert not (stored.root / "chains/net.example.open" / asked).exists()
        assert httpx.get(stored.url(f"secret.closed/{asked}")).status_code == 404
        own = httpx.get(stored.url(f"secret.closed/{asked}"), headers=bearer(ALICE))
        assert own.status_code == 200
    for kind, hash in seen:
        assert httpx.get(stored.url(f"net.example.open/{kind}/{hash}")).status_code == 200


def test_an_object_in_the_storage_does_not_become_that_of_a_push_which_did_not_send_it(
    stored, tmp_path
):
    """Its hash alone, which stands in chains, would give its bytes to whoever may push."""
    chain = in_memory(prices(tmp_path / "c", 3))
    assert set(chain.objects) == set(on(stored, "secret.closed").objects)
    bob = client(stored, "net.example.bob.a", BOB)
    with pytest.raises(Gone) as gone:
        bob.push(chain, upload=False)
    assert "objects were not sent" in gone.value.reason
    assert stored.space.find("net.example.bob.a") is None
    bob.push(chain)
    assert on(stored, "net.example.bob.a").blocks == chain.blocks


def test_an_object_that_no_block_of_the_head_names_is_not_given(hub, name, tmp_path):
    """Such as one that only a branch has, or a history that was replaced."""
    store = prices(tmp_path)
    there(hub, store, name)
    before = on(hub, name)
    [(kind, last), *_] = list(before.objects)[::-1]
    assert httpx.get(hub.url(f"{name}/{kind}/{last}")).status_code == 200
    replaced = in_memory(shorter(store, 2))
    client(hub, name).push(replaced, current=before.head, force=True)
    gone = set(before.objects) - {key for _, data in replaced.blocks for key in _keys(data)}
    assert gone
    for kind, hash in gone:
        assert (hub.root / "chains" / name / kind / hash).exists()
        assert httpx.get(hub.url(f"{name}/{kind}/{hash}")).status_code == 404


def _keys(data):
    return [(kind, hash) for kind, hash, _ in objects_of(data)]

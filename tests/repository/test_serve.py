"""`odfbuild serve`, asked by peers that are as strict as the reference, and by its own client.

Numbers in names are those of the scenarios in the table of docs/compatibility.md.
"""

from __future__ import annotations

import gzip
import json
import shutil
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path

import httpx
import pytest
from multiformats import multibase

from odfbuild.errors import IntegrityError, RepositoryError, StaleHeadError
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.signed_head import FILE, SignedHead
from odfbuild.repository.contract import Publication
from odfbuild.repository.outcome import TransferStatus
from odfbuild.repository.pull import Pull, pull
from odfbuild.repository.push import Push, push
from odfbuild.repository.signing import sign_head
from odfbuild.repository.smart.client import SmartDataset, is_smart, name_of
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.garbage import find_scratch, remove
from tests.repository import strict_peer
from tests.repository.serving import ALICE, BOB, Served, served
from tests.repository.smart_chains import (
    grow,
    in_memory,
    note,
    objects_of,
    of_workspace,
    prices,
    publication,
    raw_blocks,
    with_shared_checkpoint,
)
from tests.repository.strict_peer import (
    Chain,
    Complaint,
    Gone,
    StrictClient,
    batch,
    ok,
    pack,
    plan_of,
    reference,
)
from tests.store.chains import NOW, create, info, workspace

_names = (f"net.example.n{number}" for number in count())


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory):
    with served(tmp_path_factory.mktemp("serve") / "hub") as server:
        create(server.space, "secret.prices", info("for those who may"))
        create(server.space, "other.prices", info("for nobody but alice"))
        create(server.space, "acc/prices", info("of an account"))
        yield server


@pytest.fixture
def name() -> str:
    return next(_names)


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


# --- Push ---


@pytest.mark.parametrize("slices", [2, 0], ids=["1 with data", "3 the seed alone"])
def test_1_3_a_pushed_dataset_is_there_with_the_same_bytes(hub, name, tmp_path, slices):
    chain = in_memory(prices(tmp_path, slices))
    assert client(hub, name).push(chain) == {}
    assert on(hub, name) == chain
    assert (hub.root / "chains" / name / "info" / "alias").read_text() == name


def test_4_a_push_of_nothing_is_refused_with_a_reason(hub, name, tmp_path):
    chain = in_memory(prices(tmp_path))
    client(hub, name).push(chain)
    with pytest.raises(Gone) as gone:
        client(hub, name).push(chain, current=chain.head)
    assert gone.value.code == 1011
    assert "there are no blocks" in gone.value.reason


def test_5_a_push_of_two_further_blocks(hub, name, tmp_path):
    store = prices(tmp_path)
    there(hub, store, name)
    before = str(store.head())
    grow(store, tmp_path, 2)
    client(hub, name).push(in_memory(store), current=before)
    assert on(hub, name) == in_memory(store)


def test_6_a_forced_push_replaces_the_history(hub, name, tmp_path):
    store = prices(tmp_path)
    there(hub, store, name)
    before = str(store.head())
    other = in_memory(shorter(store, 2))
    client(hub, name).push(other, current=before, force=True)
    assert on(hub, name).blocks == other.blocks


def test_6_a_forced_push_needs_a_right_of_its_own(hub, tmp_path):
    name = "net.example.bob.forced"
    store = prices(tmp_path)
    client(hub, name, BOB).push(in_memory(store))
    before = str(store.head())
    other = in_memory(shorter(store, 2))
    with pytest.raises(Complaint, match="may not replace"):
        client(hub, name, BOB).push(other, current=before, force=True)
    assert str(hub.space.dataset(name).head()) == before


def test_7_another_history_is_refused_without_force(hub, name, tmp_path):
    store = prices(tmp_path)
    there(hub, store, name)
    before = str(store.head())
    other = in_memory(shorter(store, 2))
    with pytest.raises(Gone) as gone:
        client(hub, name).push(other, current=before)
    assert gone.value.code == 1011
    assert on(hub, name).head == before


def test_8_a_push_onto_another_head_is_told_both(hub, name, tmp_path):
    store = prices(tmp_path)
    before = str(store.head())
    note(store, "what the server alone has")
    there(hub, store, name)
    with pytest.raises(Complaint) as complaint:
        client(hub, name).push(in_memory(store), current=before)
    heads = json.loads(str(complaint.value))["Err"]["InvalidHead"]
    assert heads == {"actual_head": before, "expected_head": str(store.head())}


@pytest.mark.parametrize("first", [True, False], ids=["9 new dataset", "10 update"])
def test_9_10_objects_that_an_earlier_push_left_are_not_sent_again(hub, name, tmp_path, first):
    store = prices(tmp_path)
    before = None
    if not first:
        there(hub, store, name)
        before = str(store.head())
        grow(store, tmp_path, 2)
    chain = in_memory(store)
    with pytest.raises(Gone):
        client(hub, name).push(chain, current=before, cut=5)  # both objects, and no Complete
    sent = hub.log().count(f"PUT /{name}/")
    client(hub, name).push(chain, current=before)
    assert hub.log().count(f"PUT /{name}/") == sent
    assert on(hub, name) == chain


def test_what_a_push_left_is_scratch_that_gc_removes(hub, name, tmp_path):
    with pytest.raises(Gone):
        client(hub, name).push(in_memory(prices(tmp_path)), cut=5)
    left = [each for each in find_scratch(hub.space, time.time() + 1) if name in each.path.name]
    assert [(each.kind, each.size > 0) for each in left] == [("scratch", True)]
    remove(hub.space, left)
    assert not left[0].path.exists()


def test_12_a_push_without_a_token_is_answered_401(hub, name, tmp_path):
    with pytest.raises(Complaint, match=r'^401 {"message":"Unauthenticated"}'):
        client(hub, name, None).push(in_memory(prices(tmp_path)))


def test_13_a_push_where_the_token_may_not_write_is_answered_403(hub, name, tmp_path):
    with pytest.raises(Complaint, match=r'^403 {"message":"Unauthorized"}'):
        client(hub, name, BOB).push(in_memory(prices(tmp_path)))


@pytest.mark.parametrize("token", [None, BOB])
def test_14_52_a_dataset_that_may_not_be_read_is_not_there(hub, token):
    hidden = client(hub, "other.prices", token)
    assert hidden.request("GET", "refs/head")[0] == 404
    for verb in ("pull", "push"):
        with pytest.raises(Complaint, match=r"^404 "), hidden.open(verb):
            pass
    assert hidden.head() is None
    listed = httpx.get(hub.url("datasets"), headers=bearer(token)).json()["datasets"]
    assert "other.prices" not in {each["alias"] for each in listed}


def bearer(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def test_52_a_token_opens_what_it_may_read(hub):
    chain = Chain()
    assert client(hub, "secret.prices", BOB).pull(chain) == 2
    assert client(hub, "secret.prices", None).head() is None


def test_15_an_identity_that_is_there_under_another_name_is_told(hub, name, tmp_path):
    chain = in_memory(prices(tmp_path))
    client(hub, name).push(chain)
    other = next(_names)
    with pytest.raises(Gone) as gone:
        client(hub, other).push(chain)
    assert "RefCollision" in json.loads(gone.value.reason)["Err"]
    with pytest.raises(RepositoryError) as error:
        SmartDataset(hub.url(other), ALICE).publish(publication_of(tmp_path))
    assert error.value.code == "E1050"


def publication_of(root: Path):
    return publication(DatasetStore(root / "chains" / "net.example.prices", "x"))


@pytest.mark.parametrize("verb", ["pull", "push"])
@pytest.mark.parametrize(
    ("version", "said"), [("0", "Incompatible client version"), ("x", "missing"), (None, "missing")]
)
def test_16_another_version_is_answered_400(hub, name, tmp_path, verb, version, said):
    there(hub, prices(tmp_path), name)
    with (
        pytest.raises(Complaint, match=rf"^400 .*{said}"),
        client(hub, name).open(verb, version),
    ):
        pass


# --- Pull ---


def test_18_25_a_pull_without_a_token_brings_the_same_bytes(hub, name, tmp_path):
    there(hub, prices(tmp_path), name)
    chain = Chain()
    assert client(hub, name, None).pull(chain) == 4
    assert chain == on(hub, name)


def test_19_a_pull_of_the_seed_alone(hub, name, tmp_path):
    there(hub, prices(tmp_path, 0), name)
    chain = Chain()
    assert client(hub, name).pull(chain) == 1


def test_20_a_pull_with_nothing_new_ends_after_the_plan(hub, name, tmp_path):
    chain = in_memory(prices(tmp_path))
    client(hub, name).push(chain)
    assert client(hub, name).pull(chain) == 0


def test_21_24_a_pull_of_two_further_blocks_asks_for_their_objects_only(hub, name, tmp_path):
    store = prices(tmp_path)
    there(hub, store, name)
    chain = in_memory(store)
    before = str(store.head())
    grow(store, tmp_path, 2)
    client(hub, name).push(in_memory(store), current=before)
    (kind, hash), data = list(in_memory(store).objects.items())[-1]
    chain.objects[kind, hash] = data
    gets = hub.log().count(f"GET /{name}/data/")
    assert client(hub, name).pull(chain) == 2
    assert chain == in_memory(store)
    assert hub.log().count(f"GET /{name}/data/") == gets + 1


def test_22_23_a_rewritten_history_comes_by_force_only(hub, name, tmp_path):
    store = prices(tmp_path)
    there(hub, store, name)
    before, known = str(store.head()), in_memory(store)
    client(hub, name).push(in_memory(shorter(store, 2)), current=before, force=True)
    with pytest.raises(Complaint) as complaint:
        client(hub, name).pull(known)
    interval = json.loads(str(complaint.value))["Err"]["InvalidInterval"]
    assert interval == {"head": str(store.head()), "tail": before}
    assert client(hub, name).pull(known, force=True) == 3
    assert known.blocks == in_memory(store).blocks


def test_26_urls_of_objects_are_those_of_the_dataset_with_two_headers(hub, name, tmp_path):
    chain = in_memory(prices(tmp_path))
    client(hub, name).push(chain)
    (kind, hash), data = next(iter(chain.objects.items()))
    with client(hub, name).open("pull") as frames:
        frames.send({"force_update_if_diverged": False})
        ok(frames.receive())
        frames.send({})
        frames.receive()
        frames.send({"object_files": [reference(kind, hash, len(data))]})
        [found] = frames.receive()["object_transfer_strategies"]
    assert found == {
        "object_file": reference(kind, hash, len(data)),
        "pull_strategy": "HttpDownload",
        "download_from": {
            "url": f"{hub.address}/{name}/{kind}/{hash}",
            "headers": [
                {"name": "x-odf-smtp-version", "value": "1"},
                {"name": "authorization", "value": f"Bearer {ALICE}"},
            ],
            "expires_at": None,
        },
    }


def test_28_an_object_that_is_there_is_not_asked_for(hub, name, tmp_path):
    store = prices(tmp_path)
    chain = in_memory(store)
    client(hub, name).push(chain)
    note(store, "without data")
    with client(hub, name).open("push") as frames:
        begin_push(frames, in_memory(store), chain.head)
        frames.send({"object_files": [], "is_truncated": False})
        assert ok(frames.receive()) == {"object_transfer_strategies": []}


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


# --- Rights and names ---


def test_53_reading_and_writing_are_answered_by_rights(hub):
    paths = {"acc/prices": (200, 401, 403), "secret.prices": (200, 401, 403)}
    for path, (read, anonymous, other) in paths.items():
        token = BOB if path == "secret.prices" else None
        url, hash = hub.url(path), "f1620" + "ab" * 32
        assert httpx.get(f"{url}/refs/head", headers=bearer(token)).status_code == read
        assert httpx.put(f"{url}/data/{hash}", content=b"x").status_code == anonymous
        refused = httpx.put(f"{url}/data/{hash}", content=b"x", headers=bearer(BOB))
        assert refused.status_code == other
    unknown = httpx.get(hub.url("acc/prices/refs/head"), headers=bearer("wrong-token-0123456789"))
    assert unknown.status_code == 401
    assert unknown.json() == {"message": "Authentication token invalid"}


def test_54_who_asks_is_told_and_a_malformed_token_is_refused(hub):
    me = httpx.get(hub.url("accounts/me"), headers=bearer(ALICE))
    assert (me.status_code, me.json()["accountName"]) == (200, "alice")
    assert httpx.get(hub.url("accounts/me")).status_code == 401
    for header in ("Bearer", "Bearer a b", "Basic YTpi", "x"):
        answer = httpx.get(hub.url("info"), headers={"Authorization": header})
        assert answer.status_code == 400


def test_55_names_are_found_in_any_case_and_wrong_ones_refused(hub, tmp_path):
    there(hub, prices(tmp_path), "net.example.Case")
    assert client(hub, "NET.example.case").head() == str(
        hub.space.dataset("net.example.Case").head()
    )
    statuses = {
        "net.example.nothing/refs/head": 404,
        "net.example.Case/refs/other": 404,
        "net.example.Case/blocks/f16": 400,
        "net.example.Case/data/no-hash": 400,
        "net.example.Case/keys/x": 404,
        "net..example/refs/head": 400,
        "a/b/c/refs/head": 400,
        "datasets/did:odf:x": 400,
        f"datasets/did:odf:fed01{'12' * 32}": 404,
        "": 404,
        "nothing": 404,
        "net.example.Case/pull": 426,
    }
    found = {path: httpx.get(hub.url(path)).status_code for path in statuses}
    assert found == statuses


def test_a_dataset_is_found_by_its_identity_if_it_may_be_read(hub, name, tmp_path):
    there(hub, prices(tmp_path), name)
    identity = str(hub.space.projection(name).dataset_id)
    assert name_of(hub.url(), identity, None) == name
    hidden = str(hub.space.projection("other.prices").dataset_id)
    assert name_of(hub.url(), hidden, None) is None
    assert is_smart(hub.url())


def test_the_list_of_datasets_has_what_may_be_read(hub, name, tmp_path):
    there(hub, prices(tmp_path), name)
    listed = httpx.get(hub.url("datasets")).json()["datasets"]
    [found] = [each for each in listed if each["alias"] == name]
    assert found["head"] == str(hub.space.dataset(name).head())
    assert (found["kind"], found["blocks"], found["records"]) == ("Root", 4, 6)


# --- Simple ---


def test_files_have_ranges_conditions_and_heads(hub, name, tmp_path):
    chain = in_memory(prices(tmp_path))
    client(hub, name).push(chain)
    (kind, hash), data = next(iter(chain.objects.items()))
    url = hub.url(f"{name}/{kind}/{hash}")
    part = httpx.get(url, headers={"Range": "bytes=4-9"})
    assert (part.status_code, part.content) == (206, data[4:10])
    rest = httpx.get(url, headers={"Range": f"bytes={len(data) - 3}-", "If-Range": f'"{hash}"'})
    assert (rest.status_code, rest.content) == (206, data[-3:])
    whole = httpx.get(url, headers={"Range": "bytes=0-1", "If-Range": '"other"'})
    assert (whole.status_code, whole.content) == (200, data)
    assert httpx.get(url, headers={"Range": "bytes=999999-"}).status_code == 416
    assert httpx.get(url, headers={"If-None-Match": f'"{hash}"'}).status_code == 304
    head = httpx.head(url)
    assert (head.status_code, head.headers["content-length"]) == (200, str(len(data)))
    head_url = hub.url(f"{name}/refs/head")
    answer = httpx.get(head_url)
    assert answer.text == chain.head
    assert httpx.get(head_url, headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
    assert answer.headers["cache-control"] == "no-cache"
    block, content = chain.blocks[0]
    assert httpx.get(hub.url(f"{name}/blocks/{block}")).content == content
    assert httpx.get(hub.url(f"{name}/info/alias")).text == name
    assert httpx.get(hub.url(f"{name}/info/config")).status_code == 404


def test_58_hashes_are_found_in_every_spelling(hub, name, tmp_path):
    chain = in_memory(prices(tmp_path, 0))
    client(hub, name).push(chain)
    block, content = chain.blocks[0]
    base58 = multibase.encode(Multihash.parse(block).binary, "base58btc")
    for text in (block.upper(), base58):
        assert httpx.get(hub.url(f"{name}/blocks/{text}")).content == content


# --- On the wire ---


def test_59_a_ping_is_answered_and_none_is_sent(hub, name, tmp_path):
    there(hub, prices(tmp_path), name)
    with client(hub, name).open("pull") as frames:
        frames.frame(9, b"are you there")
        assert frames._exactly(2 + 13) == b"\x8a\x0dare you there"
        frames.send({"force_update_if_diverged": False})
        ok(frames.receive())


@pytest.mark.parametrize("what", ["a name with ./", "a link", "other bytes", "a bomb", "no gzip"])
def test_60_a_wrong_archive_is_refused_before_anything_is_stored(hub, name, tmp_path, what):
    from tests.repository.test_smart_client import WRONG

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
    monkeypatch.setattr("odfbuild.repository.smart.client._PAGE", 2)
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


# --- Attacks and limits ---


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


# --- Signed heads, and what the client tells ---


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


def test_49_50_two_projects_share_a_dataset_through_the_server(hub, tmp_path):
    """With `push` and `pull` as the program runs them: new, grown, up to date, another dataset."""
    name, mine, ours = next(_names), tmp_path / "mine", tmp_path / "ours"
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

"""`odfbuild serve`, asked by peers that are as strict as the reference: pushes, pulls, rights.

Numbers in names are those of the scenarios in the table of docs/compatibility.md.
"""

from __future__ import annotations

import json
import time

import httpx
import pytest
from multiformats import multibase

from odfbuild.errors import RepositoryError
from odfbuild.exchange.repositories.smart.client import SmartDataset, is_smart, name_of
from odfbuild.odf.multihash import Multihash
from odfbuild.store.garbage import find_scratch, remove
from tests.exchange.repositories.hub import (
    bearer,
    begin_push,
    client,
    on,
    publication_of,
    shorter,
    there,
)
from tests.exchange.repositories.serving import ALICE, BOB
from tests.exchange.repositories.smart_chains import (
    grow,
    in_memory,
    note,
    prices,
)
from tests.exchange.repositories.strict_peer import (
    Chain,
    Complaint,
    Gone,
    ok,
    reference,
)

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


def test_52_a_token_opens_what_it_may_read(hub):
    chain = Chain()
    assert client(hub, "secret.prices", BOB).pull(chain) == 2
    assert client(hub, "secret.prices", None).head() is None


def test_15_an_identity_that_is_there_under_another_name_is_told(hub, name, tmp_path):
    chain = in_memory(prices(tmp_path))
    client(hub, name).push(chain)
    other = f"{name}.other"
    with client(hub, other).open("push") as frames:
        begin_push(frames, chain)
        # The reference's client knows this failure where objects are asked for, not before.
        frames.send({"object_files": [], "is_truncated": False})
        with pytest.raises(Gone) as gone:
            frames.receive()
    assert "RefCollision" in json.loads(gone.value.reason)["Err"]
    assert hub.space.find(other) is None
    with pytest.raises(RepositoryError) as error:
        SmartDataset(hub.url(other), ALICE).publish(publication_of(tmp_path))
    assert error.value.code == "E1050"


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

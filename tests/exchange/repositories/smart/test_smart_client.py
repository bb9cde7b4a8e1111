"""Our client of the Smart Transfer Protocol, against a server that is as strict as the reference.

Numbers in names are those of the scenarios in the table of docs/compatibility.md.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from odfbuild.errors import IntegrityError, OdfbuildError, RepositoryError, StaleHeadError
from odfbuild.exchange.repositories.pull import Pull, pull
from odfbuild.exchange.repositories.smart.client import SmartDataset, account_of, is_smart, name_of
from odfbuild.odf.multihash import Multihash
from tests.exchange.repositories import strict_peer
from tests.exchange.repositories.smart_chains import (
    NAME,
    grow,
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
    Gone,
    StrictServer,
    batch,
    pack,
    serving,
    sha3,
)
from tests.store.chains import NOW, workspace


@pytest.fixture
def server():
    with serving(StrictServer(progress_seconds=0.1)) as made:
        yield made
    assert made.complaints == []


def there(server: StrictServer, token: str | None = None, name: str = NAME) -> SmartDataset:
    return SmartDataset(server.url(name), token)


def pulled(
    dataset: SmartDataset, folder: Path, after: Multihash | None = None
) -> tuple[list[str], dict[tuple[str, str], bytes]]:
    """Names of blocks that came, and the objects, by a real dialogue."""
    head = dataset.head()
    with dataset.offer(head, after) as offer:
        objects = [each for block in offer.blocks for each in objects_of(block)]
        offer.download(objects, folder)
    return [str(block.hash) for block in offer.blocks], {
        (file.parent.name, file.name): file.read_bytes() for file in folder.glob("*/*")
    }


def code_of(error: pytest.ExceptionInfo[OdfbuildError]) -> str:
    return error.value.code


# --- Push ---


def test_1_a_push_of_a_new_dataset_brings_all_blocks_and_objects(tmp_path, server):
    store = prices(tmp_path)
    there(server).publish(publication(store))
    assert server.datasets[NAME] == in_memory(store)
    assert len(server.datasets[NAME].blocks) == 4


def test_2_a_push_says_which_visibility_a_new_dataset_gets(tmp_path, server):
    SmartDataset(server.url(NAME), visibility="Public").publish(publication(prices(tmp_path)))
    assert server.messages[0]["visibility_for_created_dataset"] == "Public"


def test_3_a_push_of_the_seed_alone(tmp_path, server):
    store = prices(tmp_path, slices=0)
    there(server).publish(publication(store))
    assert server.datasets[NAME] == in_memory(store)
    assert len(server.datasets[NAME].blocks) == 1


def test_5_a_push_of_two_further_blocks_sends_these_only(tmp_path, server):
    store = prices(tmp_path)
    server.datasets[NAME] = in_memory(store)
    before = store.head()
    grow(store, tmp_path, 2)
    there(server).publish(publication(store, before))
    assert server.datasets[NAME] == in_memory(store)
    assert server.messages[0]["transfer_plan"]["num_blocks"] == 2
    assert len([each for each in server.requests if each.startswith("PUT")]) == 2


def test_6_a_forced_push_replaces_another_history(tmp_path, server):
    store = prices(tmp_path)
    other = in_memory(store)
    seed = Multihash.parse(other.blocks[0][0])
    note(store, "what the server alone has")
    server.datasets[NAME] = in_memory(store)
    on_server = store.head()
    store.append(on_server, [], NOW, onto=seed)
    grow(store, tmp_path, 1)
    there(server).publish(publication(store, on_server, force=True))
    assert server.datasets[NAME].blocks == in_memory(store).blocks
    assert server.messages[0]["force_update_if_diverged"] is True


def test_8_a_push_onto_another_head_is_refused_and_names_both(tmp_path, server):
    store = prices(tmp_path)
    server.datasets[NAME] = in_memory(store)
    before = store.head()
    note(store, "what the server alone has")
    server.datasets[NAME] = ahead = in_memory(store)
    with pytest.raises(StaleHeadError) as error:
        there(server).publish(publication(store, before))
    assert f"actual head:   {ahead.head}" in error.value.notes
    assert f"expected head: {before}" in error.value.notes
    assert server.datasets[NAME] == ahead


@pytest.mark.parametrize("first", [True, False], ids=["9 new dataset", "10 update"])
def test_9_10_objects_that_an_earlier_push_left_are_not_sent_again(tmp_path, server, first):
    store = prices(tmp_path)
    if not first:
        server.datasets[NAME] = in_memory(store)
    before = None if first else store.head()
    grow(store, tmp_path, 2)
    chain = server.datasets.setdefault(NAME, Chain())
    chain.objects = in_memory(store).objects
    there(server).publish(publication(store, before))
    assert server.datasets[NAME] == in_memory(store)
    assert not [each for each in server.requests if each.startswith("PUT")]


def test_12_a_push_without_a_token_is_told_so(tmp_path, server):
    server.tokens = {"secret-of-alice"}
    with pytest.raises(RepositoryError) as error:
        there(server).publish(publication(prices(tmp_path)))
    assert code_of(error) == "E1041"
    assert "401" in str(error.value.notes)


def test_14_a_dataset_that_may_not_be_read_is_not_there(tmp_path, server):
    assert there(server).head() is None
    with (
        pytest.raises(RepositoryError) as error,
        there(server).offer(Multihash.sha3_256(b""), None),
    ):
        pass
    assert code_of(error) == "E1041"
    assert "no such dataset" in error.value.message


def test_15_a_push_of_an_identity_with_another_name_there_is_told_so(tmp_path, server):
    reason = json.dumps({"Err": {"RefCollision": {"dataset_id": "did:odf:fed01" + "12" * 32}}})

    def fault(number: int) -> None:
        if number == 2:
            raise Gone(1011, reason)

    server.fault = fault
    with pytest.raises(RepositoryError) as error:
        there(server).publish(publication(prices(tmp_path)))
    assert code_of(error) == "E1050"
    assert "another name" in error.value.message


def test_16_a_server_of_another_version_is_told_apart(tmp_path, server):
    server.answer = lambda path: (
        (400, b'{"message":"Incompatible client version"}') if path.endswith("push") else None
    )
    with pytest.raises(RepositoryError) as error:
        there(server).publish(publication(prices(tmp_path)))
    assert code_of(error) == "E1042"
    assert "Incompatible client version" in str(error.value.notes)


# --- Pull ---


def test_18_a_pull_of_a_new_dataset_brings_the_same_bytes(tmp_path, server):
    store = prices(tmp_path)
    server.datasets[NAME] = chain = in_memory(store)
    names, objects = pulled(there(server), tmp_path / "got")
    assert names == [name for name, _ in chain.blocks]
    assert objects == chain.objects


def test_19_a_pull_of_the_seed_alone(tmp_path, server):
    server.datasets[NAME] = chain = in_memory(prices(tmp_path, slices=0))
    assert pulled(there(server), tmp_path / "got") == ([chain.head], {})


def test_20_a_pull_with_nothing_new_opens_no_dialogue(tmp_path, server):
    store = prices(tmp_path)
    server.datasets[NAME] = in_memory(store)
    assert pulled(there(server), tmp_path / "got", store.head()) == ([], {})
    assert server.requests == [f"GET {NAME}/refs/head"]


def test_21_a_pull_of_two_further_blocks_brings_these_only(tmp_path, server):
    store = prices(tmp_path)
    before = store.head()
    grow(store, tmp_path, 2)
    server.datasets[NAME] = chain = in_memory(store)
    names, objects = pulled(there(server), tmp_path / "got", before)
    assert names == [name for name, _ in chain.blocks[-2:]]
    assert len(objects) == 2


def test_22_23_a_pull_from_a_rewritten_history_brings_all_of_it(tmp_path, server):
    """Whether it is taken is the decision of `pull`: it is told by the first block, the seed."""
    store = prices(tmp_path)
    known = store.head()
    note(store, "the server has this no more")
    lost = store.head()
    store.append(lost, [], NOW, onto=known)
    server.datasets[NAME] = chain = in_memory(store)
    names, _ = pulled(there(server), tmp_path / "got", lost)
    assert names == [name for name, _ in chain.blocks]


def test_24_objects_that_are_there_are_not_fetched_again(tmp_path, server):
    store = prices(tmp_path)
    server.datasets[NAME] = in_memory(store)
    pulled(there(server), tmp_path / "got")
    gets = len(server.requests)
    pulled(there(server), tmp_path / "got")
    # The number of the block tells whether there are too many for one message.
    asked = ("refs/head", f"blocks/{store.head()}", "pull")
    assert server.requests[gets:] == [f"GET {NAME}/{each}" for each in asked]


def test_25_a_public_dataset_needs_no_token(tmp_path, server):
    server.tokens = {"secret-of-alice"}
    server.datasets[NAME] = in_memory(prices(tmp_path))
    assert len(pulled(there(server), tmp_path / "got")[0]) == 4


def test_objects_without_new_blocks_come_from_the_dataset_itself(tmp_path, server):
    store = prices(tmp_path)
    server.datasets[NAME] = chain = in_memory(store)
    wanted = [each for block in raw_blocks(store) for each in objects_of(block)]
    with there(server).offer(store.head(), store.head()) as offer:
        offer.download(wanted, tmp_path / "got")
    assert (tmp_path / "got" / "data" / str(wanted[0].hash)).read_bytes() in chain.objects.values()
    assert f"GET {NAME}/pull" not in server.requests


# --- On the wire ---


def test_58_a_head_is_understood_with_a_newline_and_in_every_spelling(tmp_path, server):
    store = prices(tmp_path)
    spellings = (f"{store.head()}\n", str(store.head()).replace("f", "F", 1).upper())
    for text in spellings:
        server.answer = lambda path, text=text: (200, text.encode())
        assert there(server).head() == store.head()
    server.answer = lambda path: (200, b"<html>")
    with pytest.raises(RepositoryError) as error:
        there(server).head()
    assert code_of(error) == "E1042"


def test_59_a_ping_while_the_server_plans_does_no_harm(tmp_path, server):
    server.ping_during_plan = True
    server.datasets[NAME] = in_memory(prices(tmp_path))
    assert len(pulled(there(server), tmp_path / "got")[0]) == 4


def tar(*entries: tuple[str, bytes, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data, kind in entries:
            entry = tarfile.TarInfo(name)
            entry.size, entry.type, entry.linkname = len(data), kind, "/etc/passwd"
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(out.getvalue())


def first_entry(name: str = "{}", data: bytes | None = None, kind: bytes = tarfile.REGTYPE):
    """A batch whose first entry is another one."""

    def make(chain: Chain) -> dict:
        (own, content), *rest = chain.blocks
        entry = (name.format(own), content if data is None else data, kind)
        others = ((each, found, tarfile.REGTYPE) for each, found in rest)
        return batch(len(chain.blocks), tar(entry, *others))

    return make


WRONG = {
    "a name with ./": first_entry("./{}"),
    "a name with ../": first_entry("../../{}"),
    "a folder": first_entry("blocks", b"", tarfile.DIRTYPE),
    "a link": first_entry("{}", b"", tarfile.SYMTYPE),
    "a device": first_entry("{}", b"", tarfile.CHRTYPE),
    "other bytes": first_entry("{}", b"other"),
    "another name": first_entry(sha3(b"")),
    "no block": first_entry(sha3(b"no block"), b"no block"),
    "another order": lambda chain: pack(chain.blocks[::-1]),
    "one too few": lambda chain: {**pack(chain.blocks[:-1]), "num_blocks": len(chain.blocks)},
    "one twice": lambda chain: pack([chain.blocks[0], *chain.blocks]),
    "no gzip": lambda chain: batch(len(chain.blocks), b"no gzip"),
    "a cut": lambda chain: batch(len(chain.blocks), pack(chain.blocks)["payload"][:-20]),
    "more behind it": lambda chain: batch(4, [*pack(chain.blocks)["payload"], 1, 2, 3]),
    "another media type": lambda chain: {**pack(chain.blocks), "media_type": "application/zip"},
    "a bomb": lambda chain: batch(1, gzip.compress(bytes(200 << 20), 1)),
}


@pytest.mark.parametrize("what", WRONG)
def test_60_a_wrong_archive_is_refused_before_anything_is_stored(
    tmp_path, server, what, monkeypatch
):
    store = prices(tmp_path)
    server.datasets[NAME] = chain = in_memory(store)
    wrong = WRONG[what](chain)

    monkeypatch.setattr(strict_peer, "pack", lambda blocks: wrong)
    with (
        pytest.raises(IntegrityError) as error,
        there(server).offer(store.head(), None),
    ):
        raise AssertionError("an offer was made")
    assert code_of(error) == "E1045"


def test_65_duplicates_among_objects_are_transferred_once(tmp_path, server):
    store = with_shared_checkpoint(tmp_path)
    there(server).publish(publication(store))
    assert server.datasets[NAME] == in_memory(store)
    puts = [each for each in server.requests if each.startswith("PUT")]
    assert len(puts) == len(set(puts)) == 4
    names, objects = pulled(there(server), tmp_path / "got")
    assert len(names) == 5
    assert objects == in_memory(store).objects


def test_d5_a_late_request_for_progress_is_not_taken_for_the_confirmation(tmp_path, server):
    server.late_progress = True
    store = prices(tmp_path)
    there(server).publish(publication(store))
    assert server.datasets[NAME] == in_memory(store)


def test_a_server_of_an_older_release_may_answer_without_envelopes(tmp_path, server):
    server.bare_replies = True
    store = prices(tmp_path)
    there(server).publish(publication(store))
    assert server.datasets[NAME] == in_memory(store)


FAILED = json.dumps(
    {"Err": {"Internal": {"phase": {"Push": "CompleteRequest"}, "error_message": "out of disk"}}}
)


@pytest.mark.parametrize("step", range(4))
def test_67_a_close_with_a_reason_is_told_wherever_it_comes_in_a_push(tmp_path, server, step):
    def fault(number: int) -> None:
        if number == step:
            raise Gone(1011, FAILED)

    server.fault = fault
    store = prices(tmp_path)
    with pytest.raises(RepositoryError) as error:
        there(server).publish(publication(store))
    assert code_of(error) == "E1043"
    assert "out of disk" in error.value.message


@pytest.mark.parametrize("step", range(3))
def test_67_a_close_with_a_reason_is_told_wherever_it_comes_in_a_pull(tmp_path, server, step):
    store = prices(tmp_path)
    server.datasets[NAME] = in_memory(store)

    def fault(number: int) -> None:
        if number == step:
            raise Gone(1011, FAILED)

    server.fault = fault
    with pytest.raises(RepositoryError) as error:
        pulled(there(server), tmp_path / "got")
    assert code_of(error) == "E1043"


@pytest.mark.parametrize("step", range(3))
def test_66_a_pull_that_was_cut_at_any_step_goes_on_where_it_was(tmp_path, server, step):
    store = prices(tmp_path)
    server.datasets[NAME] = chain = in_memory(store)

    def fault(number: int) -> None:
        if number == step:
            raise Gone(1006)

    server.fault = fault
    with pytest.raises(RepositoryError) as error:
        pulled(there(server), tmp_path / "got")
    assert code_of(error) == "E1044"
    server.fault = lambda number: None
    assert pulled(there(server), tmp_path / "got")[1] == chain.objects


@pytest.mark.parametrize("step", range(4))
def test_66_a_push_that_was_cut_at_any_step_converges_when_it_is_repeated(tmp_path, server, step):
    def fault(number: int) -> None:
        if number == step:
            raise Gone(1006)

    server.fault = fault
    store = prices(tmp_path)
    dataset = there(server)
    if step < 3:
        with pytest.raises(RepositoryError) as error:
            dataset.publish(publication(store))
        assert code_of(error) == "E1044"
    else:
        dataset.publish(publication(store))  # its head tells that all was committed
    server.fault = lambda number: None
    if (head := dataset.head()) != store.head():
        dataset.publish(publication(store, head))
    assert server.datasets[NAME] == in_memory(store)
    puts = [each for each in server.requests if each.startswith("PUT")]
    assert len(puts) == len(set(puts))


@pytest.mark.parametrize("expires", [None, "2020-01-01T00:00:00Z"])
def test_68_an_expired_url_is_told_by_its_status(tmp_path, server, expires):
    store = prices(tmp_path)
    server.datasets[NAME] = in_memory(store)
    server.url_of = lambda url: {
        "url": f"http://127.0.0.1:{server.port}/signed?signature=1",
        "headers": [],
        "expires_at": expires,
    }
    server.answer = lambda path: (403, b"Request has expired") if path == "signed" else None
    with pytest.raises(RepositoryError) as error:
        pulled(there(server), tmp_path / "got")
    assert code_of(error) == "E1046"
    assert "answered 403" in error.value.message
    assert ("has expired" in error.value.message) == (expires is not None)


# --- Look-ups ---


def test_names_without_an_account_get_the_one_of_the_token(server):
    server.tokens = {"secret-of-alice"}
    repository = server.url()
    assert account_of(repository, "secret-of-alice") is None
    server.multi_tenant = True
    assert account_of(repository, "secret-of-alice") == "alice"
    assert account_of(repository, "wrong-token") is None


def test_a_dataset_is_found_by_its_identity(server):
    server.answer = lambda path: (
        (200, b'{"id":"did:odf:fed01","owner":{},"datasetName":"found"}')
        if path == "datasets/did:odf:fed01"
        else None
    )
    assert name_of(server.url(), "did:odf:fed01", None) == "found"
    assert name_of(server.url(), "did:odf:fed02", None) is None


def test_a_probe_tells_a_smart_server_from_a_static_one(server):
    assert is_smart(f"http://127.0.0.1:{server.port}/")
    server.answer = lambda path: (404, b"")
    assert not is_smart(f"http://127.0.0.1:{server.port}/")
    server.answer = lambda path: (200, b"<html>")
    assert not is_smart(f"http://127.0.0.1:{server.port}/")
    assert not is_smart("http://127.0.0.1:9/")


# --- Attacks ---


def object_url(server: StrictServer, url: str, *headers: tuple[str, str]) -> None:
    given = [{"name": name, "value": value} for name, value in headers]
    server.url_of = lambda _: {"url": url, "headers": given, "expires_at": None}


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.org/x",
        "http://user:password@127.0.0.1/x",
        "http://169.254.169.254/latest/api/token",
        "http://[fe80::1]/x",
        "http://127.0.0.1:99999999/x",
        "not a url",
        "http:///x",
    ],
)
def test_urls_of_objects_that_lead_away_are_refused(tmp_path, server, url):
    store = prices(tmp_path)
    server.datasets[NAME] = in_memory(store)
    object_url(server, url)
    with pytest.raises(RepositoryError) as error:
        pulled(there(server), tmp_path / "got")
    assert code_of(error) == "E1048"
    assert "password" not in str(error.value.notes)
    assert not list((tmp_path / "got").glob("*/*"))


def test_a_public_repository_cannot_send_us_to_a_private_address(monkeypatch):
    from odfbuild.exchange.repositories.smart import objects

    hosts = {"public.example": "93.184.216.34", "inside.example": "10.0.0.7"}

    def resolve(host: str, *_: object, **__: object) -> list[tuple]:
        return [(2, 1, 6, "", (hosts.get(host, host), 0))]

    objects._addresses.cache_clear()
    monkeypatch.setattr("socket.getaddrinfo", resolve)
    public, inside = "https://public.example/x/", "https://inside.example/x/"
    for url in ("https://inside.example/x", "https://127.0.0.1/x", "https://192.168.1.1/x"):
        with pytest.raises(RepositoryError) as error:
            objects.check_url(url, public, public)
        assert code_of(error) == "E1048"
    objects.check_url("https://public.example/other", inside, inside)
    objects.check_url("https://192.168.1.1/x", inside, inside)
    with pytest.raises(RepositoryError) as error:
        objects.check_url("http://public.example/x", public, public)
    assert "https:// to http://" in error.value.message
    objects._addresses.cache_clear()


def test_the_token_goes_to_the_repository_and_headers_only_to_their_url(tmp_path, server):
    store = prices(tmp_path)
    server.tokens = {"secret-of-alice"}
    server.datasets[NAME] = chain = in_memory(store)
    seen: list[dict[str, str]] = []
    with serving(StrictServer(datasets={NAME: chain})) as bucket:
        server.url_of = lambda url: {
            "url": url.replace(str(server.port), str(bucket.port)),
            "headers": [{"name": "Host", "value": "elsewhere"}, {"name": "x-own", "value": "1"}],
            "expires_at": None,
        }
        send = httpx.Client.send

        def spy(self, request, **kwargs):
            seen.append({"url": str(request.url), **request.headers})
            return send(self, request, **kwargs)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(httpx.Client, "send", spy)
            pulled(there(server, "secret-of-alice"), tmp_path / "got")
    to_bucket = [each for each in seen if str(bucket.port) in each["url"]]
    to_server = [each for each in seen if str(server.port) in each["url"]]
    assert len(to_bucket) == 2
    assert all("authorization" not in each and each["x-own"] == "1" for each in to_bucket)
    assert all(each["host"] == f"127.0.0.1:{bucket.port}" for each in to_bucket)
    assert all(each["authorization"] == "Bearer secret-of-alice" for each in to_server)
    assert all("x-own" not in each for each in to_server)


def test_other_bytes_of_an_object_are_refused(tmp_path, server):
    store = prices(tmp_path)
    server.datasets[NAME] = chain = in_memory(store)
    key = next(iter(chain.objects))
    for other in (chain.objects[key][:-1] + b"!", chain.objects[key][:-1], bytes(1 << 20)):
        chain.objects[key] = other
        with pytest.raises(IntegrityError) as error:
            pulled(there(server), tmp_path / "got")
        assert code_of(error) == "E1047"
        assert not (tmp_path / "got" / key[0] / key[1]).exists()
        assert not list((tmp_path / "got").glob("*/.pending-*"))


def test_a_redirect_is_not_followed(tmp_path, server):
    for path in ("refs/head", "pull"):
        server.datasets[NAME] = in_memory(prices(tmp_path / path.replace("/", "-")))
        server.answer = lambda asked, path=path: (302, b"") if asked.endswith(path) else None
        with pytest.raises(RepositoryError) as error:
            pulled(there(server), tmp_path / "got")
        assert code_of(error) == "E1042"
        assert "has moved" in error.value.message


def test_an_answer_without_end_is_given_up(tmp_path, server):
    server.answer = lambda path: (200, b"f" * (1 << 20))
    with pytest.raises(RepositoryError) as error:
        there(server).head()
    assert "more than 64 KiB" in str(error.value.notes)


def test_a_server_that_is_not_there_is_told_so(tmp_path):
    for call in (
        lambda each: each.head(),
        lambda each: each.publish(publication(prices(tmp_path))),
    ):
        with pytest.raises(RepositoryError) as error:
            call(SmartDataset("odf+http://127.0.0.1:9/net.example.a"))
        assert code_of(error) == "E1040"


def test_credentials_of_an_address_are_never_shown():
    assert "secret" not in SmartDataset("odf+https://user:secret@example.org/x").address


def say_instead(wrong: dict):
    send = strict_peer.Frames.send
    return lambda self, _: send(self, wrong)


def test_other_messages_than_those_due_are_told(tmp_path, server):
    store = prices(tmp_path)
    server.datasets[NAME] = in_memory(store)
    for wrong in ({}, {"Ok": {}}, {"Ok": {"transfer_plan": {"num_blocks": -1}}}, {"Err": 1}):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(strict_peer.Frames, "send", say_instead(wrong))
            with pytest.raises(RepositoryError) as error:
                pulled(there(server), tmp_path / "got")
        assert code_of(error) == "E1042", wrong


def test_an_object_that_comes_too_slowly_is_given_up(tmp_path, server, monkeypatch):
    from odfbuild.exchange.repositories.smart import objects

    store = prices(tmp_path)
    server.datasets[NAME] = in_memory(store)
    clock = count(0, 100)
    monkeypatch.setattr(objects, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with pytest.raises(RepositoryError) as error:
        pulled(there(server), tmp_path / "got")
    assert code_of(error) == "E1044"
    assert not list((tmp_path / "got").glob("*/*"))


def test_a_head_that_moves_while_it_is_read_changes_nothing(tmp_path, server):
    store = prices(tmp_path)
    server.datasets[NAME] = in_memory(store)
    dataset = there(server)
    head = dataset.head()
    note(store, "published meanwhile")
    server.datasets[NAME] = in_memory(store)
    with dataset.offer(head, None) as offer:
        assert offer.blocks[-1].hash == head


def test_a_longer_chain_of_another_dataset_is_not_taken_for_the_same(tmp_path, server):
    server.datasets[NAME] = in_memory(prices(tmp_path / "a", 1))
    ours = tmp_path / "ours"
    address = server.url(NAME)
    wanted = Pull(
        name="prices", address=address, reference=address, open=lambda: SmartDataset(address)
    )
    [first] = pull(workspace(ours), [wanted])
    assert first.error is None
    server.datasets[NAME] = in_memory(prices(tmp_path / "b", 5))
    [second] = pull(workspace(ours), [wanted])
    assert second.error.code == "E1023"
    assert workspace(ours).dataset("prices").head() == first.after


def test_objects_are_asked_for_in_pages(tmp_path, server, monkeypatch):
    """URLs that are signed expire, so not all of them are asked for at once."""
    monkeypatch.setattr("odfbuild.exchange.repositories.smart.client._PAGE", 2)
    store = prices(tmp_path, 5)
    there(server).publish(publication(store))
    assert server.datasets[NAME] == in_memory(store)
    pages = [each for each in server.messages if "is_truncated" in each]
    assert [len(each["object_files"]) for each in pages] == [2, 2, 1]
    assert [each["is_truncated"] for each in pages] == [True, True, False]
    server.messages.clear()
    assert pulled(there(server), tmp_path / "got")[1] == in_memory(store).objects
    assert len([each for each in server.messages if "object_files" in each]) == 3


def test_17_a_dataset_of_an_account(tmp_path, server):
    store = prices(tmp_path)
    there(server, name=f"alice/{NAME}").publish(publication(store))
    assert server.datasets[f"alice/{NAME}"] == in_memory(store)
    assert len(pulled(there(server, name=f"alice/{NAME}"), tmp_path / "got")[0]) == 4

"""What a repository has: folders and object stores are listed, strange names do no harm."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from odfbuild.errors import RepositoryError
from odfbuild.exchange.repositories.open import Remotes
from odfbuild.odf.model import Seed
from odfbuild.project.settings.sharing import RepositorySettings
from odfbuild.store.dataset import DatasetStore
from tests.exchange.repositories.publishing import publication
from tests.servers.faulty import faulty_server, response
from tests.servers.objects import BUCKET, Objects, s3_endpoint
from tests.store.chains import create, info, workspace


@pytest.fixture(scope="module")
def bucket() -> Iterator[Objects]:
    with s3_endpoint() as started:
        yield started


@pytest.fixture(params=["folder", "s3:"])
def remotes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Remotes]:
    """A project that knows the empty repository `acme`."""
    url = "published" if request.param == "folder" else f"s3://{BUCKET}/{tmp_path.name}/"
    if request.param == "s3:":
        request.getfixturevalue("bucket")
    with Remotes(tmp_path, {"acme": RepositorySettings(url=url)}) as opened:
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> DatasetStore:
    return create(workspace(tmp_path / "project"), "prices", info("prices"))


def identity(store: DatasetStore) -> str:
    event = store.read_block(store.seed(store.head())).event
    assert isinstance(event, Seed)
    return str(event.dataset_id)


def test_an_empty_repository_has_no_datasets(remotes: Remotes) -> None:
    assert remotes.datasets("acme") == []


def test_datasets_with_and_without_account_are_listed_with_their_newest_block(
    remotes: Remotes, store: DatasetStore
) -> None:
    for name in ("prices", "account/prices", "account/more.prices"):
        remotes.writable(f"acme/{name}").publish(publication(store))
    listed = remotes.datasets("ACME")
    assert [each.name for each in listed] == ["account/more.prices", "account/prices", "prices"]
    block = store.read_block(store.head())
    for each in listed:
        assert (each.head, each.blocks, each.problem) == (store.head(), 2, None)
        assert each.updated == block.system_time


def test_strange_names_and_damaged_datasets_do_not_break_the_list(
    store: DatasetStore, tmp_path: Path
) -> None:
    root = tmp_path / "published"
    with Remotes(tmp_path, {}) as remotes:
        for name in ("prices", "broken", "headless"):
            remotes.writable(f"./published/{name}").publish(publication(store))
        for strange in (".git", "a_b", "with space", "-x", "ü", "..."):
            shutil.copytree(root / "prices", root / strange)
        (root / "README.md").write_text("a file")
        (root / "empty").mkdir()
        (root / "broken" / "refs" / "head").write_text("<html>")
        (root / "headless" / "blocks" / str(store.head())).unlink()
        found = remotes.datasets("./published")
    assert [(each.name, each.problem and each.problem.code) for each in found] == [
        ("broken", "E1009"),
        ("headless", "E1007"),
        ("prices", None),
    ]


def test_a_workspace_of_the_reference_is_listed_by_identity_and_alias(
    remotes: Remotes, store: DatasetStore
) -> None:
    id = identity(store)
    folder = id.removeprefix("did:odf:")
    made = replace(publication(store), info={"alias": b"kamu/prices"})
    remotes.writable(f"acme/{folder}").publish(made)
    (listed,) = remotes.datasets("acme")
    assert (listed.name, listed.alias) == (id, "kamu/prices")
    assert remotes.dataset(f"acme/{id}").head() == store.head()


def test_a_dataset_is_found_by_its_identity(remotes: Remotes, store: DatasetStore) -> None:
    remotes.writable("acme/account/prices").publish(publication(store))
    assert remotes.address(f"acme/{identity(store)}").path == "account/prices"


def test_an_identity_that_nobody_has_is_told(remotes: Remotes) -> None:
    id = f"did:odf:fed01{'0' * 64}"
    with pytest.raises(RepositoryError, match=f"acme has no dataset {id}") as caught:
        remotes.dataset(f"acme/{id}")
    assert caught.value.code == "E1019"
    assert "acme/org.example.prices" in caught.value.help


def test_servers_that_do_not_list_what_they_have_say_so(tmp_path: Path) -> None:
    absent = response(b"", status="404 Not Found")
    with faulty_server(absent) as server, Remotes(tmp_path, {}) as remotes:
        with pytest.raises(RepositoryError) as caught:
            remotes.datasets(f"http://127.0.0.1:{server.port}/")
        assert caught.value.code == "E1015"
        assert "by name, such as http://127.0.0.1" in caught.value.help


@pytest.mark.parametrize("answer", [b"<!doctype html>", b"[]"])
def test_a_list_that_is_none_is_refused(tmp_path: Path, answer: bytes) -> None:
    with faulty_server(response(answer)) as server, Remotes(tmp_path, {}) as remotes:
        with pytest.raises(RepositoryError) as caught:
            remotes.datasets(f"http://127.0.0.1:{server.port}/")
        assert caught.value.help


def test_entries_of_a_list_that_are_no_datasets_are_passed_over(tmp_path: Path) -> None:
    listed = b'{"datasets": [{"alias": "../etc"}, 1, {"alias": "prices", "head": 1}]}'
    with faulty_server(response(listed)) as server, Remotes(tmp_path, {}) as remotes:
        assert remotes.datasets(f"http://127.0.0.1:{server.port}/") == []


def test_a_server_made_for_it_is_listed(tmp_path: Path) -> None:
    head = "f1620" + "ab" * 32
    told = {"alias": "prices", "head": head, "blocks": 3, "updated": "2024-05-01T12:00:00Z"}
    listed = json.dumps({"datasets": [{**told, "alias": "z"}, told]}).encode()
    with faulty_server(response(listed)) as server, Remotes(tmp_path, {}) as remotes:
        found = remotes.datasets(f"odf+http://127.0.0.1:{server.port}")
    assert [(each.name, str(each.head), each.blocks) for each in found] == [
        ("prices", head, 3),
        ("z", head, 3),
    ]


def test_plain_web_servers_do_not_find_datasets_by_identity(tmp_path: Path) -> None:
    with faulty_server(response(b"", status="404 Not Found")) as server:
        known = {"acme": RepositorySettings(url=f"http://127.0.0.1:{server.port}")}
        with Remotes(tmp_path, known) as remotes, pytest.raises(RepositoryError) as caught:
            remotes.dataset(f"acme/did:odf:fed01{'0' * 64}")
    assert caught.value.code == "E1019"
    assert caught.value.notes == ("plain web servers find datasets by name only",)


def test_a_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with Remotes(tmp_path, {}) as remotes, pytest.raises(RepositoryError) as caught:
        remotes.datasets("./taken")
    assert caught.value.code == "E1001"

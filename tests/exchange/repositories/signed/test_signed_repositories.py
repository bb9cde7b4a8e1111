"""Repositories that serve an old head, a forged one, or another history: folders and web servers.

What is published is signed by the key of its dataset; what other programs publish is not.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from odfbuild.exchange.repositories.open import Remotes
from odfbuild.exchange.repositories.outcome import Transfer, TransferStatus
from odfbuild.exchange.repositories.pull import Pull, pull
from odfbuild.exchange.repositories.push import Push, push
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.signed_head import FILE, SignedHead, Statement
from odfbuild.project.settings.sharing import RepositorySettings
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.signed_heads import seen_statement
from odfbuild.store.workspace import Workspace
from tests.conformance.vectors import found as vectors
from tests.exchange.repositories.chains import (
    copied,
    everything,
    files,
    grow,
    info,
    published,
    space_of,
    workspace,
)
from tests.exchange.repositories.serving import ALICE, Served, served
from tests.servers.web import Server, nginx
from tests.store.chains import NOW

NAME = "prices"


@dataclass(frozen=True)
class Repository:
    """A folder that datasets come to, and the address at which a reader finds it.

    Publishers write to `to`: the folder, or a server that does it.
    """

    folder: Path
    address: str
    to: str | None = None
    token: str | None = None

    @property
    def statement(self) -> Path:
        return self.folder / NAME / "info" / FILE

    def _remotes(self) -> Remotes:
        known = {"acme": self.address, "hub": self.to or str(self.folder)}
        return Remotes(
            self.folder,
            {name: RepositorySettings(url=url, token=self.token) for name, url in known.items()},
        )

    def publish(self, store: DatasetStore, *, replace: bool = False) -> Transfer:
        found = self.push(store, replace=replace)
        assert found.error is None, found.error
        return found

    def push(self, store: DatasetStore, *, replace: bool = False) -> Transfer:
        with self._remotes() as remotes:
            target = f"hub/{NAME}"
            wanted = Push(
                name=store.name,
                address=target,
                open=lambda: remotes.writable(target),
                replace=replace,
            )
            [found] = push(space_of(store), [wanted])
        return found

    def pull(self, space: Workspace, **options: Any) -> Transfer:
        """Pull as who never changes the dataset."""
        with self._remotes() as remotes:
            place = f"acme/{NAME}"
            wanted = Pull(
                name=NAME,
                address=place,
                reference=place,
                open=lambda: remotes.dataset(place),
                external=True,
                **options,
            )
            [found] = pull(space, [wanted])
        return found

    def refuses(self, space: Workspace, code: str, **options: Any) -> None:
        """A pull fails with that code, and changes nothing."""
        before = everything(space.state.parent)
        found = self.pull(space, **options)
        assert found.status is TransferStatus.FAILED
        assert found.error is not None
        assert found.error.code == code, found.error
        assert found.error.help
        assert any(self.address.removeprefix("odf+") in note for note in found.error.notes)
        assert everything(space.state.parent) == before or not before


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with nginx(tmp_path_factory.mktemp("web")) as server:
        yield server


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("hub")) as server:
        yield server


@pytest.fixture(params=["folder", "web", "serve"])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Repository:
    """A folder, the same behind nginx, and a project behind `odfbuild serve` that has no keys."""
    if request.param == "folder":
        return Repository(tmp_path / "acme", str(tmp_path / "acme"))
    if request.param == "web":
        web: Server = request.getfixturevalue("web")
        return Repository(web.www / tmp_path.name, web.url(tmp_path.name))
    hub: Served = request.getfixturevalue("hub")
    account = f"a{zlib.crc32(str(tmp_path).encode()):x}"
    address = f"odf+{hub.url(account)}"
    return Repository(hub.root / "chains" / account, address, address, ALICE)


@pytest.fixture
def owner(tmp_path: Path) -> DatasetStore:
    return published(tmp_path / "owner", NAME)


@pytest.fixture
def reader(tmp_path: Path) -> Workspace:
    return workspace(tmp_path / "reader")


def signed(found: Transfer) -> tuple[Multihash | None, int]:
    """The head that was signed, and how many blocks came since."""
    assert found.vouched is not None, found.error
    by = found.vouched.signed
    return by.statement.head if by else None, found.vouched.since


def test_what_is_published_is_signed_and_the_reader_keeps_the_statement(
    repository: Repository, owner: DatasetStore, reader: Workspace
) -> None:
    head = owner.head()
    assert signed(repository.publish(owner)) == (head, 0)
    assert signed(repository.pull(reader, signed=True)) == (head, 0)
    here = reader.dataset(NAME)
    assert files(here) == files(owner)
    assert (here.path / "info" / FILE).read_bytes() == repository.statement.read_bytes()
    again = repository.pull(reader, signed=True)
    assert (again.status, signed(again)) == (TransferStatus.UP_TO_DATE, (head, 0))
    grow(owner, 6)
    repository.publish(owner)
    assert signed(repository.pull(reader, signed=True)) == (owner.head(), 0)
    assert SignedHead.parse(repository.statement.read_bytes()) == seen_statement(here)


def test_publishing_again_signs_what_was_published_unsigned_and_is_then_quiet(
    repository: Repository, owner: DatasetStore, tmp_path: Path
) -> None:
    shutil.move(tmp_path / "owner" / ".odfbuild-keys", tmp_path / "away")
    assert signed(repository.publish(owner)) == (None, 5)
    assert not repository.statement.exists()
    shutil.move(tmp_path / "away", tmp_path / "owner" / ".odfbuild-keys")
    assert signed(repository.publish(owner)) == (owner.head(), 0)
    first = repository.statement.read_bytes()
    repository.publish(owner)
    assert repository.statement.read_bytes() == first


def test_who_publishes_the_dataset_of_another_forwards_its_statement(
    repository: Repository, owner: DatasetStore, reader: Workspace, tmp_path: Path
) -> None:
    repository.publish(owner)
    repository.pull(reader)
    mirror = Repository(tmp_path / "mirror", str(tmp_path / "mirror"))
    assert signed(mirror.publish(reader.dataset(NAME))) == (owner.head(), 0)
    assert mirror.statement.read_bytes() == repository.statement.read_bytes()
    assert signed(mirror.pull(workspace(tmp_path / "other"), signed=True)) == (owner.head(), 0)


def test_unsigned_blocks_behind_a_signed_head_are_told_and_refused_where_they_must_be_signed(
    repository: Repository, owner: DatasetStore, reader: Workspace, tmp_path: Path
) -> None:
    first = owner.head()
    repository.publish(owner)
    shutil.move(tmp_path / "owner" / ".odfbuild-keys", tmp_path / "away")
    grow(owner, 6)
    repository.publish(owner)
    repository.refuses(reader, "E1082", signed=True)
    assert signed(repository.pull(reader)) == (first, 1)


def test_what_was_signed_stays_signed_unless_somebody_consents(
    repository: Repository, owner: DatasetStore, reader: Workspace, tmp_path: Path
) -> None:
    first = owner.head()
    repository.publish(owner)
    assert signed(repository.pull(reader)) == (first, 0)
    shutil.move(tmp_path / "owner" / ".odfbuild-keys", tmp_path / "away")
    for first_offset, since in ((6, 1), (9, 2)):
        grow(owner, first_offset)
        repository.publish(owner)
        repository.refuses(reader, "E1091")
        repository.refuses(reader, "E1082", signed=True, unsigned=True)
        assert signed(repository.pull(reader, unsigned=True)) == (first, since)
        # What is here already is no news.
        assert repository.pull(reader).status is TransferStatus.UP_TO_DATE
    shutil.move(tmp_path / "away", tmp_path / "owner" / ".odfbuild-keys")
    grow(owner, 12)
    repository.publish(owner)
    assert signed(repository.pull(reader)) == (owner.head(), 0)


def reference_seed(version: int) -> tuple[Multihash, bytes]:
    """A chain as the reference writes it: the bytes of its Seed."""
    found = next(
        each["expected"][str(version)]
        for each in vectors("block_hashes")
        if each["block"]["event"]["kind"] == "Seed"
        and "manifest_hex" in each["expected"][str(version)]
    )
    return Multihash.parse(found["multihash"]), bytes.fromhex(found["manifest_hex"])


@pytest.mark.parametrize("version", [2, 3])
def test_a_chain_of_the_reference_is_unsigned_and_works_unless_signatures_are_required(
    repository: Repository, reader: Workspace, version: int
) -> None:
    hash, data = reference_seed(version)
    for name, content in (("refs/head", str(hash).encode()), (f"blocks/{hash}", data)):
        file = repository.folder / NAME / name
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
    repository.refuses(reader, "E1082", signed=True)
    assert signed(repository.pull(reader)) == (None, 1)
    assert (reader.dataset(NAME).path / "blocks" / str(hash)).read_bytes() == data
    repository.refuses(reader, "E1082", signed=True)


def test_an_old_head_is_refused_whether_signed_or_not(
    repository: Repository, owner: DatasetStore, reader: Workspace
) -> None:
    repository.publish(owner)
    old = owner.head()
    statement = repository.statement.read_bytes()
    grow(owner, 6)
    repository.publish(owner)
    repository.pull(reader)
    (repository.folder / NAME / "refs" / "head").write_text(str(old))
    # The head of before beside the newest statement, also for who sees it for the first time,
    repository.refuses(reader, "E1083")
    repository.refuses(workspace(reader.state.parent / "new"), "E1083")
    # beside the statement of before, which is genuine,
    repository.statement.write_bytes(statement)
    repository.refuses(reader, "E1083")
    repository.refuses(reader, "E1083", replace=True)
    # and beside none.
    repository.statement.unlink()
    repository.refuses(reader, "E1083")


def test_an_old_head_of_an_unsigned_chain_is_refused_and_accepted_by_name(
    repository: Repository, owner: DatasetStore, reader: Workspace, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "owner" / ".odfbuild-keys")
    old = owner.head()
    grow(owner, 6)
    repository.publish(owner)
    repository.pull(reader)
    (repository.folder / NAME / "refs" / "head").write_text(str(old))
    repository.refuses(reader, "E1083")
    assert repository.pull(reader, replace=True).status is TransferStatus.REPLACED
    assert reader.dataset(NAME).head() == old


@pytest.mark.parametrize("keys", ["signed", "unsigned"])
def test_two_heads_of_one_age_are_a_fork(
    repository: Repository, owner: DatasetStore, reader: Workspace, tmp_path: Path, keys: str
) -> None:
    if keys == "unsigned":
        shutil.rmtree(tmp_path / "owner" / ".odfbuild-keys")
    twin = copied(owner, tmp_path / "twin", NAME)
    if keys == "signed":
        shutil.copytree(space_of(owner).keys, space_of(twin).keys)
    for store, text in ((owner, "one"), (twin, "the other")):
        store.append(store.head(), (info(text),), NOW)
    repository.publish(owner)
    repository.pull(reader)
    repository.publish(twin, replace=True)
    repository.refuses(reader, "E1084")
    # By name, as its owner has signed the other one later.
    assert repository.pull(reader, replace=True).status is TransferStatus.REPLACED
    assert reader.dataset(NAME).head() == twin.head()


def another_key(statement: bytes) -> bytes:
    found = SignedHead.parse(statement)
    proof = found.proof.data["proofValue"].encode()
    return statement.replace(proof[:20], b"u" + b"A" * 19)


FORGERIES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "another signature": ("E1081", another_key),
    "another number of blocks": ("E1081", lambda s: s.replace(b'"blocks": 5', b'"blocks": 4')),
    "no statement": ("E1080", lambda _: b"{}"),
    "a page": ("E1080", lambda _: b"<html>" + b" " * 9000),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_statement_is_refused_under_any_policy(
    repository: Repository, owner: DatasetStore, reader: Workspace, forgery: str
) -> None:
    repository.publish(owner)
    code, forge = FORGERIES[forgery]
    repository.statement.write_bytes(forge(repository.statement.read_bytes()))
    if code == "E1080" and repository.to is not None:
        # A server that knows statements shows no other file as one.
        repository.refuses(reader, "E1082", signed=True)
    else:
        for policy in (True, False):
            repository.refuses(reader, code, signed=policy)
    assert reader.dataset(NAME).head() is None
    # Who publishes it again repairs it.
    repository.publish(owner)
    assert signed(repository.pull(reader, signed=True)) == (owner.head(), 0)


def test_a_statement_about_another_dataset_is_refused(
    repository: Repository, owner: DatasetStore, reader: Workspace, tmp_path: Path
) -> None:
    repository.publish(published(tmp_path / "stranger", NAME))
    statement = repository.statement.read_bytes()
    shutil.rmtree(repository.folder)
    repository.publish(owner)
    repository.statement.write_bytes(statement)
    repository.refuses(reader, "E1081")


def test_a_signed_head_needs_the_library_that_checks_it(
    repository: Repository,
    owner: DatasetStore,
    reader: Workspace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repository.publish(owner)
    monkeypatch.setattr("odfbuild.extras.find_spec", lambda _: None)
    before = everything(reader.state.parent)
    found = repository.pull(reader)
    assert found.error is not None
    assert (found.error.code, found.error.help) == ("E0903", "run `pip install 'odfbuild[share]'`")
    assert everything(reader.state.parent) == before or not before


def test_a_pull_up_to_a_block_is_checked_against_the_whole_history(
    repository: Repository, owner: DatasetStore, reader: Workspace
) -> None:
    first = owner.head()
    grow(owner, 6)
    repository.publish(owner)
    found = repository.pull(reader, to=str(first), signed=True)
    assert (found.after, signed(found)) == (first, (owner.head(), 0))
    found = repository.pull(reader, signed=True)
    assert (found.after, found.status) == (owner.head(), TransferStatus.UPDATED)


def test_a_signed_history_is_replaced_only_by_who_can_sign(
    repository: Repository, owner: DatasetStore, reader: Workspace, tmp_path: Path
) -> None:
    twin = copied(owner, tmp_path / "twin", NAME)
    first = owner.head()
    repository.publish(owner)
    for store, text in ((owner, "one"), (twin, "the other")):
        store.append(store.head(), (info(text),), NOW)
    repository.publish(owner)
    found = repository.push(twin, replace=True)
    assert found.error is not None
    assert (found.error.code, "key import" in (found.error.help or "")) == ("E1090", True)
    assert signed(repository.pull(reader)) == (owner.head(), 0)
    # What was added unsigned may be given up: the statement is about a block of both.
    fresh = workspace(tmp_path / "fresh")
    assert first is not None
    (repository.folder / NAME / "info" / FILE).write_bytes(older_statement(owner, first))
    repository.publish(twin, replace=True)
    assert signed(repository.pull(fresh)) == (first, 1)


def older_statement(owner: DatasetStore, head: Multihash) -> bytes:
    """What its owner says of a dataset when that block is the head."""
    number = owner.read_block(head).sequence_number + 1
    state = space_of(owner).projection(NAME)
    assert state is not None
    statement = Statement(dataset_id=state.dataset_id, head=head, blocks=number, time=NOW)
    key = space_of(owner).private_keys.key(state.dataset_id)
    assert key is not None
    return SignedHead.sign(statement, key).encode()


def test_after_a_reset_that_was_accepted_nothing_speaks_of_the_old_history(
    repository: Repository, owner: DatasetStore, reader: Workspace
) -> None:
    old = owner.head()
    grow(owner, 6)
    repository.publish(owner)
    repository.pull(reader)
    (repository.folder / NAME / "refs" / "head").write_text(str(old))
    repository.statement.unlink()
    repository.refuses(reader, "E1083", replace=True)
    assert repository.pull(reader, replace=True, unsigned=True).status is TransferStatus.REPLACED
    assert seen_statement(reader.dataset(NAME)) is None
    assert repository.pull(reader).status is TransferStatus.UP_TO_DATE

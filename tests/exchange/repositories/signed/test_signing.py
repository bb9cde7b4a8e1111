"""Heads are signed when they are published, and checked when they are pulled."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from odfbuild.errors import IntegrityError, OdfbuildError
from odfbuild.exchange.repositories.head_rules import Line, Vouched
from odfbuild.exchange.repositories.signing import (
    check_vouched,
    settled,
    sign_head,
)
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.signed_head import FILE, SignedHead
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.signed_heads import keep_statement
from odfbuild.store.workspace import Workspace
from tests.store.chains import NOW, create, info, workspace

ADDRESS = "https://data.example.org/root"


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    """A dataset `root` of two blocks."""
    space = workspace(tmp_path / "owner")
    create(space, "root", info("a"))
    return space


@pytest.fixture
def here(tmp_path: Path) -> DatasetStore:
    """The dataset at somebody who never pulled it."""
    return workspace(tmp_path / "reader").dataset("root")


def state(space: Workspace) -> Projection:
    found = space.projection("root")
    assert found is not None
    return found


def goes_on(space: Workspace, text: str = "b") -> None:
    store = space.dataset("root")
    store.append(store.head(), (info(text),), NOW)


def signed(space: Workspace) -> SignedHead:
    """The statement that is published with the head."""
    found = sign_head(space, "root", state(space))
    assert found is not None
    return found


def line(space: Workspace) -> Line:
    walked = list(space.dataset("root").walk(state(space).head))
    return Line({hash: block.sequence_number + 1 for hash, block in reversed(walked)})


def check(
    space: Workspace, here: DatasetStore, said: bytes | None, *, required: bool = False
) -> Vouched:
    """What a pull of `space` finds."""
    id = state(space).dataset_id
    return check_vouched(here, ADDRESS, id, line(space), said, required=required)


def refused(code: str, pull: Callable[[], object]) -> OdfbuildError:
    with pytest.raises(OdfbuildError) as error:
        pull()
    assert error.value.code == code
    assert error.value.help
    assert any(ADDRESS in note for note in error.value.notes)
    return error.value


def test_the_key_of_a_dataset_signs_its_head(space: Workspace) -> None:
    first = signed(space)
    assert first.holds
    assert (first.statement.head, first.statement.blocks) == (state(space).head, 2)
    goes_on(space)
    second = signed(space)
    assert second.statement.blocks == 3
    assert second.statement.time > first.statement.time


def test_an_owner_never_signs_for_a_time_before_a_statement_of_before(space: Workspace) -> None:
    future = Timestamp(Timestamp.now().ns + 10**18)
    statement = replace(signed(space).statement, time=future)
    key = space.private_keys.key(statement.dataset_id)
    assert key is not None
    keep_statement(space.dataset("root"), SignedHead.sign(statement, key))
    goes_on(space)
    assert signed(space).statement.time > future


def test_who_has_no_key_forwards_a_statement_about_that_very_head(space: Workspace) -> None:
    found = signed(space)
    keep_statement(space.dataset("root"), found)
    shutil.rmtree(space.keys)
    assert sign_head(space, "root", state(space)) == found
    goes_on(space)
    assert sign_head(space, "root", state(space)) is None


def test_signed_and_unsigned_heads_are_told_apart(space: Workspace, here: DatasetStore) -> None:
    assert check(space, here, None) == Vouched(None, 2)
    found = signed(space)
    assert check(space, here, found.encode(), required=True) == Vouched(found, 0)
    goes_on(space)
    assert check(space, here, found.encode()) == Vouched(found, 1)


def test_a_statement_that_was_kept_counts_where_none_is_served(
    space: Workspace, here: DatasetStore
) -> None:
    found = signed(space)
    keep_statement(here, check(space, here, found.encode()).signed)
    assert check(space, here, None, required=True) == Vouched(found, 0)


def test_an_unsigned_head_is_refused_where_signatures_are_required(
    space: Workspace, here: DatasetStore
) -> None:
    error = refused("E1082", lambda: check(space, here, None, required=True))
    assert "signatures: required" in error.message
    said = signed(space).encode()
    goes_on(space)
    error = refused("E1082", lambda: check(space, here, said, required=True))
    assert any("block #1 " in note for note in error.notes)


@pytest.mark.parametrize("said", [b"", b"{}", b"\0" * 70_000])
def test_a_malformed_statement_is_refused_under_any_policy(
    space: Workspace, here: DatasetStore, said: bytes
) -> None:
    refused("E1080", lambda: check(space, here, said))


def test_a_damaged_statement_of_earlier_is_not_passed_over(
    space: Workspace, here: DatasetStore
) -> None:
    keep_statement(here, signed(space))
    (here.path / "info" / FILE).write_bytes(b"damaged")
    with pytest.raises(IntegrityError) as error:
        check(space, here, None)
    assert error.value.code == "E1080"
    assert "git checkout" in (error.value.help or "")


def test_a_forged_statement_is_refused_under_any_policy(
    space: Workspace, here: DatasetStore, tmp_path: Path
) -> None:
    foreign = workspace(tmp_path / "stranger")
    create(foreign, "root", info("a"))
    error = refused("E1081", lambda: check(space, here, signed(foreign).encode()))
    assert "another dataset" in error.message
    changed = signed(space).encode().replace(b'"blocks": 2', b'"blocks": 3')
    error = refused("E1081", lambda: check(space, here, changed))
    assert "not signed with the dataset's key" in error.message


def test_an_old_head_is_a_rollback(space: Workspace, here: DatasetStore, tmp_path: Path) -> None:
    shutil.copytree(space.state, tmp_path / "old" / "chains")
    old = workspace(tmp_path / "old")
    goes_on(space)
    newest = signed(space)
    # The repository serves the old chain beside the statement about the new one …
    refused("E1083", lambda: check(old, here, newest.encode()))
    # … or without it, to somebody who has seen it.
    keep_statement(here, newest)
    refused("E1083", lambda: check(old, here, None))


def test_an_unsigned_old_head_is_a_rollback_for_whoever_pinned_a_newer_one(
    space: Workspace, tmp_path: Path
) -> None:
    shutil.copytree(space.state, tmp_path / "old" / "chains")
    old = workspace(tmp_path / "old")
    goes_on(space)
    pinned = space.dataset("root")  # as if it had been pulled

    def pull(reset: bool = False) -> Vouched:
        id, served = state(old).dataset_id, line(old)
        return check_vouched(
            pinned, ADDRESS, id, served, None, required=False, pinned=line(space), reset=reset
        )

    refused("E1083", pull)
    assert pull(reset=True) == Vouched(None, 2)


def test_two_heads_of_one_age_are_a_fork(
    space: Workspace, here: DatasetStore, tmp_path: Path
) -> None:
    shutil.copytree(space.state, tmp_path / "twin" / "chains")
    shutil.copytree(space.keys, tmp_path / "twin" / ".odfbuild-keys")
    twin = workspace(tmp_path / "twin")
    goes_on(space, "b")
    goes_on(twin, "c")
    keep_statement(here, signed(space))
    refused("E1084", lambda: check(twin, here, signed(twin).encode()))
    refused("E1084", lambda: check(twin, here, None))
    refused("E1084", lambda: check(twin, here, signed(space).encode()))


class Moving:
    """A dataset that is published while it is looked at: first the head moves, then the file."""

    address = ADDRESS

    def __init__(self, *said: tuple[str, bytes | None]) -> None:
        self._said = list(said)

    def head(self) -> Multihash | None:
        text = self._said[0][0]
        return Multihash.sha3_256(text.encode()) if text else None

    def info(self, name: str) -> bytes | None:
        assert name == FILE
        said = self._said[0][1]
        if len(self._said) > 1:
            self._said.pop(0)
        return said


def test_head_and_statement_are_read_until_they_are_of_one_moment() -> None:
    def look(*said: tuple[str, bytes | None]) -> tuple[Multihash | None, bytes | None]:
        return settled(Moving(*said))  # type: ignore[arg-type]

    head = Multihash.sha3_256(b"2")
    assert look(("2", b"2")) == (head, b"2")
    assert look(("1", b"1"), ("2", b"2")) == (head, b"2")
    assert look(("2", None)) == (head, None)
    assert look(("", None)) == (None, None)

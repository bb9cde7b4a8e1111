"""Statements: one spelling, a signature of the dataset, a set that grows, and how they travel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from odfbuild.errors import PersonalDataError, RepositoryError
from odfbuild.exchange.repositories.contract import Publication
from odfbuild.exchange.repositories.outcome import Transfer
from odfbuild.exchange.repositories.pull import Pull, pull
from odfbuild.exchange.repositories.push import Push, push
from odfbuild.exchange.repositories.simple import SimpleDataset
from odfbuild.exchange.repositories.smart.client import SmartDataset
from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import AddData
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.stewardship import (
    FILE,
    Erasure,
    Signed,
    Withdrawal,
    encode_statements,
    in_order,
    parse_statements,
)
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.committed import Committed
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.place import Folder
from odfbuild.store.stewardship import sign_statement
from odfbuild.store.workspace import Workspace
from tests.exchange.repositories.serving import ALICE, Served, served
from tests.exchange.repositories.smart_chains import (
    NAME,
    grow,
    note,
    prices,
    with_shared_checkpoint,
)
from tests.store.chains import create, workspace

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
ID = DatasetId(KEY.public_key().public_bytes_raw())
times = st.integers(0, 1 << 60).map(Timestamp)
numbers = st.integers(0, (1 << 63) - 1)
hashes = st.binary(max_size=4).map(Multihash.sha3_256)
withdrawals = st.builds(
    Withdrawal,
    dataset_id=st.just(ID),
    time=times,
    by=st.text(max_size=20),
    why=st.text(max_size=20),
    through=hashes,
    number=numbers,
    records=numbers,
)
erasures = st.builds(
    Erasure,
    dataset_id=st.just(ID),
    time=times,
    by=st.text(max_size=20),
    head=hashes,
    records=numbers,
    subjects=st.lists(st.binary(min_size=32, max_size=32), max_size=4).map(tuple),
    numbers=st.lists(numbers, max_size=4).map(tuple),
)
signed = (withdrawals | erasures).map(lambda said: Signed.sign(said, KEY))


@given(st.lists(signed, max_size=6))
def test_statements_read_back_as_they_were_written(said: list[Signed]) -> None:
    data = encode_statements(said)
    assert parse_statements(data) == in_order(said)
    assert encode_statements(parse_statements(data)) == data
    assert all(each.holds for each in parse_statements(data))


@given(st.lists(signed, max_size=4), st.lists(signed, max_size=4), st.lists(signed, max_size=4))
def test_merging_copies_does_not_depend_on_their_order(
    a: list[Signed], b: list[Signed], c: list[Signed]
) -> None:
    assert in_order([*in_order([*a, *b]), *c]) == in_order([*c, *in_order([*b, *a])])
    assert in_order([*a, *a]) == in_order(a)


@settings(max_examples=300)
@given(signed, st.data())
def test_no_other_bytes_are_a_statement_of_the_owner(said: Signed, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(said.line) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda each: each != said.line[at]))
    changed = said.line[:at] + bytes([byte]) + said.line[at + 1 :]
    try:
        found = parse_statements(changed)
    except ValueError:
        return
    assert not all(each.holds for each in found)


# --- Beside a chain ---


def withdraw(space: Workspace, store: DatasetStore, slices: int) -> Signed:
    """Say that the oldest slices are withdrawn; their objects stay where they are."""
    state = space.projection(store.name)
    added = [
        (hash, block)
        for hash, block in reversed(list(store.walk(state.head)))
        if isinstance(block.event, AddData)
    ]
    through, block = added[slices - 1]
    said = Withdrawal(
        dataset_id=state.dataset_id,
        time=Timestamp(1_000 + slices),
        by="Ada",
        why="records are kept for 400 days",
        through=through,
        number=block.sequence_number,
        records=3 * slices,
    )
    made = sign_statement(space.private_keys, said, store.name)
    store.add_statements([made])
    return made


def remove(store: DatasetStore) -> int:
    """Remove what was withdrawn."""
    gone = store.withdrawn()
    for kind, hash in gone:
        store.object_path(kind, hash).unlink(missing_ok=True)
    return len(gone)


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return workspace(tmp_path / "ours")


@pytest.fixture
def store(space: Workspace) -> DatasetStore:
    """A dataset of four slices."""
    return prices(space.state.parent, 4)


def test_readers_see_what_is_left_and_verify_is_content(
    space: Workspace, store: DatasetStore
) -> None:
    withdraw(space, store, 1)
    withdraw(space, store, 3)
    assert {said.number for said in store.withdrawn().values()} == {2, 4}
    assert remove(store) == 3
    left = Committed(store, store.head()).slices()
    assert [each.data.offset_interval.start for each in left] == [9]
    assert verify_integrity(space, [NAME]) == ()
    gone = next(hash for _, hash in store.withdrawn())
    with pytest.raises(PersonalDataError, match="was withdrawn by the statement") as raised:
        store.bring("data", gone)
    assert raised.value.code == "E1630"
    left[0].file.unlink()
    assert [each.code for each in verify_integrity(space, [NAME])] == ["E0811"]


def test_a_checkpoint_that_newer_blocks_refer_to_stays(tmp_path: Path) -> None:
    store = with_shared_checkpoint(tmp_path)
    withdraw(workspace(tmp_path), store, 3)
    assert {kind for kind, _ in store.withdrawn()} == {"data"}


def test_a_statement_about_another_history_says_nothing_of_this_one(
    space: Workspace, store: DatasetStore
) -> None:
    withdraw(space, store, 2)
    seed = store.seed(store.head())
    store.swap_head(store.head(), seed)
    note(store, "another history")
    grow(store, space.state.parent, 2)
    assert store.withdrawn() == {}
    assert len(Committed(store, store.head()).slices()) == 2


@pytest.mark.parametrize(
    ("wrong", "code"), [("another key", "E1625"), ("another dataset", "E1625"), ("text", "E1624")]
)
def test_a_forged_statement_is_refused(
    space: Workspace, store: DatasetStore, wrong: str, code: str
) -> None:
    made = withdraw(space, store, 2)
    file = store.path / "info" / FILE
    other = replace(made.statement, dataset_id=ID)
    if wrong == "another key":
        forged = Signed(made.statement, Signed.sign(other, KEY).proof)
        file.write_bytes(forged.line)
    elif wrong == "another dataset":
        file.write_bytes(Signed.sign(other, KEY).line)
    else:
        file.write_bytes(b"{}\n")
    with pytest.raises(PersonalDataError) as raised:
        DatasetStore(store.path, store.name).statements()
    assert (raised.value.code, raised.value.exit_code) == (code, 3)


def test_without_the_private_key_nothing_is_said(space: Workspace, store: DatasetStore) -> None:
    for each in space.keys.iterdir():
        each.unlink()
    with pytest.raises(PersonalDataError) as raised:
        withdraw(space, store, 1)
    assert raised.value.code == "E1626"
    assert store.statements() == ()


# --- On the way ---


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("serve") / "hub") as server:
        create(server.space, "acc/prices")
        yield server


@pytest.mark.parametrize("protocol", ["simple", "smart"])
def test_statements_and_no_withdrawn_objects_travel(
    space: Workspace, store: DatasetStore, tmp_path: Path, hub: Served, protocol: str
) -> None:
    def there() -> SimpleDataset | SmartDataset:
        if protocol == "simple":
            return SimpleDataset(Folder(tmp_path / "acme" / NAME), NAME)
        return SmartDataset(hub.url("net.example.bob.prices"), ALICE)

    def pushed() -> None:
        [done] = push(space, [Push(name=NAME, address="acme", open=there)])
        assert done.error is None

    def pulled(into: Workspace) -> Transfer:
        wanted = Pull(name=NAME, address="acme", reference=f"acme/{NAME}", open=there)
        [done] = pull(into, [wanted])
        return done

    peer = workspace(tmp_path / "peer")
    pushed()
    assert pulled(peer).objects == 4
    withdraw(space, store, 2)
    remove(store)
    assert verify_integrity(space, [NAME]) == ()
    pushed()
    assert pulled(peer).error is None
    assert len(peer.dataset(NAME).withdrawn()) == 2
    fresh = workspace(tmp_path / "fresh")
    assert pulled(fresh).objects == 2
    assert verify_integrity(fresh, [NAME]) == ()
    grow(store, space.state.parent, 1)
    withdraw(space, store, 3)
    remove(store)
    pushed()
    assert pulled(peer).error is None
    assert len(peer.dataset(NAME).withdrawn()) == 3
    if protocol == "simple":
        assert len(list((tmp_path / "acme" / NAME / "data").iterdir())) == 2
    # Whoever pushes a part of it only, takes nothing away.
    said = peer.dataset(NAME).statements()
    push(fresh, [Push(name=NAME, address="acme", open=there)])
    assert parse_statements(there().info(FILE)) == said


def test_a_forged_statement_of_a_repository_changes_nothing(
    space: Workspace, store: DatasetStore, tmp_path: Path
) -> None:
    def there() -> SimpleDataset:
        return SimpleDataset(Folder(tmp_path / "acme" / NAME), NAME)

    push(space, [Push(name=NAME, address="acme", open=there)])
    made = withdraw(space, store, 2)
    forged = Signed.sign(replace(made.statement, dataset_id=ID), KEY)
    (tmp_path / "acme" / NAME / "info" / FILE).write_bytes(forged.line)
    peer = workspace(tmp_path / "peer")
    wanted = Pull(name=NAME, address="acme", reference=f"acme/{NAME}", open=there)
    [done] = pull(peer, [wanted])
    assert done.error.code == "E1625"
    assert peer.dataset(NAME).head() is None
    # The owner's next push puts it right.
    push(space, [Push(name=NAME, address="acme", open=there)])
    [done] = pull(peer, [wanted])
    assert done.error is None


def test_a_server_takes_statements_of_the_owner_only(
    space: Workspace, store: DatasetStore, hub: Served
) -> None:
    dataset = SmartDataset(hub.url("net.example.bob.other"), ALICE)
    [done] = push(space, [Push(name=NAME, address="acme", open=lambda: dataset)])
    assert done.error is None
    made = withdraw(space, store, 2)
    forged = Signed.sign(replace(made.statement, dataset_id=ID), KEY)
    only = {FILE: forged.line}
    wrong = Publication(expected=store.head(), blocks=(), objects=(), files={}, info=only)
    with pytest.raises(RepositoryError):
        dataset.publish(wrong)
    assert dataset.info(FILE) is None

"""Chains of others are brought forward, byte by byte, or refused with nothing changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from odfbuild.exchange.repositories.contract import Offer, RawBlock
from odfbuild.exchange.repositories.dataset_config import read_config
from odfbuild.exchange.repositories.outcome import Transfer, TransferStatus
from odfbuild.exchange.repositories.pull import Pull, pull
from odfbuild.exchange.repositories.simple import SimpleOffer
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import DatasetKind, Seed
from odfbuild.odf.multihash import Multihash
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.workspace import Workspace
from tests.exchange.repositories.chains import (
    NOW,
    SCHEMA,
    add_slice,
    commit,
    copied,
    create,
    everything,
    files,
    grow,
    info,
    published,
    with_checkpoints,
    workspace,
)
from tests.exchange.repositories.peers import Peer


@pytest.fixture
def origin(tmp_path: Path) -> DatasetStore:
    return published(tmp_path / "origin")


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return workspace(tmp_path / "here")


def bring(
    space: Workspace, peer: Peer | DatasetStore, name: str = "prices", **options: Any
) -> Transfer:
    """Pull one dataset; `dry_run` and the options of `Pull`."""
    if isinstance(peer, DatasetStore):
        peer = Peer(peer.path)
    dry_run = options.pop("dry_run", False)
    wanted = Pull(
        name=name, address=peer.address, reference="acme/prices", open=lambda: peer, **options
    )
    [found] = pull(space, [wanted], dry_run=dry_run)
    return found


def refused(
    space: Workspace, peer: Peer | DatasetStore, code: str, name: str = "prices", **options: Any
) -> Transfer:
    """Pull one dataset, which is refused with that code and changes nothing."""
    before = everything(space.state.parent)
    found = bring(space, peer, name, **options)
    assert found.status is TransferStatus.FAILED
    assert found.error is not None
    assert found.error.code == code, found.error
    assert found.error.help
    assert everything(space.state.parent) == before or not before
    return found


def chain_of_seed(store: DatasetStore) -> None:
    """Nothing but a Seed."""


def chain_of_manifest_2(store: DatasetStore) -> None:
    commit(store, [info("old"), SCHEMA], version=2)


@pytest.mark.parametrize(
    "shape", [chain_of_seed, chain_of_manifest_2, with_checkpoints, lambda s: grow(s, 0)]
)
def test_a_pulled_chain_is_identical_file_by_file(
    tmp_path: Path, space: Workspace, shape: Any
) -> None:
    origin = create(workspace(tmp_path / "origin"), "prices")
    shape(origin)
    found = bring(space, origin)
    assert found.status is TransferStatus.NEW, found.error
    here = space.dataset("prices")
    assert files(here) == files(origin)
    assert not list(space.state.rglob(".pending-*"))
    assert (here.path / "info" / "alias").read_text() == "prices"
    assert read_config(here.folder).pull_aliases == ("acme/prices",)
    assert not space.keys.exists()
    assert (space.state / ".gitignore").exists()


def test_only_new_blocks_and_objects_are_asked_for(origin: DatasetStore, space: Workspace) -> None:
    first = bring(space, origin)
    assert (first.blocks, first.records, first.objects) == (5, 6, 2)
    grow(origin, 6)
    peer = Peer(origin.path)
    second = bring(space, peer)
    assert (second.status, second.blocks, second.records) == (TransferStatus.UPDATED, 1, 3)
    assert len(peer.asked) == 4  # a block, an object, the signature, what is gone
    assert (second.before, second.after) == (first.after, origin.head())
    assert files(space.dataset("prices")) == files(origin)


def test_nothing_new_asks_for_the_head_and_what_its_owner_says_alone(
    origin: DatasetStore, space: Workspace
) -> None:
    bring(space, origin)
    peer = Peer(origin.path)
    assert bring(space, peer).status is TransferStatus.UP_TO_DATE
    assert peer.asked == ["info/signed-head", "info/statements"]


def test_pulling_a_new_block_reads_as_few_blocks_here_as_it_brings(
    tmp_path: Path, space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = create(workspace(tmp_path / "origin"), "prices", *(info(str(n)) for n in range(60)))
    grow(origin, 0)
    bring(space, origin)
    space.projections()  # as every plan does
    grow(origin, 3)
    read: list[str] = []
    real = DatasetStore.read_raw

    def counted(self: DatasetStore, block: Multihash) -> bytes:
        if self.path.is_relative_to(space.state):
            read.append(str(block))
        return real(self, block)

    monkeypatch.setattr(DatasetStore, "read_raw", counted)
    assert bring(space, origin).blocks == 1
    assert len(read) <= 3


def test_a_dry_run_says_what_would_come_and_changes_nothing(
    origin: DatasetStore, space: Workspace
) -> None:
    found = bring(space, origin, dry_run=True)
    assert (found.status, found.blocks, found.objects) == (TransferStatus.NEW, 5, 2)
    assert not space.state.exists()


def test_pulling_ends_at_the_block_that_is_named(origin: DatasetStore, space: Workspace) -> None:
    hashes = [hash for hash, _ in origin.walk(origin.head())][::-1]
    found = bring(space, origin, to=str(hashes[3])[-8:])
    assert (found.after, found.blocks, found.objects) == (hashes[3], 4, 1)
    assert bring(space, origin, to=str(hashes[1])).status is TransferStatus.UP_TO_DATE
    refused(space, origin, "E1031", to="0000000000")
    assert bring(space, origin).after == origin.head()
    assert bring(space, origin, to=str(hashes[1])).status is TransferStatus.UP_TO_DATE
    refused(space, origin, "E1031", to="0000000000")


def test_a_chain_can_come_without_its_data(origin: DatasetStore, space: Workspace) -> None:
    found = bring(space, origin, data=False)
    assert (found.status, found.records, found.objects) == (TransferStatus.NEW, 6, 0)
    here = space.dataset("prices")
    assert (here.head(), list(here.stored("data"))) == (origin.head(), [])


def test_there_is_no_dataset(tmp_path: Path, space: Workspace) -> None:
    refused(space, Peer(tmp_path / "nowhere"), "E1020")


def test_blocks_of_ones_own_are_told_and_kept(origin: DatasetStore, space: Workspace) -> None:
    """Scenario 32: pull while the chain here is two blocks ahead."""
    bring(space, origin)
    here = space.dataset("prices")
    here.append(here.head(), (info("mine"), info("mine too")), NOW)
    found = refused(space, origin, "E1026")
    assert found.error is not None
    assert "2 blocks" in found.error.message
    found = bring(space, origin, replace=True, dry_run=True)
    assert here.head() != origin.head()
    found = bring(space, origin, replace=True)
    assert (found.status, found.lost_blocks) == (TransferStatus.REPLACED, 2)
    assert here.head() == origin.head()


def test_rewritten_history_is_refused_as_what_it_is_and_accepted_by_name(
    tmp_path: Path, origin: DatasetStore, space: Workspace
) -> None:
    """Scenarios 22, 37 and 38: one block here beside two others there."""
    bring(space, origin)
    other = copied(origin, tmp_path / "other")
    grow(origin, 6)
    bring(space, origin)
    before = space.dataset("prices").head()
    common = other.head()
    other.append(common, (info("x"), info("y")), NOW)
    found = refused(space, other, "E1025")
    assert found.error is not None
    assert found.error.notes == (
        f"the last common block is {common}",
        "only here:  1 block with 3 records",
        "only there: 2 blocks with 0 records",
        "nothing was changed",
    )
    assert "--allow reset:prices" in (found.error.help or "")
    found = bring(space, other, replace=True)
    assert (found.status, found.before) == (TransferStatus.REPLACED, before)
    assert (found.blocks, found.lost_blocks, found.lost_records) == (2, 1, 3)
    assert space.dataset("prices").head() == other.head()


def test_another_dataset_never_takes_the_place_of_one(
    tmp_path: Path, origin: DatasetStore, space: Workspace
) -> None:
    """Scenario 49, the half of pulling: also not when a reset is allowed."""
    bring(space, origin)
    stranger = published(tmp_path / "stranger")
    refused(space, stranger, "E1023")
    refused(space, stranger, "E1023", replace=True)


def test_the_identity_that_a_reference_names_is_asked_for(
    tmp_path: Path, origin: DatasetStore, space: Workspace
) -> None:
    state = workspace(tmp_path / "origin").projection("prices")
    assert state is not None
    refused(space, origin, "E1023", expected=DatasetId(bytes(32)))
    assert not space.state.exists() or not space.aliases()
    assert bring(space, origin, expected=state.dataset_id).status is TransferStatus.NEW
    refused(space, origin, "E1023", expected=DatasetId(bytes(32)))
    assert bring(space, origin, expected=state.dataset_id).status is TransferStatus.UP_TO_DATE


def test_one_dataset_is_not_pulled_under_two_names(origin: DatasetStore, space: Workspace) -> None:
    bring(space, origin)
    found = refused(space, origin, "E1024", "again")
    assert found.error is not None
    assert "'prices'" in found.error.message


def test_what_fails_with_one_dataset_leaves_the_others(
    tmp_path: Path, origin: DatasetStore, space: Workspace
) -> None:
    peers = {"prices": Peer(origin.path), "gone": Peer(tmp_path / "gone")}
    wanted = [
        Pull(name=name, address=peer.address, reference=name, open=partial(peers.__getitem__, name))
        for name, peer in peers.items()
    ]
    found = pull(space, wanted)
    assert [each.status for each in found] == [TransferStatus.NEW, TransferStatus.FAILED]


def longer_but_invalid(store: DatasetStore) -> None:
    """A second seed behind many right blocks."""
    commit(store, [info("a"), info("b")])
    seed = Seed(dataset_id=DatasetId(bytes(32)), dataset_kind=DatasetKind.Root)
    commit(store, [seed, info("c")])


def wrong_bytes(store: DatasetStore) -> None:
    """A block that no program can read, under the hash that it has."""
    head = store.put_block(b"no block")
    store.swap_head(store.head(), head)


def no_seed(store: DatasetStore) -> None:
    from odfbuild.odf.flatbuffers.form import encode_block
    from odfbuild.odf.model import MetadataBlock

    block = MetadataBlock(
        system_time=NOW, prev_block_hash=None, sequence_number=0, event=info("first")
    )
    store.swap_head(store.head(), store.put_block(encode_block(block)))


class Sloppy(Peer):
    """A protocol that looks at hashes alone."""

    @contextmanager
    def offer(self, head: Multihash, after: Multihash | None) -> Iterator[Offer]:
        yield SimpleOffer(self, head, [RawBlock(head, self.store.read_raw(head))])


def test_a_block_that_nobody_can_read_is_refused(origin: DatasetStore, space: Workspace) -> None:
    wrong_bytes(origin)
    refused(space, Sloppy(origin.path), "E1021")


class Short(Peer):
    """Names a head, and does not send all blocks up to it; the first `kept` of them."""

    kept = 0

    @contextmanager
    def offer(self, head: Multihash, after: Multihash | None) -> Iterator[Offer]:
        with super().offer(head, after) as whole:
            yield SimpleOffer(self, head, whole.blocks[: self.kept])


@pytest.mark.parametrize("kept", [0, 1])
def test_a_chain_that_comes_without_its_head_is_refused(
    origin: DatasetStore, space: Workspace, kept: int
) -> None:
    peer = Short(origin.path)
    peer.kept = kept
    refused(space, peer, "E1022")
    bring(space, origin)
    grow(origin, 6)
    grow(origin, 9)
    refused(space, peer, "E1022")


def test_a_head_that_moves_while_a_pull_reads_is_pulled_next_time(
    origin: DatasetStore, space: Workspace
) -> None:
    class Moving(Peer):
        def head(self) -> Multihash | None:
            found = super().head()
            grow(origin, 6)
            return found

    before = origin.head()
    found = bring(space, Moving(origin.path))
    assert (found.status, found.after) == (TransferStatus.NEW, before)
    assert bring(space, origin).after == origin.head()


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    ("spoil", "code"),
    [(longer_but_invalid, "E1022"), (wrong_bytes, "E1010"), (no_seed, "E1022")],
)
def test_a_wrong_chain_is_refused_and_nothing_moves(
    origin: DatasetStore, space: Workspace, spoil: Any, code: str, known: bool
) -> None:
    """Scenario 56: every rule of the chain is asked, for all blocks and for new ones."""
    if known:
        bring(space, origin)
    spoil(origin)
    refused(space, origin, code)
    refused(space, origin, code, replace=True)


def test_an_object_with_other_bytes_is_refused_and_the_head_stays(
    origin: DatasetStore, space: Workspace
) -> None:
    bring(space, origin)
    grow(origin, 6)
    newest = max(origin.path.glob("data/*"), key=lambda file: file.stat().st_mtime_ns)
    newest.write_bytes(b"x" * newest.stat().st_size)
    refused(space, origin, "E1008")


def test_objects_of_an_earlier_attempt_are_not_fetched_again(
    origin: DatasetStore, space: Workspace
) -> None:
    """Scenario 24: for a new dataset and for one that is known."""
    for first in (6, 9):
        *_, last = sorted(origin.path.glob("data/*"), key=lambda f: f.stat().st_mtime_ns)
        hidden = last.rename(last.with_name("hidden"))
        assert bring(space, origin).status is TransferStatus.FAILED
        hidden.rename(last)
        peer = Peer(origin.path)
        assert bring(space, peer).status in (TransferStatus.NEW, TransferStatus.UPDATED)
        assert [each for each in peer.asked if each.startswith("data/")] == [f"data/{last.name}"]
        assert files(space.dataset("prices")) == files(origin)
        grow(origin, first)


def test_a_checkpoint_that_is_missing_at_the_source_leaves_the_head(
    tmp_path: Path, space: Workspace
) -> None:
    """Scenario 39."""
    origin = create(workspace(tmp_path / "origin"), "prices")
    with_checkpoints(origin)
    next(iter(origin.path.glob("checkpoints/*"))).unlink()
    found = bring(space, origin)
    assert found.error is not None
    assert space.aliases() == []


def test_a_pulled_dataset_can_be_read_and_extended_like_any_other(
    origin: DatasetStore, space: Workspace, tmp_path: Path
) -> None:
    bring(space, origin)
    state = space.projection("prices")
    assert state is not None
    assert (state.records, state.blocks) == (6, 5)
    add_slice(space.dataset("prices"), tmp_path / "staged", 6, 1)

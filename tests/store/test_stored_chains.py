"""Chains whose blocks are in the storage: heads, signed summaries, packs, and two clones."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odfbuild.errors import EnvironmentProblem, IntegrityError
from odfbuild.odf.chain.summary import SignedSummary
from odfbuild.odf.model import DatasetKind, MetadataEvent
from odfbuild.odf.multihash import Multihash
from odfbuild.store import packs, stored_blocks
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.packs import Link, Pack, cut, pack
from odfbuild.store.storage import Storage
from odfbuild.store.stored_blocks import StoredBlocks
from odfbuild.store.summaries import summary_file
from odfbuild.store.workspace import Workspace
from tests.store.chains import NOW, add_slice, info


def clone(root: Path, storage: Path, *, branch: str | None = None) -> Workspace:
    """A clone of a project in `root` whose storage is a folder."""
    return Workspace(
        root / "chains",
        root / ".odfbuild-keys",
        root / ".odfbuild",
        Storage(str(storage), root),
        branch=branch,
        stored_chains=True,
    )


def long_chain(space: Workspace, blocks: int, alias: str = "a") -> DatasetStore:
    """A dataset with so many blocks, appended in turn by one and by several."""
    store = space.create(alias, DatasetKind.Root, (info("0"),), NOW)
    number = 2
    while number < blocks:
        some = min(1 + number % 7 * 9, blocks - number)
        store.append(store.head(), [info(str(number + i)) for i in range(some)], NOW)
        number += some
    return store


def committed_to_git(source: Path, target: Path) -> None:
    """What Git brings to another clone: no caches, no keys, no data."""
    shutil.copytree(source / "chains", target / "chains")


def files_below(folder: Path) -> list[str]:
    return sorted(each.relative_to(folder).as_posix() for each in folder.rglob("f1620*"))


def test_the_folder_has_a_head_and_a_summary_and_the_storage_has_the_blocks(
    tmp_path: Path,
) -> None:
    store = long_chain(clone(tmp_path / "one", tmp_path / "lake"), 7)
    head = store.head()
    assert head is not None
    assert files_below(tmp_path / "one" / "chains") == []
    signed = SignedSummary.parse(summary_file(store.folder, "head").read_bytes())
    assert signed.holds
    assert (signed.summary.head, signed.summary.projection.blocks) == (head, 7)
    assert len(files_below(tmp_path / "lake" / "blocks")) == 7


def test_bytes_and_heads_are_those_of_a_chain_in_git(tmp_path: Path) -> None:
    stored = long_chain(clone(tmp_path / "one", tmp_path / "lake"), 3)
    head = stored.head()
    assert head is not None
    plain = DatasetStore(tmp_path / "plain")
    current: Multihash | None = head
    while current is not None:
        data = stored.read_raw(current)
        assert plain.put_block(data) == current
        current = plain.read_block(current).prev_block_hash


def test_another_clone_plans_from_the_summary_without_the_storage(tmp_path: Path) -> None:
    space = clone(tmp_path / "one", tmp_path / "lake")
    long_chain(space, 120)
    committed_to_git(tmp_path / "one", tmp_path / "two")
    (tmp_path / "lake").rename(tmp_path / "away")
    other = clone(tmp_path / "two", tmp_path / "lake")
    assert other.projection("a") == space.projection("a")


def test_another_clone_reads_all_blocks_and_appends(tmp_path: Path) -> None:
    one = long_chain(clone(tmp_path / "one", tmp_path / "lake"), 173)
    committed_to_git(tmp_path / "one", tmp_path / "two")
    two = clone(tmp_path / "two", tmp_path / "lake").dataset("a")
    head = one.head()
    assert head is not None
    assert [hash for hash, _ in two.walk(head)] == [hash for hash, _ in one.walk(head)]
    assert two.append(head, [info("more")], NOW) == one.append(head, [info("more")], NOW)


def test_a_clone_without_the_key_writes_a_summary_that_nobody_trusts(tmp_path: Path) -> None:
    long_chain(clone(tmp_path / "one", tmp_path / "lake"), 5)
    committed_to_git(tmp_path / "one", tmp_path / "two")
    two = clone(tmp_path / "two", tmp_path / "lake").dataset("a")
    two.append(two.head(), [info("more")], NOW)
    assert SignedSummary.parse(summary_file(two.folder, "head").read_bytes()).proof is None
    committed_to_git(tmp_path / "two", tmp_path / "three")
    three = clone(tmp_path / "three", tmp_path / "lake")
    found = three.projection("a")
    assert found is not None
    assert found.blocks == 6


def test_a_key_that_cannot_be_read_leaves_the_summary_unsigned_and_the_head_moved(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    space = clone(tmp_path / "one", tmp_path / "lake")
    store = long_chain(space, 5)
    [key] = (each for each in space.keys.iterdir() if each.name[0] != ".")
    key.write_text("no key")
    caplog.set_level("INFO")
    head = store.append(store.head(), [info("more")], NOW)
    assert store.head() == head
    assert SignedSummary.parse(summary_file(store.folder, "head").read_bytes()).proof is None
    assert "the summary of 'a' is not signed" in caplog.text


def test_a_storage_that_cannot_be_reached_is_told_apart_from_a_lost_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = long_chain(clone(tmp_path / "one", tmp_path / "lake"), 5)
    summary_file(store.folder, "head").unlink()
    committed_to_git(tmp_path / "one", tmp_path / "two")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    two = clone(tmp_path / "two", tmp_path / "lake")
    two.storage = Storage("s3://bucket/lake", tmp_path)
    with pytest.raises(EnvironmentProblem) as error:
        two.projection("a")
    assert error.value.code == "E0914"
    (tmp_path / "lake").rename(tmp_path / "away")
    with pytest.raises(IntegrityError) as lost:
        clone(tmp_path / "two", tmp_path / "lake").projection("a")
    assert lost.value.code == "E0802"


def test_a_forged_summary_is_noticed(tmp_path: Path) -> None:
    space = clone(tmp_path / "one", tmp_path / "lake")
    store = long_chain(space, 5)
    file = summary_file(store.folder, "head")
    text = file.read_text().replace('"records": 0', '"records": 7')
    committed_to_git(tmp_path / "one", tmp_path / "two")
    summary_file(tmp_path / "two" / "chains" / "a", "head").write_text(text)
    with pytest.raises(IntegrityError) as error:
        clone(tmp_path / "two", tmp_path / "lake").projection("a")
    assert error.value.code == "E0676"


def test_a_summary_signed_by_another_key_is_noticed(tmp_path: Path) -> None:
    space = clone(tmp_path / "one", tmp_path / "lake")
    store, other = long_chain(space, 5), long_chain(space, 5, "b")
    mine = SignedSummary.parse(summary_file(store.folder, "head").read_bytes())
    theirs = SignedSummary.parse(summary_file(other.folder, "head").read_bytes())
    forged = SignedSummary(mine.summary, theirs.proof)
    summary_file(store.folder, "head").write_bytes(forged.encode())
    with pytest.raises(IntegrityError) as error:
        clone(tmp_path / "one", tmp_path / "lake").dataset("a").rule_state(mine.summary.head)
    assert error.value.code == "E0676"


def test_a_summary_of_an_older_head_is_continued(tmp_path: Path) -> None:
    space = clone(tmp_path / "one", tmp_path / "lake")
    store = long_chain(space, 5)
    old = summary_file(store.folder, "head").read_bytes()
    store.append(store.head(), [info("more")], NOW)
    summary_file(store.folder, "head").write_bytes(old)
    committed_to_git(tmp_path / "one", tmp_path / "two")
    assert clone(tmp_path / "two", tmp_path / "lake").projection("a") == space.projection("a")


def test_two_clones_that_append_at_once_lose_nothing(tmp_path: Path) -> None:
    one = long_chain(clone(tmp_path / "one", tmp_path / "lake"), 49)
    committed_to_git(tmp_path / "one", tmp_path / "two")
    two = clone(tmp_path / "two", tmp_path / "lake").dataset("a")
    base = one.head()
    left = one.append(base, [info("left"), info("left again")], NOW)
    right = two.append(base, [info("right"), info("right again")], NOW)
    shutil.rmtree(tmp_path / "two")
    committed_to_git(tmp_path / "one", tmp_path / "two")
    fresh = clone(tmp_path / "two", tmp_path / "lake").dataset("a")
    assert len(list(fresh.walk(left))) == len(list(fresh.walk(right))) == 51
    assert fresh.head() == left


def test_a_branch_has_a_summary_of_its_own(tmp_path: Path) -> None:
    store = long_chain(clone(tmp_path / "one", tmp_path / "lake"), 5)
    head = store.head()
    branch = clone(tmp_path / "one", tmp_path / "lake", branch="fix")
    tip = branch.dataset("a").append(head, [info("fixed")], NOW)
    committed_to_git(tmp_path / "one", tmp_path / "two")
    (tmp_path / "lake").rename(tmp_path / "away")
    found = clone(tmp_path / "two", tmp_path / "lake", branch="fix").projection("a")
    assert found is not None
    assert found.head == tip
    branch.dataset("a").delete_branch("fix", tip)
    assert not summary_file(store.folder, "fix").exists()
    assert clone(tmp_path / "two", tmp_path / "lake").dataset("a").head() == head


def test_slices_are_appended_from_the_state_in_the_summary(tmp_path: Path) -> None:
    space = clone(tmp_path / "one", tmp_path / "lake")
    store = space.create("a", DatasetKind.Root, (), NOW)
    add_slice(store, tmp_path / "first", 0, 3)
    committed_to_git(tmp_path / "one", tmp_path / "two")
    shutil.rmtree(tmp_path / "lake" / "blocks")
    two = clone(tmp_path / "two", tmp_path / "lake").dataset("a")
    add_slice(two, tmp_path / "second", 3, 2)
    state = two.rule_state(two.head())
    assert state is not None
    assert state.data is not None
    assert state.data.last_offset == 4


# --- Packs ---


def test_a_long_chain_is_read_by_few_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "SIZES", (40, 5))
    one = long_chain(clone(tmp_path / "one", tmp_path / "lake"), 333)
    committed_to_git(tmp_path / "one", tmp_path / "two")
    asked: list[str] = []
    read = Storage.read

    def counted(self: Storage, name: str, limit: int) -> bytes | None:
        asked.append(name)
        return read(self, name, limit)

    monkeypatch.setattr(Storage, "read", counted)
    two = clone(tmp_path / "two", tmp_path / "lake").dataset("a")
    head = one.head()
    assert head is not None
    assert len(list(two.walk(head))) == 333
    # 320 blocks are eight packs, the next ten are two, and three are single ones.
    assert len(asked) <= 8 + 2 + 3 + 2
    asked.clear()
    assert len(list(two.walk(head))) == 333
    assert asked == []


@pytest.mark.parametrize("number", [0, 4, 5, 39, 40, 77, 120, 138])
def test_any_block_is_found_in_the_packs_of_its_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(packs, "SIZES", (40, 5))
    store = long_chain(clone(tmp_path / "one", tmp_path / "lake"), 139)
    head = store.head()
    assert head is not None
    hashes = [hash for hash, _ in store.walk(head)][::-1]
    # As a chain that was moved: blocks in packs are nowhere else.
    for each in hashes[:135]:
        (tmp_path / "lake" / "blocks" / str(each)).unlink(missing_ok=True)
    committed_to_git(tmp_path / "one", tmp_path / "two")
    two = clone(tmp_path / "two", tmp_path / "lake").dataset("a")
    assert two.read_block(hashes[number]).sequence_number == number
    assert two.has_block(hashes[number])
    assert not two.has_block(Multihash.sha3_256(b"no block"))


def test_a_head_that_is_reset_into_a_pack_is_found_by_another_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "SIZES", (40, 5))
    monkeypatch.setattr(stored_blocks, "SIZES", (40, 5))
    store = long_chain(clone(tmp_path / "one", tmp_path / "lake"), 139)
    head = store.head()
    assert head is not None
    hashes = [hash for hash, _ in store.walk(head)][::-1]
    for each in (tmp_path / "lake" / "blocks").iterdir():
        each.unlink()
    store.swap_head(head, hashes[98])
    committed_to_git(tmp_path / "one", tmp_path / "two")
    two = clone(tmp_path / "two", tmp_path / "lake")
    assert [hash for hash, _ in two.dataset("a").walk(hashes[98])] == hashes[98::-1]
    found = two.projection("a")
    assert found is not None
    assert found.blocks == 99


def test_a_damaged_pack_is_an_error_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "SIZES", (40, 5))
    store = long_chain(clone(tmp_path / "one", tmp_path / "lake"), 6)
    head = store.head()
    assert head is not None
    [file] = (tmp_path / "lake" / "packs").iterdir()
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    committed_to_git(tmp_path / "one", tmp_path / "two")
    two = clone(tmp_path / "two", tmp_path / "lake").dataset("a")
    with pytest.raises(IntegrityError) as error:
        list(two.walk(head))
    assert error.value.code == "E0674"
    assert file.name in str(error.value.notes)


def test_copies_that_were_damaged_are_fetched_again(tmp_path: Path) -> None:
    space = clone(tmp_path / "one", tmp_path / "lake")
    store = long_chain(space, 4)
    head = store.head()
    assert head is not None
    store.block_path(head).write_bytes(b"half")
    assert store.read_block(head).sequence_number == 3


def test_a_block_that_is_not_what_was_committed_is_an_error(tmp_path: Path) -> None:
    store = long_chain(clone(tmp_path / "one", tmp_path / "lake"), 4)
    head = store.head()
    assert head is not None
    (tmp_path / "lake" / "blocks" / str(head)).write_bytes(b"other")
    shutil.rmtree(tmp_path / "one" / ".odfbuild")
    with pytest.raises(IntegrityError) as error:
        store.read_raw(head)
    assert error.value.code == "E0801"
    (tmp_path / "lake" / "blocks" / str(head)).unlink()
    assert store.read_block(head).sequence_number == 3, "the summary beside the head has it"


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 23), min_size=1, max_size=6))
def test_blocks_put_in_any_portions_come_back_byte_by_byte(
    tmp_path_factory: pytest.TempPathFactory, portions: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packs, "SIZES", (20, 4))
        root = tmp_path_factory.mktemp("portions")
        plain = DatasetStore(root / "plain", "a")
        made, _ = plain.prepare(None, _seeded(sum(portions)), NOW)
        storage = Storage(str(root / "lake"), root)
        blocks = StoredBlocks(storage, root / "cache")
        rest = list(made)
        for each in portions:
            blocks.put(rest[:each])
            rest = rest[each:]
        cold = StoredBlocks(storage, root / "cold")
        for data in reversed(made):
            assert cold.read(Multihash.sha3_256(data)) == data


@given(st.binary(max_size=300))
def test_anything_that_is_no_pack_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="it "):
        Pack.parse(data, Multihash.sha3_256(b""))
    with pytest.raises(ValueError, match="it "):
        Pack.parse(packs.MAGIC + data, Multihash.sha3_256(b""))


def test_packs_are_cut_at_fixed_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "SIZES", (10, 2))
    made, _ = DatasetStore(tmp_path / "a", "a").prepare(None, _seeded(25), NOW)
    links = [Link.of(data) for data in made]
    parts = cut(links)
    assert [len(each) for each in parts.packs] == [10, 10, 2, 2]
    assert [each.number for each in parts.loose] == [24]
    later = cut(links[5:12])
    assert [[each.number for each in part] for part in later.packs] == [[6, 7], [10, 11]]
    assert [each.number for each in later.loose] == [5, 8, 9]
    assert [each.number for each in later.ends] == [5, 9]
    whole = Pack.parse(pack(links[:10]), links[9].hash)
    assert list(whole.blocks.values()) == made[:10]
    assert whole.before is None


def _seeded(count: int) -> list[MetadataEvent]:
    from odfbuild.odf.identity import DatasetId
    from odfbuild.odf.model import Seed

    seed = Seed(dataset_id=DatasetId(b"k" * 32), dataset_kind=DatasetKind.Root)
    return [seed, *(info(str(number)) for number in range(count - 1))]


def test_verify_compares_the_summary_with_the_blocks(tmp_path: Path) -> None:
    from odfbuild.inspect.verify.integrity import verify_integrity

    space = clone(tmp_path / "one", tmp_path / "lake")
    store = long_chain(space, 12)
    assert verify_integrity(space) == ()
    file = summary_file(store.folder, "head")
    found = SignedSummary.parse(file.read_bytes()).summary
    # The key of the dataset itself vouches for more records than there are.
    wrong = replace(found, projection=replace(found.projection, records=7))
    key = space.private_keys.key(found.projection.dataset_id)
    file.write_bytes(SignedSummary.sign(wrong, key).encode())
    [finding] = verify_integrity(space)
    assert finding.code == "E0673"


def test_verify_names_a_block_that_the_storage_lacks(tmp_path: Path) -> None:
    from odfbuild.inspect.verify.integrity import verify_integrity

    space = clone(tmp_path / "one", tmp_path / "lake")
    store = long_chain(space, 6)
    head = store.head()
    assert head is not None
    gone = [hash for hash, _ in store.walk(head)][2]
    (tmp_path / "lake" / "blocks" / str(gone)).unlink()
    store.block_path(gone).unlink()
    [finding] = verify_integrity(clone(tmp_path / "one", tmp_path / "lake"))
    assert (finding.code, finding.block) == ("E0802", gone)

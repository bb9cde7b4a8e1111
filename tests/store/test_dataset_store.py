import os
import stat
from pathlib import Path

import pytest

from odfbuild.errors import ChainError, IntegrityError, StaleHeadError
from odfbuild.odf.flatbuffers.form import encode_block, manifest_version
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import DatasetKind, MetadataBlock, Seed, SetInfo
from odfbuild.odf.multihash import Multihash
from odfbuild.store.dataset import DatasetStore
from tests.store.chains import NOW, create, info, workspace


@pytest.fixture
def store(tmp_path: Path) -> DatasetStore:
    return create(workspace(tmp_path), "ds", info("one"), info("two"))


def test_a_chain_is_laid_out_as_peers_exchange_it(store: DatasetStore) -> None:
    head = store.head()
    assert (store.path / "refs" / "head").read_bytes() == str(head).encode()
    assert (store.path / "info" / "alias").read_text() == "ds"
    files = {p.name for p in (store.path / "blocks").iterdir()}
    assert files == {str(hash) for hash, _ in store.walk(head)}
    for name in files:
        data = (store.path / "blocks" / name).read_bytes()
        assert str(Multihash.sha3_256(data)) == name
    assert not list(store.path.rglob(".pending-*"))


def test_walking_goes_from_the_newest_block_down_to_the_seed_or_stops_before_the_tail(
    store: DatasetStore,
) -> None:
    blocks = list(store.walk(store.head()))
    assert [b.sequence_number for _, b in blocks] == [2, 1, 0]
    assert isinstance(blocks[-1][1].event, Seed)
    assert list(store.walk(store.head(), blocks[-1][0])) == blocks[:-1]
    assert list(store.walk(store.head(), store.head())) == []


def test_a_tail_that_is_not_in_the_history_is_an_error(store: DatasetStore) -> None:
    with pytest.raises(ChainError) as caught:
        list(store.walk(store.head(), Multihash.sha3_256(b"elsewhere")))
    assert caught.value.code == "E0610"


def test_appended_events_share_one_system_time_and_become_visible_together(
    store: DatasetStore,
) -> None:
    before = store.head()
    after = store.append(before, (info("three"), info("four")), NOW)
    assert store.head() == after
    assert [b.event for _, b in store.walk(after, before)] == [info("four"), info("three")]
    assert {b.system_time for _, b in store.walk(after)} == {NOW}


def test_appending_nothing_changes_nothing(store: DatasetStore) -> None:
    before = store.head()
    assert store.append(before, (), NOW) == before


def test_an_event_that_breaks_a_rule_leaves_the_chain_untouched(store: DatasetStore) -> None:
    before = sorted(store.path.rglob("*"))
    seed = Seed(dataset_id=DatasetId(bytes(32)), dataset_kind=DatasetKind.Root)
    with pytest.raises(ChainError):
        store.append(store.head(), (info("fine"), seed), NOW)
    assert sorted(store.path.rglob("*")) == before


def test_a_moved_head_is_refused_before_anything_is_written(store: DatasetStore) -> None:
    old = store.head()
    new = store.append(old, (info("three"),), NOW)
    files = sorted(store.path.rglob("*"))
    with pytest.raises(StaleHeadError) as caught:
        store.append(old, (info("other"),), NOW)
    assert caught.value.exit_code == 5
    assert str(old) in caught.value.notes[0]
    assert str(new) in caught.value.notes[1]
    assert sorted(store.path.rglob("*")) == files


def test_two_stores_of_the_same_folder_see_each_other(store: DatasetStore) -> None:
    other = DatasetStore(store.path)
    first = other.append(other.head(), (info("by the other"),), NOW)
    second = store.append(first, (info("by this"),), NOW)
    assert other.head() == second
    assert other.append(second, (info("again"),), NOW) == store.head()


def test_a_changed_block_is_named_with_its_file(store: DatasetStore) -> None:
    head = store.head()
    file = store.block_path(head)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(IntegrityError) as caught:
        store.read_block(head)
    assert caught.value.code == "E0801"
    assert caught.value.exit_code == 3
    assert str(head) in caught.value.message
    assert any(str(file) in note for note in caught.value.notes)


def test_a_missing_block_is_named(store: DatasetStore) -> None:
    head = store.head()
    store.block_path(head).unlink()
    with pytest.raises(IntegrityError) as caught:
        store.read_raw(head)
    assert caught.value.code == "E0802"


def test_bytes_that_are_no_block_are_named_even_if_their_hash_is_right(store: DatasetStore) -> None:
    hash = store.put_block(b"not a block at all")
    with pytest.raises(IntegrityError) as caught:
        store.read_block(hash)
    assert caught.value.code == "E0803"


@pytest.mark.parametrize("text", [b"", b"f1620", b"hello\n", b"F1620" + b"a" * 64])
def test_a_head_that_is_not_a_hash_is_an_error_and_not_an_empty_dataset(
    store: DatasetStore, text: bytes
) -> None:
    (store.path / "refs" / "head").write_bytes(text)
    with pytest.raises(IntegrityError) as caught:
        store.head()
    assert caught.value.code == "E0805"


def test_a_head_with_a_newline_is_refused_as_peers_refuse_it(store: DatasetStore) -> None:
    file = store.path / "refs" / "head"
    file.write_bytes(file.read_bytes() + b"\n")
    with pytest.raises(IntegrityError):
        store.head()


def test_a_folder_without_head_is_no_dataset(tmp_path: Path) -> None:
    assert DatasetStore(tmp_path).head() is None
    assert DatasetStore(tmp_path / "nowhere").head() is None


def test_an_object_moves_in_and_an_equal_one_is_left_alone(
    store: DatasetStore, tmp_path: Path
) -> None:
    staged = tmp_path / "staged"
    for kind in ("data", "checkpoints"):
        staged.write_bytes(b"content")
        hash = Multihash.sha3_256(b"content")
        store.put_object(kind, staged, hash)
        assert not staged.exists()
        inode = store.object_path(kind, hash).stat().st_ino
        staged.write_bytes(b"content")
        store.put_object(kind, staged, hash)
        assert not staged.exists()
        assert store.object_path(kind, hash).stat().st_ino == inode


def test_an_object_that_was_cut_off_is_replaced(store: DatasetStore, tmp_path: Path) -> None:
    hash = Multihash.sha3_256(b"content")
    (store.path / "data").mkdir()
    store.object_path("data", hash).write_bytes(b"cont")
    staged = tmp_path / "staged"
    staged.write_bytes(b"content")
    store.put_object("data", staged, hash)
    assert store.object_path("data", hash).read_bytes() == b"content"


def test_a_chain_in_manifest_2_is_extended_without_touching_a_byte_of_it(tmp_path: Path) -> None:
    store = DatasetStore(tmp_path / "old")
    seed = Seed(dataset_id=DatasetId(bytes(range(32))), dataset_kind=DatasetKind.Root)
    first = MetadataBlock(system_time=NOW, sequence_number=0, event=seed)
    one = store.put_block(encode_block(first, version=2))
    second = MetadataBlock(
        system_time=NOW, sequence_number=1, prev_block_hash=one, event=SetInfo(description="old")
    )
    two = store.put_block(encode_block(second, version=2))
    store.swap_head(None, two)
    old = {hash: store.read_raw(hash) for hash in (one, two)}
    three = store.append(two, (info("new"),), NOW)
    assert {hash: store.read_raw(hash) for hash in (one, two)} == old
    versions = [manifest_version(store.read_raw(h)) for h, _ in store.walk(three)]
    assert versions == [3, 2, 2]


def test_files_obey_the_umask_and_are_not_left_private_by_staging(tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        store = create(workspace(tmp_path), "ds", info("x"))
    finally:
        os.umask(old)
    for file in (store.path / "refs" / "head", *(store.path / "blocks").iterdir()):
        assert stat.S_IMODE(file.stat().st_mode) == 0o644

import shutil
from pathlib import Path

import pytest

from odfbuild.errors import IntegrityError
from odfbuild.inspect.verify.finding import Finding
from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.odf.flatbuffers.form import encode_block
from odfbuild.odf.model import AddData, Checkpoint, DatasetKind, MetadataBlock, SetVocab
from odfbuild.odf.multihash import Multihash
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.workspace import Workspace
from tests.store.chains import NOW, SCHEMA, add_slice, create, info, slice_file, workspace


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    """One dataset with two slices, a checkpoint and seven blocks; another one beside it."""
    space = workspace(tmp_path)
    store = create(space, "ds", info("one"))
    staged = tmp_path / "staged"
    add_slice(store, staged, 0, 5)
    add_slice(store, staged, 5, 3)
    staged.write_bytes(b"state of an engine")
    hash = Multihash.sha3_256(b"state of an engine")
    store.put_object("checkpoints", staged, hash)
    event = AddData(prev_offset=7, new_checkpoint=Checkpoint(physical_hash=hash, size=18))
    store.append(store.head(), (event, info("two")), NOW)
    create(space, "other", info("unharmed"))
    return space


def flip(file: Path, position: int, bit: int = 0) -> bytes:
    """Change one bit; returns the bytes as they were."""
    before = file.read_bytes()
    data = bytearray(before)
    data[position] ^= 1 << bit
    file.write_bytes(data)
    return before


def only(findings: tuple[Finding, ...]) -> Finding:
    assert len(findings) == 1, findings
    return findings[0]


def test_whole_datasets_have_no_findings(space: Workspace) -> None:
    assert verify_integrity(space) == ()
    assert verify_integrity(space, logical=True) == ()
    assert verify_integrity(space, []) == ()


def test_one_flipped_byte_anywhere_in_any_block_is_found_and_named(space: Workspace) -> None:
    store = space.dataset("ds")
    numbers = {str(hash): block.sequence_number for hash, block in store.walk(store.head())}
    for name, number in numbers.items():
        file = store.path / "blocks" / name
        for position in range(0, file.stat().st_size, 17):
            before = flip(file, position, position % 8)
            found = verify_integrity(space)
            file.write_bytes(before)
            finding = only(found)
            assert (finding.dataset, str(finding.block), finding.path) == ("ds", name, file)
            assert finding.code == "E0801"
            assert name in finding.message
            # Where the number itself was hit, or the bytes cannot be read at all, it is unknown.
            assert number >= 0
    assert verify_integrity(space) == ()


def test_one_flipped_byte_anywhere_in_any_object_is_found_and_named(space: Workspace) -> None:
    store = space.dataset("ds")
    files = [*(store.path / "data").iterdir(), *(store.path / "checkpoints").iterdir()]
    assert len(files) == 3
    for file in files:
        size = file.stat().st_size
        for position in {*range(0, size, max(1, size // 25)), size - 1}:
            before = flip(file, position, position % 8)
            finding = only(verify_integrity(space, ["ds"]))
            file.write_bytes(before)
            assert (finding.code, finding.path) == ("E0813", file)
            assert file.name in finding.message
            assert finding.block is not None
            assert finding.sequence_number in (3, 4, 5)
            assert finding.help


def test_damage_of_several_kinds_is_found_in_one_run(space: Workspace) -> None:
    store = space.dataset("ds")
    blocks = list(store.walk(store.head()))
    slices = sorted((store.path / "data").iterdir())
    flip(store.block_path(blocks[1][0]), 40)
    flip(slices[0], 100)
    slices[1].unlink()
    other = space.dataset("other")
    other.block_path(other.head()).unlink()
    findings = verify_integrity(space)
    assert sorted(f.code for f in findings) == ["E0801", "E0802", "E0811", "E0813"]
    assert {f.dataset for f in findings} == {"ds", "other"}


def test_a_missing_block_is_named_with_its_number_and_who_refers_to_it(space: Workspace) -> None:
    store = space.dataset("ds")
    hash, block = list(store.walk(store.head()))[2]
    store.block_path(hash).unlink()
    finding = only(verify_integrity(space))
    assert (finding.code, finding.block) == ("E0802", hash)
    assert finding.sequence_number == block.sequence_number
    assert f"block number {block.sequence_number + 1}" in finding.message


def test_an_object_of_another_length_is_named(space: Workspace) -> None:
    store = space.dataset("ds")
    file = next((store.path / "checkpoints").iterdir())
    file.write_bytes(file.read_bytes()[:-1])
    finding = only(verify_integrity(space))
    assert finding.code == "E0812"
    assert "has 17 bytes; 18 were committed" in finding.message


@pytest.mark.parametrize("text", [b"", b"nonsense", b"f1620" + b"0" * 63])
def test_a_head_that_is_no_hash_is_found(space: Workspace, text: bytes) -> None:
    file = space.dataset("ds").path / "refs" / "head"
    file.write_bytes(text)
    finding = only(verify_integrity(space))
    assert (finding.code, finding.path) == ("E0805", file)


def test_a_head_that_names_no_block_is_found(space: Workspace) -> None:
    file = space.dataset("ds").path / "refs" / "head"
    file.write_text(str(Multihash.sha3_256(b"nowhere")))
    finding = only(verify_integrity(space))
    assert finding.code == "E0802"
    assert "the head refers to it" in finding.message


def test_a_dataset_that_is_not_there_is_a_finding(space: Workspace) -> None:
    assert only(verify_integrity(space, ["nowhere"])).code == "E0804"


def test_a_chain_copied_over_or_beside_another_is_found(space: Workspace) -> None:
    """Every hash in it is right, and yet readers could be given either."""
    shutil.copytree(space.state / "ds", space.state / "backup")
    found = verify_integrity(space)
    assert [(each.dataset, each.code) for each in found] == [("ds", "E0381")]
    assert found[0].message == "'backup' and 'ds' have one identity: a chain was copied"
    with pytest.raises(IntegrityError) as refused:
        space.projections()
    assert refused.value.code == "E0381"
    identity = space.projection("ds")
    assert identity is not None and space.resolve(identity.dataset_id) in ("backup", "ds")


def test_blocks_that_break_a_rule_are_found_although_every_hash_is_right(space: Workspace) -> None:
    store = space.dataset("ds")
    head = store.head()
    block = store.read_block(head)
    bad = MetadataBlock(
        system_time=NOW,
        prev_block_hash=head,
        sequence_number=block.sequence_number + 2,
        event=info("skips a number"),
    )
    store.swap_head(head, store.put_block(encode_block(bad)))
    finding = only(verify_integrity(space))
    assert (finding.code, finding.block) == ("E0604", store.head())


def test_offsets_in_a_slice_that_differ_from_the_block_are_found(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    store = create(space, "ds")
    add_slice(store, tmp_path / "staged", 0, 5, shift=1)
    finding = only(verify_integrity(space))
    assert finding.code == "E0814"


def test_the_offset_column_is_the_one_of_the_vocabulary_in_force(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    store = create(space, "ds", SetVocab(offset_column="number"))
    add_slice(store, tmp_path / "staged", 0, 5)
    finding = only(verify_integrity(space))
    assert "no offset column 'number'" in finding.message


def test_a_wrong_logical_hash_is_found_when_asked_for(tmp_path: Path) -> None:
    from dataclasses import replace

    space = workspace(tmp_path)
    store = create(space, "ds")
    staged = tmp_path / "staged"
    data = slice_file(staged, 0, 5)
    wrong = replace(data, logical_hash=slice_file(tmp_path / "x", 0, 4).logical_hash)
    store.put_object("data", staged, data.physical_hash)
    store.append(store.head(), (SCHEMA, AddData(new_data=wrong)), NOW)
    assert verify_integrity(space) == ()
    assert only(verify_integrity(space, logical=True)).code == "E0816"


def test_a_data_object_that_is_not_parquet_is_found(tmp_path: Path) -> None:
    from dataclasses import replace

    space = workspace(tmp_path)
    store = create(space, "ds")
    staged = tmp_path / "staged"
    data = slice_file(staged, 0, 5)
    staged.write_bytes(b"x" * 100)
    hash = Multihash.sha3_256(b"x" * 100)
    store.put_object("data", staged, hash)
    event = AddData(new_data=replace(data, physical_hash=hash, size=100))
    store.append(store.head(), (SCHEMA, event), NOW)
    assert only(verify_integrity(space)).code == "E0815"


def test_the_cache_has_no_say(space: Workspace) -> None:
    space.projections()
    store = space.dataset("ds")
    flip(store.block_path(list(store.walk(store.head()))[-1][0]), 50)
    assert list(space.projections()) == ["ds", "other"]
    assert only(verify_integrity(space)).code == "E0801"
    shutil.rmtree(space.cache)
    assert only(verify_integrity(space)).code == "E0801"


def test_a_derivative_chain_is_verified_like_any_other(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    store = space.create("derived", DatasetKind.Derivative, (info("x"),), NOW)
    assert isinstance(store, DatasetStore)
    assert verify_integrity(space) == ()

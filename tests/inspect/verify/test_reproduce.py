"""Steps done again: what follows from the inputs is found right, what does not is named."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.slice import dataset_schema
from odfbuild.inspect.verify.check import Verdict, verify
from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.inspect.verify.reproduce import Extent, upstream
from odfbuild.odf.digest import LogicalHasher, physical_hash
from odfbuild.odf.flatbuffers.form import encode_block
from odfbuild.odf.model import (
    ExecuteTransform,
    MetadataBlock,
    SetDataSchema,
    SetTransform,
    SqlQueryStep,
    TransformSql,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.schema.arrow_schema import to_raw
from odfbuild.odf.timestamp import Timestamp
from odfbuild.records import merge_slices
from odfbuild.records.first_difference import first_difference
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.merged_copies import copies_folder
from odfbuild.store.storage import ObjectKind
from odfbuild.store.workspace import Workspace
from tests.apply.bench import VOCAB, Bench
from tests.apply.plain_engine import RESULT, PlainEngine


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """root → derived → last, two steps each."""
    made = Bench(tmp_path)
    made.root("root")
    made.derive("derived", "root")
    made.derive("last", "derived")
    for ids, mark in (([1, 2, 3], "2020-01-01T00:00:00Z"), ([4, 5], "2021-01-01T00:00:00Z")):
        made.add("root", ids, mark)
        made.step("derived")
        made.step("last")
    return made


def check(bench: Bench, *names: str, extent: Extent | None = None) -> Verdict:
    return verify(
        bench.workspace,
        names or bench.workspace.aliases(),
        extent=extent,
        factory=PlainEngine,
    )


def rewrite(bench: Bench, name: str, change: Callable[[MetadataBlock], MetadataBlock]) -> None:
    rewrite_chain(bench.workspace, name, change)


def rewrite_chain(
    workspace: Workspace, name: str, change: Callable[[MetadataBlock], MetadataBlock]
) -> None:
    """Change blocks and link, hash and publish them all again, as an attacker would."""
    store = workspace.dataset(name)
    head = store.head()
    assert head is not None
    links = list(store.walk(head))[::-1]
    previous = None
    for _, block in links:
        previous = store.put_block(encode_block(replace(change(block), prev_block_hash=previous)))
    assert previous is not None
    store.swap_head(head, previous)


def tamper(bench: Bench, name: str, number: int, column: str, value: int) -> None:
    tamper_slice(bench.workspace, name, number, column, value, bench.scratch())


def tamper_slice(
    workspace: Workspace, name: str, number: int, column: str, value: int, scratch: Path
) -> None:
    """Put `value` into the first record of block `number`, with every hash made to fit."""
    store = workspace.dataset(name)

    def change(block: MetadataBlock) -> MetadataBlock:
        event = block.event
        if block.sequence_number != number:
            return block
        assert isinstance(event, ExecuteTransform)
        assert event.new_data is not None
        table = pq.read_table(store.bring("data", event.new_data.physical_hash))
        values = pa.array([value, *table[column].to_pylist()[1:]], table[column].type)
        at = table.schema.get_field_index(column)
        table = table.set_column(at, table.schema.field(at), values)
        file = scratch / "tampered.parquet"
        pq.write_table(table, file)
        hasher = LogicalHasher(table.schema)
        for batch in table.to_batches():
            hasher.update(batch)
        physical, size = physical_hash(file)
        store.put_object("data", file, physical)
        data = replace(
            event.new_data, physical_hash=physical, logical_hash=hasher.finish(), size=size
        )
        return replace(block, event=replace(event, new_data=data))

    rewrite_chain(workspace, name, change)


def test_what_follows_from_its_inputs_is_found_right(bench: Bench) -> None:
    verdict = check(bench)
    assert verdict.findings == ()
    assert verdict.reproduction is not None
    assert (verdict.reproduction.steps, verdict.reproduction.derivatives) == (4, 2)


def test_a_record_changed_with_all_hashes_made_to_fit_is_found_and_named(bench: Bench) -> None:
    tamper(bench, "last", 4, "value", 666)
    assert verify_integrity(bench.workspace, logical=True) == ()
    [finding] = check(bench).findings
    assert (finding.dataset, finding.code) == ("last", "E0820")
    assert (finding.sequence_number, finding.offset) == (4, 3)
    [value] = finding.differences
    assert (value.column, value.recorded, value.replayed) == ("value", "666", "400")
    store = bench.workspace.dataset("last")
    assert finding.block is not None
    assert store.read_block(finding.block).sequence_number == 4


def test_readers_of_a_rewritten_history_are_named_too(bench: Bench) -> None:
    tamper(bench, "derived", 3, "value", 7)
    codes = {(f.dataset, f.sequence_number, f.code) for f in check(bench).findings}
    assert ("derived", 3, "E0820") in codes
    assert ("last", None, "E0823") in codes


def test_a_proof_reads_slices_where_a_step_read_a_merged_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_slices, "MANY", 2)
    bench = Bench(tmp_path)
    bench.root("root")
    for number in range(1, 4):
        bench.add("root", [number])
    history = bench.workspace.committed("root", bench.now("root"))
    merge_slices.keep_merged(history)
    bench.derive("right", "root")
    bench.step("right")
    assert history.side_cars is not None
    folder = copies_folder(history.side_cars)
    kept = folder.load()
    assert kept is not None
    [copy] = kept.files
    table = pq.read_table(folder.path(copy))
    at = table.schema.get_field_index("value")
    doubled = pc.multiply(table["value"], 2)
    pq.write_table(table.set_column(at, table.schema.field(at), doubled), folder.path(copy))
    folder.save(kept.covered, [folder.describe(copy.name, copy.records, copy.notes)])
    bench.derive("wrong", "root")
    bench.step("wrong")
    assert bench.values("wrong").to_pylist() == [2 * n for n in bench.values("right").to_pylist()]
    assert [each.dataset for each in check(bench).findings] == ["wrong"]


def test_a_watermark_that_does_not_follow_is_named(bench: Bench) -> None:
    later = Timestamp.parse("2030-01-01T00:00:00Z")

    def change(block: MetadataBlock) -> MetadataBlock:
        if not isinstance(block.event, ExecuteTransform) or block.sequence_number < 4:
            return block
        return replace(block, event=replace(block.event, new_watermark=later))

    rewrite(bench, "last", change)
    [finding] = check(bench).findings
    assert (finding.code, finding.sequence_number) == ("E0821", 4)
    assert "2021-01-01T00:00:00Z" in finding.message


def test_records_left_out_are_found(bench: Bench) -> None:
    def change(block: MetadataBlock) -> MetadataBlock:
        if block.sequence_number != 4 or not isinstance(block.event, ExecuteTransform):
            return block
        return replace(block, event=replace(block.event, new_data=None))

    rewrite(bench, "last", change)
    [finding] = check(bench).findings
    assert finding.message == "it has no records, and the same step gives 2 records"


def test_old_blocks_are_done_again_with_the_old_query_and_new_ones_with_the_new(
    bench: Bench,
) -> None:
    bench.append("derived", bench.transform("root", query="SELECT value * 3"))
    bench.add("root", [6])
    assert bench.step("derived") == ["ExecuteTransform"]
    assert check(bench, "derived").findings == ()
    assert pc.max(bench.values("derived")).as_py() == 50
    assert bench.values("derived")[-1].as_py() == 18


def test_steps_before_an_input_was_added_are_done_again_without_it(bench: Bench) -> None:
    bench.root("more")
    bench.add("more", [7, 8])
    bench.append("derived", bench.transform("root", "more"))
    assert bench.step("derived") == ["ExecuteTransform"]
    bench.append("derived", bench.transform("root"))
    bench.add("root", [9])
    assert bench.step("derived") == ["ExecuteTransform"]
    assert upstream(bench.workspace, ["derived"]) == ["derived", "root", "more"]
    verdict = check(bench, "derived")
    assert verdict.findings == ()
    assert verdict.reproduction is not None
    assert verdict.reproduction.steps == 4


def test_steps_before_a_column_was_added_upstream_are_done_again_without_it(
    bench: Bench,
) -> None:
    seen: list[list[str]] = []

    class Watching(PlainEngine):
        def transform(self, task):
            seen.append(task.inputs[0].schema.names)
            return super().transform(task)

    wider = dataset_schema(RESULT.append(pa.field("note", pa.string())), VOCAB)
    bench.append("root", SetDataSchema(raw_arrow_schema=to_raw(wider)))
    bench.add("root", [6])
    bench.step("derived")
    verdict = verify(bench.workspace, ["derived"], factory=Watching)
    assert verdict.findings == ()
    assert sorted("note" in names for names in seen) == [False, False, True]


def test_a_chain_of_the_reference_is_done_again_with_its_rule_of_watermarks(
    bench: Bench,
) -> None:
    """The reference takes the minimum over the inputs that set one in this very step."""
    bench.root("idle")
    two = bench.transform("root", "idle")
    foreign = replace(
        two,
        transform=TransformSql(
            engine="datafusion", queries=(SqlQueryStep(query="SELECT value * 10"),)
        ),
    )
    bench.append("derived", foreign)
    bench.add("root", [6], "2022-01-01T00:00:00Z")
    assert bench.step("derived") == ["ExecuteTransform"]
    assert bench.last("derived").new_watermark == Timestamp.parse("2021-01-01T00:00:00Z")
    number = bench.now("derived").blocks - 1

    def to(mark: str) -> Callable[[MetadataBlock], MetadataBlock]:
        def change(block: MetadataBlock) -> MetadataBlock:
            if block.sequence_number != number or not isinstance(block.event, ExecuteTransform):
                return block
            return replace(block, event=replace(block.event, new_watermark=Timestamp.parse(mark)))

        return change

    rewrite(bench, "derived", to("2022-01-01T00:00:00Z"))
    assert check(bench, "derived").findings == ()
    rewrite(bench, "derived", to("2023-01-01T00:00:00Z"))
    assert [f.code for f in check(bench, "derived").findings] == ["E0821"]


class Elsewhere:
    """Where `derived` came from, and nothing is."""

    def __init__(self, owner: str) -> None:
        self._owner = owner

    def owner(self, store: DatasetStore) -> str | None:
        return self._owner if store.name == "derived" else None

    def has(self, store: DatasetStore) -> bool:
        return False

    def fetch(self, store: DatasetStore, kind: ObjectKind, hashes: Sequence[Multihash]) -> None:
        raise AssertionError("nothing is there")


@pytest.mark.parametrize(
    ("owner", "brings"),
    [
        ("acme/derived", "acme/{id}"),
        ("acme/ann/derived", "acme/{id}"),
        ("https://data.example.org/odf/derived", "https://data.example.org/odf/root"),
    ],
)
def test_an_input_that_was_not_pulled_is_named_once_with_the_command_that_brings_it(
    bench: Bench, owner: str, brings: str
) -> None:
    id = bench.now("root").dataset_id
    shutil.rmtree(bench.workspace.dataset("root").path)
    old = bench.workspace
    pulled = Workspace(old.state, old.keys, old.cache, None, Elsewhere(owner))
    [found] = verify(pulled, ["derived"], factory=PlainEngine).findings
    assert (found.code, found.dataset) == ("E0822", "derived")
    assert "'root'" in found.message
    assert "and 1 later step" in found.message
    assert f"`odfbuild pull {brings.format(id=id)}`" in found.help


def test_steps_of_an_engine_that_is_not_here_are_named_once(bench: Bench) -> None:
    foreign = SetTransform(
        inputs=bench.transform("root").inputs,
        transform=TransformSql(
            engine="presto", version="1.2", queries=(SqlQueryStep(query="SELECT 1 AS a FROM root"),)
        ),
    )

    def change(block: MetadataBlock) -> MetadataBlock:
        if isinstance(block.event, SetTransform):
            return replace(block, event=foreign)
        return block

    rewrite(bench, "derived", change)
    [found] = check(bench, "derived").findings
    assert found.code == "E0824"
    assert found.message == ("2 steps cannot be recomputed here: the query is of engine presto 1.2")
    assert "a program that has this engine" in found.help


def test_only_steps_after_a_block_or_a_sample_are_done_again(bench: Bench) -> None:
    store = bench.workspace.dataset("derived")
    head = store.head()
    assert head is not None
    before = store.read_block(head).prev_block_hash
    for extent in (Extent(since=before), Extent(sample=1)):
        verdict = check(bench, "derived", extent=extent)
        assert verdict.reproduction is not None
        assert verdict.reproduction.steps == 1


def test_what_reads_damage_is_not_done_again(bench: Bench) -> None:
    state = bench.last("derived")
    assert state.new_data is not None
    file = bench.workspace.dataset("derived").object_path("data", state.new_data.physical_hash)
    file.write_bytes(file.read_bytes() + b"x")
    verdict = check(bench, "last")
    assert [(f.dataset, f.code) for f in verdict.findings] == [("derived", "E0812")]
    assert verdict.reproduction is not None
    assert verdict.reproduction.steps == 0


def test_verification_changes_nothing(bench: Bench) -> None:
    def files() -> dict[Path, bytes]:
        found = bench.workspace.state.rglob("*")
        return {path: path.read_bytes() for path in found if path.is_file()}

    before = files()
    check(bench)
    assert files() == before
    assert list((bench.workspace.cache / "scratch").iterdir()) == []


@pytest.mark.parametrize(
    ("other", "row", "column"),
    [
        ({"a": [1, 2, 3], "b": [0.0, float("nan"), None]}, None, None),
        ({"a": [1, 2, 4], "b": [0.0, float("nan"), None]}, 2, "a"),
        ({"a": [1, 2, 3], "b": [-0.0, float("nan"), None]}, 0, "b"),
        ({"a": [1, 2, 3], "b": [0.0, float("nan"), 0.0]}, 2, "b"),
        ({"a": [1, 2], "b": [0.0, float("nan")]}, 2, "record"),
    ],
)
def test_the_first_difference_is_found_whatever_the_row_groups(
    tmp_path: Path, other: dict[str, list[float]], row: int | None, column: str | None
) -> None:
    recorded = pa.table({"a": [1, 2, 3], "b": [0.0, float("nan"), None]})
    pq.write_table(recorded, tmp_path / "one", row_group_size=2)
    pq.write_table(pa.table(other), tmp_path / "two")
    found = first_difference(tmp_path / "one", tmp_path / "two")
    assert (found.row if found else None) == row
    assert (found.values[0].column if found else None) == column

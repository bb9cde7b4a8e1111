"""Steps of derivatives, committed with an engine that needs no JVM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from odfbuild.apply.derive import read_inputs, stage_transform
from odfbuild.apply.transaction import Transaction
from odfbuild.engine.contract import EngineResult, Vocabulary
from odfbuild.engine.slice import dataset_schema, write_slice
from odfbuild.odf.arrow_schema import to_raw
from odfbuild.odf.model import (
    AddData,
    DatasetKind,
    ExecuteTransform,
    MetadataEvent,
    SetDataSchema,
    SetInfo,
    SetTransform,
    SqlQueryStep,
    TransformInput,
    TransformSql,
)
from odfbuild.odf.projection import Projection
from odfbuild.odf.step import is_due
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.workspace import Workspace
from tests.apply.plain_engine import RESULT, PlainEngine
from tests.conformance.vectors import cases

NOW = Timestamp.parse("2050-01-01T00:00:00Z")
VOCAB = Vocabulary()


class Bench:
    """A workspace with roots and derivatives, fed by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = Workspace(folder / "chains", folder / "keys", folder / "cache")
        self.scratches = 0

    def scratch(self) -> Path:
        self.scratches += 1
        made = self.folder / f"scratch-{self.scratches}"
        made.mkdir()
        return made

    def root(self, name: str) -> None:
        schema = SetDataSchema(raw_arrow_schema=to_raw(dataset_schema(RESULT, VOCAB)))
        self.workspace.create(name, DatasetKind.Root, [schema], NOW)

    def now(self, name: str) -> Projection:
        found = self.workspace.projection(name)
        assert found is not None
        return found

    def append(self, name: str, *events: MetadataEvent) -> None:
        self.workspace.dataset(name).append(self.now(name).head, events, NOW)

    def add(self, name: str, ids: Sequence[int] = (), watermark: str | None = None) -> None:
        """Commit records with these ids, or a watermark alone."""
        state = self.now(name)
        assert state.schema is not None
        scratch = self.scratch()
        data = None
        if ids:
            rows = pa.table(
                [
                    pa.array([i] * len(ids), t) if n == "event_time" else pa.array(ids, t)
                    for i, (n, t) in enumerate(zip(RESULT.names, RESULT.types, strict=True))
                ],
                schema=RESULT,
            )
            part = scratch / "part.parquet"
            pa.parquet.write_table(rows, part)
            staged = write_slice(
                EngineResult(parts=(part,), schema=RESULT),
                dataset=name,
                schema=dataset_schema(RESULT, VOCAB),
                vocab=VOCAB,
                first_offset=0 if state.last_offset is None else state.last_offset + 1,
                system_time=NOW,
                target=scratch / "slice.parquet",
            )
            assert staged is not None
            self.workspace.dataset(name).put_object("data", staged.path, staged.data.physical_hash)
            data = staged.data
        mark = Timestamp.parse(watermark) if watermark else state.watermark
        self.append(name, AddData(prev_offset=state.last_offset, new_data=data, new_watermark=mark))

    def derive(self, name: str, *inputs: str, query: str = "SELECT value * 10") -> None:
        self.workspace.create(
            name, DatasetKind.Derivative, [self.transform(*inputs, query=query)], NOW
        )

    def transform(self, *inputs: str, query: str = "SELECT value * 10") -> SetTransform:
        return SetTransform(
            inputs=tuple(
                TransformInput(dataset_ref=self.now(each).dataset_id, alias=each) for each in inputs
            ),
            transform=TransformSql(engine="spark", queries=(SqlQueryStep(query=query),)),
        )

    def step(self, name: str) -> list[str] | None:
        """Do the next step of a derivative; kinds of the new events, `None`: nothing is due."""
        state = self.now(name)
        inputs = read_inputs(self.workspace, name, state)
        if inputs is None or not is_due(
            (i.step for i in inputs), has_schema=state.schema is not None
        ):
            return None
        transaction = Transaction(self.workspace, name, DatasetKind.Derivative, state, NOW)
        stage_transform(transaction, PlainEngine(), inputs, self.scratch())
        transaction.commit()
        return [type(event).__name__ for event in transaction.events]

    def last(self, name: str) -> ExecuteTransform:
        store = self.workspace.dataset(name)
        event = store.read_block(self.now(name).head).event
        assert isinstance(event, ExecuteTransform)
        return event


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path)
    made.root("root")
    return made


@pytest.mark.parametrize("case", cases("transform_planning", "commit"))
def test_a_response_leads_to_the_blocks_of_the_reference(
    case: dict[str, Any], bench: Bench
) -> None:
    bench.derive("derived", "root")
    response = case["response"]
    interval, mark = response["new_offset_interval"], response["new_watermark"]
    if case["output_schema_known"]:
        bench.add("root", range(interval["start"]), "2049-01-01T00:00:00Z")
        assert bench.step("derived") == ["SetDataSchema", "ExecuteTransform"]
    if interval:
        bench.add("root", range(interval["end"] - interval["start"] + 1), mark)
    assert bench.step("derived") == case["expected"]["events"]
    now = bench.now("derived")
    assert now.last_offset == (interval["end"] if interval else None)
    assert now.watermark == (Timestamp.parse(mark) if mark else None)


def test_a_step_that_drops_all_records_is_not_done_again_though_nothing_is_promised(
    bench: Bench,
) -> None:
    bench.root("silent")
    bench.derive("derived", "root", "silent", query="SELECT value WHERE id > 100")
    bench.add("root", [1, 2, 3], "2020-01-01T00:00:00Z")
    assert bench.step("derived") == ["SetDataSchema", "ExecuteTransform"]
    event = bench.last("derived")
    assert (event.new_data, event.new_watermark) == (None, None)
    assert event.new_checkpoint is not None
    assert event.query_inputs[0].new_offset == 2
    assert bench.step("derived") is None
    bench.add("root", [4, 101])
    assert bench.step("derived") == ["ExecuteTransform"]
    assert bench.now("derived").records == 1
    assert bench.last("derived").query_inputs[0].prev_offset == 2


def test_steps_without_result_follow_one_another(bench: Bench) -> None:
    bench.root("silent")
    bench.derive("derived", "root", "silent", query="SELECT value WHERE id > 100")
    checkpoints = []
    for ids in ([1], [2, 3]):
        bench.add("root", ids)
        bench.step("derived")
        checkpoints.append(bench.now("derived").last_checkpoint)
    assert len(set(checkpoints)) == 2
    folder = bench.workspace.dataset("derived").path / "checkpoints"
    assert {str(c) for c in checkpoints} == {f.name for f in folder.iterdir()}


def test_a_step_ends_where_the_schema_of_an_input_changes(bench: Bench) -> None:
    bench.derive("derived", "root")
    bench.add("root", [1, 2])
    wider = dataset_schema(RESULT.append(pa.field("note", pa.string())), VOCAB)
    bench.append("root", SetDataSchema(raw_arrow_schema=to_raw(wider)))
    last_of_old = bench.workspace.dataset("root").read_block(bench.now("root").head)
    bench.add("root", [3])
    assert bench.step("derived") == ["SetDataSchema", "ExecuteTransform"]
    first = bench.last("derived").query_inputs[0]
    assert (first.new_offset, first.new_block_hash) == (1, last_of_old.prev_block_hash)
    assert bench.step("derived") == ["ExecuteTransform"]
    second = bench.last("derived").query_inputs[0]
    assert (second.prev_block_hash, second.prev_offset) == (first.new_block_hash, 1)
    assert (second.new_block_hash, second.new_offset) == (bench.now("root").head, 2)
    assert bench.step("derived") is None


def test_a_later_watermark_of_one_input_is_a_step_though_the_least_one_stays(
    bench: Bench,
) -> None:
    bench.root("slow")
    bench.derive("derived", "root", "slow")
    bench.add("root", [1], "2020-01-01T00:00:00Z")
    bench.add("slow", [2], "2010-01-01T00:00:00Z")
    bench.step("derived")
    bench.add("root", watermark="2021-01-01T00:00:00Z")
    assert bench.step("derived") == ["ExecuteTransform"]
    assert bench.now("derived").watermark == Timestamp.parse("2010-01-01T00:00:00Z")
    assert bench.last("derived").query_inputs[0].new_offset is None
    assert bench.step("derived") is None


def test_a_description_of_an_input_is_no_reason_for_a_step(bench: Bench) -> None:
    bench.derive("derived", "root")
    bench.add("root", [1], "2020-01-01T00:00:00Z")
    bench.step("derived")
    bench.append("root", SetInfo(description="about"))
    assert bench.step("derived") is None


def test_an_added_input_is_read_from_its_start(bench: Bench) -> None:
    bench.root("more")
    bench.derive("derived", "root")
    bench.add("root", [1, 2], "2020-01-01T00:00:00Z")
    bench.add("more", [7, 8, 9], "2019-01-01T00:00:00Z")
    bench.step("derived")
    bench.append("derived", bench.transform("root", "more"))
    assert bench.step("derived") == ["ExecuteTransform"]
    root, more = bench.last("derived").query_inputs
    assert (root.prev_offset, root.new_offset) == (1, None)
    assert (more.prev_block_hash, more.prev_offset, more.new_offset) == (None, None, 2)
    now = bench.now("derived")
    assert now.records == 5
    assert now.watermark == Timestamp.parse("2020-01-01T00:00:00Z"), "never taken back"


def test_a_removed_input_is_no_longer_read(bench: Bench) -> None:
    bench.root("more")
    bench.derive("derived", "root", "more")
    bench.add("root", [1], "2020-01-01T00:00:00Z")
    bench.add("more", [7], "2019-01-01T00:00:00Z")
    bench.step("derived")
    bench.append("derived", bench.transform("root"))
    bench.add("more", [8], "2019-06-01T00:00:00Z")
    bench.add("root", [2], "2021-01-01T00:00:00Z")
    assert bench.step("derived") == ["ExecuteTransform"]
    assert [i.new_offset for i in bench.last("derived").query_inputs] == [1]
    assert bench.now("derived").watermark == Timestamp.parse("2021-01-01T00:00:00Z")

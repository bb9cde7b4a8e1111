"""Steps of derivatives, committed with an engine that needs no JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from odfbuild.engine.slice import dataset_schema
from odfbuild.inspect.verify.check import verify
from odfbuild.odf.model import SetDataSchema, SetInfo
from odfbuild.odf.schema.arrow_schema import to_raw
from odfbuild.odf.timestamp import Timestamp
from tests.apply.bench import VOCAB, Bench
from tests.apply.plain_engine import RESULT, PlainEngine
from tests.conformance.vectors import cases


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


def test_inputs_come_and_go_and_each_goes_on_where_it_was_left(bench: Bench) -> None:
    bench.root("more")
    bench.add("root", [1, 2])
    bench.add("more", [3])
    bench.derive("derived", "root")
    assert bench.step("derived") == ["SetDataSchema", "ExecuteTransform"]
    bench.append("derived", bench.transform("root", "more"))
    assert bench.step("derived") == ["ExecuteTransform"]
    assert bench.values("derived").to_pylist() == [10, 20, 30]
    bench.append("derived", bench.transform("root"))
    bench.add("more", [4])
    assert bench.step("derived") is None
    bench.add("root", [5])
    assert bench.step("derived") == ["ExecuteTransform"]
    bench.append("derived", bench.transform("root", "more"))
    assert bench.step("derived") == ["ExecuteTransform"]
    [root, more] = bench.last("derived").query_inputs
    assert (root.new_offset, more.prev_offset, more.new_offset) == (None, 0, 1)
    assert len(bench.values("derived")) == 5
    verdict = verify(bench.workspace, ["derived"], factory=PlainEngine)
    assert verdict.findings == ()

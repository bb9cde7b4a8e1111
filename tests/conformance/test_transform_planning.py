"""Family `transform_planning`, the kinds that need no engine, against chains on disk.

Where the specification asks for more than its reference does, the expectation is replaced here by
name, and docs/compatibility.md has the reason.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from odfbuild.apply.derive import read_inputs
from odfbuild.apply.reset import carry_out, plan_reset
from odfbuild.apply.watermark import set_watermark
from odfbuild.errors import IntegrityError, OdfbuildError
from odfbuild.inspect.verify.history import History
from odfbuild.inspect.verify.replay import Replay, Source, is_reproduced, plan_replays
from odfbuild.odf.chain.step import Interval, is_due, next_step, output_watermark
from odfbuild.odf.model import (
    AddData,
    Checkpoint,
    DatasetKind,
    DataSlice,
    ExecuteTransform,
    ExecuteTransformInput,
    MetadataBlock,
    OffsetInterval,
    SetInfo,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.workspace import Workspace
from tests.conformance.planning_chains import START, Chains, did, label_hash
from tests.conformance.vectors import cases

DIFFERS = {
    # The reference compares an absent offset as 0 and overlooks the very first record.
    "transform/status/single-first-record": {
        "result": "NewInputDataAvailable",
        "advancements": [
            {
                "dataset": "foo",
                "prev_block": None,
                "new_block": "foo#2",
                "prev_offset": None,
                "new_offset": 0,
            }
        ],
    },
}


def expectation(case: dict[str, Any]) -> dict[str, Any]:
    expected: dict[str, Any] = DIFFERS.get(case["id"], case["expected"])
    return expected


ERRORS = {
    "E0310": "InputNotFound",
    "E0330": "TransformNotDefined",
    "E0331": "IsDerivative",
    "E0610": "InvalidInputInterval",
}


def planned(chains: Chains, target: str) -> dict[str, Any]:
    state = chains.workspace.projection(target)
    assert state is not None
    try:
        inputs = read_inputs(chains.workspace, target, state)
    except OdfbuildError as error:
        return {"error": ERRORS[error.code]}
    if inputs is None:
        return {"result": "UpToDate"}
    if not is_due((i.step for i in inputs), has_schema=state.schema is not None):
        return {"result": "UpToDate"}
    last = state.last_offset
    return {
        "result": "Elaborated",
        "head": chains.label(state.head),
        "inputs": [chains.described(i.alias, i.step) for i in inputs],
        "prev_offset": last,
        "next_offset": 0 if last is None else last + 1,
        "prev_checkpoint": chains.label(state.last_checkpoint),
    }


@pytest.mark.parametrize("case", cases("transform_planning", "plan"))
def test_the_next_step_reads_what_the_reference_would_read(
    case: dict[str, Any], tmp_path: Path
) -> None:
    chains = Chains(tmp_path, case["datasets"])
    assert planned(chains, case["target"]) == expectation(case)


@pytest.mark.parametrize("case", cases("transform_planning", "status"))
def test_the_status_names_the_inputs_that_advanced(case: dict[str, Any], tmp_path: Path) -> None:
    plan = planned(Chains(tmp_path, case["datasets"]), case["target"])
    wanted = ("dataset", "prev_block", "new_block", "prev_offset", "new_offset")
    found: dict[str, Any] = {"result": "UpToDate"}
    if plan.get("result") == "Elaborated":
        # A step may also be due to a watermark, or to find out the schema: that is no new data.
        advanced = [i for i in plan["inputs"] if i["new_offset"] is not None]
        if advanced:
            found = {
                "result": "NewInputDataAvailable",
                "advancements": [{key: i[key] for key in wanted} for i in advanced],
            }
    elif "error" in plan:
        found = plan
    assert found == expectation(case)


def histories(chains: Chains, name: str) -> History:
    store = chains.workspace.dataset(name)
    head = store.head()
    assert head is not None
    return History(reversed(list(store.walk(head))))


@pytest.mark.parametrize("case", cases("transform_planning", "verify_plan"))
def test_verification_repeats_every_recorded_step(case: dict[str, Any], tmp_path: Path) -> None:
    chains = Chains(tmp_path, case["datasets"])

    def source_of(dataset_id: Any) -> Source | None:
        name = chains.names.get(dataset_id)
        if name is None:
            return None
        return Source(chains.workspace.dataset(name), histories(chains, name))

    replays = plan_replays(case["target"], histories(chains, case["target"]), source_of)
    expected = expectation(case)
    if "error" in expected:
        assert [r.code for r in replays if isinstance(r, IntegrityError)] == ["E0823"]
        return
    assert [_described(chains, r) for r in replays] == expected["steps"]


def _described(chains: Chains, replay: Replay | IntegrityError) -> dict[str, Any]:
    assert isinstance(replay, Replay)
    last = replay.recorded.prev_offset
    return {
        "expected_block": chains.label(replay.block),
        "head": chains.label(replay.before.head),
        "system_time": str(replay.system_time),
        "prev_offset": last,
        "next_offset": 0 if last is None else last + 1,
        "prev_checkpoint": chains.label(replay.recorded.prev_checkpoint),
        "inputs": [chains.described(i.alias, i.step) for i in replay.inputs],
    }


@pytest.mark.parametrize("case", cases("transform_planning", "reset"))
def test_a_reset_keeps_the_definition_and_lets_the_next_step_read_everything(
    case: dict[str, Any], tmp_path: Path
) -> None:
    chains = Chains(tmp_path, case["datasets"])
    target = case["target"]
    carry_out(chains.workspace, [plan_reset(chains.workspace, target)])
    events = [type(block.event).__name__ for _, block in histories(chains, target).links]
    assert events == expectation(case)["remaining_events"]
    state = chains.workspace.projection(target)
    assert state is not None
    inputs = read_inputs(chains.workspace, target, state)
    assert inputs is not None
    for each in inputs:
        source = chains.workspace.projection(chains.names[each.step.dataset_id])
        assert source is not None
        assert each.step.prev_block is None
        assert each.step.new_block == source.head
        assert each.step.new_offset == source.last_offset


@pytest.mark.parametrize("case", cases("transform_planning", "replay"))
def test_a_replayed_step_must_say_the_same(case: dict[str, Any]) -> None:
    recorded, replayed = _executed(case["recorded"]), _executed(case["replayed"])
    assert is_reproduced(recorded, replayed) is expectation(case)["ok"]
    assert is_reproduced(recorded, recorded)


def _hash(label: str | None) -> Multihash | None:
    return None if label is None else label_hash(label)


def _executed(spec: dict[str, Any]) -> ExecuteTransform:
    data, mark, checkpoint = spec["new_data"], spec["new_watermark"], spec["new_checkpoint"]
    return ExecuteTransform(
        query_inputs=tuple(
            ExecuteTransformInput(
                dataset_id=did(i["dataset"]),
                prev_block_hash=_hash(i["prev_block"]),
                new_block_hash=_hash(i["new_block"]),
                prev_offset=i["prev_offset"],
                new_offset=i["new_offset"],
            )
            for i in spec["query_inputs"]
        ),
        prev_offset=spec["prev_offset"],
        prev_checkpoint=_hash(spec["prev_checkpoint"]),
        new_data=DataSlice(
            logical_hash=label_hash(data["logical_hash"]),
            physical_hash=label_hash(data["physical_hash"]),
            offset_interval=OffsetInterval(start=data["start"], end=data["end"]),
            size=data["size"],
        )
        if data
        else None,
        new_checkpoint=Checkpoint(physical_hash=label_hash(checkpoint), size=1)
        if checkpoint
        else None,
        new_watermark=Timestamp.parse(mark) if mark else None,
    )


@pytest.mark.parametrize("case", cases("transform_planning", "output_watermark"))
def test_the_output_watermark_is_the_least_of_the_last_ones(case: dict[str, Any]) -> None:
    known = [
        next_step(did(str(number)), None, _marks(marks)).watermark
        for number, marks in enumerate(case["explicit_watermarks_by_input"])
    ]
    expected = case["expected"]
    if not all(case["explicit_watermarks_by_input"]):
        expected = None  # the reference overlooks inputs that never promised anything
    assert output_watermark(None, known) == (Timestamp.parse(expected) if expected else None)


def _marks(marks: list[str]) -> Interval:
    blocks = [
        MetadataBlock(
            system_time=START,
            prev_block_hash=label_hash(str(number)),
            sequence_number=number + 1,
            event=AddData(new_watermark=Timestamp.parse(mark)),
        )
        for number, mark in enumerate(marks)
    ]
    return Interval(tuple((label_hash(str(b.sequence_number)), b) for b in blocks), None)


@pytest.mark.parametrize("case", cases("transform_planning", "set_watermark"))
def test_a_watermark_set_by_hand_only_moves_forward(case: dict[str, Any], tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "chains", tmp_path / "keys", tmp_path / "cache")
    fill = case["blocks_before"] - 1 - bool(case["current"])
    texts = [SetInfo(description=str(n)) for n in range(fill)]
    workspace.create("root", DatasetKind[case["dataset_kind"]], texts, START)
    if "error" in case["expected"]:
        with pytest.raises(OdfbuildError) as caught:
            set_watermark(workspace, "root", Timestamp.parse(case["new"]), START)
        assert ERRORS[caught.value.code] == case["expected"]["error"]
        return
    if case["current"]:
        assert set_watermark(workspace, "root", Timestamp.parse(case["current"]), START)
    moved = set_watermark(workspace, "root", Timestamp.parse(case["new"]), START)
    now = workspace.projection("root")
    assert now is not None
    assert {
        "result": "Updated" if moved else "UpToDate",
        "current": None if now.watermark is None else str(now.watermark),
        "blocks_after": now.blocks,
    } == expectation(case)


def test_steps_of_a_chain_follow_one_another_without_gap_or_overlap(tmp_path: Path) -> None:
    case = next(p.values[0] for p in cases("transform_planning", "verify_plan"))
    chains = Chains(tmp_path, case["datasets"])
    source = Source(chains.workspace.dataset("foo"), histories(chains, "foo"))
    replays = plan_replays("bar", histories(chains, "bar"), lambda _: source)
    steps = [r.inputs[0].step for r in replays if isinstance(r, Replay)]
    assert all(a.block == b.prev_block for a, b in pairwise(steps))

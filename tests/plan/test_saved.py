"""A plan survives its file."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from odfbuild.errors import PlanError
from odfbuild.odf.timestamp import Timestamp
from odfbuild.plan.document import plan_document
from odfbuild.plan.model import Plan
from odfbuild.plan.saved import SavedPlan, read_plan
from odfbuild.plan.subset import moved, subset
from odfbuild.report.plan.json import plan_to_data, stamp
from odfbuild.report.plan.text import render_plan
from tests.plan.worlds import hash_of, news, pipeline
from tests.report.test_plan_report import SCREENS


def _saved(plan: Plan) -> dict[str, object]:
    return json.loads(json.dumps(plan_to_data(stamp(plan, created_at=Timestamp(0)))))


def _read(plan: Plan) -> SavedPlan:
    return read_plan(_saved(plan), "plan.json")


@pytest.mark.parametrize("name", SCREENS)
def test_a_plan_that_was_saved_says_and_does_the_same(name: str) -> None:
    plan = SCREENS[name]().plan()
    read = _read(plan).plan
    assert plan_document(read) == plan_document(plan)
    assert [d.changes for d in read.datasets] == [d.changes for d in plan.datasets]
    assert [d.expected_head for d in read.datasets] == [d.expected_head for d in plan.datasets]
    for full in (True, False):
        assert render_plan(read, full=full) == render_plan(plan, full=full)


def test_a_plan_that_was_edited_is_refused() -> None:
    data = _saved(SCREENS["plan-news"]().plan())
    data["summary"]["run"] = 1  # type: ignore[index]
    with pytest.raises(PlanError) as caught:
        read_plan(data, "plan.json")
    assert caught.value.code == "E0361"


@pytest.mark.parametrize("data", [None, [], {}, {"format_version": "2.0"}, {"format_version": 1}])
def test_what_is_no_plan_of_this_format_is_refused(data: object) -> None:
    with pytest.raises(PlanError) as caught:
        read_plan(data, "plan.json")
    assert caught.value.code == "E0360"
    assert "odfbuild plan -o" in (caught.value.help or "")


def test_a_part_of_a_plan_comes_with_what_it_reads() -> None:
    plan = pipeline().has("flights", news()).plan()
    part = subset(plan, {"late"}, set())
    assert [d.name for d in part.plan.datasets] == ["flights", "late"]
    assert (part.added, part.left) == (("flights",), ("worst",))
    assert not part.plan.complete


def test_without_a_step_none_that_reads_it_is_done() -> None:
    plan = pipeline().has("flights", news()).plan()
    part = subset(plan, {d.name for d in plan.datasets}, {"late"})
    assert [d.name for d in part.plan.datasets] == ["flights"]
    assert part.left == ("late", "worst")


def test_the_whole_of_a_plan_is_a_part_of_it() -> None:
    plan = pipeline().has("flights", news()).plan()
    part = subset(plan, {d.name for d in plan.datasets}, set())
    assert part.plan == plan


def test_a_step_whose_inputs_stay_behind_pins_their_heads() -> None:
    world = pipeline().derivative("worst", "late", query="SELECT 1 FROM late")
    part = subset(world.plan(), {"worst"}, set())
    assert dict(part.plan.pins) == {"late": world.chains["late"].now.head}
    heads = {name: chain.now.head for name, chain in world.chains.items()}
    assert moved(part.plan, heads) == {}
    found = moved(part.plan, {**heads, "late": hash_of("elsewhere")})
    assert [each.name for each in found["worst"]] == ["late"]


def test_datasets_that_moved_are_named_with_both_heads() -> None:
    plan = pipeline().has("flights", news()).plan()
    heads = {d.name: d.expected_head for d in plan.datasets if d.expected_head}
    assert moved(plan, heads) == {}
    found = moved(plan, {**heads, "worst": hash_of("elsewhere")})
    assert list(found) == ["worst"]
    (worst,) = found["worst"]
    assert (worst.planned, worst.actual) == (heads["worst"], hash_of("elsewhere"))
    assert list(moved(plan, {})) == ["flights", "late", "worst"]


def test_an_idle_dataset_that_moved_concerns_only_its_readers() -> None:
    world = pipeline().derivative("worst", "late", query="SELECT 1 FROM late")
    plan = world.plan()
    heads = {d.name: d.expected_head for d in plan.datasets if d.expected_head}
    assert list(moved(plan, {**heads, "flights": hash_of("x")})) == []
    assert list(moved(plan, {**heads, "late": hash_of("x")})) == ["worst"]


def test_every_field_of_a_dataset_is_saved() -> None:
    plan = SCREENS["plan-everything"]().plan()
    for before, after in zip(plan.datasets, _read(plan).plan.datasets, strict=True):
        # The definition itself is not needed to apply a plan, and snippets are for the moment.
        plain = replace(before, definition=None, planned_mode=before.mode, refusal=None)
        assert replace(after, refusal=None) == plain
        assert str(after.refusal) == str(before.refusal)

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from odfbuild.errors import Location, PlanError
from odfbuild.ingest.facts import SourceFacts
from odfbuild.odf.model import (
    AddPushSource,
    DatasetKind,
    MergeStrategyAppend,
    MergeStrategySnapshot,
    ReadStepNdJson,
    SetInfo,
)
from odfbuild.odf.timestamp import Timestamp
from odfbuild.plan.document import plan_digest
from odfbuild.plan.drift import ChainDrift, DriftCause
from odfbuild.plan.inputs import ByPolicy
from odfbuild.plan.model import Action, DatasetPlan, Plan, ReasonCode
from odfbuild.plan.saved import read_plan
from odfbuild.report.forms.rows import EventView, Row
from odfbuild.report.plan.html import render_html
from odfbuild.report.plan.instances import grouped
from odfbuild.report.plan.json import plan_to_data, stamp
from odfbuild.report.plan.markdown import render_markdown
from odfbuild.report.plan.text import render_plan
from odfbuild.report.plan.view import closing_line
from tests.plan.worlds import LATE, World, news, pipeline, polling, readers
from tests.report.golden import assert_golden

SCHEMA = Path(__file__).parents[2] / "schemas" / "plan.schema.json"
MAKE_IT_STRICT = "SELECT *\nFROM flights\nWHERE id > 15\n"


def fresh() -> World:
    world = World().root("flights", polling(), SetInfo(description="All flights"))
    world.derivative("late", "flights").derivative("worst", "late")
    facts = SourceFacts(
        "news", ("data/1.csv", "data/2.csv"), 81_083, True, 1_904_112, "2 files were never read"
    )
    return world.has("flights", facts)


def changed_query() -> World:
    return pipeline().derivative("late", "flights", query=MAKE_IT_STRICT)


def everything() -> World:
    world = changed_query().has("flights", news(28_330))
    world.chains["flights"].add(8, watermark=3)
    world.root("remote").has("remote", SourceFacts("unknown", message="https is read by apply"))
    world.commit("remote").add(1)
    push = AddPushSource(source_name="gps", read=ReadStepNdJson(), merge=MergeStrategyAppend())
    world.root("positions", push)
    snapshot = MergeStrategySnapshot(primary_key=("id",))
    world.root("planes", polling(merge=snapshot)).has("planes", news(3_322))
    world.root("weather", polling(merge=snapshot))
    world.commit("weather").add(5)
    world.root("weather", polling())
    world.root("airlines", polling(), SetInfo(description="Carriers", keywords=("a", "b")))
    world.commit("airlines").add(16)
    world.has("airlines", SourceFacts("unchanged"))
    world.root("airlines", polling(), SetInfo(description="Airlines", keywords=("a", "b")))
    world.derivative("tidy", "flights")
    world.commit("tidy").run(5, world.chains["flights"], watermark=3)
    world.derivative("tidy", "flights", query="SELECT * FROM flights WHERE id > 0 -- all")
    world.root("gone")
    world.commit("gone").add(2)
    del world.definitions["gone"]
    return world


def changed_column():
    """A query that computes a column in another way, and a source that breaks one."""
    query = LATE.replace("name FROM", "lower(name) AS name, id * 2 AS twice FROM")
    world = readers().derivative("late", "flights", query=query)
    return world.derivative("shown", "late", query="SELECT event_time, id, 1 AS other FROM late")


def changed_changelog():
    """A changed query whose result is kept as a changelog: it corrects what is there."""
    query = "SELECT max(event_time) AS event_time, id, max(name) AS name FROM flights GROUP BY id"
    return pipeline().derivative("late", "flights", query=query)


SCREENS = {
    "plan-nothing": pipeline,
    "plan-fresh": fresh,
    "plan-news": lambda: pipeline().has("flights", news(28_330)),
    "plan-changed-query": changed_query,
    "plan-everything": everything,
    "plan-readers": changed_column,
    "plan-changed-changelog": changed_changelog,
}


def test_a_plan_says_which_setting_corrects_rebuilds_or_does_not_apply():
    world = changed_changelog().derivative("copy", "flights")
    world.commit("copy").run(7, world.chains["flights"])
    world.derivative("copy", "flights", query=MAKE_IT_STRICT)
    world.commit("worst").run(5, world.chains["late"])
    world.derivative("worst", "late", query=LATE.replace("flights", "late"))
    setting = "`onQueryChange: correct` in odfbuild.yaml:12"
    by_policy = ByPolicy(
        corrected={"late": setting},
        rebuilt={"worst": "`onQueryChange: rebuild` in odfbuild.yaml:14"},
        kept={"copy": f"{setting} corrects only what is kept as a changelog: its records stay"},
    )
    assert_golden("plan-on-query-change.txt", render_plan(world.plan(by_policy)))


@pytest.mark.parametrize("name", SCREENS)
def test_a_plan_reads_like_this(name):
    assert_golden(f"{name}.txt", render_plan(SCREENS[name]().plan()))


@pytest.mark.parametrize("name", ["plan-news", "plan-everything"])
def test_a_plan_in_full_reads_like_this(name):
    assert_golden(f"{name}-full.txt", render_plan(SCREENS[name]().plan(), full=True))


@pytest.mark.parametrize("name", SCREENS)
def test_colour_adds_nothing_but_colour(name):
    plan = SCREENS[name]().plan()
    colored = render_plan(plan, color=True)
    assert re.sub(r"\x1b\[[\d;]+m", "", colored) == render_plan(plan)


def test_colour_marks_the_glyphs():
    assert "\x1b[36m>\x1b[0m late" in render_plan(SCREENS["plan-news"]().plan(), color=True)


def test_the_closing_line_is_the_last_one():
    plan = everything().plan()
    assert render_plan(plan).splitlines()[-1] == closing_line(plan)
    assert (
        closing_line(plan) == "Plan: 2 to create, 2 to change, 5 to run, 0 to reset, 0 to delete."
    )


def test_a_cosmetic_change_is_told_and_changes_nothing():
    world = pipeline().derivative("late", "flights", query="SELECT * FROM flights WHERE id > 0")
    text = render_plan(world.plan())
    assert text.splitlines() == [
        "  = late  cosmetic: only white space or comments changed in SQL; nothing is appended",
        "",
        "No changes. All datasets are up to date.",
    ]


def test_a_plan_of_some_datasets_says_nothing_of_the_others():
    assert render_plan(replace(pipeline().plan(), complete=False)).splitlines() == [
        "No changes. The selected datasets are up to date.",
    ]


def test_of_thousands_of_datasets_only_some_are_listed():
    world = World()
    for number in range(1_000):
        world.define(f"d{number}", DatasetKind.Root, polling()).has(f"d{number}", news(1))
    text = render_plan(world.plan())
    assert len(text.splitlines()) < 220
    assert "  … and 800 more datasets; --full lists all" in text
    assert len(render_plan(world.plan(), full=True).splitlines()) > 2_000


def test_a_comment_stays_within_its_budget_whatever_there_is_to_say():
    """A service refuses a comment that is too long, and nobody reads the plan then."""
    world = World()
    for number in range(400):
        world.define(f"d{number}", DatasetKind.Root, polling()).has(f"d{number}", news(1))
    gone = ChainDrift(
        dataset="d1", cause=DriftCause.GONE, message="gone " * 10, help="bring it back"
    )
    saved = stamp(replace(world.plan(), drift=(gone,) * 500))
    for budget in (4_000, 20_000, 65_000):
        text = render_markdown(saved, budget=budget)
        assert len(text) <= budget
        assert re.search(r"… and [0-9]+ more places of drift\.", text)
        assert text.endswith(f"Plan `{saved.digest}`\n")
    assert re.search(r"… and [0-9]+ more datasets with details\.", text)


@pytest.mark.parametrize(
    "name", ["plan-nothing", "plan-changed-query", "plan-everything", "plan-readers"]
)
def test_a_plan_as_json_looks_like_this(name):
    saved = stamp(SCREENS[name]().plan(), created_at=Timestamp(0), tool_version="0.0.0")
    data = plan_to_data(saved)
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(data)
    assert_golden(f"{name}.json", json.dumps(data, indent=2, ensure_ascii=False))


def test_the_digest_covers_neither_time_nor_version_nor_git():
    plan = everything().plan()
    git = {"commit": "3f0c1d2", "dirty": True}
    first = stamp(plan, created_at=Timestamp(0), tool_version="1")
    second = stamp(plan, created_at=Timestamp(1), tool_version="2", git=git)
    assert first.digest == second.digest
    assert first.digest.startswith("sha256:")


def test_the_digest_changes_with_the_head_of_a_dataset():
    world = pipeline()
    before = plan_digest(world.plan())
    world.chains["worst"].append(SetInfo(description="moved"))
    assert plan_digest(world.plan()) != before


def test_the_schema_lists_every_reason_and_action():
    definitions = json.loads(SCHEMA.read_text())["$defs"]
    codes = [code.value for code in ReasonCode]
    assert definitions["reason"]["properties"]["code"]["enum"] == codes
    assert definitions["action"]["enum"] == [action.name.lower() for action in Action]


MODES = {
    "SELECT window.start AS event_time, COUNT(*) AS n "
    "FROM late GROUP BY window(event_time, '1 hour')": (
        "kept up to date as stream: a window is final when the watermark passes its end"
    ),
    "SELECT DISTINCT event_time, id FROM late": (
        "kept up to date as changelog: DISTINCT at line 1, column 8"
    ),
}


@pytest.mark.parametrize("query", MODES)
def test_a_plan_says_how_a_result_is_kept_up_to_date(query):
    world = fresh().derivative("worst", "late", query=query)
    plan = world.plan()
    assert f"\n      {MODES[query]}\n" in render_plan(plan)
    saved = json.loads(json.dumps(plan_to_data(stamp(plan))))
    told = saved["datasets"][2]["mode"]
    assert f"kept up to date as {told['mode']}: {told['reason']}" == MODES[query]
    assert render_plan(read_plan(saved, "plan.json").plan) == render_plan(plan)


@pytest.mark.parametrize(
    ("values", "queries", "together"),
    [
        (("n=0", "n=1"), ("SELECT 0 WHERE id > 1", "SELECT 1 WHERE id > 1"), True),
        (("n=0", "n=1"), ("SELECT 0 WHERE id > 1", "SELECT 1 WHERE id > 2"), False),
        (("at=EWR", "at=JFK"), ("SELECT 'EWR' AS ewr", "SELECT 'JFK' AS jfk"), True),
        (("c=new york", "c=los angeles"), ("SELECT 'new york'", "SELECT 'los angeles'"), True),
        (("a=x, b=1", "a=y, b=2"), ("SELECT x + 1", "SELECT y + 2"), True),
        (("a=x, b=1", "a=y, b=2"), ("SELECT x + 1", "SELECT y + 3"), False),
    ],
)
def test_instances_are_told_together_when_only_their_values_differ(values, queries, together):
    place = [Location("t.yaml.j2", instance=value) for value in values]
    events = [EventView(kind="SetTransform", place=None, diff=(f"+{q}",)) for q in queries]
    rows = [
        Row(name=name, action=Action.APPEND, what="", place=None, events=(event,))
        for name, event in zip("ab", events, strict=True)
    ]
    first, second = grouped(zip(rows, place, strict=True))
    assert first == rows[0]
    assert second.same_as == ("a" if together else None)


@pytest.mark.parametrize(("causes", "together"), [(("x", "y"), True), (("x", "z"), False)])
def test_instances_that_are_refused_for_the_same_cause_are_told_together(causes, together):
    plan = Plan(
        project="p",
        datasets=tuple(
            DatasetPlan(
                name=f"d.{value}",
                kind=DatasetKind.Root,
                id=None,
                expected_head=None,
                actions=(Action.REFUSE,),
                reasons=(),
                location=Location("t.yaml.j2", instance=f"n={value}"),
                refusal=PlanError(
                    f"the column '{cause}' is gone", code="E0302", help="put it back"
                ),
            )
            for value, cause in zip("xy", causes, strict=True)
        ),
    )
    text = render_plan(plan)
    title = "0 to create, 0 to change, 0 to run, 0 to reset, 0 to delete, 2 refused"
    assert f"<title>p: Plan: {title}</title>" in render_html(stamp(plan))
    assert f"### Plan: {title}\n" in render_markdown(stamp(plan))
    again = "\n      the same refusal as d.x, from t.yaml.j2 (n=y)\n"
    assert text.count("error[E0302]") == (1 if together else 2)
    assert (again in text) is together
    assert ("The same refusal as `d.x`" in render_markdown(stamp(plan))) is together
    assert ("The same refusal as <code>d.x</code>" in render_html(stamp(plan))) is together


def test_the_page_draws_what_is_affected_and_opens_what_differs() -> None:
    page = render_html(stamp(everything().plan()))
    [drawing] = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    linked = re.findall(r'class="node (\w+)" href="#p-([\w.-]+)"', drawing)
    assert linked
    assert all(f'<details class="{kind}" id="p-{name}"' in page for kind, name in linked)
    assert drawing.count('class="edge"') >= 1
    for kind in ("rebuild", "refuse", "append"):
        closed = rf'<details class="{kind}" id="[^"]*">(?:(?!</details>).)*class="plus"'
        assert re.search(closed, page, re.DOTALL) is None

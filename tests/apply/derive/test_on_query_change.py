"""Changed queries whose effect on existing records odfbuild.yaml decides: `onQueryChange`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odfbuild import Project
from odfbuild.inspect.verify.check import verify
from odfbuild.plan.changes.classify import Category, category
from odfbuild.plan.model import Action, ReasonCode
from tests.apply.in_process import Program
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import QUERY, Tiny

NEW_QUERY = QUERY.replace("10", "100")
_BEFORE = (
    "kind: Project\nversion: 1\ncontent:\n  name: tiny\n  datasets: datasets\n  state: chains\n"
)
LINE = len(_BEFORE.splitlines()) + 3
"""The line of `onQueryChange` of the first entry."""


def policies(tiny: Tiny, *entries: tuple[str, str]) -> None:
    """Let odfbuild.yaml have an entry for each pattern, with one more line: `key: value`."""
    listed = "".join(f"    - match: ['{pattern}']\n      {line}\n" for pattern, line in entries)
    text = f"{_BEFORE}  policies:\n{listed}" if entries else _BEFORE
    (tiny.root / "odfbuild.yaml").write_text(text)


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """root → derived → further; root → other."""
    made = Tiny.fresh(tmp_path / "tiny")
    made.derive("further", QUERY, "derived")
    made.derive("other", QUERY)
    return made


@pytest.fixture
def odfbuild(odfbuild: Program) -> Program:
    """The program in that project, applied."""
    odfbuild.apply()
    return odfbuild


def values(tiny: Tiny, name: str) -> list[int]:
    return [record["value"] for record in tiny.records(name)]


def check(tiny: Tiny) -> None:
    verdict = verify(tiny.workspace(), tiny.workspace().aliases(), factory=PlainEngine)
    assert verdict.findings == ()


def test_a_changed_query_rebuilds_its_dataset_and_all_that_read_it(
    tiny: Tiny, odfbuild: Program
) -> None:
    policies(tiny, ("derived", "onQueryChange: rebuild"))
    assert "No changes" in odfbuild.ok("plan").out, "the setting alone rebuilds nothing"
    tiny.derive("derived", NEW_QUERY)
    said = odfbuild.ok("plan").out
    setting = f"`onQueryChange: rebuild` in odfbuild.yaml:{LINE}"
    assert "-/+ derived  rebuilt: its history starts over" in said
    assert f"because {setting}: 3 records are dropped and recomputed" in said
    assert (
        f"because {setting} rebuilds 'derived' upstream of it: 3 records are dropped and recomputed"
    ) in said
    assert said.endswith("0 to create, 0 to change, 2 to run, 2 to reset, 0 to delete.\n")
    assert odfbuild.ok("plan").out == said, "what is remembered says the same"
    assert values(tiny, "derived") == [10, 20, 30]

    refused = odfbuild("apply")
    assert refused.code == 1
    assert "nothing was applied: the plan deletes or rebuilds derived, further" in refused.err
    assert values(tiny, "derived") == [10, 20, 30]

    odfbuild.apply()
    assert values(tiny, "derived") == [100, 200, 300]
    assert values(tiny, "further") == [1000, 2000, 3000]
    assert values(tiny, "other") == [10, 20, 30]
    assert "No changes" in odfbuild.ok("plan").out
    check(tiny)


def test_the_plan_is_what_options_would_give_but_for_who_asks(
    tiny: Tiny, odfbuild: Program
) -> None:
    tiny.derive("derived", NEW_QUERY)
    by_option = odfbuild.ok("plan", "--allow", "rebuild:derived+").out
    policies(tiny, ("derived", "onQueryChange: rebuild"))
    by_setting = odfbuild.ok("plan").out
    setting = f"`onQueryChange: rebuild` in odfbuild.yaml:{LINE}"
    same = by_setting.replace(f"{setting} rebuilds 'derived' upstream of it", setting)
    assert same.replace(setting, "--allow rebuild is given") == by_option
    assert odfbuild.ok("plan", "--allow", "rebuild:derived+").out == by_option, "who asks decides"


def test_a_saved_plan_does_what_the_setting_said_then(tiny: Tiny, odfbuild: Program) -> None:
    policies(tiny, ("derived", "onQueryChange: rebuild"))
    tiny.derive("derived", NEW_QUERY)
    odfbuild.ok("plan", "-o", "plan.json")
    policies(tiny)
    assert "-/+ derived" in odfbuild.ok("show", "plan.json").out
    saved = json.loads((tiny.root / "plan.json").read_text())
    derived = next(each for each in saved["datasets"] if each["name"] == "derived")
    assert derived["category"] == "rebuild"
    assert derived["reasons"][0]["code"] == "rebuild"
    odfbuild.ok("apply", "plan.json", "-y")
    assert values(tiny, "further") == [1000, 2000, 3000]
    check(tiny)


def test_a_change_that_history_forbids_is_made_by_the_rebuild(
    tiny: Tiny, odfbuild: Program
) -> None:
    policies(tiny, ("*", "onQueryChange: rebuild"), ("*", "forward-only: refuse"))
    tiny.derive("further", QUERY, "other")
    assert "-/+ further" in odfbuild.ok("plan").out
    odfbuild.apply()
    assert values(tiny, "further") == [100, 200, 300]
    check(tiny)


def test_what_is_no_query_is_none_of_its_business(tiny: Tiny, odfbuild: Program) -> None:
    policies(tiny, ("*", "onQueryChange: rebuild"))
    tiny.describe("derived", "Other words")
    tiny.describe("root", "Other words")
    tiny.derive("other", QUERY.replace(" FROM", "\n          FROM"))
    said = odfbuild.ok("plan").out
    assert "0 to create, 2 to change, 0 to run, 0 to reset, 0 to delete." in said
    assert "onQueryChange" not in said


def test_for_one_run_an_option_lets_the_change_go_forward(tiny: Tiny, odfbuild: Program) -> None:
    policies(tiny, ("derived", "onQueryChange: rebuild"))
    tiny.derive("derived", NEW_QUERY)
    said = odfbuild.ok("plan", "--allow", "forward:derived").out
    assert "~ derived  forward-only: SetTransform" in said
    assert "3 existing records are not recomputed: made by the query of block #1" in said
    with Project(tiny.root) as project:
        plan = project.plan(forward=["Derived"])
    assert {each.name: each.actions for each in plan.datasets}["derived"] == (Action.APPEND,)
    odfbuild.ok("apply", "-y", "--allow", "forward:derived")
    assert values(tiny, "derived") == [10, 20, 30]
    assert "No changes" in odfbuild.ok("plan").out, "the query did not change again"


@pytest.mark.parametrize(
    ("consents", "message"),
    [
        (["forward:derivd"], "help: did you mean 'derived'?"),
        (["forward:derived+"], "help: remove the `+`"),
        (["forward:root"], "'root' is a root: it has no query"),
        (["forward:derived", "correct:derived"], "two options say what the changed query"),
        (["forward:derived", "rebuild:derived+"], "help: give one of forward, correct and rebuild"),
    ],
)
def test_a_forward_that_is_about_nothing_is_refused(
    tiny: Tiny, odfbuild: Program, consents: list[str], message: str
) -> None:
    said = odfbuild("plan", *(word for each in consents for word in ("--allow", each)))
    assert said.code == 1
    assert "error[E0353]" in said.err
    assert message in said.err


def test_the_last_entry_that_says_something_wins(tiny: Tiny, odfbuild: Program) -> None:
    tiny.derive("other", NEW_QUERY)
    policies(
        tiny,
        ("*", "onQueryChange: rebuild"),
        ("O*", "onQueryChange: forward"),
        ("other", "rebuild: allow"),
    )
    assert "~ other  forward-only" in odfbuild.ok("plan").out


def test_a_protected_history_is_not_rebuilt_and_all_else_goes_on(
    tiny: Tiny, odfbuild: Program
) -> None:
    policies(tiny, ("derived", "onQueryChange: rebuild"), ("further", "rebuild: refuse"))
    tiny.derive("derived", NEW_QUERY)
    tiny.derive("other", NEW_QUERY)
    said = odfbuild("plan")
    assert said.code == 1
    assert "error[E0339]: 'derived' cannot be rebuilt: the history of 'further' is protected" in (
        said.out
    )
    setting = f"`onQueryChange: rebuild` in odfbuild.yaml:{LINE}"
    assert f"note: {setting} asks for the rebuild, because its query changed" in said.out
    assert "or let the changed query hold for new records in this run: --allow forward:derived" in (
        said.out
    )
    assert "~ other    forward-only" in said.out
    assert odfbuild("apply", "-y").code != 0
    assert values(tiny, "derived") == [10, 20, 30]
    assert values(tiny, "further") == [100, 200, 300]
    odfbuild.ok("apply", "-y", "--allow", "forward:derived")
    check(tiny)


def test_one_edit_cannot_end_the_protection_and_rebuild(tiny: Tiny, odfbuild: Program) -> None:
    policies(tiny, ("derived", "rebuild: refuse"))
    odfbuild.apply()
    policies(tiny, ("derived", "onQueryChange: rebuild"))
    tiny.derive("derived", NEW_QUERY)
    said = odfbuild("plan")
    assert said.code == 1
    assert "error[E0339]" in said.out
    assert "the policy of the last apply protects it" in said.out


def test_readers_that_are_not_selected_forbid_the_rebuild_of_what_they_read(
    tiny: Tiny, odfbuild: Program
) -> None:
    policies(tiny, ("*", "onQueryChange: rebuild"))
    tiny.derive("derived", NEW_QUERY)
    said = odfbuild("apply", "-y", "-s", "derived")
    assert said.code == 1
    assert "error[E0338]: 'derived' cannot be rebuilt: 'further' is to be rebuilt, but not" in (
        said.out
    )
    assert values(tiny, "derived") == [10, 20, 30]
    assert "No changes" in odfbuild.ok("plan", "-s", "other").out
    assert "2 to reset" in odfbuild.ok("plan", "-s", "derived+").out
    assert "2 to reset" in odfbuild.ok("plan", "-s", "state:rebuild").out


def test_orphaned_readers_forbid_the_rebuild_until_they_are_deleted(
    tiny: Tiny, odfbuild: Program
) -> None:
    policies(tiny, ("derived", "onQueryChange: rebuild"))
    tiny.derive("derived", NEW_QUERY)
    (tiny.root / "datasets" / "further.yaml").unlink()
    said = odfbuild("plan")
    assert said.code == 1
    assert "error[E0337]: 'derived' cannot be rebuilt: " in said.out
    odfbuild.ok("apply", "-y", "--allow", "delete:further")
    assert values(tiny, "derived") == [100, 200, 300]


def test_what_is_kept_record_by_record_cannot_be_corrected_and_the_plan_says_so(
    tiny: Tiny, odfbuild: Program
) -> None:
    policies(tiny, ("*", "onQueryChange: correct"))
    tiny.derive("other", NEW_QUERY)
    said = odfbuild.ok("plan").out
    assert "~ other  forward-only: SetTransform" in said
    assert "3 existing records are not recomputed: made by the query of block #1" in said
    assert (
        f"because `onQueryChange: correct` in odfbuild.yaml:{LINE} corrects only what is kept as a "
        "changelog: its existing records stay, and --allow rebuild:other+ recomputes them"
    ) in said
    odfbuild.apply()
    assert values(tiny, "other") == [10, 20, 30]
    assert "No changes" in odfbuild.ok("plan").out
    check(tiny)


def test_the_python_interface_plans_the_same(tiny: Tiny, odfbuild: Program) -> None:
    policies(tiny, ("derived", "onQueryChange: rebuild"))
    tiny.derive("derived", NEW_QUERY)
    with Project(tiny.root) as project:
        plan = project.plan()
        found = {each.name: each for each in plan.datasets}
        assert category(found["derived"]) is Category.REBUILD
        assert found["further"].reasons[0].code is ReasonCode.REBUILD
        project.apply(plan)
    assert values(tiny, "further") == [1000, 2000, 3000]


def test_a_wrong_value_is_told_with_its_place(tiny: Tiny, odfbuild: Program) -> None:
    policies(tiny, ("*", "onQueryChange: recompute"))
    said = odfbuild("plan")
    assert said.code == 1
    assert f"odfbuild.yaml:{LINE}" in said.err


def test_a_pattern_that_matches_nothing_is_told(tiny: Tiny, odfbuild: Program) -> None:
    policies(tiny, ("derivd", "onQueryChange: rebuild"))
    said = odfbuild("plan")
    assert said.code == 1
    assert "error[E0151]" in said.err

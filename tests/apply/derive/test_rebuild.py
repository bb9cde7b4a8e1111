"""Derivatives computed again from the start: by name, with all their readers, in one movement."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfbuild.cli.exit_codes import EXIT_USAGE
from odfbuild.inspect.verify.check import verify
from tests.apply.in_process import Program
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import QUERY, Tiny

NEW_QUERY = QUERY.replace("10", "100")


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


def test_a_rebuilt_dataset_has_all_its_records_by_the_query_of_now(
    tiny: Tiny, odfbuild: Program
) -> None:
    before = tiny.workspace().projection("other")
    tiny.derive("other", NEW_QUERY)
    said = odfbuild.ok("plan", "--allow", "rebuild:other")
    assert "-/+ other" in said.out
    assert "because --allow rebuild is given: 3 records are dropped and recomputed" in said.out
    assert "value * 100" in said.out
    assert said.out.endswith("0 to create, 0 to change, 1 to run, 1 to reset, 0 to delete.\n")
    assert tiny.workspace().projection("other") == before
    odfbuild.ok("apply", "-y", "--allow", "rebuild:other")
    assert values(tiny, "other") == [100, 200, 300]
    now = tiny.workspace().projection("other")
    assert before is not None
    assert now is not None
    assert now.dataset_id == before.dataset_id
    assert [type(event).__name__ for event in tiny.events("other")] == [
        "Seed",
        "SetTransform",
        "SetDataSchema",
        "ExecuteTransform",
    ]
    check(tiny)
    assert "No changes" in odfbuild.ok("plan").out


def test_what_others_consumed_is_not_rebuilt_without_them(tiny: Tiny, odfbuild: Program) -> None:
    before = tiny.state()
    said = odfbuild("apply", "-y", "--allow", "rebuild:derived")
    assert said.code == 1
    assert "error[E0337]: 'derived' cannot be rebuilt alone: 'further'" in said.err
    assert "help: rebuild all of them: --allow rebuild:derived+" in said.err
    assert tiny.state() == before
    tiny.derive("derived", NEW_QUERY)
    odfbuild.ok("apply", "-y", "--allow", "rebuild:derived+")
    assert values(tiny, "derived") == [100, 200, 300]
    assert values(tiny, "further") == [1000, 2000, 3000]
    assert values(tiny, "other") == [10, 20, 30]
    check(tiny)


def test_readers_may_be_named_one_by_one(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.ok("apply", "-y", "--allow", "rebuild:derived", "--allow", "rebuild:further")
    assert values(tiny, "further") == [100, 200, 300]
    check(tiny)


def test_another_input_makes_a_rebuild_possible_where_history_does_not_allow_it(
    tiny: Tiny, odfbuild: Program
) -> None:
    tiny.derive("further", QUERY, "other")
    said = odfbuild("plan")
    assert said.code == 1
    assert "--allow rebuild:further+" in said.out
    odfbuild.ok("apply", "-y", "--allow", "rebuild:further+")
    other = tiny.workspace().projection("other")
    further = tiny.workspace().projection("further")
    assert other is not None
    assert further is not None
    assert [each.dataset_id for each in further.inputs] == [other.dataset_id]
    check(tiny)


def test_readers_of_a_dataset_that_was_taken_back_go_on_after_a_rebuild(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.ok("reset", "root", "-y")
    said = odfbuild("apply", "-y")
    assert said.code == 4
    assert "error[E0306]: 'derived' cannot continue" in said.out + said.err
    assert "--allow rebuild:derived+" in said.out
    odfbuild.ok("apply", "-y", "--allow", "rebuild:derived+", "--allow", "rebuild:other+")
    assert values(tiny, "further") == [100, 200, 300]
    check(tiny)


def test_a_saved_plan_rebuilds_exactly_what_was_approved(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.ok("plan", "--allow", "rebuild:derived+", "-o", "plan.json")
    shown = odfbuild.ok("show", "plan.json")
    assert "-/+ derived" in shown.out
    odfbuild.ok("apply", "plan.json", "-y")
    check(tiny)
    assert odfbuild("apply", "plan.json", "-y").code == 5
    assert odfbuild("apply", "plan.json", "--allow", "rebuild:derived+").code == EXIT_USAGE


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["rebuild:derivd"], 1, "help: did you mean 'derived'?"),
        (["rebuild:root"], 1, "error[E0336]: 'root' is a root"),
        (["rebuild:derived+", "--select", "derived"], 1, "error[E0338]: 'further'"),
        (["reset:derived"], EXIT_USAGE, "is none of 'rebuild:NAME'"),
        (["rebuild:"], EXIT_USAGE, "is none of 'rebuild:NAME'"),
    ],
)
def test_a_wrong_wish_changes_nothing(
    tiny: Tiny, odfbuild: Program, arguments: list[str], code: int, message: str
) -> None:
    before = tiny.state()
    said = odfbuild("apply", "-y", "--allow", *arguments)
    assert said.code == code
    assert message in said.err
    assert tiny.state() == before


def test_a_dataset_without_a_chain_is_simply_created(tiny: Tiny, odfbuild: Program) -> None:
    tiny.derive("young", QUERY)
    said = odfbuild.ok("apply", "-y", "--allow", "rebuild:young")
    assert "+ young" in said.out
    assert values(tiny, "young") == [10, 20, 30]


def test_a_dataset_whose_input_is_refused_stays_as_it_is(tiny: Tiny, odfbuild: Program) -> None:
    before = tiny.state()
    tiny.derive("derived", "SELECT nonsense FROM", "other")
    odfbuild("apply", "-y", "--allow", "rebuild:further")
    assert tiny.state()["derived"] == before["derived"]
    assert values(tiny, "further") == [100, 200, 300]

"""A changelog whose query changed: what is said of it until it follows, and how it follows now."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfbuild import Project
from odfbuild.engine.contract import Engine
from odfbuild.odf.model import ExecuteTransform
from odfbuild.plan.explain import DatasetStatus
from tests.apply.in_process import Program, share
from tests.apply.tiny import QUERY, Tiny

pytestmark = pytest.mark.spark

SUM = (
    "SELECT max(event_time) AS event_time, id % 2 AS id, sum(value) * {n} AS value"
    " FROM source GROUP BY id % 2"
)
BY_ONE, BY_TEN = SUM.format(n=1), SUM.format(n=10)


@pytest.fixture
def program(
    tmp_path: Path,
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Program:
    """A changelog and its reader, applied; then the query of the changelog changed, applied too."""
    share(spark_engine, monkeypatch)
    tiny = Tiny.fresh(tmp_path / "p")
    tiny.derive("derived", BY_ONE)
    tiny.derive("reader", QUERY, source="derived")
    program = Program(tiny.root, monkeypatch, capsys)
    program.apply()
    tiny.derive("derived", BY_TEN)
    said = program.ok("plan").out
    way = "--allow correct:derived does that now"
    assert (
        f"the next step may correct up to 2 records: it recomputes the whole history; {way}" in said
    )
    return program


def values(program: Program, name: str) -> list[tuple[int, int, int]]:
    return [(r["op"], r["id"], r["value"]) for r in Tiny(program.root).records(name)]


BEFORE = [(0, 0, 2), (0, 1, 4)]
CORRECTED = [*BEFORE, (2, 0, 2), (3, 0, 20), (2, 1, 4), (3, 1, 40)]


def test_it_is_not_called_up_to_date_until_it_follows_its_query(program: Program) -> None:
    program.apply()
    assert values(program, "derived") == BEFORE
    plan = program.ok("plan", "--detailed-exitcode").out
    assert plan.splitlines() == [
        "  = derived  its records are results of the query of block #1 until there is new input; "
        "to correct them now: odfbuild apply --allow correct:derived",
        "",
        "No changes. 1 dataset with results of an earlier query; all others are up to date.",
    ]
    assert program.ok("plan").out == plan, "what was remembered says the same"
    listed = {each["name"]: each["status"] for each in program.ok("ls", "--json").data}
    assert listed == {"derived": "earlier query", "reader": "up to date", "root": "up to date"}
    assert "earlier query (1):\n  derived" in program.ok("status").out
    assert "derived  has results of an earlier query" in program.ok("explain", "derived").out

    planned = program.ok("plan", "--allow", "correct:derived").out
    assert "  > derived  no new records; reads 3 in all\n" in planned
    assert "may correct up to 2 records: the whole history is recomputed" in planned
    assert (
        "because --allow correct is given: its records are corrected to match the current query"
        in planned
    )
    program.ok("apply", "-y", "--allow", "correct:derived")
    assert values(program, "derived") == CORRECTED
    assert values(program, "reader")[2:] == [(op, id, 10 * n) for op, id, n in CORRECTED[2:]]
    assert program.ok("plan").out == "No changes. All datasets are up to date.\n"
    program.ok("verify")
    with Project(program.root) as project:
        assert project.explain("derived").status is DatasetStatus.UP_TO_DATE
        assert not project.plan(correct=["derived"]).has_changes


def test_new_input_brings_it_about(program: Program) -> None:
    program.apply()
    Tiny(program.root).arrive(2)
    program.apply()
    assert values(program, "derived")[2:] == [(2, 0, 2), (3, 0, 60), (2, 1, 4), (3, 1, 40)]
    assert program.ok("plan").out == "No changes. All datasets are up to date.\n"
    program.ok("verify")


def test_it_can_follow_in_the_apply_that_changes_the_query(program: Program) -> None:
    program.ok("plan", "--allow", "correct:derived", "-o", "plan.json")
    program.ok("apply", "-y", "plan.json")
    assert values(program, "derived") == CORRECTED
    assert program.ok("plan").out == "No changes. All datasets are up to date.\n"
    program.ok("verify")


def test_a_query_that_gives_the_same_records_is_settled_as_well(program: Program) -> None:
    Tiny(program.root).derive(
        "derived", BY_ONE.replace("* 1", "/ 1").replace("sum(value) / 1", "sum(value + 0)")
    )
    program.apply()
    assert "1 dataset with results of an earlier query" in program.ok("plan").out
    program.ok("apply", "-y", "--allow", "correct:derived")
    assert values(program, "derived") == BEFORE
    last = Tiny(program.root).events("derived")[-1]
    assert isinstance(last, ExecuteTransform)
    assert last.new_data is None
    assert program.ok("plan").out == "No changes. All datasets are up to date.\n"
    program.ok("verify")


def test_what_cannot_be_corrected_is_refused_with_what_can_be_done(program: Program) -> None:
    def help_for(consent: str) -> str:
        said = program("plan", "--allow", consent)
        assert said.code == 1
        assert "error[E0352]" in said.err
        return said.err.partition("help: ")[2].strip()

    assert help_for("correct:reader").startswith("rebuild it from the start: --allow rebuild:")
    assert help_for("correct:deriveds").splitlines()[0] == "did you mean 'derived'?"
    assert "remove the `+`" in help_for("correct:derived+")

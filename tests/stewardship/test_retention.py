"""Old records are withdrawn by consent; the chain, its readers and its peers go on without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfbuild import Project
from odfbuild.engine.contract import Engine
from tests.stewardship.killed import lives
from tests.stewardship.visits import DAILY, TOTALS, Visits

pytestmark = pytest.mark.spark


def test_old_records_go_and_all_else_goes_on(
    spark_engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ours = Visits.fresh(tmp_path, spark_engine, monkeypatch, capsys)
    ours.arrive(9)
    ours.run("push", "--to", "acme")
    peer = ours.other("peer")
    peer.run("pull", "acme/visits", "--as", "visits")
    stored = len(list((tmp_path / "storage" / "data").iterdir()))
    ours.arrive()

    planned = ours.run("plan").out
    assert "--allow withdraw:visits" in planned
    assert ours.objects() == 10  # a plan without consent changes nothing
    assert ours("any", "apply", "--allow", "withdraw:visits").code == 1  # nobody to ask
    done = ours.run("apply", "-y", "--allow", "withdraw:visits", "--no-publish")
    assert "visits: 18 records in 6 objects" in done.out, done.out
    assert ours.objects() == 4
    assert ours.published() == 12
    assert len(list((tmp_path / "storage" / "data").iterdir())) < stored

    verified = ours.run("verify").out
    assert "visits: 6 objects with 18 records withdrawn by the statement of" in verified
    assert "records are kept for 100 days" in verified
    assert "named: 6 steps not recomputed: the statement of" in verified
    assert "all records are identical" in verified
    count = "SELECT COUNT(*) AS n FROM visits"
    assert ours.run("sql", count, "--json").data == [{"n": 12}]
    ours.arrive(2)
    assert ours.run("sql", count, "--json").data == [{"n": 18}]
    ours.derive("late", TOTALS)  # sees what is left
    ours.derive("late.daily", DAILY)
    ours.run("apply", "-y", "--no-publish")
    assert sum(each["n"] for each in ours.run("sql", "SELECT n FROM late", "--json").data) == 18
    ours.run("gc", "--grace", "0", "-y")
    assert ours.objects() == 6
    ours.run("verify")

    ours.run("push")
    assert len(list((tmp_path / "acme" / "visits" / "data").iterdir())) == 6
    peer.run("pull", "visits")
    said = peer.run("verify", "visits").out
    assert "withdrawn by the statement of" in said
    fresh = ours.other("fresh")
    fresh.run("pull", "acme/visits", "--as", "visits")
    assert fresh.objects() == 6
    fresh.run("verify", "visits")

    # What is missing without a statement stays damage.
    newest = max(
        (ours.root / "chains" / "visits" / "data").iterdir(), key=lambda f: f.stat().st_mtime
    )
    newest.unlink()
    (tmp_path / "storage" / "data" / newest.name).unlink()
    (tmp_path / "acme" / "visits" / "data" / newest.name).unlink()
    assert ours("any", "verify", "visits", "--integrity").code == 3


def test_what_is_still_needed_is_not_withdrawn(
    spark_engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ours = Visits.fresh(tmp_path, spark_engine, monkeypatch, capsys)
    ours.derive("totals", TOTALS)
    ours.arrive(6)
    planned = ours.run("plan").out
    assert "E1631" in planned
    assert "'totals' computes over the whole history of its inputs" in planned
    said = ours("any", "apply", "-y", "--allow", "withdraw:visits")
    assert said.code != 0
    assert ours.objects() == 6
    assert "E1632" in ours("any", "plan", "--allow", "withdraw:daily").err


def test_a_kill_at_each_step_of_a_withdrawal_and_gc_give_the_same_end(
    spark_engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ours = Visits.fresh(tmp_path, spark_engine, monkeypatch, capsys)
    ours.arrive(6)
    project = Project(ours.root)

    def withdraw() -> None:
        plan = project.plan(withdraw=["visits"])
        assert not project.apply(plan, publish=False).errors

    for number in range(60):
        allowed = [each for each in project.plan().retention if each.dataset == "visits"]
        if not allowed or lives(number, withdraw):
            break
    assert not [each for each in project.plan().retention if each.dataset == "visits"]
    ours.run("gc", "-y")
    assert ours.objects() == 4
    stored = {each.name for each in (tmp_path / "storage" / "data").iterdir()}
    kept = {each.name for each in (ours.root / "chains" / "visits" / "data").iterdir()}
    assert kept <= stored
    assert len(stored) == 4 + ours.objects("named") + ours.objects("daily")
    ours.run("apply", "-y", "--no-publish")  # writes the table, if that was cut off
    assert ours.published() == 12
    assert "2 objects with 6 records withdrawn" in ours.run("verify").out

"""Two who promote at once, and a promotion against a running apply: one wins, nothing is lost."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from odfbuild.store.dataset import DatasetStore
from tests.apply.branching import BRANCH, Branching, changed
from tests.apply.tiny import NO_JVM, QUERY

pytestmark = pytest.mark.long


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Branching:
    return Branching.fresh(tmp_path / "tiny", monkeypatch, capsys)


def test_of_two_promotions_of_a_branch_at_once_one_moves_the_heads(project: Branching) -> None:
    changed(project)
    wanted = project.in_branch()
    both = [project.tiny.start("promote", BRANCH, "-y", env=NO_JVM) for _ in range(2)]
    said = [each.communicate(timeout=100) for each in both]
    codes = sorted(each.returncode for each in both)
    assert codes[0] == 0, said
    assert codes[1] in (0, 1, 5), said
    loser = "".join(err for each, (_, err) in zip(both, said, strict=True) if each.returncode)
    assert not loser or "error[E1102]" in loser or "error[E0701]" in loser
    assert "Traceback" not in loser
    assert project.heads() == wanted
    project.is_settled()


def test_a_promotion_of_another_branch_that_comes_second_replays_on_the_first(
    project: Branching,
) -> None:
    changed(project)
    project.tiny.derive("derived", QUERY)
    (project.root / "datasets" / "extra.yaml").unlink()
    project.undescribe()
    project.tiny.derive("below", "SELECT event_time, id, value * 3 AS value FROM source", "derived")
    project.apply("-b", "pr-2")
    project.program.ok("promote", "pr-2", "-o", "second.json")
    project.promote()
    late = project.program("apply", "-y", "second.json")
    assert late.code == 5
    assert "error[E0701]" in late.err
    assert "'below'" in late.err
    project.program.ok("promote", "pr-2", "-y")
    assert [query(project, name) for name in ("derived", "below")] == ["value * 100", "value * 3"]
    assert [each["id"] for each in project.tiny.records("below")] == [1, 2, 3, 4]


def query(project: Branching, name: str) -> str:
    """What the query in force computes."""
    now = project.tiny.workspace().projection(name)
    assert now is not None
    assert now.transform is not None
    queries = now.transform.transform.queries or ()
    return queries[-1].query.partition("id, ")[2].partition(" AS")[0]


def test_a_promotion_waits_for_a_running_apply_or_says_who_works_on_what(
    project: Branching,
) -> None:
    changed(project)
    project.tiny.derive("derived", QUERY)
    (project.root / "data" / "3.csv").write_text("event_time,id,value\n2024-03-01 00:00:00,9,9\n")
    (project.root / "datasets" / "extra.yaml").unlink()
    told: list[Any] = []
    promote = type(project.engine).transform

    def meanwhile(task: Any) -> Any:
        if not told:
            told.append(
                project.tiny.run("promote", BRANCH, "-y", "--lock-timeout", "0", env=NO_JVM)
            )
        return promote(project.engine, task)

    project.engine.transform = meanwhile  # type: ignore[method-assign]
    project.apply()
    [refused] = told
    # The apply got to the source first, so that all of it has to be replayed.
    assert refused.returncode == 9, refused.stderr
    assert "error[E0702]" in refused.stderr
    assert "--lock-timeout" in refused.stderr
    project.promote()
    assert [each["id"] for each in project.tiny.records("root")] == [1, 2, 3, 4, 9]
    assert [each["id"] for each in project.tiny.records("extra")] == [1, 2, 3, 4, 9]


def test_an_apply_that_was_planned_before_a_promotion_is_told_to_plan_again(
    project: Branching,
) -> None:
    changed(project)
    project.program.ok("plan", "-o", "plan.json")
    project.promote()
    heads = project.heads()
    said = project.program("apply", "-y", "plan.json")
    assert said.code == 5
    assert "moved since the plan was made" in said.err
    assert project.heads() == heads
    project.is_settled()


def test_a_writer_who_claims_nothing_costs_no_records(
    project: Branching, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at all heads and the move of one, somebody else moves it."""
    changed(project)
    swap = DatasetStore.swap_head
    intruding = threading.local()

    def intruded(self: DatasetStore, *given: Any) -> None:
        if self.name == "derived" and not getattr(intruding, "done", False):
            intruding.done = True
            from odfbuild.odf.model import SetLicense
            from odfbuild.odf.timestamp import Timestamp

            license = SetLicense(short_name="x", name="x", website_url="https://example.org")
            self.append(self.main_head(), (license,), Timestamp.now())
        swap(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(DatasetStore, "swap_head", intruded)
        said = project.program("promote", BRANCH, "-y")
    assert said.code == 4
    assert "error[E0701]" in said.err
    project.promote()
    kinds = [event.KIND for event in project.tiny.events("derived")]
    assert "SetLicense" in kinds
    assert [each for each, _ in project.values("derived")] == [1, 2, 3, 4]
    project.is_settled()

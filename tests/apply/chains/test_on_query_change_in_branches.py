"""`onQueryChange` in branches and promotions: no option is needed to see, and get, its effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfbuild import Project
from odfbuild.engine.contract import Engine
from tests.apply.branching import BRANCH, Branching
from tests.apply.derive.test_earlier_query import BEFORE, BY_ONE, BY_TEN, CORRECTED, values
from tests.apply.derive.test_on_query_change import LINE, policies
from tests.apply.in_process import Program, share
from tests.apply.tiny import QUERY, Tiny

REBUILD = f"`onQueryChange: rebuild` in odfbuild.yaml:{LINE}"
CORRECT = f"`onQueryChange: correct` in odfbuild.yaml:{LINE}"


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Branching:
    """root → derived → below; a changed query of `derived` rebuilds."""
    made = Branching.fresh(tmp_path / "tiny", monkeypatch, capsys)
    policies(made.tiny, ("derived", "onQueryChange: rebuild"))
    return made


def test_a_branch_is_rebuilt_compared_and_promoted_without_any_option(project: Branching) -> None:
    before = project.heads()
    project.change()
    said = project.program.ok("plan", "-b", BRANCH).out
    assert f"because {REBUILD}: 3 records are dropped and recomputed" in said
    assert f"because {REBUILD} rebuilds 'derived' upstream of it: 3 records" in said
    project.apply("-b", BRANCH)
    assert project.heads() == before
    assert "No changes" in project.program.ok("plan", "-b", BRANCH).out
    compared = project.program.ok("diff", "-b", BRANCH, "--data").out
    assert "Data diff: 2 datasets with other records, 0 without." in compared

    said = project.program.ok("promote", BRANCH, "--dry-run").out
    assert f"because {REBUILD}: 3 records of the head give way to 3" in said
    assert f"because {REBUILD} rebuilds 'derived' upstream of it: 3 records of the head" in said
    asked = project.program("promote", BRANCH)
    assert asked.code == 1
    assert "the plan replaces the history of derived, below" in asked.err
    assert project.heads() == before
    project.promote()
    assert project.values("derived") == [(1, 100), (2, 200), (3, 300)]
    assert project.values("below") == [(1, 200), (2, 400), (3, 600)]
    project.is_settled()


def test_a_promotion_takes_the_setting_back_by_an_option(project: Branching) -> None:
    project.change()
    project.apply("-b", BRANCH)
    refused = project.program("promote", BRANCH, "-y", "--allow", "forward:derived")
    assert refused.code == 1
    assert refused.out.count("error[E1124]") == 2
    with Project(project.root) as python:
        assert not python.plan_promotion(BRANCH, forward=["derived"]).applyable
        assert python.promote(BRANCH).exit_code == 0
    project.is_settled()


def test_a_history_that_was_rebuilt_without_a_changed_query_is_named(project: Branching) -> None:
    project.apply("-b", BRANCH, "--allow", "rebuild:derived+")
    refused = project.program("promote", BRANCH, "-y")
    assert refused.code == 1
    assert refused.out.count("error[E1124]") == 2


def test_a_protected_history_is_not_replaced_by_a_promotion(project: Branching) -> None:
    project.change()
    project.apply("-b", BRANCH)
    policies(project.tiny, ("derived", "onQueryChange: rebuild"), ("below", "rebuild: refuse"))
    refused = project.program("promote", BRANCH, "-y")
    assert refused.code == 1
    assert "error[E0339]" in refused.out


def test_what_the_head_got_meanwhile_is_computed_on_top(project: Branching) -> None:
    project.change()
    project.apply("-b", BRANCH)
    project.change(10)
    project.tiny.arrive(2)
    project.apply()
    project.change()
    project.promote()
    project.apply()
    assert project.values("derived") == [(1, 100), (2, 200), (3, 300), (4, 400)]
    project.is_settled()


@pytest.fixture
def changelog(
    tmp_path: Path,
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Program:
    """A changelog and its reader, applied; then the query of the changelog changed."""
    share(spark_engine, monkeypatch)
    tiny = Tiny.fresh(tmp_path / "p")
    policies(tiny, ("*", "onQueryChange: correct"))
    tiny.derive("derived", BY_ONE)
    tiny.derive("reader", QUERY, source="derived")
    program = Program(tiny.root, monkeypatch, capsys)
    program.apply()
    tiny.derive("derived", BY_TEN)
    return program


@pytest.mark.spark
def test_a_changelog_is_corrected_in_a_branch_and_promoted_without_any_option(
    changelog: Program,
) -> None:
    said = changelog.ok("plan", "-b", BRANCH).out
    assert f"because {CORRECT}: its records are corrected to match the current query" in said
    assert "may correct up to 2 records: the whole history is recomputed" in said
    changelog.ok("apply", "-y", "-b", BRANCH)
    assert values(changelog, "derived") == BEFORE
    compared = changelog.ok("diff", "-b", BRANCH, "--data").out
    assert "Data diff: 2 datasets with other records, 0 without." in compared
    assert "No changes" in changelog.ok("plan", "-b", BRANCH).out
    changelog.ok("promote", BRANCH, "-y")
    assert values(changelog, "derived") == CORRECTED
    assert changelog.ok("plan").out == "No changes. All datasets are up to date.\n"
    changelog.ok("verify")


@pytest.mark.spark
def test_a_promotion_on_a_head_that_moved_corrects_as_well(changelog: Program) -> None:
    tiny = Tiny(changelog.root)
    changelog.ok("apply", "-y", "-b", BRANCH)
    tiny.derive("derived", BY_ONE)
    tiny.arrive(2)
    changelog.apply()  # the head goes on with the old query
    tiny.derive("derived", BY_TEN)
    said = changelog.ok("promote", BRANCH, "--dry-run").out
    assert "replayed on top of the head" in said
    assert f"because {CORRECT}: its records are corrected to match the current query" in said
    forward = changelog.ok("promote", BRANCH, "--dry-run", "--allow", "forward:derived").out
    assert "onQueryChange" not in forward
    changelog.ok("promote", BRANCH, "-y")
    corrected = [(id, value) for op, id, value in values(changelog, "derived") if op == 3]
    assert sorted(corrected[-2:]) == [(0, 60), (1, 40)]
    assert changelog.ok("plan").out == "No changes. All datasets are up to date.\n"
    changelog.ok("verify")


@pytest.mark.spark
def test_on_the_head_records_follow_in_the_apply_that_changes_the_query(changelog: Program) -> None:
    changelog.ok("plan", "-o", "plan.json")
    policies(Tiny(changelog.root))
    changelog.ok("apply", "plan.json", "-y")
    assert values(changelog, "derived") == CORRECTED
    assert changelog.ok("plan").out == "No changes. All datasets are up to date.\n"
    changelog.ok("verify")


@pytest.mark.spark
def test_what_went_forward_once_follows_in_the_next_run(changelog: Program) -> None:
    changelog.ok("apply", "-y", "--allow", "forward:derived")
    assert values(changelog, "derived") == BEFORE
    kept = changelog.ok("plan", "--allow", "forward:derived").out
    assert "1 dataset with results of an earlier query" in kept
    said = changelog.ok("plan").out
    assert "  > derived  no new records; reads 3 in all\n" in said
    assert f"because {CORRECT}: its records are corrected" in said
    listed = {each["name"]: each["status"] for each in changelog.ok("ls", "--json").data}
    assert listed["derived"] == "stale"
    changelog.apply()
    assert values(changelog, "derived") == CORRECTED
    with Project(changelog.root) as project:
        assert not project.plan().has_changes

"""Promotions through the program, on an engine without a JVM that counts what it computes."""

from __future__ import annotations

import json
import resource
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odfbuild.inspect.verify.integrity import verify_integrity
from odfbuild.odf.model import AddData, ExecuteTransform
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.moving_heads import consistent_heads
from tests.apply.branching import BRANCH, Branching, changed
from tests.apply.in_process import Program
from tests.apply.tiny import NO_JVM, QUERY, Tiny


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Branching:
    return Branching.fresh(tmp_path / "tiny", monkeypatch, capsys)


def test_where_no_head_moved_heads_become_blocks_of_the_branch_and_nothing_is_computed(
    project: Branching,
) -> None:
    before = project.heads()
    changed(project)
    assert project.heads() == before
    wanted = project.in_branch()
    said = project.promote()
    assert project.heads() == wanted
    assert project.engine.steps == Counter()
    assert "Promotion: 4 to move, 0 to run first." in said.out
    assert "promoted from pr-1" in said.out
    project.is_settled()


def test_a_second_promotion_says_that_there_is_no_such_branch(project: Branching) -> None:
    changed(project)
    project.promote()
    said = project.program("promote", BRANCH, "-y")
    assert said.code == 1
    assert "error[E1102]" in said.err
    assert "note: it was promoted at 20" in said.err
    assert "help: nothing is left to do" in said.err
    assert "promoted at" not in project.program("promote", "pr-2", "-y").err


def test_a_new_query_continues_from_a_head_that_got_data(project: Branching) -> None:
    before = project.tiny.root / "datasets" / "derived.yaml"
    old = before.read_text()
    changed(project, arrives=False)
    new = before.read_text()
    extra = project.root / "datasets" / "extra.yaml"
    kept = extra.read_text()
    extra.unlink()
    before.write_text(old)
    project.tiny.arrive(2)
    project.apply()  # the head goes on with the old query
    heads = project.heads()
    before.write_text(new)
    extra.write_text(kept)
    (project.root / "data" / "3.csv").write_text("event_time,id,value\n2024-03-01 00:00:00,5,5\n")
    project.engine.steps.clear()
    said = project.promote("--dry-run")
    assert "replayed on top of the head" in said.out
    assert project.heads() == heads
    project.promote()
    assert project.engine.steps["extra"] == 1
    assert "root" not in project.engine.steps
    project.apply()
    project.is_settled()
    assert project.values("derived") == [(1, 10), (2, 20), (3, 30), (4, 40), (5, 500)]
    assert project.values("extra") == project.values("derived")
    store = project.tiny.workspace().dataset("derived")
    head = store.head()
    assert head is not None
    history = {str(block) for block, _ in store.walk(head)}
    assert heads["derived"] in history


def test_data_that_branch_and_head_ingested_is_there_once(project: Branching) -> None:
    changed(project)
    (project.root / "datasets" / "extra.yaml").unlink()
    project.change(10)
    project.undescribe()
    project.apply()
    project.promote()
    assert [each["id"] for each in project.tiny.records("root")] == [1, 2, 3, 4]
    assert [each for each, _ in project.values("extra")] == [1, 2, 3, 4]
    assert verify_integrity(project.tiny.workspace()) == ()


def test_a_promotion_waits_in_a_file_that_apply_carries_out(project: Branching) -> None:
    changed(project)
    wanted = project.in_branch()
    project.program.ok("promote", BRANCH, "-o", "promotion.json")
    assert json.loads((project.root / "promotion.json").read_text())["promotes"] == BRANCH
    project.program.ok("apply", "-y", "promotion.json")
    assert project.heads() == wanted
    project.is_settled()
    again = project.program("apply", "-y", "promotion.json")
    assert again.code == 5
    assert "plan it again: `odfbuild promote pr-1 -o FILE`" in " ".join(again.err.split())
    assert "--exclude" not in again.err


def test_a_dataset_that_is_not_in_the_branch_cannot_be_selected(project: Branching) -> None:
    project.change()
    project.apply("-b", BRANCH)
    said = project.program("promote", BRANCH, "-s", "root", "--dry-run")
    assert "error[E0212]" in said.err
    assert "only the plan is searched: '" in said.err


def test_a_saved_promotion_is_lost_when_a_head_or_the_branch_moved(project: Branching) -> None:
    changed(project)
    project.program.ok("promote", BRANCH, "-o", "promotion.json")
    project.change(7)
    project.apply("-b", BRANCH)
    heads = project.heads()
    said = project.program("apply", "-y", "promotion.json")
    assert said.code == 5
    assert "in the branch 'pr-1'" in said.err
    project.program.ok("promote", BRANCH, "-o", "promotion.json")
    project.change(10)
    project.apply("-s", "root", "derived")
    heads = project.heads()
    said = project.program("apply", "-y", "promotion.json")
    assert said.code == 5
    assert project.heads() == heads


def test_readers_of_a_rebuilt_history_see_the_old_one_until_all_of_it_is_new(
    project: Branching, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = project.heads()
    project.change()
    project.apply("-b", BRANCH, "--allow", "rebuild:derived+")
    assert project.heads() == before
    refused = project.program("promote", BRANCH, "-y")
    assert refused.code == 1
    assert refused.out.count("error[E1124]") == 2
    assert project.heads() == before
    seen: list[dict[str, bytes]] = []
    space = project.tiny.workspace()
    swap = DatasetStore.swap_head

    def watched(self: DatasetStore, *given: Any) -> None:
        swap(self, *given)
        seen.append(consistent_heads(space))

    monkeypatch.setattr(DatasetStore, "swap_head", watched)
    project.promote("--allow", "rebuild:derived+")
    monkeypatch.undo()
    old = {name: head.encode() for name, head in before.items()}
    assert seen == [old, old]
    after = consistent_heads(space)
    assert all(after[name] != old[name] for name in ("derived", "below"))
    assert project.values("derived") == [(1, 100), (2, 200), (3, 300)]


class Killed(BaseException):
    """What ends a process at once."""


def cut_off(project: Branching, monkeypatch: pytest.MonkeyPatch, before: str = "derived") -> None:
    """Kill a promotion when it is about to move the head of a dataset."""
    swap = DatasetStore.swap_head

    def kills(self: DatasetStore, *given: Any) -> None:
        if self.name == before:
            raise Killed
        swap(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(DatasetStore, "swap_head", kills)
        with pytest.raises(Killed):
            project.program("promote", BRANCH, "-y")


def test_nothing_is_applied_on_a_promotion_that_was_cut_off_until_it_is_finished(
    project: Branching, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {name: head.encode() for name, head in project.heads().items()}
    changed(project)
    wanted = project.in_branch()
    cut_off(project, monkeypatch)
    assert project.heads() != wanted
    assert consistent_heads(project.tiny.workspace()) == old
    said = project.program("apply", "-y")
    assert said.code == 1
    assert "error[E1129]" in said.err
    assert "1 of 4 heads have moved" in said.err
    with monkeypatch.context() as patch:
        patch.setattr(DatasetStore, "branch_head", lambda self, name: None)
        # Without the branch nobody could finish it, so it holds nobody up.
        assert consistent_heads(project.tiny.workspace()) != old
    project.promote()
    assert project.heads() == wanted
    project.is_settled()


BOTH = "SELECT r.id, d.value FROM root r LEFT JOIN derived d ON d.id = r.id ORDER BY r.id"
"""Shows whether both are from before the promotion, or only one of them."""


def test_sql_reads_datasets_of_one_moment_while_a_promotion_moves_them(
    project: Branching, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("duckdb", reason="it answers without a JVM")

    def ask(*arguments: str) -> list[tuple[int, int | None]]:
        said = project.program.ok("sql", "--engine", "duckdb", "--json", *arguments)
        return [(each["id"], each["value"]) for each in said.data]

    before = [(1, 10), (2, 20), (3, 30)]
    assert ask(BOTH, "--consistent") == before
    changed(project)
    cut_off(project, monkeypatch)
    assert ask(BOTH) == [*before, (4, None)]
    assert ask(BOTH, "--consistent") == before
    project.promote()
    after = [*before, (4, 400)]
    assert ask(BOTH, "--consistent") == ask(BOTH) == after


def test_sql_has_no_new_dataset_before_the_promotion_that_creates_it_is_over(
    project: Branching, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("duckdb", reason="it answers without a JVM")
    changed(project)
    project.tiny.derive("later", "SELECT event_time, id, value + 0 AS value FROM source", "extra")
    project.apply("-b", BRANCH)
    cut_off(project, monkeypatch, before="later")
    ask = ("sql", "--engine", "duckdb", "--json", "SELECT id FROM extra")
    said = project.program(*ask, "--consistent")
    assert said.code == 1
    assert "error[E0580]: 'extra' does not exist before the promotion that is going on" in said.err
    assert "without --consistent" in said.err
    assert len(project.program.ok(*ask).data) == 4
    project.promote()
    assert len(project.program.ok(*ask, "--consistent").data) == 4


def test_one_moment_is_not_asked_for_twice(project: Branching) -> None:
    said = project.program("sql", BOTH, "--consistent", "--as-of", "2024-01-01")
    assert said.code == 64
    assert "--as-of is one moment already" in said.err


def test_a_part_of_a_branch_brings_its_inputs_and_leaves_the_rest(project: Branching) -> None:
    changed(project)
    said = project.promote("-s", "derived")
    assert "Also applied, as inputs of selected datasets: root." in said.err
    assert project.branch_files()
    assert {name for name, head in project.in_branch().items()} >= {"extra"}
    assert "extra" not in project.heads()
    project.promote()
    project.is_settled()


def test_a_log_of_the_run_knows_what_was_promoted(project: Branching) -> None:
    before = project.heads()
    changed(project)
    project.promote()
    file = sorted(project.root.glob(".odfbuild/runs/*/run_results.json"))[-1]
    results = {each["name"]: each for each in json.loads(file.read_text())["datasets"]}
    derived = results["derived"]
    assert (derived["actions"], derived["status"]) == (["promote"], "committed")
    assert derived["because"] == "promoted from pr-1"
    assert (derived["head_before"], derived["head_after"]) == (
        before["derived"],
        project.heads()["derived"],
    )
    assert derived["records"] == 4 - 3


def test_json_and_exit_codes_are_those_of_plans_and_applies(project: Branching) -> None:
    changed(project)
    plan = project.program("promote", BRANCH, "--dry-run", "--json", "--detailed-exitcode")
    assert plan.code == 2
    assert plan.data["summary"]["promote"] == 4
    assert project.program("promote", BRANCH, "--dry-run", "--md").out.startswith("<!--")
    outcome = project.program.ok("promote", BRANCH, "-y", "--json").data
    assert {each["status"] for each in outcome["datasets"]} == {"committed"}


def test_the_python_interface_promotes(project: Branching) -> None:
    from odfbuild import Project

    changed(project)
    wanted = project.in_branch()
    python = Project(project.root)
    plan = python.plan_promotion(BRANCH)
    assert plan.promotes == BRANCH
    outcome = python.promote(BRANCH)
    assert outcome.exit_code == 0
    assert project.heads() == wanted
    assert python.heads() == wanted


def deleted(project: Branching) -> None:
    """A merge in Git took the head away."""
    (project.root / "chains" / "below" / "refs" / "head").unlink()


def deleted_input(project: Branching) -> None:
    for name in ("derived", "below", "extra"):
        (project.root / "datasets" / f"{name}.yaml").unlink()
    project.apply("--allow", "delete:derived+")


def reset_input(project: Branching) -> None:
    project.tiny.derive("derived", QUERY.replace("10", "100"))
    project.promote("-s", "root")
    project.program.ok("reset", "root", "-r", "-y", "--schema")


def reset_head(project: Branching) -> None:
    project.program.ok("reset", "derived", "-r", "-y")


def limited(project: Branching) -> None:
    project.program.ok("branch", "delete", BRANCH, "-y")
    project.apply("-b", BRANCH, "--sample", "50%")


def conflicting(project: Branching) -> None:
    (project.root / "datasets" / "extra.yaml").unlink()
    project.change(7)
    project.apply()


def made_twice(project: Branching) -> None:
    project.change(10)
    project.apply("-s", "extra")


@pytest.mark.parametrize(
    ("happens", "code"),
    [
        (limited, "E1120"),
        (deleted, "E1121"),
        (deleted_input, "E1128"),
        (reset_input, "E1128"),
        (reset_head, "E1123"),
        (conflicting, "E1126"),
        (made_twice, "E1122"),
    ],
)
def test_what_cannot_be_promoted_is_refused_with_a_way_out_and_no_head_moves(
    project: Branching, happens: Callable[[Branching], None], code: str
) -> None:
    changed(project)
    happens(project)
    heads = project.heads()
    said = project.program("promote", BRANCH, "-y")
    assert said.code == 1
    assert code in said.out
    assert "help: " in said.out
    assert "no head moves" in said.out
    assert project.heads() == heads
    assert project.branch_files()


def test_data_that_only_moves_heads_is_what_a_direct_apply_gives_but_for_times(
    project: Branching, tmp_path: Path
) -> None:
    direct = Tiny(shutil.copytree(project.root, tmp_path / "direct"))
    changed(project)
    project.promote()
    shutil.copytree(project.root / "datasets", direct.root / "datasets", dirs_exist_ok=True)
    shutil.copytree(project.root / "data", direct.root / "data", dirs_exist_ok=True)
    program = Program(direct.root, project.program.monkeypatch, project.program.capsys)
    program.ok("apply", "-y")
    for name in ("root", "derived", "below", "extra"):
        assert without_times(project.tiny, name) == without_times(direct, name)


def without_times(tiny: Tiny, name: str) -> list[Any]:
    """A chain without what follows from the clock: times, and the identity of what is new.

    Data files hold `system_time` too, so their hashes, sizes and those of blocks differ with it.
    """
    found: list[Any] = []
    for event in tiny.events(name):
        if isinstance(event, AddData | ExecuteTransform):
            data = event.new_data
            found.append((type(event), event.prev_offset, data and data.offset_interval))
        elif type(event).__name__ not in ("Seed", "SetTransform"):
            found.append(event)
        else:
            found.append(type(event))
    return [found, tiny.records(name)]


def test_a_promotion_of_eighteen_datasets_takes_less_than_a_second_without_a_jvm(
    project: Branching,
) -> None:
    for number in range(14):
        query = f"SELECT event_time, id, value + {number} AS value FROM source"
        project.tiny.derive(f"more{number}", query, "derived")
    changed(project)
    wanted = project.in_branch()
    assert len(wanted) == 18
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = project.tiny.run("promote", BRANCH, "-y", env=NO_JVM)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert "Promotion: 18 to move, 0 to run first." in done.stdout
    # Of its own time: other tests run beside it.
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 1
    assert project.heads() == wanted
    assert project.engine.steps == Counter()


def test_each_record_is_computed_once_for_branch_and_head_together(project: Branching) -> None:
    project.engine.records.clear()
    project.change()
    project.tiny.derive("extra", "SELECT event_time, id, value + 0 AS value FROM source", "derived")
    project.tiny.describe("root", "Changed too")
    project.tiny.arrive(2)
    project.apply("-b", BRANCH)
    project.promote()
    project.apply()
    assert project.engine.records == {"derived": 1, "below": 1, "extra": 4}
    assert project.engine.steps["root"] == 2  # the first file, and this one
    project.is_settled()

"""Chains whose blocks are in the storage: moved there and back, applied, cloned, shown by Git."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from odfbuild import Project
from odfbuild.inspect.verify.integrity import verify_integrity
from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny
from tests.cli.clones import begin, clone, commit, git, share


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    made = begin(tmp_path / "p")
    share(made)
    return made


@pytest.fixture
def stored(tiny: Tiny, odfbuild: Program) -> Tiny:
    """Applied, and moved to the storage."""
    odfbuild.apply()
    odfbuild.ok("chains", "move", "--to", "storage")
    return tiny


def blocks_in(root: Path) -> dict[str, bytes]:
    """The blocks in the folders of datasets."""
    return {
        each.relative_to(root).as_posix(): each.read_bytes()
        for each in (root / "chains").glob("**/blocks/f1620*")
    }


def heads(root: Path) -> dict[str, str]:
    return {
        each.relative_to(root).as_posix(): each.read_text()
        for each in (root / "chains").glob("**/refs/*")
    }


def without_storage(tiny: Tiny) -> None:
    """As a machine that does not reach it."""
    (tiny.root.parent / "storage").rename(tiny.root.parent / "elsewhere")
    (tiny.root.parent / "storage").write_text("no folder")


def test_chains_move_to_the_storage_and_back_without_changing_a_byte(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    before, at = blocks_in(tiny.root), heads(tiny.root)
    assert "Would move" in odfbuild.ok("chains", "move", "--to", "storage", "--dry-run").out
    assert (blocks_in(tiny.root), heads(tiny.root)) == (before, at)
    said = odfbuild.ok("chains", "move", "--to", "storage").out
    assert f"Moved {len(before)} blocks of 2 datasets to the storage ../storage." in said
    assert blocks_in(tiny.root) == {}
    assert heads(tiny.root) == at
    assert "  chains: storage\n" in (tiny.root / "odfbuild.yaml").read_text()
    assert "No changes" in odfbuild.ok("plan").out
    assert odfbuild.ok("verify").out.startswith("Verified 2 datasets")
    again = odfbuild.ok("chains", "move", "--to", "storage").out
    assert "Moved 0 blocks to the storage" in again
    data = odfbuild.ok("chains", "move", "--to", "git", "--json").data
    assert (data["to"], data["declared"]) == ("git", False)
    assert (blocks_in(tiny.root), heads(tiny.root)) == (before, at)
    assert list((tiny.root / "chains").glob("**/summaries/*")) == []
    assert "No changes" in odfbuild.ok("plan").out
    assert odfbuild.ok("verify").out.startswith("Verified 2 datasets")
    tiny.arrive(2)
    odfbuild.apply()
    assert len(blocks_in(tiny.root)) > len(before)


def test_new_data_is_applied_with_chains_in_the_storage(stored: Tiny, odfbuild: Program) -> None:
    stored.arrive(2)
    stored.derive("late", QUERY)
    odfbuild.apply()
    assert blocks_in(stored.root) == {}
    assert "No changes" in odfbuild.ok("plan").out
    assert odfbuild.ok("verify").out.startswith("Verified 3 datasets")
    assert "AddData" in odfbuild.ok("log", "root").out
    odfbuild.ok("chains", "move", "--to", "git")
    assert odfbuild.ok("verify").out.startswith("Verified 3 datasets")


def test_a_clone_plans_without_the_storage_and_applies_with_it(
    stored: Tiny, odfbuild: Program
) -> None:
    commit(stored)
    other, program = clone(odfbuild, stored.root)
    without_storage(stored)
    assert "No changes" in program.ok("plan").out
    other.arrive(2)
    other.derive("late", QUERY)
    assert "late" in program.ok("plan").out
    assert program.ok("status").out
    said = program("log", "root")
    assert "E0802" in said.err
    assert "storage: ../storage" in said.err
    (stored.root.parent / "storage").unlink()
    (stored.root.parent / "elsewhere").rename(stored.root.parent / "storage")
    program.apply()
    assert program.ok("verify").out.startswith("Verified 3 datasets")


def test_a_plan_that_needs_older_blocks_says_so_of_that_dataset_only(
    stored: Tiny, odfbuild: Program
) -> None:
    stored.derive("other", QUERY)
    odfbuild.apply()
    for number in range(2, 7):
        line = f"2024-0{number}-01 00:00:00,{number}0,1"
        (stored.root / "data" / f"{number}.csv").write_text(f"event_time,id,value\n{line}\n")
        odfbuild.ok("apply", "-y", "root", "other" if number < 6 else "root")
    commit(stored)
    _, program = clone(odfbuild, stored.root)
    said = program("plan")
    assert "E0914" in said.out
    assert "other" in said.out
    assert "1 new record" in said.out
    assert "1 dataset refused" in said.out
    assert "E0914" not in program.ok("plan", "--refresh").out


def test_plan_does_not_connect_to_a_storage_that_a_pull_request_names(
    stored: Tiny, odfbuild: Program
) -> None:
    for summary in (stored.root / "chains").glob("*/info/summaries/head"):
        summary.unlink()
    shutil.rmtree(stored.root / ".odfbuild")
    said = odfbuild("plan")
    assert "E0914" in said.out + said.err
    assert "uses no network" in said.out + said.err
    assert "No changes" in odfbuild.ok("plan", "--refresh").out
    shutil.rmtree(stored.root / ".odfbuild")
    odfbuild.ok("storage", "pull")
    assert "No changes" in odfbuild.ok("plan").out


def test_two_clones_that_append_at_once_lose_nothing(stored: Tiny, odfbuild: Program) -> None:
    odfbuild.ok("git", "install")
    commit(stored)
    other, program = clone(odfbuild, stored.root)
    stored.arrive(2)
    odfbuild.apply()
    (other.root / "data" / "2.csv").write_text("event_time,id,value\n2024-03-01 00:00:00,9,9\n")
    program.apply()
    ours, theirs = heads(stored.root), heads(other.root)
    assert ours != theirs
    commit(stored)
    commit(other)
    git(stored.root, "remote", "add", "other", str(other.root))
    git(stored.root, "fetch", "-q", "other")
    merged = subprocess.run(
        ["git", "-C", stored.root, "merge", "-q", "other/main"], check=False, capture_output=True
    )
    assert merged.returncode == 1, "Git reports the conflict of two histories"
    assert heads(stored.root) == ours
    git(stored.root, "checkout", "--theirs", "chains")
    assert heads(stored.root) == theirs
    assert verify_integrity(Project(stored.root).workspace()) == ()
    git(stored.root, "checkout", "--ours", "chains")
    assert heads(stored.root) == ours
    assert verify_integrity(Project(stored.root).workspace()) == ()


def test_branches_begin_and_are_promoted_with_chains_in_the_storage(
    stored: Tiny, odfbuild: Program
) -> None:
    stored.derive("derived", QUERY.replace("10", "100"))
    odfbuild.ok("apply", "-y", "-b", "pr-1", "--allow", "rebuild:derived")
    assert blocks_in(stored.root) == {}
    assert odfbuild.ok("verify", "-b", "pr-1").out.startswith("Verified 2 datasets")
    odfbuild.ok("gc", "-y", "--grace", "0")
    assert odfbuild.ok("verify", "-b", "pr-1").out.startswith("Verified 2 datasets")
    odfbuild.ok("promote", "pr-1", "-y", "--allow", "rebuild:derived")
    assert odfbuild.ok("verify").out.startswith("Verified 2 datasets")
    odfbuild.ok("chains", "move", "--to", "git")
    assert odfbuild.ok("verify").out.startswith("Verified 2 datasets")


def test_branches_move_along(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    tiny.derive("derived", QUERY.replace("10", "100"))
    tiny.derive("new", QUERY)
    odfbuild.ok("apply", "-y", "-b", "pr-1", "--allow", "rebuild:derived")
    before = blocks_in(tiny.root)
    odfbuild.ok("chains", "move", "--to", "storage")
    shutil.rmtree(tiny.root / ".odfbuild")
    assert odfbuild.ok("verify", "-b", "pr-1").out.startswith("Verified 3 datasets")
    odfbuild.ok("chains", "move", "--to", "git")
    assert blocks_in(tiny.root) == before


def test_a_reset_goes_back_and_forth_with_chains_in_the_storage(
    stored: Tiny, odfbuild: Program
) -> None:
    before = heads(stored.root)
    odfbuild.ok("reset", "derived", "-y")
    assert heads(stored.root) != before
    head = before["chains/derived/refs/head"]
    odfbuild.ok("reset", "derived", "--to", head, "-y")
    assert heads(stored.root) == before
    assert "No changes" in odfbuild.ok("plan").out


def test_a_forged_summary_stops_the_plan_of_its_dataset_only(
    stored: Tiny, odfbuild: Program
) -> None:
    file = stored.root / "chains" / "root" / "info" / "summaries" / "head"
    file.write_text(file.read_text().replace('"records": 3', '"records": 4'))
    shutil.rmtree(stored.root / ".odfbuild")
    said = odfbuild("plan")
    assert "E0676" in said.err + said.out
    file.unlink()
    assert "No changes" in odfbuild.ok("plan", "--refresh").out
    odfbuild.ok("chains", "move", "--to", "storage")
    assert file.is_file()


def test_a_project_without_storage_cannot_have_its_chains_there(
    tmp_path: Path, odfbuild: Program, tiny: Tiny
) -> None:
    text = (tiny.root / "odfbuild.yaml").read_text()
    alone = text.replace("  storage: ../storage\n", "")
    (tiny.root / "odfbuild.yaml").write_text(alone + "  chains: storage\n")
    said = odfbuild("plan")
    assert "E0672" in said.err
    assert "odfbuild.yaml:7:3" in said.err
    (tiny.root / "odfbuild.yaml").write_text(alone)
    assert "E0373" in odfbuild("chains", "move", "--to", "storage").err


def test_a_file_that_is_not_written_by_lines_is_left_to_its_owner(
    tiny: Tiny, odfbuild: Program
) -> None:
    text = (
        "{kind: Project, version: 1, content: "
        "{name: tiny, datasets: datasets, state: chains, storage: ../storage}}\n"
    )
    (tiny.root / "odfbuild.yaml").write_text(text)
    odfbuild.apply()
    said = odfbuild("chains", "move", "--to", "storage")
    assert "E0675" in said.err
    assert (tiny.root / "odfbuild.yaml").read_text() == text
    assert blocks_in(tiny.root) != {}
    (tiny.root / "odfbuild.yaml").write_text(text.replace("storage:", "chains: storage, storage:"))
    odfbuild.ok("chains", "move", "--to", "storage")
    assert blocks_in(tiny.root) == {}


def test_git_shows_the_events_behind_a_head(stored: Tiny, odfbuild: Program) -> None:
    odfbuild.ok("git", "install")
    commit(stored)
    stored.arrive(2)
    odfbuild.apply()
    driver = f"{sys.executable} -m odfbuild decode --events"
    git(stored.root, "config", "diff.odfbuild-head.textconv", driver)
    shown = git(stored.root, "diff")
    assert "+  sequenceNumber: 4" in shown
    assert "+    kind: AddData" in shown
    assert "-  sequenceNumber" not in shown
    assert "info/summaries/head differ" in shown
    commit(stored)
    assert "+    kind: AddData" in git(stored.root, "show")
    without_storage(stored)
    shutil.rmtree(stored.root / ".odfbuild")
    assert "its events cannot be shown" in git(stored.root, "diff", "HEAD~", "--", "chains")


def test_blocks_in_the_storage_are_decoded_by_their_hash(stored: Tiny, odfbuild: Program) -> None:
    head = stored.root / "chains" / "root" / "refs" / "head"
    by_file = odfbuild.ok("decode", str(head)).out
    assert "kind: AddData" in by_file
    assert odfbuild.ok("decode", head.read_text()).out == by_file
    assert odfbuild.ok("decode", head.read_text()[-10:]).out == by_file


def test_chains_are_committed_to_git_without_their_blocks(stored: Tiny, odfbuild: Program) -> None:
    commit(stored)
    stored.arrive(2)
    odfbuild.apply()
    assert "2 datasets" in odfbuild.ok("git", "commit").out + git(stored.root, "log", "-1")
    named = git(stored.root, "show", "--format=", "--name-only").splitlines()
    assert sorted(named) == [
        f"chains/{name}/{file}"
        for name in ("derived", "root")
        for file in ("info/summaries/head", "refs/head")
    ]
    odfbuild.ok("git", "check")


def test_an_environment_has_its_chains_where_it_says(tiny: Tiny, odfbuild: Program) -> None:
    with (tiny.root / "odfbuild.yaml").open("a") as config:
        config.write("  environments:\n    dev:\n      storage: ../dev\n    bare: {}\n")
    odfbuild.apply()
    odfbuild.ok("apply", "-y", "--env", "dev")
    odfbuild.ok("apply", "-y", "--env", "bare")
    odfbuild.ok("chains", "move", "--to", "storage", "--env", "dev")
    text = (tiny.root / "odfbuild.yaml").read_text()
    assert "    dev:\n      chains: storage\n      storage: ../dev\n" in text
    assert blocks_in(tiny.root) != {}, "those of the other environment"
    assert list((tiny.root / "chains-dev").glob("**/blocks/f1620*")) == []
    assert "No changes" in odfbuild.ok("plan", "--env", "dev").out
    assert "No changes" in odfbuild.ok("plan").out
    assert "E0675" in odfbuild("chains", "move", "--to", "storage", "--env", "bare").err
    odfbuild.ok("chains", "move", "--to", "git", "--env", "dev")
    assert "      chains: git\n" in (tiny.root / "odfbuild.yaml").read_text()

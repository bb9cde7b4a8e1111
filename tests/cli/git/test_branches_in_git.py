"""Branches travel with Git: commits, hooks, conflicts; and closed pull requests end them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny
from tests.cli.clones import begin, clone, commit, git, identify, share

OTHER = QUERY.replace("value * 10", "value * 20")


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return begin(tmp_path / "p")


@pytest.fixture
def shared(tiny: Tiny, odfbuild: Program) -> Path:
    """A bare repository with an applied project."""
    share(tiny)
    odfbuild.apply()
    commit(tiny)
    shared = tiny.root.parent / "shared.git"
    git(tiny.root.parent, "clone", "-q", "--bare", str(tiny.root), str(shared))
    return shared


@pytest.fixture
def one(shared: Path, odfbuild: Program) -> tuple[Tiny, Program]:
    return _clone(odfbuild, shared, "one")


@pytest.fixture
def two(shared: Path, odfbuild: Program) -> tuple[Tiny, Program]:
    return _clone(odfbuild, shared, "two")


def _clone(odfbuild: Program, shared: Path, name: str) -> tuple[Tiny, Program]:
    tiny, program = clone(odfbuild, shared, name)
    identify(tiny.root)
    return tiny, program


def change(tiny: Tiny, program: Program, branch: str = "pr-1") -> None:
    """A changed query and a new dataset on a branch of Git, applied in a branch of datasets."""
    git(tiny.root, "checkout", "-q", "-b", f"topic-{branch}")
    tiny.derive("derived", OTHER)
    tiny.derive("fresh", QUERY)
    git(tiny.root, "add", "datasets")
    git(tiny.root, "commit", "-q", "-m", f"Change a query for {branch}")
    program.ok("apply", "-y", "-b", branch, "--allow", "rebuild:derived")


def test_a_branch_travels_with_the_pull_request_and_other_clones_read_it(
    one: tuple[Tiny, Program], two: tuple[Tiny, Program]
) -> None:
    tiny, program = one
    change(tiny, program)
    said = program.ok("git", "commit", "--push", "--git-branch", "topic-pr-1")
    assert "  derived (branch pr-1): rewritten, 4 blocks, 3 records" in said.out
    assert "  fresh (branch pr-1): 4 blocks, 3 records" in said.out
    assert git(tiny.root, "log", "-1", "--format=%s") == "Bring 2 datasets up to date in 'pr-1'"
    other, theirs = two
    git(other.root, "fetch", "-q")
    git(other.root, "checkout", "-q", "topic-pr-1")
    assert "No changes" in theirs.ok("plan", "-b", "pr-1").out
    [found] = theirs.ok("branch", "list", "--json").data
    assert found["git_branches"] == ["topic-pr-1"]
    theirs.ok("verify", "-b", "pr-1", "--integrity")
    # Its private key may be needed where the branch is promoted: it stays.
    keys = set((tiny.root / ".odfbuild-keys").iterdir())
    said = program.ok("branch", "delete", "pr-1", "-y")
    assert "nowhere else and go: 'fresh'" in said.out
    assert set((tiny.root / ".odfbuild-keys").iterdir()) == keys
    assert "derived (branch pr-1): removed" in program.ok("git", "commit").out


def test_definitions_of_a_branch_are_committed_before_it_is_pushed(
    one: tuple[Tiny, Program],
) -> None:
    tiny, program = one
    tiny.derive("derived", OTHER)
    program.ok("apply", "-y", "-b", "pr-1")
    said = program("git", "commit", "--push")
    assert said.code == 1
    assert "E0394" in said.err
    assert "'derived'" in said.err


def test_two_clones_that_append_to_one_branch_are_in_conflict(
    one: tuple[Tiny, Program], two: tuple[Tiny, Program]
) -> None:
    for tiny, program in (one, two):
        tiny.derive("derived", OTHER)
        commit(tiny)
        program.ok("apply", "-y", "-b", "pr-1")
    one[1].ok("git", "commit", "--push", "--git-branch", "pull")
    said = two[1]("git", "commit", "--push", "--git-branch", "pull")
    assert said.code == 5
    assert "others have committed to 'derived'" in said.err


def test_a_branch_is_not_committed_without_its_blocks(one: tuple[Tiny, Program]) -> None:
    tiny, program = one
    program.ok("git", "install")
    change(tiny, program)
    program.ok("git", "commit")
    tiny.derive("derived", QUERY.replace("value * 10", "value * 30"))
    program.ok("apply", "-y", "-b", "pr-1")
    git(tiny.root, "add", "--update")
    said = program("git", "check")
    assert "E0382" in said.err
    assert "derived: 1 block" in said.err
    git(tiny.root, "add", "--all")
    program.ok("git", "check")


def test_applying_in_a_branch_is_no_drift_of_the_head(one: tuple[Tiny, Program]) -> None:
    tiny, program = one
    program.ok("git", "install")
    change(tiny, program)
    program.ok("git", "commit")
    git(tiny.root, "checkout", "-q", "main")
    assert program.ok("drift").out.startswith("No drift")
    assert "No changes" in program.ok("plan").out


def test_a_branch_is_closed_once_git_has_merged_its_branch_or_lost_it(
    one: tuple[Tiny, Program],
) -> None:
    tiny, program = one
    for name in ("pr-1", "pr-2", "pr-3"):
        change(tiny, program, name)
        git(tiny.root, "checkout", "-q", "main")
        git(tiny.root, "checkout", "-q", ".")
    assert "nothing to delete" in program.ok("branch", "delete", "--closed", "-y").out
    git(tiny.root, "merge", "-q", "--no-ff", "-m", "Merge it", "topic-pr-1")
    git(tiny.root, "branch", "-q", "-D", "topic-pr-2")
    said = program.ok("branch", "delete", "--closed", "--older-than", "1h", "-y")
    assert "nothing to delete" in said.out
    said = program.ok("branch", "delete", "--closed", "-y", "--json")
    assert said.data["branches"] == ["pr-1", "pr-2"]


def test_a_shallow_clone_does_not_take_what_it_lacks_for_gone(
    one: tuple[Tiny, Program], shared: Path, odfbuild: Program
) -> None:
    tiny, program = one
    change(tiny, program)
    program.ok("git", "commit", "--push", "--git-branch", "topic-pr-1")
    folder = shared.parent / "shallow"
    git(shared.parent, "clone", "-q", "--depth", "1", f"file://{shared}", str(folder))
    git(folder, "fetch", "-q", "--depth", "1", "origin", "topic-pr-1")
    git(folder, "checkout", "-q", "FETCH_HEAD", "--", "chains")
    shallow = Program(folder, odfbuild.monkeypatch, odfbuild.capsys)
    assert "nothing to delete" in shallow.ok("branch", "delete", "--closed", "-y").out
    assert "nothing to delete" in shallow.ok("branch", "delete", "--closed", "--fetch", "-y").out
    git(shared, "branch", "-q", "-D", "topic-pr-1")
    assert "nothing to delete" in shallow.ok("branch", "delete", "--closed", "-y").out
    assert "1 branch" in shallow.ok("branch", "delete", "--closed", "--fetch", "-y").out


def test_a_remote_that_does_not_answer_is_named(one: tuple[Tiny, Program], shared: Path) -> None:
    tiny, program = one
    change(tiny, program)
    git(tiny.root, "remote", "set-url", "origin", str(shared.parent / "nothing"))
    said = program("branch", "delete", "--closed", "--fetch", "-y")
    assert said.code == 1
    assert "E1141" in said.err
    assert "'origin'" in said.err

"""Branches of datasets that are shared outside of pull requests, so that a revert loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny
from tests.cli.clones import begin, clone, commit, git, identify, share

OTHER = QUERY.replace("value * 10", "value * 20")
REFERENCE = "refs/odfbuild/branches/pr-1"
Clone = tuple[Tiny, Program]


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


def cloned(odfbuild: Program, shared: Path, name: str) -> Clone:
    tiny, program = clone(odfbuild, shared, name)
    identify(tiny.root)
    return tiny, program


@pytest.fixture
def one(shared: Path, odfbuild: Program) -> Clone:
    """A clone with a pull request that was built in a branch."""
    tiny, program = cloned(odfbuild, shared, "one")
    git(tiny.root, "checkout", "-q", "-b", "topic")
    tiny.derive("derived", OTHER)
    tiny.derive("fresh", QUERY)
    git(tiny.root, "add", "datasets")
    git(tiny.root, "commit", "-q", "-m", "Change a query")
    git(tiny.root, "push", "-q", "origin", "topic")
    program.ok("apply", "-y", "-b", "pr-1", "--allow", "rebuild:derived")
    said = program.ok("git", "push", "pr-1").out
    assert said.startswith("Pushed the branch pr-1 to origin: 2 datasets, ")
    return tiny, program


def test_a_revert_of_the_merge_keeps_what_promoted_heads_need(
    one: Clone, shared: Path, odfbuild: Program
) -> None:
    tiny, program = cloned(odfbuild, shared, "two")
    git(tiny.root, "merge", "-q", "--no-ff", "-m", "Merge it", "origin/topic")
    merge = git(tiny.root, "rev-parse", "HEAD")
    program.ok("git", "fetch", "pr-1")
    program.ok("promote", "pr-1", "-y", "--allow", "rebuild:derived")
    program.ok("git", "commit", "--push")
    assert "Deleted the branch pr-1 at origin." in program.ok("git", "push", "--delete", "pr-1").out
    assert "no branch pr-1" in program.ok("git", "push", "--delete", "pr-1").out
    git(tiny.root, "revert", "--no-edit", "-m", "1", merge)
    git(tiny.root, "push", "-q")
    other, theirs = cloned(odfbuild, shared, "three")
    theirs.ok("verify", "--integrity")
    said = theirs("plan")
    assert said.code == 0, said.err
    assert "derived" in said.out
    theirs.ok("apply", "-y", "--allow", "delete:fresh")
    assert git(other.root, "status", "--porcelain", "--", "datasets") == ""


def test_nothing_but_the_branch_is_shared_and_what_is_staged_stays(
    one: Clone, shared: Path
) -> None:
    tiny, program = one
    paths = git(shared, "ls-tree", "-r", "--name-only", REFERENCE).splitlines()
    assert all(path.startswith("chains/") for path in paths)
    assert [path for path in paths if "/refs/" in path] == [
        "chains/derived/refs/pr-1",
        "chains/fresh/refs/pr-1",
    ]
    assert not [path for path in paths if "/data/" in path or "/checkpoints/" in path]
    assert git(tiny.root, "diff", "--cached", "--name-only") == ""
    assert git(tiny.root, "log", "-1", "--format=%s") == "Change a query"
    tip = git(shared, "rev-parse", REFERENCE)
    program.ok("git", "push", "pr-1")
    assert git(shared, "rev-parse", REFERENCE) == tip
    # The private key of a dataset that other clones may promote stays.
    keys = set((tiny.root / ".odfbuild-keys").iterdir())
    program.ok("branch", "delete", "pr-1", "-y")
    assert set((tiny.root / ".odfbuild-keys").iterdir()) == keys
    program.ok("git", "fetch", "pr-1")
    assert "No changes" in program.ok("plan", "-b", "pr-1").out


def test_of_two_clones_that_go_on_the_second_is_refused(
    one: Clone, shared: Path, odfbuild: Program
) -> None:
    first, program = one
    second, theirs = cloned(odfbuild, shared, "two")
    git(second.root, "checkout", "-q", "topic")
    assert "2 datasets" in theirs.ok("git", "fetch", "pr-1").out
    assert theirs.ok("git", "fetch", "pr-1").out.endswith("2 datasets, 0 files.\n")
    for number, (tiny, each) in enumerate((one, (second, theirs))):
        tiny.derive("fresh", QUERY.replace("10", str(number + 30)))
        git(tiny.root, "commit", "-q", "-a", "-m", "Change another query")
        each.ok("apply", "-y", "-b", "pr-1")
    program.ok("git", "push", "pr-1")
    said = theirs("git", "push", "pr-1")
    assert said.code == 5
    assert "error[E0701]" in said.err
    said = theirs("git", "fetch", "pr-1")
    assert said.code == 1
    assert "error[E1145]" in said.err
    assert "differs: chains/fresh/refs/pr-1" in said.err
    theirs.ok("branch", "delete", "pr-1", "-y")
    theirs.ok("git", "fetch", "pr-1")
    heads = [(tiny.root / "chains/fresh/refs/pr-1").read_bytes() for tiny in (first, second)]
    assert heads[0] == heads[1]


def test_a_branch_that_is_not_there_is_told(one: Clone, odfbuild: Program, shared: Path) -> None:
    _, program = one
    assert program.ok("git", "fetch", "pr-2").out == "There is no branch pr-2 to fetch.\n"
    assert program.ok("git", "fetch", "pr-2", "--json").data == {"branch": "pr-2", "datasets": []}
    said = program("git", "push", "pr-2")
    assert "error[E1102]: there is no branch 'pr-2'" in said.err
    assert "error[E1101]" in program("git", "fetch", "../x").err


def test_a_shared_branch_brings_no_head_and_nothing_beside_the_chains(
    one: Clone, shared: Path, odfbuild: Program
) -> None:
    tiny, _ = one
    for path in ("chains/root/refs/head", "odfbuild.yaml", "datasets/x.yaml"):
        (tiny.root / path).parent.mkdir(exist_ok=True)
        (tiny.root / path).write_text("forged")
    git(tiny.root, "add", "-A", "-f", "chains", "odfbuild.yaml", "datasets")
    git(tiny.root, "commit", "-q", "-m", "Forged")
    git(tiny.root, "push", "-q", "-f", "origin", f"HEAD:{REFERENCE}")
    other, theirs = cloned(odfbuild, shared, "two")
    theirs.ok("git", "fetch", "pr-1")
    changed = git(other.root, "status", "--porcelain", "-uall").splitlines()
    assert not [line for line in changed if line.startswith(" M") or "datasets/" in line]

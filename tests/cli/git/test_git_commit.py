"""What one clone applied reaches the others: chains through Git, data through a storage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny
from tests.cli.clones import begin, clone, commit, git, identify, share


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return begin(tmp_path / "p")


@pytest.fixture
def two(tiny: Tiny, odfbuild: Program) -> tuple[tuple[Tiny, Program], tuple[Tiny, Program]]:
    """Two clones of a bare repository whose chains are up to date."""
    share(tiny)
    odfbuild.apply()
    commit(tiny)
    shared = tiny.root.parent / "shared.git"
    git(tiny.root.parent, "clone", "-q", "--bare", str(tiny.root), str(shared))
    clones = clone(odfbuild, shared, "one"), clone(odfbuild, shared, "two")
    for each, _ in clones:
        identify(each.root)
    return clones


def test_only_chains_are_committed(tiny: Tiny, odfbuild: Program) -> None:
    commit(tiny)
    odfbuild.apply()
    (tiny.root / "staged.txt").write_text("for another commit")
    git(tiny.root, "add", "staged.txt")
    (tiny.root / "datasets" / "derived.yaml").touch()
    said = odfbuild.ok("git", "commit")
    head = git(tiny.root, "rev-parse", "HEAD")
    assert said.out.splitlines() == [
        f"Committed {head[:10]}:",
        "  derived: 4 blocks, 3 records",
        "  root: 4 blocks, 3 records",
    ]
    files = git(tiny.root, "show", "--name-only", "--format=%s%n%b", "HEAD").splitlines()
    assert files[:4] == [
        "Bring 2 datasets up to date",
        "derived: 4 blocks, 3 records",
        "root: 4 blocks, 3 records",
        "",
    ]
    assert all(file.startswith("chains/") for file in files[5:] if file)
    assert not any("/data/" in file for file in files)
    assert git(tiny.root, "diff", "--cached", "--name-only") == "staged.txt"
    assert odfbuild.ok("git", "commit").out == "Git has all of the chains.\n"


def test_a_commit_without_new_blocks_says_what_it_brings(tiny: Tiny, odfbuild: Program) -> None:
    commit(tiny)
    odfbuild.apply()
    odfbuild.ok("git", "commit")
    (tiny.root / "chains" / "root" / "info" / "signed-head").write_text("a statement")
    assert odfbuild.ok("git", "commit").out.startswith("Committed ")
    subject = git(tiny.root, "log", "-1", "--format=%s")
    assert subject == "Record origins and signatures of datasets"


def test_a_pushed_apply_reaches_the_other_clone(
    two: tuple[tuple[Tiny, Program], tuple[Tiny, Program]],
) -> None:
    (one, here), (other, there) = two
    one.arrive(2)
    here.apply()
    said = json.loads(here.ok("git", "commit", "--push", "--json").out)
    assert said["pushed"] == "origin/main"
    assert said["commit"] == git(one.root, "rev-parse", "HEAD")
    assert [each["name"] for each in said["datasets"]] == ["derived", "root"]
    assert {each["records"] for each in said["datasets"]} == {1}
    git(other.root, "pull", "-q")
    other.arrive(2)
    assert "No changes" in there.apply().out
    assert there.ok("verify").out.startswith("Verified 2 datasets")


def test_who_pushes_second_goes_behind_others_that_moved_other_datasets(
    two: tuple[tuple[Tiny, Program], tuple[Tiny, Program]],
) -> None:
    (one, here), (other, there) = two
    for (tiny, program), name in zip(two, ("mine", "yours"), strict=True):
        tiny.derive(name, QUERY)
        program.ok("apply", "-y", "-s", name)
        git(tiny.root, "add", "datasets")
        git(tiny.root, "commit", "-q", "-m", f"Define {name}")
    (other.root / "notes.txt").write_text("for another commit")
    here.ok("git", "commit", "--push", "-m", "Mine")
    said = there.ok("git", "commit", "--push", "-m", "Yours")
    assert said.out.splitlines()[-1] == "Pushed to origin/main."
    log = git(other.root, "log", "--format=%s", "origin/main").splitlines()
    assert log == ["Yours", "Define yours", "Mine", "Define mine", "Apply"]
    # What was not committed is still there.
    assert (other.root / "notes.txt").exists()
    git(one.root, "pull", "-q")
    assert {"mine", "yours"} <= set(one.workspace().aliases())
    assert "No changes" in here.apply().out


def test_who_pushes_second_is_refused_by_name_when_the_same_dataset_moved(
    two: tuple[tuple[Tiny, Program], tuple[Tiny, Program]],
) -> None:
    (one, here), (other, there) = two
    for tiny, program in two:
        tiny.arrive(2)
        program.apply()
    here.ok("git", "commit", "--push")
    said = there("git", "commit", "--push")
    assert said.code == 5
    assert "error[E0701]: others have committed to 'derived', 'root' in the meantime" in said.err
    assert "`git pull --no-rebase origin main`, `git checkout --theirs :/chains`" in said.err
    assert git(other.root, "rev-parse", "origin/main") == git(one.root, "rev-parse", "HEAD")
    # What the help says; edits that are not committed stay.
    (other.root / "notes.txt").write_text("mine")
    with pytest.raises(AssertionError, match="CONFLICT"):
        git(other.root, "pull", "-q", "--no-rebase", "origin", "main")
    git(other.root, "checkout", "--theirs", ":/chains")
    assert "No changes" in there.apply().out
    refused = there("git", "commit")
    assert "finish the operation in progress in Git" in refused.err
    git(other.root, "add", "--all")
    git(other.root, "commit", "-q", "-m", "Merge")
    there.ok("git", "commit", "--push")
    assert (other.root / "notes.txt").read_text() == "mine"
    assert there.ok("verify").code == 0


def test_chains_are_not_shared_without_the_definitions_that_they_follow(
    two: tuple[tuple[Tiny, Program], tuple[Tiny, Program]],
) -> None:
    (one, here), (other, there) = two
    shared = git(other.root, "ls-remote", "origin", "main")
    before = git(one.root, "rev-parse", "HEAD")
    edited = (one.root / "datasets" / "derived.yaml").read_text().replace("* 10", "* 20")
    (one.root / "datasets" / "derived.yaml").write_text(edited)
    one.derive("another", QUERY)
    here.apply()
    said = here("git", "commit", "--push")
    assert said.code == 1
    assert "error[E0394]" in said.err
    assert "= note: not committed: datasets/another.yaml" in said.err
    assert "= note: not committed: datasets/derived.yaml" in said.err
    assert git(one.root, "rev-parse", "HEAD") == before
    # A commit of chains alone, made by hand, is not pushed either.
    here.ok("git", "commit")
    assert "E0394" in here("git", "commit", "--push").err
    assert git(other.root, "ls-remote", "origin", "main") == shared
    git(one.root, "add", "datasets")
    git(one.root, "commit", "-q", "-m", "Twenty")
    # What is edited after the apply is no part of the chains.
    (one.root / "datasets" / "derived.yaml").write_text(edited.replace("* 20", "* 30"))
    here.ok("git", "commit", "--push")
    git(other.root, "pull", "-q")
    assert there("plan", "--detailed-exitcode").code == 0


def test_a_deletion_is_not_shared_without_the_removal_of_the_definition(
    two: tuple[tuple[Tiny, Program], tuple[Tiny, Program]],
) -> None:
    (one, here), _ = two
    (one.root / "datasets" / "derived.yaml").unlink()
    here.ok("apply", "-y", "--allow", "delete:derived")
    assert "not committed: datasets/derived.yaml" in here("git", "commit", "--push").err
    git(one.root, "add", "datasets")
    git(one.root, "commit", "-q", "-m", "Remove derived")
    here.ok("git", "commit", "--push")


def test_notes_on_heads_of_several_clones_are_joined(
    two: tuple[tuple[Tiny, Program], tuple[Tiny, Program]],
) -> None:
    for (tiny, program), name in zip(two, ("mine", "yours"), strict=True):
        program.ok("git", "install")
        tiny.derive(name, QUERY)
        program.ok("apply", "-y", "-s", name)
        git(tiny.root, "add", "datasets")
        git(tiny.root, "commit", "-q", "-m", f"Define {name}")
        program.ok("git", "commit", "--push")
    (_, _), (other, _) = two
    apply = git(other.root, "rev-list", "--max-parents=0", "HEAD")
    git(other.root, "fetch", "-q", "origin", "refs/notes/odfbuild:refs/notes/shared")
    noted = git(other.root, "notes", "--ref=shared", "show", apply)
    # Lines are in the order of their hashes.
    assert sorted(line.split()[1] for line in noted.splitlines()) == ["mine", "yours"]


def test_a_job_commits_without_being_told_who_it_is(
    tiny: Tiny, odfbuild: Program, tmp_path: Path
) -> None:
    odfbuild.monkeypatch.setenv("HOME", str(tmp_path))
    for what in ("user.name", "user.email"):
        git(tiny.root, "config", "--unset", what)
    git(tiny.root, "config", "user.useConfigOnly", "true")  # also where Git would guess
    git(tiny.root, "config", "odfbuild.notes", "true")
    odfbuild.apply()
    odfbuild.ok("git", "commit")
    assert git(tiny.root, "log", "-1", "--format=%an %cn") == "odfbuild odfbuild"
    tiny.arrive(2)
    assert "not noted" not in odfbuild.apply().err
    assert "root tiny" in git(tiny.root, "notes", "--ref=odfbuild", "show")


def test_the_branch_is_that_of_the_job_where_none_is_checked_out(
    two: tuple[tuple[Tiny, Program], tuple[Tiny, Program]],
) -> None:
    (one, here), _ = two
    git(one.root, "checkout", "-q", "--detach")
    said = here("git", "commit", "--push")
    assert said.code == 1
    assert "error[E0346]: it is not clear where to push to: no branch is checked out" in said.err
    one.arrive(2)
    here.apply()
    here.monkeypatch.setenv("CI_COMMIT_BRANCH", "main")
    assert here.ok("git", "commit", "--push").out.endswith("Pushed to origin/main.\n")
    here.monkeypatch.delenv("CI_COMMIT_BRANCH")
    assert here.ok("git", "commit", "--push", "--git-branch", "data").out.splitlines() == [
        "Git has all of the chains.",
        "Pushed to origin/data.",
    ]


def test_before_the_first_apply_there_is_nothing_to_commit(tiny: Tiny, odfbuild: Program) -> None:
    assert odfbuild.ok("git", "commit").out == "Git has all of the chains.\n"


def test_chains_that_git_does_not_see_are_an_error(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    with (tiny.root / ".gitignore").open("a") as ignore:
        ignore.write("chains/\n")
    said = odfbuild("git", "commit")
    assert said.code == 1
    assert "error[E0344]: the chains in" in said.err
    assert "are ignored by Git" in said.err


def test_what_git_says_is_passed_on(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    git(tiny.root, "remote", "add", "origin", "../nowhere.git")
    said = odfbuild("git", "commit", "--push")
    assert said.code == 1
    assert "error[E0345]: Git did not push" in said.err
    assert "nowhere.git' does not appear to be a git repository" in said.err
    hook = tiny.root / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho 'not on Fridays' >&2\nexit 1\n")
    hook.chmod(0o755)
    tiny.arrive(2)
    odfbuild.apply()
    said = odfbuild("git", "commit")
    assert "error[E0345]: Git did not commit" in said.err
    assert "= note: not on Fridays" in said.err


def test_a_history_that_was_rewritten_or_removed_is_called_so(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    odfbuild.ok("git", "commit")
    tiny.derive("derived", QUERY.replace("10", "100"))
    odfbuild.ok("apply", "-y", "--allow", "rebuild:derived")
    assert "  derived: rewritten, 4 blocks, 3 records" in odfbuild.ok("git", "commit").out
    import shutil

    shutil.rmtree(tiny.root / "chains" / "derived")
    assert odfbuild.ok("git", "commit").out.splitlines()[1:] == ["  derived: removed"]

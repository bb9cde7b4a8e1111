"""Git is started in one way, in which nothing that a pull request brings runs a program."""

from __future__ import annotations

import ast
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from odfbuild import __file__ as package
from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny
from tests.cli.repository import commit, git, own_configuration, sign, tiny

__all__ = ["own_configuration", "tiny"]

CONFIG = """\
[core]
	repositoryformatversion = 0
	bare = false
	worktree = .
	fsmonitor = "touch {marker}; false"
	hooksPath = hooks
[log]
	showSignature = true
[gpg]
	program = ./gpg
"""
VERBS = (
    "git check",
    "status",
    "doctor",
    "plan",
    "explain derived",
    "validate",
    "lint",
    "fmt --check",
    "diff HEAD",
    "diff HEAD~1..HEAD",
    "blame root",
    "drift",
    "branch list",
    "log root",
    "docs build --out site",
)


def program(file: Path, marker: Path) -> None:
    """A program of the pull request that leaves a mark."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\ntouch {marker}\n")
    file.chmod(0o755)


def looks_like_a_repository(folder: Path, marker: Path) -> None:
    """Files that make a folder a bare repository whose settings start programs."""
    for name in ("objects", "refs/heads"):
        (folder / name).mkdir(parents=True)
        (folder / name / ".keep").touch()
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text(CONFIG.format(marker=marker))
    program(folder / "gpg", marker)
    for hook in ("pre-commit", "post-index-change", "reference-transaction"):
        program(folder / "hooks" / hook, marker)


@pytest.fixture
def marker(tmp_path: Path) -> Iterator[Path]:
    """A file that only programs of the pull request make."""
    marker = tmp_path / "ran"
    yield marker
    assert not marker.exists()


def at_top(tiny: Tiny, *arguments: str) -> str:
    """What Git says at the top of the repository, where no other is in its way."""
    return git(tiny, "-C", str(tiny.root.parent), *arguments)


def signed_commit(tiny: Tiny) -> None:
    """Make the last commit one with a signature, which Git would ask `gpg.program` about."""
    text = at_top(tiny, "cat-file", "commit", "HEAD")
    header, _, message = text.partition("\n\n")
    made = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--stdin"],
        input=f"{header}\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n\n{message}",
        cwd=tiny.root.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    at_top(tiny, "update-ref", "HEAD", made.stdout.strip())


def test_a_folder_that_looks_like_a_repository_is_none(
    tiny: Tiny, odfbuild: Program, marker: Path
) -> None:
    sign(tiny)
    odfbuild.ok("git", "install")
    odfbuild.apply()
    commit(tiny, "Datasets")
    looks_like_a_repository(tiny.root, marker)
    tiny.derive("derived", QUERY.replace("10", "20"))
    tiny.arrive(2)
    at_top(tiny, "add", "-A")
    at_top(tiny, "commit", "-q", "-m", "A pull request")
    signed_commit(tiny)
    odfbuild.ok("git", "anchor")
    for verb in VERBS:
        done = odfbuild(*verb.split())
        assert done.code in (0, 1, 2), (verb, done.err)
        assert "E0999" not in done.err, (verb, done.err)
        assert not marker.exists(), verb
    odfbuild.apply()
    assert odfbuild.ok("git", "commit").out.startswith("Committed")
    assert at_top(tiny, "log", "-1", "--format=%s").startswith("Bring")


def test_a_file_with_the_name_of_a_revision_is_no_revision(tiny: Tiny, odfbuild: Program) -> None:
    sign(tiny)
    odfbuild.ok("git", "install")
    for name in ("HEAD", "FETCH_HEAD", "refs"):
        (tiny.root.parent / name).write_text("x")
        (tiny.root / name).write_text("x")
    odfbuild.apply()
    (tiny.root.parent / commit(tiny, "Datasets")).write_text("named after the base")
    odfbuild.ok("git", "anchor")
    tiny.arrive(2)
    for verb in VERBS:
        if verb != "diff HEAD~1..HEAD":
            done = odfbuild(*verb.split())
            assert done.code in (0, 1, 2), (verb, done.err)
            assert "E0340" not in done.err and "E0999" not in done.err, (verb, done.err)


def test_looking_starts_no_hooks_and_committing_those_of_the_clone(
    tiny: Tiny, odfbuild: Program, tmp_path: Path
) -> None:
    """Hooks that come with commits (core.hooksPath) wait until the user commits."""
    ran = tmp_path / "hooks-ran"
    sign(tiny)
    program(tiny.root.parent / "hooks" / "post-index-change", ran)
    program(tiny.root.parent / "hooks" / "pre-commit", ran)
    git(tiny, "config", "core.hooksPath", "hooks")
    odfbuild.apply()
    commit(tiny, "Datasets")
    tiny.arrive(2)
    odfbuild.apply()
    ran.unlink()
    for verb in VERBS:
        odfbuild(*verb.split())
        assert not ran.exists(), verb
    odfbuild.ok("git", "commit")
    assert ran.exists()


def test_a_repository_of_somebody_else_is_not_trusted(tiny: Tiny, odfbuild: Program) -> None:
    """Git looks at the owner of the repository, as ever."""
    odfbuild.apply()
    commit(tiny, "Datasets")
    os.environ["GIT_TEST_ASSUME_DIFFERENT_OWNER"] = "1"
    try:
        done = odfbuild("git", "check")
    finally:
        del os.environ["GIT_TEST_ASSUME_DIFFERENT_OWNER"]
    assert done.code != 0


@pytest.mark.parametrize("kind", ["worktree", "submodule"])
def test_work_trees_and_submodules_are_repositories(
    tiny: Tiny, odfbuild: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    odfbuild.apply()
    commit(tiny, "Datasets")
    if kind == "worktree":
        there = tmp_path / "other"
        git(tiny, "worktree", "add", "-q", "-b", "other", str(there))
    else:
        outer = tmp_path / "outer"
        git(tiny, "init", "-q", str(outer))
        add = ("submodule", "--quiet", "add", str(tiny.root.parent), "inner")
        git(tiny, "-C", str(outer), "-c", "protocol.file.allow=always", *add)
        there = outer / "inner"
    done = odfbuild("-C", str(there / "project"), "doctor")
    assert f": {there}\n" in done.out
    assert odfbuild.ok("-C", str(there / "project"), "git", "check").code == 0


def test_no_module_starts_git_in_another_way() -> None:
    folder = Path(package).parent
    door = folder / "project" / "git" / "repository.py"
    starts = {
        folder / "api" / "doctor" / "repository.py": "git --version, which reads no repository"
    }
    for file in folder.rglob("*.py"):
        if file == door:
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            where = f"{file.relative_to(folder)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called.rpartition(".")[2] not in ("Repo", "Git"), where
                assert called not in ("Repo.init", "Repo.clone_from"), where
            if isinstance(node, ast.Constant) and node.value == "git" and file not in starts:
                parent = ast.unparse(ast.parse(file.read_text("utf-8")))
                assert "subprocess" not in parent, where

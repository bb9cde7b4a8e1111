"""Clones of a project that was applied: what happens to their files; whether plans are clean."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.cli.clones import git, identify
from tests.cli.real import NO_JVM, in_pipe


def touch(project: Path) -> None:
    """As editors and build tools do."""
    for file in (project / "data").rglob("*"):
        file.touch()


def another_branch_and_back(project: Path) -> None:
    """Git writes every file anew that differs between two branches."""
    git(project, "switch", "-q", "-c", "other")
    for file in (project / "data").rglob("*.csv"):
        file.write_text(file.read_text() + "\n")
    git(project, "commit", "-q", "-a", "-m", "Edit data")
    git(project, "switch", "-q", "-")


def clock_behind(project: Path) -> None:
    """As written by a machine that lives in 1995."""
    _written_at(project, 800_000_000)


def clock_ahead(project: Path) -> None:
    """As written by a machine that lives in 2065."""
    _written_at(project, 3_000_000_000)


def _written_at(project: Path, moment: int) -> None:
    for file in project.rglob("*"):
        if file.is_file() and ".git" not in file.parts:
            os.utime(file, (moment, moment))


EVENTS: tuple[Callable[[Path], None], ...] = (
    touch,
    another_branch_and_back,
    clock_behind,
    clock_ahead,
)


def stays_clean_in_clones(project: Path, clone: Path) -> None:
    """Assert that plans of a clone of `project` say nothing, whatever happens to its files."""
    git(project, "init", "-q", "-b", "main")
    identify(project)
    git(project, "add", "--force", "--", ".", ":!.odfbuild", ":!.odfbuild-keys")
    git(project, "commit", "-q", "-m", "Apply")
    git(project.parent, "clone", "-q", str(project), str(clone))
    identify(clone)
    _assert_clean(clone, "fresh clone")
    for event in EVENTS:
        event(clone)
        _assert_clean(clone, event.__name__)
        shutil.rmtree(clone / ".odfbuild")
        _assert_clean(clone, f"{event.__name__}, without cache")


def _assert_clean(project: Path, when: str) -> None:
    # The second one finds what the first one noted.
    for number in ("first", "second"):
        said = in_pipe(project, ["plan", "--detailed-exitcode"], NO_JVM)
        assert said.code == 0, f"{when}, {number} plan: {said.text}"

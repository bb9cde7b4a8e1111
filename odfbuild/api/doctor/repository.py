"""Checks of the Git repository."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from typing import TYPE_CHECKING

from odfbuild.api.git.install import lacking
from odfbuild.errors import PlanError
from odfbuild.inspect.health import Check, fail, ok, warn
from odfbuild.project.git.repository import repository

if TYPE_CHECKING:
    from git import Repo

    from odfbuild.project.model import Config


def git(config: Config | None) -> Iterator[Check]:
    """The program, the repository around the project, and what `odfbuild git install` sets up."""
    program = shutil.which("git")
    if program is None:
        help = "install Git (apt install git, brew install git)"
        yield warn("git", "not installed: no diff between revisions, no blame, no notes", help)
        return
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    number = done.stdout.strip().removeprefix("git version ")
    if config is None:
        yield ok("git", number)
        return
    try:
        with repository(config.root, "nothing is set up") as repo:
            yield ok("git", f"{number}: {repo.working_tree_dir}")
            yield from _set_up(repo, config)
    except PlanError:
        help = f"git init {config.root}"
        yield warn("git", f"{number}, but the project is in no repository", help)


def _set_up(repo: Repo, config: Config) -> Iterator[Check]:
    missing = lacking(repo, config)
    if missing:
        yield warn("git set-up", f"lacking: {', '.join(missing)}", "odfbuild git install")
    else:
        yield ok("git set-up", "blocks are shown as text, heads are recorded in notes")
    if repo.git.ls_files("--", str(config.keys)):
        help = f"git rm -r --cached {config.keys}, and make new keys: history keeps these"
        yield fail("keys in git", "private keys are committed to Git", help)

"""Clones of one project, and the repository that they share."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from tests.apply.in_process import Program
from tests.apply.tiny import Tiny


def git(folder: Path, *arguments: str) -> str:
    """Run Git; returns what it says."""
    done = subprocess.run(
        ["git", "-C", folder, *arguments], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def begin(folder: Path) -> Tiny:
    """A project in a repository without commits."""
    tiny = Tiny.fresh(folder)
    git(folder, "init", "-q", "-b", "main")
    identify(folder)
    (folder / ".gitignore").write_text("/.odfbuild*\n")
    return tiny


def identify(folder: Path) -> None:
    git(folder, "config", "user.email", "ann@example.org")
    git(folder, "config", "user.name", "Ann")


def share(tiny: Tiny, address: str = "../storage") -> None:
    """Name a storage."""
    with (tiny.root / "odfbuild.yaml").open("a") as config:
        config.write(f"  storage: {address}\n")


def commit(tiny: Tiny) -> None:
    """Commit all that there is."""
    git(tiny.root, "add", "-A")
    git(tiny.root, "commit", "-q", "-m", "Apply")


def clone(odfbuild: Program, source: Path, name: str = "clone") -> tuple[Tiny, Program]:
    """A clone beside its source."""
    target = source.parent / name
    git(source.parent, "clone", "-q", str(source), str(target))
    return Tiny(target), replace(odfbuild, root=target)

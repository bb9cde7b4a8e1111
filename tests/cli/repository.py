"""A project in a Git repository of its own, which no configuration of the machine reaches."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.apply.tiny import Tiny

WHO = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")


@pytest.fixture(autouse=True)
def own_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither variables nor files of this machine tell Git anything."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """The project, in a folder of a fresh repository."""
    tiny = Tiny.fresh(tmp_path / "repo" / "project")
    git(tiny, "init", "-q", "-b", "main", "..")
    return tiny


def git(tiny: Tiny, *arguments: str) -> str:
    """What Git says; it must succeed."""
    command = ["git", *WHO, *arguments]
    done = subprocess.run(command, cwd=tiny.root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commit(tiny: Tiny, message: str) -> str:
    """Commit all files; returns the hash."""
    git(tiny, "add", "-A", "..")
    git(tiny, "commit", "-q", "-m", message)
    return git(tiny, "rev-parse", "HEAD").strip()


def sign(tiny: Tiny) -> None:
    """Let Git know who commits, also when odfbuild asks it to."""
    git(tiny, "config", "user.name", "Ann")
    git(tiny, "config", "user.email", "ann@example.org")

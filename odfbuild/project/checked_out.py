"""The branch of Git that a project is at, found without starting Git."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from odfbuild.store.files import top_of

_OF_JOB = ("GITHUB_HEAD_REF", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME")
"""Where a CI job says which branch its pull or merge request comes from."""
_BRANCH = "ref: refs/heads/"


def checked_out_branch(root: Path, environ: Mapping[str, str] = os.environ) -> str | None:
    """That of the pull request that a CI job runs for, or of the clone; `None`: it is at none."""
    of_job = next((environ[name] for name in _OF_JOB if environ.get(name)), None)
    if of_job is not None:
        return of_job
    git = top_of(root) / ".git"
    try:
        own = git if git.is_dir() else git.parent / git.read_text().partition(" ")[2].strip()
        head = (own / "HEAD").read_text().strip()
    except (OSError, ValueError):
        return None
    return head.removeprefix(_BRANCH) if head.startswith(_BRANCH) else None

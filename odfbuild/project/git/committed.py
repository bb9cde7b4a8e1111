"""Whether Git has files as they are, so that whoever overwrites them loses nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.errors import PlanError
from odfbuild.project.git.repository import inside, repository

if TYPE_CHECKING:
    from git import Repo

_AT_ONCE = 200
"""Files that Git is asked about by one command."""


def not_committed(files: Sequence[Path]) -> list[Path]:
    """Those of these files that no commit has as they are, sorted."""
    found: list[Path] = []
    for folder, group in groupby(sorted(files), key=lambda each: each.parent):
        members = list(group)
        try:
            with repository(folder, "nobody keeps its files") as repo:
                found += _differing(repo, members)
        except PlanError:
            found += members
    return found


def _differing(repo: Repo, files: Sequence[Path]) -> Iterator[Path]:
    from git.exc import GitError

    for first in range(0, len(files), _AT_ONCE):
        some = files[first : first + _AT_ONCE]
        names = {file: inside(repo, file) for file in some}
        try:
            committed = _committed(repo, [name for name in names.values() if name is not None])
        except GitError:  # there is no commit yet, or Git does not trust the repository
            committed = set()
        yield from (file for file, name in names.items() if name not in committed)


def _committed(repo: Repo, names: Sequence[str]) -> set[str]:
    """Those of the files that are as the commit has them that is checked out."""
    if not names:
        return set()
    git = repo.git(literal_pathspecs=True)
    there: str = git.ls_tree("-r", "-z", "--name-only", "--full-tree", "HEAD", "--", *names)
    changed: str = git.diff("--name-only", "-z", "--no-ext-diff", "HEAD", "--", *names)
    return {*there.split("\0")} - {*changed.split("\0")}

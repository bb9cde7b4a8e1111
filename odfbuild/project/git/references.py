"""References of datasets as files that Git has: `<folder>/<dataset>/refs/<head or branch>`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from git import Commit

Reference = tuple[str, str]
"""A dataset, and `head` or the name of a branch."""


def references_in(paths: Iterable[str], folder: str) -> dict[str, Reference]:
    """Those of the files below a folder of chains, by path."""
    found = {}
    for path in paths:
        dataset, refs, name = path.removeprefix(f"{folder}/").rpartition("/refs/")
        if refs and "/" not in name and not name.startswith("."):
            found[path] = (dataset, name)
    return found


def references_of(commit: Commit, folder: str) -> dict[Reference, str]:
    """What the references below a folder of chains hold in a commit."""
    from git import Blob

    listed = commit.repo.git.ls_tree("-r", "-z", "--full-tree", commit.hexsha, "--", folder)
    blobs = {}
    for line in filter(None, listed.split("\0")):
        facts, _, path = line.partition("\t")
        blobs[path] = facts.split()[2]
    return {
        reference: Blob(commit.repo, bytes.fromhex(blobs[path]))
        .data_stream.read()
        .decode("ascii", "replace")
        for path, reference in references_in(blobs, folder).items()
    }

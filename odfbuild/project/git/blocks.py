"""Blocks of chains in the branches and tags that this clone has from Git."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from odfbuild.errors import PlanError
from odfbuild.project.git.repository import repository

_BLOCK = re.compile(r"(?:.*/)?blocks/(f1620[0-9a-f]{64})")


def committed_blocks(root: Path, known: Collection[str]) -> Iterator[bytes]:
    """The blocks at the ends of all branches and tags whose names are not `known`, each once.

    Those of remotes as they were fetched last. None where there is no repository.
    """
    seen = {*known}
    try:
        with repository(root, "nothing is known of other branches") as repo:
            ends = repo.git.for_each_ref("--format=%(objectname)").split()
            head = [repo.head.commit.hexsha] if repo.head.is_valid() else []
            for commit in dict.fromkeys([*ends, *head]):
                if repo.git.cat_file("-t", commit) not in ("commit", "tag"):
                    continue
                listed = repo.git.ls_tree("-r", "-z", "--full-tree", commit)
                for entry in filter(None, listed.split("\0")):
                    said, _, path = entry.partition("\t")
                    found = _BLOCK.fullmatch(path)
                    if found is not None and found[1] not in seen:
                        seen.add(found[1])
                        yield repo.odb.stream(bytes.fromhex(said.split()[2])).read()
    except PlanError:
        return

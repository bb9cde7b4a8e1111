"""Find references that are staged in Git without their blocks, which no other clone could read.

`git commit -a` takes files that Git knows, so the head that moved, and not the blocks that are new.
"""

from __future__ import annotations

import shlex
from collections.abc import Container
from typing import TYPE_CHECKING

from odfbuild.errors import OdfbuildError, PlanError
from odfbuild.odf.multihash import Multihash
from odfbuild.project.git.references import references_in
from odfbuild.project.git.repository import inside, repository
from odfbuild.wording import count

if TYPE_CHECKING:
    from git import Repo

    from odfbuild.project.model import Config
    from odfbuild.store.dataset import DatasetStore
    from odfbuild.store.workspace import Workspace


def check_staged(config: Config, workspace: Workspace) -> None:
    """`PlanError` E0382 names the datasets that are staged without all of their new blocks."""
    if workspace.stored_chains:
        return  # blocks are in the storage before a head names them
    with repository(config.root, "nothing is staged") as repo:
        folder = inside(repo, config.state)
        lacking = missing_blocks(repo, folder, workspace) if folder is not None else {}
    if not lacking:
        return
    names = list(lacking)
    of = ", ".join(f"'{name}'" for name in names[:3])
    of += f" and {len(names) - 3} more" if names[3:] else ""
    raise PlanError(
        f"heads are staged without their new blocks: {of}",
        code="E0382",
        notes=(
            *(f"{name}: {count(number, 'block')}" for name, number in list(lacking.items())[:3]),
            "no other clone could read these datasets (`git commit -a` leaves out new files)",
        ),
        help=f"`git add {shlex.quote(f':/{folder}')}`, and commit again",
    )


def missing_blocks(repo: Repo, folder: str, workspace: Workspace) -> dict[str, int]:
    """How many blocks lack in the index, by name, where a head or branch below `folder` is staged.

    Follows each chain back to a block that the last commit has. A chain that is damaged here lacks
    one block at least.
    """
    below = f":/{folder}"
    staged = repo.git.diff("--cached", "--name-only", "-z", "--diff-filter=d", "--", below)
    references = references_in(staged.split("\0"), folder)
    if not references:
        return {}
    index = _index(repo, below)
    committed = set(_committed(repo, folder))
    found: dict[str, int] = {}
    for path, (name, _) in sorted(references.items()):
        head = repo.odb.stream(bytes.fromhex(index[path])).read()
        blocks = f"{folder}/{name}/blocks"
        number = _lacking(workspace.dataset(name), head, blocks, index, committed)
        if number:
            found[name] = found.get(name, 0) + number
    return found


def _lacking(
    store: DatasetStore, head: bytes, blocks: str, index: Container[str], committed: Container[str]
) -> int:
    number = 0
    try:
        for block, _ in store.walk(Multihash.parse(head.decode("ascii").strip())):
            path = f"{blocks}/{block}"
            if path in committed:
                break
            number += path not in index
    except (OdfbuildError, ValueError):
        return number or 1
    return number


def _index(repo: Repo, below: str) -> dict[str, str]:
    """Hashes of the blobs that are staged, by path."""
    listed = repo.git.ls_files("--stage", "-z", "--full-name", "--", below)
    staged = (line.partition("\t") for line in listed.split("\0") if line)
    return {path: facts.split()[1] for facts, _, path in staged}


def _committed(repo: Repo, folder: str) -> list[str]:
    if not repo.head.is_valid():
        return []
    tree = ("-r", "-z", "--full-tree", "--name-only", "HEAD", "--", folder)
    listed: str = repo.git.ls_tree(*tree)
    return listed.split("\0")

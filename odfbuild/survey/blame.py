"""Which commit of Git brought each block of a chain."""

from __future__ import annotations

from collections.abc import Sequence

from odfbuild.odf.model import MetadataBlock
from odfbuild.odf.multihash import Multihash
from odfbuild.project.git.notes import Anchor, CommitInfo, anchors, commits_of_files, history
from odfbuild.project.git.repository import inside, repository
from odfbuild.project.model import Config
from odfbuild.store.dataset import DatasetStore
from odfbuild.values import Value

Chain = Sequence[tuple[Multihash, MetadataBlock]]


class BlamedBlock(Value, kw_only=True):
    """A block, and the commit at which it was made (`None`: Git does not know)."""

    hash: Multihash
    block: MetadataBlock
    commit: CommitInfo | None


def blame(config: Config, store: DatasetStore) -> list[BlamedBlock]:
    """All blocks of a dataset, newest first, with their commits.

    A block belongs to the first commit at which a run left a head at or behind it (see
    `project.anchors`), or to the commit that brought the file of the block, if that came before.
    `PlanError` E0341 when the project is in no repository.
    """
    with repository(config.root, "there are no commits to name") as repo:
        head = store.head()
        chain = list(store.walk(head)) if head is not None else []
        folder = inside(repo, store.path / "blocks")
        files = commits_of_files(repo, folder) if folder is not None else {}
        noted = commits_of_blocks(chain, store.name, anchors(repo, config.qualified_name))
        order = {commit: number for number, commit in enumerate(history(repo))}

    def first(*commits: CommitInfo | None) -> CommitInfo | None:
        return min(filter(None, commits), key=lambda each: order[each.hash], default=None)

    return [
        BlamedBlock(hash=hash, block=block, commit=first(noted.get(hash), files.get(str(hash))))
        for hash, block in chain
    ]


def commits_of_blocks(
    chain: Chain, name: str, noted: Sequence[Anchor]
) -> dict[Multihash, CommitInfo]:
    """The commit of each block of a chain (newest first), by notes (oldest first)."""
    numbers = {str(hash): block.sequence_number for hash, block in chain}
    hashes = {block.sequence_number: hash for hash, block in chain}
    found: dict[Multihash, CommitInfo] = {}
    done = -1
    for each in noted:
        # A head that is no longer part of the chain says nothing about it.
        last = numbers.get(each.heads.get(name, ""), -1)
        found |= {hashes[number]: each.commit for number in range(done + 1, last + 1)}
        done = max(done, last)
    return found

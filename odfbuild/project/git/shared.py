"""What a commit of the chains brought, and what is shared of a branch of datasets. Values only."""

from __future__ import annotations

from odfbuild.values import Value
from odfbuild.wording import count


class MovedDataset(Value):
    """What the commit brings of a dataset, on its head or in a `branch`: new blocks and records.

    `rewritten`: the history that the last commit had is no part of the new one; `gone`: the chain,
    or the branch, was removed.
    """

    name: str
    branch: str | None = None
    blocks: int = 0
    records: int = 0
    rewritten: bool = False
    gone: bool = False


class Published(Value):
    """What became of the chains: the new commit (`None`: Git had all), and where it was pushed."""

    datasets: tuple[MovedDataset, ...]
    commit: str | None = None
    pushed: str | None = None


class SharedBranch(Value):
    """A branch of datasets at a `remote`; `datasets` are those in it, `files` what moved."""

    branch: str
    remote: str
    datasets: tuple[str, ...]
    files: int


def describe(moved: MovedDataset) -> str:
    """`flights: 1 block, 28,330 records`, and `flights (branch pr-12): …`."""
    name = moved.name if moved.branch is None else f"{moved.name} (branch {moved.branch})"
    if moved.gone:
        return f"{name}: removed"
    blocks = count(moved.blocks, "block")
    records = count(moved.records, "record")
    return f"{name}: {'rewritten, ' if moved.rewritten else ''}{blocks}, {records}"

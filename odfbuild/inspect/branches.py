"""The branches of a project: what each holds, and how it relates to the heads.

Reads chains only; what a branch would change on the head is for a promotion to say.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import StrEnum
from fnmatch import fnmatchcase

from odfbuild.errors import BranchError, OdfbuildError
from odfbuild.exchange.repositories.accept import records_in
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.branch_files import own_files
from odfbuild.store.branches import HEAD, BranchInfo, BranchName, Limit, unknown_branch
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.garbage import reachable
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value


class Base(StrEnum):
    """What became of the block of the head that a branch left."""

    UNMOVED = "unmoved"
    MOVED = "moved"
    RESET = "reset"
    NEW = "new"
    TAKEN = "taken"
    DELETED = "deleted"
    PROMOTED = "promoted"
    DAMAGED = "damaged"


class BranchDataset(Value, kw_only=True):
    """A dataset in a branch: its newest block there, and the block of the head that it `left`.

    `ahead` and `records` are in the branch and not on the head, `behind` are blocks that the head
    got since. `own` are the bytes of files that nothing else needs, `updated`
    is the time of its newest block, `git` the branch of Git that it was begun on. `problem` says
    why the rest is not known.
    """

    name: str
    base: Base
    head: Multihash | None = None
    left: Multihash | None = None
    created: Timestamp | None = None
    limit: Limit | None = None
    git: str | None = None
    ahead: int = 0
    records: int = 0
    behind: int = 0
    own: int = 0
    updated: Timestamp | None = None
    problem: OdfbuildError | None = None


class Branch(Value, kw_only=True):
    """A branch, and its datasets by name."""

    name: str
    datasets: tuple[BranchDataset, ...]

    @property
    def created(self) -> Timestamp | None:
        """When the first of its datasets left the head, as far as that is known."""
        return min((each.created for each in self.datasets if each.created), default=None)

    @property
    def updated(self) -> Timestamp | None:
        """When it last changed: its newest block, or a dataset that left the head."""
        times = (time for each in self.datasets for time in (each.updated, each.created) if time)
        return max(times, default=None)

    @property
    def ahead(self) -> int:
        """Blocks that the heads do not have."""
        return sum(each.ahead for each in self.datasets)

    @property
    def records(self) -> int:
        """Records that the heads do not have."""
        return sum(each.records for each in self.datasets)

    @property
    def own(self) -> int:
        """Bytes that deleting it frees."""
        return sum(each.own for each in self.datasets)

    @property
    def limits(self) -> tuple[str, ...]:
        """The parts of its inputs that it was computed over, each once; none: over all."""
        return tuple(dict.fromkeys(str(each.limit) for each in self.datasets if each.limit))

    @property
    def git_branches(self) -> set[str]:
        """The branches of Git that it was begun on."""
        return {each.git for each in self.datasets if each.git}

    def count(self, base: Base) -> int:
        """How many of its datasets relate to the head like that."""
        return sum(each.base is base for each in self.datasets)

    @property
    def is_promoted(self) -> bool:
        """Whether the heads have all of it."""
        return self.count(Base.PROMOTED) == len(self.datasets)


def branches(workspace: Workspace, names: Collection[str] | None = None) -> list[Branch]:
    """The branches with these names (default: all), by name."""
    held: dict[str, list[BranchDataset]] = {}
    for alias, branch in workspace.in_branches():
        if names is None or branch in names:
            held.setdefault(branch, []).append(_dataset(workspace, alias, branch))
    return [Branch(name=name, datasets=tuple(held[name])) for name in sorted(held)]


def existing(workspace: Workspace, name: str) -> str:
    """The name of a branch that is there; `BranchError` E1101 and E1102 for anything else."""
    known = workspace.branch_names()
    if BranchName.parse(name) not in known:
        raise unknown_branch(name, known)
    return name


def chosen(workspace: Workspace, patterns: Sequence[str]) -> list[str]:
    """Names of the branches that `patterns` mean, such as `pr-12` or `pr-*`, sorted.

    `BranchError` as `existing` for a name, E1140 for a pattern that matches none.
    """
    known = workspace.branch_names()
    wanted: set[str] = set()
    for pattern in patterns:
        if not any(mark in pattern for mark in "*?["):
            wanted.add(existing(workspace, pattern))
            continue
        matching = {name for name in known if fnmatchcase(name, pattern)}
        if not matching:
            raise BranchError(
                f"no branch matches '{pattern}'",
                code="E1140",
                notes=(f"branches: {', '.join(sorted(known)) or 'none'}",),
                help="`odfbuild branch list` shows all branches",
            )
        wanted |= matching
    return sorted(wanted)


def _dataset(workspace: Workspace, alias: str, branch: str) -> BranchDataset:
    store = workspace.dataset(alias)
    found = BranchDataset(name=alias, base=Base.DAMAGED)
    try:
        found = replace(found, head=store.references()[branch])
        found = replace(found, own=own_files(workspace, store, [branch]).size)
        known = BranchInfo.read(store.folder, alias, branch)
        found = replace(
            found, left=known.base, created=known.created, limit=known.limit, git=known.git
        )
        return _compared(store, found)
    except OdfbuildError as error:
        return replace(found, problem=error)


def _compared(store: DatasetStore, found: BranchDataset) -> BranchDataset:
    """With what its chain says, compared with that of the head."""
    assert found.head is not None
    head = store.references().get(HEAD)
    ours = reachable(store, found.head).blocks
    theirs = frozenset[Multihash]() if head is None else reachable(store, head).blocks
    left = reachable(store, found.left).blocks if found.left in theirs else ours
    return replace(
        found,
        base=_base(found, head, theirs, common=bool(ours & theirs)),
        ahead=len(ours - theirs),
        records=sum(records_in(store.read_block(each)) for each in ours - theirs),
        behind=len(theirs - left),
        updated=store.read_block(found.head).system_time,
    )


def _base(
    found: BranchDataset, head: Multihash | None, theirs: Collection[Multihash], *, common: bool
) -> Base:
    if head is None:
        return Base.NEW if found.left is None else Base.DELETED
    if found.head in theirs:
        return Base.PROMOTED
    if found.left is None:
        return Base.MOVED if common else Base.TAKEN
    if found.left not in theirs:
        return Base.RESET
    return Base.UNMOVED if found.left == head else Base.MOVED

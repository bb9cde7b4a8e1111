"""Delete branches: their references, and the files that nothing else needs.

Each dataset is claimed first, so nobody appends to it meanwhile, on the head or in a branch. The
reference goes first: whoever is killed behind that leaves garbage, which `gc` removes. Objects in
the storage of the project stay: other clones may have the branch.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Container, Mapping, Sequence

from odfbuild.errors import StaleHeadError
from odfbuild.odf.multihash import Multihash
from odfbuild.project.model import Config
from odfbuild.store.branch_files import OwnFiles, own_files
from odfbuild.store.branches import branch_cache, has_references
from odfbuild.store.claims import NOT_WAITING, Waiting, held_elsewhere
from odfbuild.store.creation import clear_unfinished
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.files import folder_lock
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value


class BranchDeletion(Value, kw_only=True):
    """What deleting `branches` removes of the dataset `name`, where they are at these heads.

    `blocks` and `objects` are numbers of files, `size` their bytes with all that lies beside them.
    `alone`: the dataset is nowhere else and goes as a whole; with `keep_key` its private key stays,
    since Git has the chain, and another clone may promote it.
    """

    name: str
    branches: Mapping[str, Multihash]
    blocks: int
    objects: int
    size: int
    alone: bool
    keep_key: bool


def plan_deletion(
    config: Config, workspace: Workspace, names: Sequence[str]
) -> tuple[BranchDeletion, ...]:
    """What it takes to delete these branches, by name of the dataset."""
    heads: dict[str, dict[str, Multihash]] = {}
    for alias, branch in workspace.in_branches():
        head = workspace.dataset(alias).branch_head(branch) if branch in names else None
        if head is not None:
            heads.setdefault(alias, {})[branch] = head
    shared = _in_git(config) if heads else frozenset()
    found = []
    for alias, expected in sorted(heads.items()):
        store = workspace.dataset(alias)
        own = own_files(workspace, store, expected, keep_key=alias in shared)
        found.append(
            BranchDeletion(
                name=alias,
                branches=expected,
                blocks=len(own.blocks),
                objects=len(own.objects),
                size=own.size,
                alone=own.alone,
                keep_key=not own.keys,
            )
        )
    return tuple(found)


def delete_branches(
    workspace: Workspace,
    planned: Sequence[BranchDeletion],
    waiting: Waiting = NOT_WAITING,
) -> None:
    """Delete what was planned, one dataset after the other.

    `StaleHeadError` E0701 for a dataset that another process works on, or that has moved in the
    branch since; those before it are deleted then.
    """
    with workspace.claim([each.name for each in planned], waiting) as claim:
        for each in planned:
            if each.name in claim.held:
                raise held_elsewhere(each.name, claim.held[each.name])
            delete_claimed(workspace, each)


def delete_claimed(workspace: Workspace, planned: BranchDeletion) -> None:
    """Delete what was planned of a dataset that the caller has claimed; errors as above."""
    store = workspace.dataset(planned.name)
    own = own_files(workspace, store, planned.branches, keep_key=planned.keep_key)
    try:
        _remove(workspace, store, planned.branches, own)
    except StaleHeadError as error:
        raise error.changed(help="look at it, and run the command again") from None
    for branch in planned.branches:
        # What is cached of the branch; the rest of it is made again when it is needed.
        shutil.rmtree(branch_cache(workspace.cache, branch), ignore_errors=True)


def _remove(
    workspace: Workspace, store: DatasetStore, expected: Mapping[str, Multihash], own: OwnFiles
) -> None:
    """Remove branches that are still at these heads, and then the files that only they need."""
    for branch, head in expected.items():
        store.delete_branch(branch, head, keep_key=not own.keys)
    if not own.alone:
        for file in (*own.objects, *own.blocks):
            file.unlink(missing_ok=True)
        return
    with folder_lock(store.path):
        if not has_references(store.folder):
            clear_unfinished(store.path, workspace.keys)
    for key in own.keys:
        key.unlink(missing_ok=True)
    if store.path.parent != workspace.state:
        with contextlib.suppress(OSError):
            store.path.parent.rmdir()  # the last one of an account


def _in_git(config: Config) -> Container[str]:
    """Datasets of whose branches Git has any: other clones may promote them, and need the key."""
    from odfbuild.errors import PlanError
    from odfbuild.project.git.repository import BRANCHES, inside, repository

    try:
        with repository(config.root, "no branch is there") as repo:
            folder = inside(repo, config.state)
            if folder is None:
                return frozenset()
            listed = [repo.git.ls_files("-z", "--full-name", "--", f":/{folder}/*/refs/*")]
            shared = repo.git.for_each_ref("--format=%(objectname)", BRANCHES).split()
            listed += [repo.git.ls_tree("-r", "-z", "--name-only", each) for each in shared]
    except PlanError:
        return frozenset()
    paths = (
        path.removeprefix(f"{folder}/")
        for each in listed
        for path in each.split("\0")
        if "/refs/" in path
    )
    return frozenset(path.partition("/refs/")[0] for path in paths if path)

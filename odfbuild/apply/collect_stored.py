"""Garbage collection for the storage of a project, which other clones use, too."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from odfbuild.errors import IntegrityError
from odfbuild.project.git.blocks import committed_blocks
from odfbuild.store.stored_garbage import (
    StoredObject,
    blocks_below,
    referred_to,
    stored_blocks,
    written_before,
)
from odfbuild.store.transfer import storage_of
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.project.model import Config


class StoredCollection(Value):
    """Objects of the storage at `address` that no known block refers to; `used` is how many do."""

    address: str
    garbage: tuple[StoredObject, ...]
    used: int

    @property
    def size(self) -> int:
        """Bytes of all that goes."""
        return sum(each.size for each in self.garbage)


def collect_stored(
    config: Config, workspace: Workspace, *, before: float, dry_run: bool
) -> StoredCollection:
    """Find objects that nobody needs and that were written before `before`, and remove them.

    Needed is what blocks refer to: those in the project's folder, of all environments and
    branches, those of all branches and tags of Git as they were fetched last, and those in the
    storage. With `dry_run` nothing is removed. `PlanError` E0373 without a storage,
    `EnvironmentProblem` E0911 where it cannot be used, `IntegrityError` E1690 where a block is
    damaged.
    """
    storage = storage_of(workspace)
    # First what is there, then who needs it: what is committed meanwhile is young, or not listed.
    listed = written_before(storage, before)
    here = dict(blocks_below(config.root, workspace.state))
    try:
        used, linked = referred_to(
            chain(here.values(), committed_blocks(config.root, here), stored_blocks(storage))
        )
    except ValueError as error:
        raise IntegrityError(
            f"a block cannot be read, so nobody can tell which objects it needs: {error}",
            code="E1690",
            notes=("nothing was removed",),
            help="run `odfbuild verify --integrity`, which says which one it is",
        ) from None
    garbage = [
        each
        for each in listed
        if each.name not in used and not (linked and each.name.startswith("data/"))
    ]
    if not dry_run:
        for each in garbage:
            storage.discard(each.name)
    return StoredCollection(storage.address, tuple(garbage), len(used))

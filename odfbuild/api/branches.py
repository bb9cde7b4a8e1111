"""Methods for branches."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from odfbuild.api.base import Base
from odfbuild.api.times import age
from odfbuild.store.claims import Waiting
from odfbuild.store.lock_holders import LOCK_TIMEOUT

if TYPE_CHECKING:
    from odfbuild.apply.branches import BranchDeletion
    from odfbuild.inspect.branches import Branch


class Branches(Base):
    """The branches of a project: what each holds, and how they are deleted."""

    def branches(self, *patterns: str) -> list[Branch]:
        """Branches (default: all) with their datasets, and how each relates to its head.

        Patterns are names, or such as `pr-*`. `BranchError` E1102 or E1140 where none is like that.

        >>> [branch.name for branch in project.branches()]
        []
        """
        from odfbuild.inspect.branches import branches, chosen

        workspace = self._on_heads("branches")
        return branches(workspace, chosen(workspace, patterns) if patterns else None)

    def delete_branches(
        self,
        *patterns: str,
        closed: bool = False,
        older_than: timedelta | str | None = None,
        fetch: bool = False,
        dry_run: bool = False,
        lock_timeout: float = LOCK_TIMEOUT,
    ) -> tuple[BranchDeletion, ...]:
        """Delete branches, and the blocks and data that nothing else refers to; what went.

        Of `patterns` (default: all branches) those that are `closed`, as `gc` means it, and did not
        change for `older_than` (text: `14d`, `36h`). `fetch` asks the remotes of Git.
        `ValueError` when nothing is given.
        """
        from odfbuild.apply.branches import delete_branches, plan_deletion
        from odfbuild.inspect.closed_branches import selected

        if not patterns and not closed and older_than is None:
            raise ValueError("name branches, or say which ones by closed or older_than")
        config, workspace = self.config(), self._on_heads("delete_branches")
        least = None if older_than is None else age(older_than, "older_than")
        found = selected(
            config, workspace, patterns, only_closed=closed, older_than=least, fetch=fetch
        )
        planned = plan_deletion(config, workspace, [each.name for each in found])
        if not dry_run:
            delete_branches(workspace, planned, Waiting(seconds=lock_timeout))
        return planned

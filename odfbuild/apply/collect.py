"""Garbage collection for a workspace: files without references, and scratch of killed runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from odfbuild.apply.branches import BranchDeletion, delete_claimed, plan_deletion
from odfbuild.apply.withdraw import remove_withdrawn
from odfbuild.errors import OdfbuildError
from odfbuild.store.claims import NOT_WAITING, Waiting
from odfbuild.store.garbage import (
    DISPOSABLE,
    Garbage,
    find_deleted,
    find_in_dataset,
    find_scratch,
    find_side_cars,
    find_staged,
    find_unfinished,
    remove,
)
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.inspect.tables import TableGarbage
    from odfbuild.project.model import Config


class Collection(Value, kw_only=True):
    """What is garbage; `held` are datasets that other processes have locked, `damaged` broken ones.

    Of both nothing is collected. `branches` are deleted before the rest. `tables` are what only
    old states of published tables need; `None`: the project publishes none.
    """

    garbage: tuple[Garbage, ...]
    branches: tuple[BranchDeletion, ...] = ()
    held: tuple[str, ...] = ()
    damaged: tuple[OdfbuildError, ...] = ()
    tables: tuple[TableGarbage, ...] | None = None

    @property
    def errors(self) -> tuple[OdfbuildError, ...]:
        """What is wrong with datasets and tables of which nothing was collected."""
        of_tables = (each.error for each in self.tables or ())
        return (*self.damaged, *(error for error in of_tables if error is not None))

    @property
    def is_disposable(self) -> bool:
        """Whether nothing of it was ever part of a history."""
        return not self.branches and all(each.kind in DISPOSABLE for each in self.garbage)

    @property
    def size(self) -> int:
        """Bytes of all that goes."""
        return sum(each.size for each in self.garbage) + sum(each.size for each in self.branches)


def collect_project(
    config: Config,
    workspace: Workspace,
    names: Sequence[str] | None,
    *,
    before: float,
    dry_run: bool,
    fetch: bool = False,
    waiting: Waiting = NOT_WAITING,
) -> Collection:
    """`collect`, also of closed branches where `names` is `None`, and of published tables.

    With `fetch` remotes of Git are asked which branches there are.
    """
    from odfbuild.inspect.closed_branches import overdue

    closed = overdue(config, workspace, fetch=fetch) if names is None else ()
    branches = plan_deletion(config, workspace, closed)
    found = collect(
        workspace, names, before=before, dry_run=dry_run, branches=branches, waiting=waiting
    )
    if not config.tables:
        return found
    from odfbuild.inspect.tables import collect_tables
    from odfbuild.project.tables import declared_tables

    tables = declared_tables(config, workspace.aliases() if names is None else names)
    return replace(found, tables=collect_tables(config, workspace, tables, dry_run=dry_run))


def collect(
    workspace: Workspace,
    names: Sequence[str] | None,
    *,
    before: float,
    dry_run: bool,
    branches: Sequence[BranchDeletion] = (),
    waiting: Waiting = NOT_WAITING,
) -> Collection:
    """Find garbage that did not change since `before` (seconds since 1970) and remove it.

    Looks at the datasets `names`; at all of them, at unfinished ones and at scratch when it is
    `None`. `branches` are deleted first. What was withdrawn goes from the storage, too, if it is
    still there. With `dry_run` nothing is removed.
    """
    garbage: list[Garbage] = []
    damaged: list[OdfbuildError] = []
    chosen = _all_datasets(workspace) if names is None else list(names)
    with workspace.claim(chosen, waiting) as claim:
        for each in branches:
            if each.name in claim.won and not dry_run:
                delete_claimed(workspace, each)
        for name in chosen:
            if name not in claim.won:
                continue
            try:
                garbage += find_in_dataset(workspace.dataset(name), before)
            except OdfbuildError as error:
                damaged.append(error)
        if names is None:
            garbage += find_unfinished(workspace, before)
            garbage += find_deleted(workspace, before)
            garbage += find_staged(workspace, before)
            garbage += find_scratch(workspace, before)
            garbage += find_side_cars(workspace, before)
        if not dry_run:
            broken = {each.dataset for each in damaged}
            for name in chosen:
                if name in claim.won and name not in broken:
                    remove_withdrawn(workspace, name)
            remove(workspace, garbage)
    return Collection(
        garbage=tuple(garbage),
        branches=tuple(branches),
        held=tuple(name for name in chosen if name in claim.held),
        damaged=tuple(damaged),
    )


def _all_datasets(workspace: Workspace) -> list[str]:
    """Those with a head, and those that exist in branches only."""
    return sorted({*workspace.aliases(), *(alias for alias, _ in workspace.in_branches())})

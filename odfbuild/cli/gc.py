"""`odfbuild gc`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.exit_codes import exit_code_of
from odfbuild.cli.options import (
    ApproveOption,
    JsonOptions,
    LockTimeoutOption,
    SelectionOptions,
    approved,
    waiting,
)
from odfbuild.store.lock_holders import LOCK_TIMEOUT
from odfbuild.wording import count

if TYPE_CHECKING:
    from odfbuild.inspect.tables import TableGarbage
    from odfbuild.project.model import Config
    from odfbuild.store.workspace import Workspace

_HOUR = 3600


def gc(
    context: typer.Context,
    selection: SelectionOptions,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Show what would be removed; remove nothing.")
    ] = False,
    grace: Annotated[
        int,
        typer.Option(
            metavar="HOURS",
            min=0,
            envvar="ODFBUILD_GRACE",
            help="Keep files that were written, reset or deleted in the last HOURS hours.",
        ),
    ] = 24,
    fetch: Annotated[
        bool,
        typer.Option(
            "--fetch", help="Ask the Git remotes which branches exist, to find closed ones."
        ),
    ] = False,
    auto_approve: ApproveOption = False,
    lock_timeout: LockTimeoutOption = LOCK_TIMEOUT,
    as_json: JsonOptions,
) -> int:
    """Remove files that no history refers to, closed branches, and the bin's content.

    A branch is closed when it is promoted, or its Git branch is merged or gone. `branches: {keep:
    14d}` in odfbuild.yaml says how long it is kept after its last change. Of published tables it
    removes what only old states need (see `odfbuild table gc`).
    """
    from odfbuild.apply.branches import plan_deletion
    from odfbuild.apply.collect import collect
    from odfbuild.inspect.closed_branches import overdue
    from odfbuild.report.garbage import collection_to_data, render_collection
    from odfbuild.report.tables import collected_to_data, render_collected

    state: Context = context.obj
    workspace = state.workspace()
    names = state.committed(workspace, selection) if selection else None
    config = state.config()
    closed = overdue(config, workspace, fetch=fetch) if names is None else ()
    run = partial(
        collect,
        workspace,
        names,
        branches=plan_deletion(config, workspace, closed),
        before=time.time() - grace * _HOUR,
        waiting=waiting(state.console, lock_timeout),
    )
    found = run(dry_run=True)
    if not dry_run:
        refusal = f"{count(len(found.garbage), 'file')} of datasets were not removed"
        if not found.is_disposable and not auto_approve:
            state.console.result(render_collection(found, removed=False))
            if not approved(state.console, auto_approve, "Remove this for good?", refusal):
                return 1
        found = run(dry_run=False)
    tables = _tables(config, workspace, names, dry_run=dry_run)
    if as_json:
        data = collection_to_data(found, removed=not dry_run)
        more = {"tables": collected_to_data(tables)} if config.tables else {}
        state.console.data({**data, **more})
    else:
        state.console.result(render_collection(found, removed=not dry_run))
        if any(each.garbage.files for each in tables):
            state.console.result(render_collected(tables, removed=not dry_run))
    errors = [*found.damaged, *(each.error for each in tables if each.error is not None)]
    state.console.error(*errors)
    return exit_code_of(errors)


def _tables(
    config: Config, workspace: Workspace, names: Sequence[str] | None, *, dry_run: bool
) -> tuple[TableGarbage, ...]:
    """Collect the garbage of tables of these datasets, `None`: of all."""
    if not config.tables:
        return ()
    from odfbuild.inspect.tables import collect_tables
    from odfbuild.project.tables.declared import declared_tables

    tables = declared_tables(config, workspace.aliases() if names is None else names)
    return collect_tables(config, workspace, tables, dry_run=dry_run)

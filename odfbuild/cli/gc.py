"""`odfbuild gc`."""

from __future__ import annotations

import time
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
    from odfbuild.plan.graph.selection import Selection

_HOUR = 3600
_GRACE = 24
_GRACE_OF_STORAGE = 14 * 24
"""Hours. Other clones may not have pushed what they committed."""


def gc(
    state: Context,
    selection: SelectionOptions,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Show what would be removed; remove nothing.")
    ] = False,
    grace: Annotated[
        int | None,
        typer.Option(
            metavar="HOURS",
            min=0,
            envvar="ODFBUILD_GRACE",
            help="Keep files that were written, reset or deleted in the last HOURS hours; default: "
            "24, and 336 of a storage.",
        ),
    ] = None,
    storage: Annotated[
        bool,
        typer.Option(
            "--storage",
            help="Look at the objects of the project's storage instead, which no block refers to.",
        ),
    ] = False,
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

    With `--storage` it removes objects that runs left in the storage. It knows the blocks of this
    project's folder, of branches and tags of Git as they were fetched last, and of the storage:
    run `git fetch --all` first, and let other clones push what they committed.
    """
    if storage:
        return _of_storage(state, selection, dry_run, grace, auto_approve, as_json)
    from odfbuild.apply.collect import collect_project
    from odfbuild.report.garbage import collection_to_data, render_collection
    from odfbuild.report.tables import collected_to_data, render_collected

    workspace = state.workspace()
    run = partial(
        collect_project,
        state.config(),
        workspace,
        state.committed(workspace, selection) if selection else None,
        before=time.time() - (_GRACE if grace is None else grace) * _HOUR,
        fetch=fetch,
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
    if as_json:
        data = collection_to_data(found, removed=not dry_run)
        of_tables = {} if found.tables is None else {"tables": collected_to_data(found.tables)}
        state.console.data({**data, **of_tables})
    else:
        state.console.result(render_collection(found, removed=not dry_run))
        if any(each.garbage.files for each in found.tables or ()):
            state.console.result(render_collected(found.tables or (), removed=not dry_run))
    state.console.error(*found.errors)
    return exit_code_of(found.errors)


def _of_storage(
    state: Context,
    selection: Selection,
    dry_run: bool,
    grace: int | None,
    auto_approve: bool,
    as_json: bool,
) -> int:
    from odfbuild.apply.collect_stored import collect_stored
    from odfbuild.report.garbage import render_stored, stored_to_data

    if selection:
        raise typer.BadParameter("it looks at objects of all datasets", param_hint="--storage")
    hours = _GRACE_OF_STORAGE if grace is None else grace
    before = time.time() - hours * _HOUR
    run = partial(collect_stored, state.config(), state.workspace(), before=before)
    found = run(dry_run=True)
    if not dry_run:
        refusal = f"{count(len(found.garbage), 'object')} were not removed"
        if found.garbage and not auto_approve:
            state.console.result(render_stored(found, removed=False))
            if not approved(state.console, auto_approve, "Remove this for good?", refusal):
                return 1
        found = run(dry_run=False)
    if as_json:
        state.console.data(stored_to_data(found, removed=not dry_run))
    else:
        state.console.result(render_stored(found, removed=not dry_run))
    return 0

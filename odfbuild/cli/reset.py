"""`odfbuild reset`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.git import note_heads
from odfbuild.cli.options import (
    ApproveOption,
    DatasetArgument,
    JsonOptions,
    LockTimeoutOption,
    approved,
    waiting,
)
from odfbuild.errors import PlanError
from odfbuild.store.lock_holders import LOCK_TIMEOUT
from odfbuild.survey.names import block_in, existing


def reset(
    context: typer.Context,
    dataset: DatasetArgument,
    *,
    to: Annotated[
        str | None,
        typer.Option(metavar="BLOCK", help="Block to go back to (hash, or its beginning or end)."),
    ] = None,
    readers: Annotated[
        bool,
        typer.Option("--readers", "-r", help="Also reset all downstream datasets."),
    ] = False,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            help="Without --to: remove the schema, too, so that columns can have other types.",
        ),
    ] = False,
    auto_approve: ApproveOption = False,
    lock_timeout: LockTimeoutOption = LOCK_TIMEOUT,
    as_json: JsonOptions,
) -> int:
    """Reset a dataset to an older block, or to its definition without records.

    The next apply computes or fetches the records again. The old history stays on disk until `gc`
    removes it. Until then, reset to the old head restores it, also after a deletion.
    """
    from odfbuild.apply.reset import carry_out, plan_resets, restore_deleted
    from odfbuild.apply.run_log import record_resets
    from odfbuild.report.reset import render_resets, resets_to_data

    if to and schema:
        raise typer.BadParameter("--to and --schema exclude each other", context)
    state: Context = context.obj
    console = state.console
    workspace = state.workspace()
    try:
        name = existing(workspace, dataset)
        block = block_in(workspace.dataset(name), to, abandoned=True) if to else None
    except PlanError:
        restored = restore_deleted(state.config(), workspace, dataset, to) if to else None
        if restored is None:
            raise
        note_heads(state, [restored])
        if as_json:
            console.data([{"name": restored, "restored": True}])
        else:
            console.result(f"Restored '{restored}', which was deleted.")
        return 0
    resets = plan_resets(state.config(), workspace, name, block, readers=readers, schema=schema)
    if not resets:
        console.data([]) if as_json else console.result(f"'{name}' is there already.")
        return 0
    if not as_json:
        console.result(render_resets(resets))
    if not approved(console, auto_approve, "Do this?", f"'{name}' was not reset"):
        return 1
    carry_out(workspace, resets, waiting(console, lock_timeout))
    record_resets(state.config().cache, resets, workspace)
    note_heads(state, [each.name for each in resets])
    if as_json:
        console.data(resets_to_data(resets))
    for each in resets:
        console.note(
            f"To undo this: odfbuild reset {each.name} --to {each.head} (before `odfbuild gc`)"
        )
    return 0

"""`odfbuild storage`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.defaults import Group
from odfbuild.cli.options import JsonOptions, SelectionOptions

if TYPE_CHECKING:
    from odfbuild.plan.graph.selection import Selection
    from odfbuild.store.transfer import StoredObject
    from odfbuild.store.workspace import Workspace

storage = Group(help="Compare and copy data between this clone and the storage.")

DryRunOption = Annotated[
    bool, typer.Option("--dry-run", "-n", help="Show what would be copied; copy nothing.")
]


@storage.command("status")
def status(
    state: Context,
    selection: SelectionOptions,
    as_json: JsonOptions,
) -> int:
    """List which objects are here and which are in the storage."""
    from odfbuild.report.storage import held_to_data, render_held

    _, found = _survey(state, selection)
    state.console.show(as_json, lambda: held_to_data(found), lambda: render_held(found))
    return 1 if any(each.is_lost for each in found) else 0


@storage.command("push")
def push(
    state: Context,
    selection: SelectionOptions,
    *,
    dry_run: DryRunOption = False,
    as_json: JsonOptions,
) -> int:
    """Copy objects that only this clone has to the storage.

    `apply` does this automatically for what it commits.
    """
    from odfbuild.store import transfer

    workspace, found = _survey(state, selection)
    copied = transfer.pushable(found)
    if not dry_run:
        transfer.push(workspace, copied)
    verb = "Would push" if dry_run else "Pushed"
    return _report(state, found, copied, verb, as_json)


@storage.command("pull")
def pull(
    state: Context,
    selection: SelectionOptions,
    *,
    dry_run: DryRunOption = False,
    as_json: JsonOptions,
) -> int:
    """Copy objects that this clone lacks from the storage.

    Other commands fetch the objects that they need automatically.
    """
    from odfbuild.store import transfer

    workspace, found = _survey(state, selection)
    copied = transfer.pullable(found)
    if not dry_run:
        transfer.pull(workspace, copied)
    verb = "Would pull" if dry_run else "Pulled"
    return _report(state, found, copied, verb, as_json)


def _report(
    state: Context,
    found: Sequence[StoredObject],
    copied: Sequence[StoredObject],
    verb: str,
    as_json: bool,
) -> int:
    from odfbuild.report.storage import held_to_data, render_copied

    state.console.show(
        as_json, lambda: held_to_data(copied), lambda: render_copied(found, copied, verb)
    )
    return 1 if any(each.is_lost for each in found) else 0


def _survey(state: Context, wanted: Selection) -> tuple[Workspace, tuple[StoredObject, ...]]:
    from odfbuild.store.transfer import survey

    workspace = state.workspace()
    return workspace, survey(workspace, state.committed(workspace, wanted))

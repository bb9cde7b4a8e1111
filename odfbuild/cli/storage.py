"""`odfbuild storage`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import (
    ExcludeOption,
    Format,
    FormatOption,
    JsonOption,
    SelectionArgument,
    SelectOption,
    SelectorOption,
    selection_of,
)

if TYPE_CHECKING:
    from odfbuild.graph.selection import Selection
    from odfbuild.store.transfer import StoredObject
    from odfbuild.store.workspace import Workspace

storage = typer.Typer(
    help="See and copy the data that clones of the project share.", no_args_is_help=True
)

DryRunOption = Annotated[
    bool, typer.Option("--dry-run", "-n", help="Say what would be copied; copy nothing.")
]


@storage.command("status")
def status(
    context: typer.Context,
    datasets: SelectionArgument = None,
    select: SelectOption = None,
    exclude: ExcludeOption = None,
    selector: SelectorOption = None,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
) -> int:
    """Tell which objects of datasets are here, and which in the storage."""
    from odfbuild.report.storage import held_to_data, render_held

    state: Context = context.obj
    _, found = _survey(state, selection_of(select, exclude, selector, datasets))
    if as_json or format is Format.json:
        state.console.data(held_to_data(found))
    else:
        state.console.result(render_held(found))
    return 1 if any(each.is_lost for each in found) else 0


@storage.command("push")
def push(
    context: typer.Context,
    datasets: SelectionArgument = None,
    select: SelectOption = None,
    exclude: ExcludeOption = None,
    selector: SelectorOption = None,
    dry_run: DryRunOption = False,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
) -> int:
    """Copy objects that only this clone has to the storage; `apply` does it by itself."""
    from odfbuild.store import transfer

    state: Context = context.obj
    workspace, found = _survey(state, selection_of(select, exclude, selector, datasets))
    copied = transfer.pushable(found)
    if not dry_run:
        transfer.push(workspace, copied)
    verb = "Would push" if dry_run else "Pushed"
    return _report(state, found, copied, verb, as_json or format is Format.json)


@storage.command("pull")
def pull(
    context: typer.Context,
    datasets: SelectionArgument = None,
    select: SelectOption = None,
    exclude: ExcludeOption = None,
    selector: SelectorOption = None,
    dry_run: DryRunOption = False,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
) -> int:
    """Copy objects that this clone lacks from the storage; other verbs fetch what they need."""
    from odfbuild.store import transfer

    state: Context = context.obj
    workspace, found = _survey(state, selection_of(select, exclude, selector, datasets))
    copied = transfer.pullable(found)
    if not dry_run:
        transfer.pull(workspace, copied)
    verb = "Would pull" if dry_run else "Pulled"
    return _report(state, found, copied, verb, as_json or format is Format.json)


def _report(
    state: Context,
    found: Sequence[StoredObject],
    copied: Sequence[StoredObject],
    verb: str,
    as_json: bool,
) -> int:
    from odfbuild.report.storage import held_to_data, render_copied

    if as_json:
        state.console.data(held_to_data(copied))
    else:
        state.console.result(render_copied(found, copied, verb))
    return 1 if any(each.is_lost for each in found) else 0


def _survey(state: Context, wanted: Selection) -> tuple[Workspace, tuple[StoredObject, ...]]:
    from odfbuild.store.transfer import survey

    workspace = state.workspace()
    return workspace, survey(workspace, state.committed(workspace, wanted))

"""`odfbuild lock`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import DatasetArgument, Format, FormatOption, JsonOption

if TYPE_CHECKING:
    from odfbuild.store.workspace import Workspace

lock = typer.Typer(help="See and stop processes that work on datasets now.", no_args_is_help=True)


@lock.command("list")
def list_(
    context: typer.Context,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
) -> int:
    """List other processes that work on datasets of this project, with their last heartbeat."""
    from odfbuild.report.holders import holders_to_data, render_holders

    state: Context = context.obj
    workspace = state.workspace()
    found = workspace.holders(_names(state, workspace))
    if as_json or format is Format.json:
        state.console.data(holders_to_data(found))
    else:
        state.console.result(render_holders(found))
    return 0


@lock.command("break")
def break_(
    context: typer.Context,
    dataset: DatasetArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    now: Annotated[
        bool, typer.Option("--now", help="End the process in the middle of what it does.")
    ] = False,
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Take the lock from a machine that is gone; stop nothing."),
    ] = False,
    wait: Annotated[
        float,
        typer.Option("--wait", min=0, metavar="SECONDS", help="Wait so long until it let go."),
    ] = 60.0,
) -> int:
    """Stop the process that works on a dataset: it finishes what it has begun, and begins no more.

    Whatever happens, what is committed stays, and the next apply goes on from there.
    """
    from odfbuild.apply.unlock import holder_of, stop_holder
    from odfbuild.survey.names import one_of

    state: Context = context.obj
    console, workspace = state.console, state.workspace()
    name = one_of(_names(state, workspace), dataset)
    holder = holder_of(workspace, name)
    if holder is None:
        console.result(f"Nobody works on '{name}'.")
        return 0
    does = f" ({holder.command})" if holder.command else ""
    console.note(f"{holder}{does} works on '{name}'.")
    if not yes:
        if not console.interactive:
            raise typer.BadParameter("give it, nobody can be asked here", param_hint="--yes")
        if not console.confirm("Take the lock from it?" if forget else "Stop it?"):
            console.note("Nothing was done.")
            return 1
    if forget:
        workspace.forget_claim(name)
    else:
        stop_holder(workspace, name, holder, at_once=now, wait=wait)
    console.result(f"'{name}' is free.")
    return 0


def _names(state: Context, workspace: Workspace) -> list[str]:
    """Datasets that may be worked on; those that are just being created have no chain yet."""
    from odfbuild.project.load import load_project

    defined = {each.name for each in load_project(state.directory, state.given).definitions}
    return sorted(defined | {*workspace.aliases()})

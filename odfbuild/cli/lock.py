"""`odfbuild lock`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.defaults import Group
from odfbuild.cli.options import (
    ApproveOption,
    DatasetArgument,
    JsonOptions,
    LockTimeoutOption,
    approved,
)

lock = Group(help="List locks on datasets, and break them.")


@lock.command("list")
def list_(
    state: Context,
    as_json: JsonOptions,
) -> int:
    """List the processes that hold locks on datasets of this project."""
    from odfbuild.report.holders import holders_to_data, render_holders

    workspace = state.workspace()
    found = workspace.holders(state.names())
    state.console.show(as_json, lambda: holders_to_data(found), lambda: render_holders(found))
    return 0


@lock.command("break")
def break_(
    state: Context,
    dataset: DatasetArgument,
    *,
    auto_approve: ApproveOption = False,
    now: Annotated[bool, typer.Option("--now", help="Kill the process at once.")] = False,
    forget: Annotated[
        bool,
        typer.Option(
            "--forget", help="Remove the lock of a machine that is gone; stop no process."
        ),
    ] = False,
    lock_timeout: LockTimeoutOption = 60,
    as_json: JsonOptions,
) -> int:
    """Stop the process that holds the lock of a dataset.

    The process finishes the datasets that it has started, and starts no more. The next apply
    continues from there.
    """
    from odfbuild.apply.unlock import holder_of, stop_holder
    from odfbuild.survey.names import one_of

    console, workspace = state.console, state.workspace()
    name = one_of(state.names(), dataset)
    holder = holder_of(workspace, name)
    if holder is None:
        console.show(
            as_json, lambda: {"name": name, "holder": None}, lambda: f"'{name}' is not locked."
        )
        return 0
    does = f" ({holder.command})" if holder.command else ""
    console.note(f"{holder}{does} holds the lock of '{name}'.")
    question = "Remove its lock?" if forget else "Stop it?"
    if not approved(console, auto_approve, question, f"the lock of '{name}' was not broken"):
        return 1
    if forget:
        workspace.forget_claim(name)
    else:
        stop_holder(workspace, name, holder, at_once=now, wait=lock_timeout)
    if as_json:
        console.data({"name": name, "holder": str(holder)})
    else:
        console.result(f"The lock of '{name}' is released.")
    return 0

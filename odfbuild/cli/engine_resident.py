"""`odfbuild engine start`, `status` and `stop`: the engine that stays for the next commands."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli.context import STARTING, Context
from odfbuild.cli.options import JsonOptions


def start(context: typer.Context, *, as_json: JsonOptions) -> int:
    """Start an engine that stays for the next commands, unless one runs already.

    It serves commands of this user for this project, and ends when it had no work for
    `engine.idleMinutes` of odfbuild.yaml.
    """
    from odfbuild.engine.process.resident.find import is_warm
    from odfbuild.engine.process.resident.find import start as carry_out
    from odfbuild.report.engines import started_to_data

    state: Context = context.obj
    config = state.config()
    if not is_warm(config.root, config.engine, config.reach):
        state.console.note(STARTING)
    card, fresh = carry_out(config.root, config.engine, config.reach)
    if as_json:
        state.console.data(started_to_data(card, fresh))
    else:
        does = "serves" if fresh else "already serves"
        state.console.result(f"Process {card.pid} {does} {card.project}.")
    return 0


def status(context: typer.Context, *, as_json: JsonOptions) -> int:
    """List the resident engines of this user on this machine, of all projects."""
    from odfbuild.engine.process.resident.find import statuses
    from odfbuild.report.engines import render_statuses, statuses_to_data

    state: Context = context.obj
    found = tuple(statuses())
    if as_json:
        state.console.data(statuses_to_data(found))
    else:
        state.console.result(render_statuses(found))
    return 0


def stop(
    context: typer.Context,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="Stop the engines of all projects of this user.")
    ] = False,
    as_json: JsonOptions,
) -> int:
    """Stop the resident engines of this project, once they are done with their work.

    Those of its branches and environments, too, and of other releases of odfbuild.
    """
    from odfbuild.engine.process.resident.card import all_running
    from odfbuild.engine.process.resident.find import stop as carry_out
    from odfbuild.report.engines import render_stopped, stopped_to_data

    state: Context = context.obj
    root = None if every else str(state.config().root)
    found = [each for each in all_running() if root in (None, each.project)]
    for each in found:
        carry_out(each)
    if as_json:
        state.console.data(stopped_to_data(found))
    else:
        state.console.result(render_stopped(found))
    return 0

"""`odfbuild engine`: engines that stay, also for other programs, and releases of the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from odfbuild.cli.context import STARTING, Context
from odfbuild.cli.defaults import Group
from odfbuild.cli.exit_codes import EXIT_MISMATCH
from odfbuild.cli.options import JsonOptions, LockTimeoutOption, SelectionOptions, waiting
from odfbuild.store.lock_holders import LOCK_TIMEOUT


def deprecate(
    state: Context,
    selection: SelectionOptions,
    *,
    lock_timeout: LockTimeoutOption = LOCK_TIMEOUT,
    as_json: JsonOptions,
) -> int:
    """Record that the installed Spark gives the same results as older ones.

    Recomputes every step. If all records are the same, the chain records the installed release.
    """
    from odfbuild.apply.deprecate import deprecate as carry_out
    from odfbuild.engine.release import engine_version
    from odfbuild.report.engines import deprecated_to_data, render_deprecated
    from odfbuild.report.findings.verification import render_findings

    workspace = state.workspace()
    names = state.committed(workspace, selection)
    now = engine_version()
    done, verdict = carry_out(
        workspace,
        names,
        state.start_engine,
        now,
        waiting(state.console, lock_timeout),
        state.config().engines,
    )
    if as_json:
        state.console.data(deprecated_to_data(done, verdict.findings, now))
    else:
        if verdict.findings:
            text = render_findings(
                [each.name for each in done],
                verdict.findings,
                verdict.reproduction,
                color=state.console.color,
            )
            state.console.result(text + "\n")
        state.console.result(render_deprecated(done, now))
    return EXIT_MISMATCH if verdict.findings else 0


# --- The resident engine ---


def start(state: Context, *, as_json: JsonOptions) -> int:
    """Start an engine that stays for the next commands, unless one runs already.

    It serves commands of this user for this project, and ends when it had no work for
    `engine.idleMinutes` of odfbuild.yaml.
    """
    from odfbuild.engine.process.resident.find import is_warm
    from odfbuild.engine.process.resident.find import start as carry_out
    from odfbuild.report.engines import started_to_data

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


def status(state: Context, *, as_json: JsonOptions) -> int:
    """List the resident engines of this user on this machine, of all projects."""
    from odfbuild.engine.process.resident.find import statuses
    from odfbuild.report.engines import render_statuses, statuses_to_data

    found = tuple(statuses())
    state.console.show(as_json, lambda: statuses_to_data(found), lambda: render_statuses(found))
    return 0


def stop(
    state: Context,
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

    root = None if every else str(state.config().root)
    found = [each for each in all_running() if root in (None, each.project)]
    for each in found:
        carry_out(each)
    state.console.show(as_json, lambda: stopped_to_data(found), lambda: render_stopped(found))
    return 0


# --- Serve the engine ---


_MIB = 1 << 20


def serve(
    *,
    listen: Annotated[
        list[str] | None,
        typer.Option(
            "--listen",
            metavar="ADDRESS",
            help="`unix:/path/of/a/socket` or `host:port` (repeatable). Default: the socket in "
            "ODF_ENGINE_SOCKET, else ports 2884 and 5544 of 127.0.0.1.",
        ),
    ] = None,
    folder: Annotated[
        list[Path] | None,
        typer.Option(
            "--folder",
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            help="Spark may read files of requests here where they are (repeatable); others are "
            "copied first. /opt/engine is always one of them.",
        ),
    ] = None,
    checkpoint_limit: Annotated[
        int,
        typer.Option(
            "--checkpoint-limit",
            metavar="MIB",
            min=1,
            help="How many MiB of earlier records a checkpoint may keep.",
        ),
    ] = 256,
    prepare: Annotated[
        bool,
        typer.Option(
            "--prepare",
            help="Start Spark once, so that it starts faster from then on, and exit: for building "
            "images.",
        ),
    ] = False,
) -> None:
    """Offer Spark as an engine to any coordinator of Open Data Fabric, over gRPC.

    Needs no project. Everybody who can connect can have files read and written in the name of the
    user who runs it. SIGTERM or Ctrl-C ends it.
    """
    from odfbuild.engine.process.server.serve import Serving, serve
    from odfbuild.engine.process.server.serve import prepare as prepare_spark

    if prepare:
        prepare_spark()
        return
    serve(
        Serving(
            addresses=tuple(listen or ()),
            folders=tuple(folder or ()),
            checkpoint_limit=checkpoint_limit * _MIB,
        )
    )


engine = Group(help="Keep engines running, serve them to other programs, compare releases.")
for verb in (start, status, stop, serve, deprecate):
    engine.command()(verb)

"""`odfbuild engine deprecate`."""

from __future__ import annotations

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.exit_codes import EXIT_MISMATCH
from odfbuild.cli.options import JsonOptions, LockTimeoutOption, SelectionOptions, waiting
from odfbuild.store.lock_holders import LOCK_TIMEOUT


def deprecate(
    context: typer.Context,
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
    from odfbuild.report.findings.verification import render_findings
    from odfbuild.report.releases import deprecated_to_data, render_deprecated

    state: Context = context.obj
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

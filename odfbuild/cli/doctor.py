"""`odfbuild doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import JsonOptions


def doctor(
    state: Context,
    *,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Also start Spark, and connect to databases, Kafka, APIs and SFTP servers.",
        ),
    ] = False,
    as_json: JsonOptions,
) -> int:
    """Check Java, Spark, Git, files, keys and chains on this machine.

    Also works outside of a project. The exit code is 1 if a check fails.
    """
    from odfbuild.api.doctor.survey import examine
    from odfbuild.inspect.health import Status
    from odfbuild.report.findings.health import health_to_data, render_health

    checks = examine(state.directory, state.given, deep=deep)
    if as_json:
        state.console.data(health_to_data(checks))
    else:
        state.console.result(render_health(checks, color=state.console.color))
    return 1 if any(each.status is Status.FAIL for each in checks) else 0

"""`odfbuild freshness`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.exit_codes import EXIT_MISMATCH
from odfbuild.cli.options import JsonOptions, SelectionOptions, parse_time


def freshness(
    context: typer.Context,
    selection: SelectionOptions,
    *,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="Compute ages as of this time (default: now)."),
    ] = None,
    as_json: JsonOptions,
) -> int:
    """Show how old datasets are by their watermarks."""
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.report.freshness import ages_of, ages_to_data, render_ages
    from odfbuild.survey.source_drift import count_late_files

    state: Context = context.obj
    now = parse_time(at, "--at") if at else Timestamp.now()
    chosen = state.chosen(selection)
    watermarks = {
        name: projection.watermark
        for name, projection in state.workspace().readable().items()
        if chosen is None or name in chosen
    }
    late = count_late_files(state.directory, state.given, watermarks)
    ages = ages_of(watermarks, state.config().freshness, now, late)
    if as_json:
        state.console.data(ages_to_data(ages))
    else:
        state.console.result(render_ages(ages))
    return EXIT_MISMATCH if any(each.status == "stale" for each in ages) else 0

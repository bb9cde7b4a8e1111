"""`odfbuild freshness`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.exit_codes import EXIT_MISMATCH
from odfbuild.cli.options import (
    ExcludeOption,
    Format,
    FormatOption,
    JsonOption,
    SelectionArgument,
    SelectOption,
    SelectorOption,
    parse_time,
    selection_of,
)


def freshness(
    context: typer.Context,
    datasets: SelectionArgument = None,
    select: SelectOption = None,
    exclude: ExcludeOption = None,
    selector: SelectorOption = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="Compare with this time (default: now)."),
    ] = None,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
) -> int:
    """Tell how old datasets are by their watermarks; reads no data and asks nobody."""
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.report.freshness import ages_of, ages_to_data, render_ages

    state: Context = context.obj
    now = parse_time(at, "--at") if at else Timestamp.now()
    chosen = state.chosen(selection_of(select, exclude, selector, datasets))
    watermarks = {
        name: projection.watermark
        for name, projection in state.workspace().readable().items()
        if chosen is None or name in chosen
    }
    ages = ages_of(watermarks, state.config().freshness, now)
    if as_json or format is Format.json:
        state.console.data(ages_to_data(ages))
    else:
        state.console.result(render_ages(ages))
    return EXIT_MISMATCH if any(each.status == "stale" for each in ages) else 0

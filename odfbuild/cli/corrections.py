"""`odfbuild corrections`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import DatasetArgument, JsonOptions
from odfbuild.survey.names import moment_in


class Period(StrEnum):
    """What records are counted by, of their event time."""

    day = "day"
    month = "month"
    year = "year"


def corrections(
    state: Context,
    dataset: DatasetArgument,
    since: Annotated[
        str,
        typer.Option(
            metavar="TIME|BLOCK",
            help="Time of the report to compare with, or a block.",
        ),
    ],
    *,
    by: Annotated[Period, typer.Option("--by", help="Count by this period of event time.")] = (
        Period.month
    ),
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, help="Maximum number of records to show.")
    ] = 10,
    as_json: JsonOptions,
) -> int:
    """List records that were corrected, retracted or late since a time.

    Late records have an event time before the watermark at that time. Reads only what was committed
    since.
    """
    from odfbuild.inspect.corrections import corrections as find
    from odfbuild.report.records.corrections import corrections_to_data, render_corrections

    workspace, name = state.dataset(dataset)
    found = find(workspace, name, moment_in(workspace, since, name))
    if as_json:
        state.console.data(corrections_to_data(found, by.value))
    else:
        state.console.result(render_corrections(found, by.value, limit))
    return 0

"""`odfbuild status`."""

from __future__ import annotations

from typing import Annotated

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


def status(
    context: typer.Context,
    datasets: SelectionArgument = None,
    select: SelectOption = None,
    exclude: ExcludeOption = None,
    selector: SelectorOption = None,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
    full: Annotated[bool, typer.Option("--full", help="Name all datasets.")] = False,
) -> int:
    """Show at a glance what is stale, changed or locked, and what failed last time."""
    from odfbuild.inspect.status import project_status
    from odfbuild.report.status import render_status, status_to_data
    from odfbuild.survey.survey import choose

    state: Context = context.obj
    names, found = choose(
        state.directory, selection_of(select, exclude, selector, datasets), state.given
    )
    seen = project_status(found, names)
    if as_json or format is Format.json:
        state.console.data(status_to_data(seen))
    else:
        state.console.result(render_status(seen, color=state.console.color, full=full))
    return 0

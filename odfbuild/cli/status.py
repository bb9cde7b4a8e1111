"""`odfbuild status`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import JsonOptions, SelectionOptions


def status(
    state: Context,
    selection: SelectionOptions,
    as_json: JsonOptions,
    full: Annotated[bool, typer.Option("--full", help="List all datasets.")] = False,
) -> int:
    """Show which datasets are stale, changed, locked or failed."""
    from odfbuild.inspect.status import project_status
    from odfbuild.report.status import render_status, status_to_data
    from odfbuild.survey.survey import choose

    names, found = choose(state.directory, selection, state.given)
    seen = project_status(found, names)
    if as_json:
        state.console.data(status_to_data(seen))
    else:
        state.console.result(render_status(seen, color=state.console.color, full=full))
    return 0

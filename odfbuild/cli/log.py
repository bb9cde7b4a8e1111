"""`odfbuild log`."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from odfbuild.apply.names import existing
from odfbuild.cli.context import (
    Context,
    DatasetArgument,
    Format,
    FormatOption,
    JsonOption,
)


def log(
    context: typer.Context,
    dataset: DatasetArgument,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Show only the newest blocks.")
    ] = None,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
) -> int:
    """Show the metadata chain of a dataset, newest block first."""
    from odfbuild.report.listing import log_to_data, render_log

    state: Context = context.obj
    workspace = state.workspace()
    store = workspace.dataset(existing(workspace, dataset))
    head = store.head()
    blocks = tuple(islice(store.walk(head), limit)) if head is not None else ()
    if as_json or format is Format.json:
        state.console.data(log_to_data(blocks))
    else:
        state.console.result(render_log(blocks, color=state.console.color))
    return 0

"""`odfbuild tail`."""

from __future__ import annotations

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


def tail(
    context: typer.Context,
    dataset: DatasetArgument,
    count: Annotated[int, typer.Option("--num", "-n", min=1, help="Number of records.")] = 10,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
) -> int:
    """Show the newest records of a dataset, oldest of them first."""
    from odfbuild.odf.records import records_to_data
    from odfbuild.report.listing import render_records
    from odfbuild.store.committed import Committed

    state: Context = context.obj
    workspace = state.workspace()
    name = existing(workspace, dataset)
    store = workspace.dataset(name)
    table = Committed(store, store.head()).newest(count)
    if as_json or format is Format.json:
        state.console.data(records_to_data(table) if table is not None else [])
    elif table is None:
        state.console.note(f"'{name}' has no records yet.")
    else:
        state.console.result(render_records(table))
    return 0

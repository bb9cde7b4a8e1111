"""`odfbuild tail`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.apply.names import existing
from odfbuild.cli.context import (
    Context,
    DatasetArgument,
    Format,
    FormatOption,
    JsonOption,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from odfbuild.store.dataset import DatasetStore


def tail(
    context: typer.Context,
    dataset: DatasetArgument,
    count: Annotated[int, typer.Option("--num", "-n", min=1, help="Number of records.")] = 10,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
) -> int:
    """Show the newest records of a dataset, oldest of them first."""
    from odfbuild.report.listing import records_to_data, render_records

    state: Context = context.obj
    workspace = state.workspace()
    name = existing(workspace, dataset)
    table = _newest(workspace.dataset(name), count)
    if as_json or format is Format.json:
        state.console.data(records_to_data(table) if table is not None else [])
    elif table is None:
        state.console.note(f"'{name}' has no records yet.")
    else:
        state.console.result(render_records(table))
    return 0


def _newest(store: DatasetStore, count: int) -> pa.Table | None:
    """The last `count` records, reading no more slices than needed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from odfbuild.store.committed import Committed

    slices = Committed(store, store.head()).slices()
    tables: list[pa.Table] = []
    missing = count
    for piece in reversed(slices):
        table = pq.read_table(piece.file)
        tables.insert(0, table.slice(max(0, table.num_rows - missing)))
        missing -= tables[0].num_rows
        if missing <= 0:
            break
    return pa.concat_tables(tables, promote_options="permissive") if tables else None

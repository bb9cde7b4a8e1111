"""`odfbuild tail`."""

from __future__ import annotations

from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.gone import tell_gone
from odfbuild.cli.options import AsOfOption, DatasetArgument, JsonOptions
from odfbuild.survey.names import moment_in


def tail(
    state: Context,
    dataset: DatasetArgument,
    *,
    count: Annotated[int, typer.Option("--num", "-n", min=1, help="Number of records.")] = 10,
    as_of: AsOfOption = None,
    as_json: JsonOptions,
) -> int:
    """Show the newest records of a dataset, oldest of them first."""
    from odfbuild.extras import require_pyarrow

    require_pyarrow("records")
    from odfbuild.odf.records import records_to_data
    from odfbuild.odf.vocabulary import vocabulary_of
    from odfbuild.records.records import newest_records
    from odfbuild.report.records.table import render_records
    from odfbuild.store.as_of import states_at

    workspace, name = state.dataset(dataset)
    if as_of is None:
        then = workspace.projection(name)
    else:
        then = states_at(workspace, moment_in(workspace, as_of, name), [name]).get(name)
    state.tell_of_hidden(workspace, [name])
    table = newest_records(workspace, name, then, count)
    operation = vocabulary_of(then.vocab if then else None).operation_type
    if as_json:
        state.console.data(records_to_data(table, operation) if table is not None else [])
    elif table is None:
        state.console.note(f"'{name}' has no records yet.")
    else:
        state.console.result(render_records(table, operation))
    tell_gone(state.console, workspace, [name])
    return 0

"""`odfbuild log`."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.options import AsOfOption, DatasetArgument, JsonOptions, NewestOption
from odfbuild.survey.names import existing

if TYPE_CHECKING:
    from odfbuild.odf.multihash import Multihash
    from odfbuild.store.workspace import Workspace


def log(
    context: typer.Context,
    dataset: DatasetArgument,
    *,
    limit: NewestOption = None,
    vintage: Annotated[
        bool,
        typer.Option(
            "--vintage",
            help="Show the upstream blocks that its records were made from, and the queries.",
        ),
    ] = False,
    as_of: AsOfOption = None,
    as_json: JsonOptions,
) -> int:
    """Show the metadata chain of a dataset, newest block first."""
    from odfbuild.report.chain import log_to_data, render_log

    state: Context = context.obj
    workspace = state.workspace()
    name = existing(workspace, dataset)
    if vintage and as_of is not None:
        raise typer.BadParameter("--vintage tells of the records of now", param_hint="--as-of")
    if vintage:
        return _vintage(state, workspace, name, as_json)
    store = workspace.dataset(name)
    head = store.head() if as_of is None else _head_at(workspace, name, as_of)
    blocks = tuple(islice(store.walk(head), limit)) if head is not None else ()
    if as_json:
        state.console.data(log_to_data(blocks))
    else:
        state.console.result(render_log(blocks, color=state.console.color))
    return 0


def _head_at(workspace: Workspace, name: str, as_of: str) -> Multihash | None:
    from odfbuild.store.as_of import states_at
    from odfbuild.survey.names import moment_in

    then = states_at(workspace, moment_in(workspace, as_of, name), [name]).get(name)
    return then.head if then is not None else None


def _vintage(state: Context, workspace: Workspace, name: str, as_json: bool) -> int:
    from odfbuild.inspect.vintage import eras, vintage
    from odfbuild.report.records.vintage import render_vintage, vintage_to_data

    found, queries = vintage(workspace, name), eras(workspace, name)
    if as_json:
        state.console.data(vintage_to_data(found, queries))
    else:
        state.console.result(render_vintage(found, queries))
    return 0

"""`odfbuild log`."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.apply.names import existing
from odfbuild.cli.context import Context
from odfbuild.cli.options import DatasetArgument, Format, FormatOption, JsonOption

if TYPE_CHECKING:
    from odfbuild.store.workspace import Workspace


def log(
    context: typer.Context,
    dataset: DatasetArgument,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Show only the newest blocks.")
    ] = None,
    vintage: Annotated[
        bool,
        typer.Option(
            "--vintage",
            help="Show what its records were made from, down to the roots, and by which query.",
        ),
    ] = False,
    format: FormatOption = Format.text,
    as_json: JsonOption = False,
) -> int:
    """Show the metadata chain of a dataset, newest block first."""
    from odfbuild.report.chain import log_to_data, render_log

    state: Context = context.obj
    workspace = state.workspace()
    name = existing(workspace, dataset)
    if vintage:
        return _vintage(state, workspace, name, as_json or format is Format.json)
    store = workspace.dataset(name)
    head = store.head()
    blocks = tuple(islice(store.walk(head), limit)) if head is not None else ()
    if as_json or format is Format.json:
        state.console.data(log_to_data(blocks))
    else:
        state.console.result(render_log(blocks, color=state.console.color))
    return 0


def _vintage(state: Context, workspace: Workspace, name: str, as_json: bool) -> int:
    from odfbuild.apply.vintage import eras, vintage
    from odfbuild.report.vintage import render_vintage, vintage_to_data

    found, queries = vintage(workspace, name), eras(workspace, name)
    if as_json:
        state.console.data(vintage_to_data(found, queries))
    else:
        state.console.result(render_vintage(found, queries))
    return 0

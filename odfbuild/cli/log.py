"""`odfbuild log`."""

from __future__ import annotations

from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.gone import tell_gone
from odfbuild.cli.options import AsOfOption, DatasetArgument, JsonOptions, NewestOption

if TYPE_CHECKING:
    from odfbuild.odf.identity import DatasetId
    from odfbuild.odf.multihash import Multihash
    from odfbuild.report.chain import Names
    from odfbuild.store.workspace import Workspace


def log(
    state: Context,
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
    oneline: Annotated[
        bool, typer.Option("--oneline", help="Show each block on one line.")
    ] = False,
    as_of: AsOfOption = None,
    as_json: JsonOptions,
) -> int:
    """Show the metadata chain of a dataset, newest block first."""
    from odfbuild.report.chain import log_to_data, render_log, render_oneline

    workspace, name = state.dataset(dataset)
    if vintage and as_of is not None:
        raise typer.BadParameter("--vintage tells of the records of now", param_hint="--as-of")
    if oneline and (vintage or as_json):
        raise typer.BadParameter("it is a form of the blocks as text", param_hint="--oneline")
    if vintage:
        return _vintage(state, workspace, name, as_json)
    store = workspace.dataset(name)
    head = store.head() if as_of is None else _head_at(workspace, name, as_of)
    blocks = tuple(islice(store.walk(head), limit)) if head is not None else ()
    if as_json:
        state.console.data(log_to_data(blocks))
    else:
        render = render_oneline if oneline else render_log
        state.console.result(render(blocks, _names(workspace), color=state.console.color))
    tell_gone(state.console, workspace, [name])
    return 0


def _names(workspace: Workspace) -> Names:
    from odfbuild.errors import OdfbuildError

    def name_of(identity: DatasetId) -> str | None:
        try:
            return workspace.resolve(identity)
        except OdfbuildError:
            return None  # of a chain that is damaged; `verify` says so

    return cache(name_of)


def _head_at(workspace: Workspace, name: str, as_of: str) -> Multihash | None:
    from odfbuild.store.as_of import states_at
    from odfbuild.survey.names import moment_in

    then = states_at(workspace, moment_in(workspace, as_of, name), [name]).get(name)
    return then.head if then is not None else None


def _vintage(state: Context, workspace: Workspace, name: str, as_json: bool) -> int:
    from odfbuild.inspect.vintage import eras, vintage
    from odfbuild.report.records.vintage import render_vintage, vintage_to_data

    found, queries = vintage(workspace, name), eras(workspace, name)
    state.console.show(
        as_json, lambda: vintage_to_data(found, queries), lambda: render_vintage(found, queries)
    )
    return 0

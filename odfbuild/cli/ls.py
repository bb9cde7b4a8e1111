"""`odfbuild ls`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.exit_codes import exit_code_of
from odfbuild.cli.options import AsOfOption, JsonOptions, SelectionOptions
from odfbuild.errors import IntegrityError

if TYPE_CHECKING:
    from odfbuild.errors import OdfbuildError
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.odf.model import DatasetKind
    from odfbuild.plan.graph.selection import Selection


def ls(
    state: Context,
    selection: SelectionOptions,
    *,
    as_of: AsOfOption = None,
    deleted: Annotated[
        bool, typer.Option("--deleted", help="List deleted datasets that can be restored.")
    ] = False,
    remote: Annotated[
        str | None,
        typer.Option(
            "--remote", metavar="REPOSITORY", help="List the datasets of a repository instead."
        ),
    ] = None,
    as_json: JsonOptions,
) -> int:
    """List datasets with records, size, watermark, head and status.

    RECORDS counts the history, LIVE the current state (-: data files are not on this machine).
    --as-of shows the datasets of an earlier time. The exit code is 3 if a chain is damaged.
    """
    if remote is not None:
        alone = not (selection or as_of or deleted)
        return _list_remote(state, remote, alone=alone, as_json=as_json)
    if deleted:
        return _list_deleted(state, selection, as_of, as_json=as_json)
    from odfbuild.records.live import live_records
    from odfbuild.report.datasets import datasets_to_data, render_datasets, statuses
    from odfbuild.survey.survey import choose

    wanted = selection
    projections: Mapping[str, Projection]
    status: dict[str, str] | None = None
    kinds: dict[str, DatasetKind] = {}
    damaged: list[OdfbuildError] = []
    if as_of is not None:
        projections = state.states_at(wanted, as_of)
    else:
        names, found = choose(state.directory, wanted, state.given)
        projections = {name: p for name, p in found.projections.items() if name in names}
        status = {name: s for name, s in statuses(found.plan).items() if name in names}
        kinds = {dataset.name: dataset.kind for dataset in found.plan.datasets}
        damaged = [
            error
            for name, error in found.faults.items()
            if name in names and isinstance(error, IntegrityError)
        ]
    newest = as_of is None and state.given.branch is None
    live = live_records(state.workspace(), projections, newest=newest)
    if as_json:
        state.console.data(datasets_to_data(projections, status, state.owners(), kinds, live))
    else:
        state.console.result(render_datasets(projections, status, kinds, live))
    state.console.error(*damaged)
    return exit_code_of(damaged)


def _list_deleted(state: Context, selection: Selection, as_of: str | None, *, as_json: bool) -> int:
    """List what is in the bin, the newest last."""
    from odfbuild.report.datasets import deleted_to_data, render_deleted

    if selection or as_of is not None:
        raise typer.BadParameter("it lists all, and takes no selection", param_hint="--deleted")
    found = state.workspace().deleted()
    state.console.show(as_json, lambda: deleted_to_data(found), lambda: render_deleted(found))
    return 0


def _list_remote(state: Context, repository: str, *, alone: bool, as_json: bool) -> int:
    """List what a repository has."""
    from odfbuild.report.datasets import remote_to_data, render_remote

    if not alone:
        raise typer.BadParameter("it lists all, and takes no selection", param_hint="--remote")
    with state.remotes() as remotes:
        listed = remotes.datasets(repository)
    state.console.show(
        as_json, lambda: remote_to_data(listed), lambda: render_remote(repository, listed)
    )
    return 0

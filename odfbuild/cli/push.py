"""`odfbuild push`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.exit_codes import EXIT_USAGE
from odfbuild.cli.options import JsonOptions, SelectionOptions
from odfbuild.cli.transfers import AllowResetOption, DryRunOption, allowed_of, report, watching
from odfbuild.errors import PlanError

if TYPE_CHECKING:
    from odfbuild.plan.graph.selection import Selection
    from odfbuild.store.workspace import Workspace


def push(
    state: Context,
    selection: SelectionOptions,
    *,
    repository: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="REPOSITORY",
            help="Repository: a name or an address (default: `publish` in odfbuild.yaml).",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Name of the dataset in the repository."),
    ] = None,
    allow: AllowResetOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOptions,
) -> int:
    """Publish datasets in a repository.

    Only missing blocks and objects are sent. Blocks that others published are never replaced unless
    `--allow reset:NAME` says so. Without a selection: all datasets that were not pulled. With
    --branch, publishes the branch beside the heads: readers of the heads do not see it.
    """
    from odfbuild.apply.transfers import push_datasets
    from odfbuild.exchange.repositories.requests import PushRequest

    workspace = state.workspace()
    _check_spelling(workspace, selection)
    if state.given.branch is not None and name is not None:
        raise typer.BadParameter("a branch is pushed beside the heads", param_hint="--as")
    request = PushRequest(
        names=state.committed(workspace, selection) if selection else None,
        repository=repository,
        name=name,
        allow=allowed_of(allow, "reset")["reset"],
    )
    with watching(state.console) as watcher:
        transfers = push_datasets(
            state.config(), workspace, request, dry_run=dry_run, watcher=watcher
        )
    return report(state, transfers, "Push", dry_run=dry_run, as_json=as_json)


def _check_spelling(workspace: Workspace, selection: Selection) -> None:
    """`PlanError` E1036 for `push DATASET FILE`, which added records in earlier releases."""
    if len(selection.select) != 2:
        return
    dataset, file = selection.select
    if workspace.find(file) is None and (file == "-" or Path(file).is_file()):
        raise PlanError(
            "records are added to a push source by `ingest`; `push` publishes datasets",
            code="E1036",
            help=f"odfbuild ingest {dataset} {file}",
            exit_code=EXIT_USAGE,
        )

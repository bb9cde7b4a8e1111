"""`odfbuild pull`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli import complete
from odfbuild.cli.context import Context
from odfbuild.cli.option_groups import Together
from odfbuild.cli.options import (
    JsonOptions,
    LockTimeoutOption,
    selecting,
    selection_of,
    waiting,
)
from odfbuild.cli.transfers import (
    AllowOfPullOption,
    DryRunOption,
    allowed_of,
    note_moved,
    report,
    watching,
)
from odfbuild.store.lock_holders import LOCK_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odfbuild.plan.graph.selection import Selection
    from odfbuild.project.model import Project

_ReferencesAndSelection = Annotated[
    "tuple[Sequence[str], Selection]",
    Together(
        selecting(
            Annotated[
                list[str] | None,
                typer.Argument(
                    metavar="SELECTION|REFERENCE",
                    autocompletion=complete.selections,
                    help="Names, selections, or references such as REPOSITORY/NAME, did:odf:…, "
                    "an address (default: all external datasets).",
                ),
            ]
        ),
        lambda given, *options: (tuple(given or ()), selection_of(None, *options)),
    ),
]


def pull(
    state: Context,
    wanted: _ReferencesAndSelection,
    *,
    repository: Annotated[
        str | None,
        typer.Option("--from", metavar="REPOSITORY", help="Repository: a name or an address."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Name of the dataset here.")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(metavar="BLOCK", help="Last block to pull (hash, or its beginning or end)."),
    ] = None,
    no_data: Annotated[
        bool,
        typer.Option("--no-data", help="Pull only the chain; data comes when a step needs it."),
    ] = False,
    allow: AllowOfPullOption = None,
    dry_run: DryRunOption = False,
    lock_timeout: LockTimeoutOption = LOCK_TIMEOUT,
    as_json: JsonOptions,
) -> int:
    """Bring datasets of others forward.

    All new blocks and objects are checked before the head moves. A published history that was
    rewritten is refused unless `--allow reset:NAME` accepts it, and unsigned news of a dataset that
    was signed unless `--allow unsigned:NAME` does. With --branch, brings a branch of
    this project from the repository that it was pushed to; no head moves.
    """
    from odfbuild.apply.transfers import pull_datasets
    from odfbuild.exchange.repositories.requests import PullRequest
    from odfbuild.project.load import read_project

    project = read_project(state.directory, state.given)
    if state.given.branch is not None:
        if name is not None or to is not None:
            raise typer.BadParameter("a branch is pulled as it is", param_hint="--as, --to")
        kinds, references = ["reset"], _names_in_branch(state, *wanted)
    else:
        kinds = ["reset", "unsigned"]
        references = _references(state, project, *wanted, in_repository=repository is not None)
    consent = allowed_of(allow, *kinds)
    request = PullRequest(
        references=references,
        repository=repository,
        name=name,
        to=to,
        data=not no_data,
        allow=consent["reset"],
        unsigned=consent.get("unsigned", ()),
    )
    with watching(state.console) as watcher:
        transfers = pull_datasets(
            project.config,
            project.definitions,
            state.workspace(),
            request,
            dry_run=dry_run,
            waiting=waiting(state.console, lock_timeout),
            watcher=watcher,
        )
    if not dry_run and state.given.branch is None:
        note_moved(state, transfers)
    if not transfers and not as_json:
        state.console.note(
            "No external datasets are selected. To pull a new one: odfbuild pull REPOSITORY/NAME"
        )
    return report(state, transfers, "Pull", dry_run=dry_run, as_json=as_json)


def _names_in_branch(
    state: Context, given: Sequence[str], selection: Selection
) -> Sequence[str] | None:
    """Names as they are given, since they need not be here yet, and what is selected."""
    from odfbuild.odf.identity import is_alias
    from odfbuild.plan.graph.selection import Selection

    names = [text for text in given if is_alias(text)]
    more = [text for text in given if text not in names]
    selected = Selection(select=(*more, *selection.select), exclude=selection.exclude)
    if not selected:
        return names or None
    return [*names, *(state.chosen(selected) or ())]


def _references(
    state: Context,
    project: Project,
    given: Sequence[str],
    selection: Selection,
    *,
    in_repository: bool,
) -> Sequence[str] | None:
    """Names and references to pull, and of what is selected the external datasets."""
    from odfbuild.exchange.repositories.external import external_datasets
    from odfbuild.exchange.repositories.requests import is_reference
    from odfbuild.odf.identity import is_alias
    from odfbuild.plan.graph.selection import Selection

    if not given and not selection:
        return None
    found = [text for text in given if is_alias(text) or is_reference(text, project.config)]
    selected = Selection(
        select=(*(text for text in given if text not in found), *selection.select),
        exclude=selection.exclude,
    )
    if not selected or (found and not selected.select):
        return found
    if in_repository:
        raise typer.BadParameter("--from is for names and references, not for selections")
    external = external_datasets(project.config, project.definitions, state.workspace())
    return [*found, *(name for name in state.chosen(selected) or () if name.lower() in external)]

"""`odfbuild branch`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

import typer

from odfbuild.cli import complete
from odfbuild.cli.context import Context
from odfbuild.cli.defaults import Group
from odfbuild.cli.options import (
    ApproveOption,
    BranchArgument,
    JsonOptions,
    LockTimeoutOption,
    approved,
    waiting,
)
from odfbuild.cli.plan_form import ReportForm, ReportFormOptions
from odfbuild.store.lock_holders import LOCK_TIMEOUT

branch = Group(help="List, show and delete branches.")


@branch.command("list")
def list_(state: Context, *, form: ReportFormOptions) -> int:
    """List branches with their age, what they have that heads do not, and their size on disk."""
    from odfbuild.inspect.branches import branches
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.report.branches import branch_to_data, render_branches

    found = branches(state.workspace())
    if form is ReportForm.json:
        state.console.data([branch_to_data(each) for each in found])
    else:
        markdown = form is ReportForm.md
        state.console.result(render_branches(found, Timestamp.now(), markdown=markdown))
    return 0


@branch.command("show")
def show(
    state: Context,
    name: BranchArgument,
    *,
    form: ReportFormOptions,
) -> int:
    """Show the datasets of a branch, and how each relates to its head."""
    from odfbuild.inspect.branches import branches, existing
    from odfbuild.odf.timestamp import Timestamp
    from odfbuild.report.branches import branch_to_data, render_branch

    workspace = state.workspace()
    [found] = branches(workspace, [existing(workspace, name)])
    if form is ReportForm.json:
        state.console.data(branch_to_data(found))
    else:
        markdown = form is ReportForm.md
        state.console.result(render_branch(found, Timestamp.now(), markdown=markdown))
    return 0


@branch.command("delete")
def delete(
    state: Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="BRANCH",
            autocompletion=complete.branches,
            help="Names, or patterns such as 'pr-*' (with --closed or --older-than: all).",
        ),
    ] = None,
    *,
    closed: Annotated[
        bool,
        typer.Option(
            "--closed",
            help="Only branches that are promoted, or whose Git branch is merged or gone.",
        ),
    ] = False,
    fetch: Annotated[
        bool,
        typer.Option(
            "--fetch", help="With --closed: ask the Git remotes which of their branches exist."
        ),
    ] = False,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="AGE",
            help="Only branches without a change for this time, such as 36h or 14d.",
        ),
    ] = None,
    auto_approve: ApproveOption = False,
    lock_timeout: LockTimeoutOption = LOCK_TIMEOUT,
    as_json: JsonOptions,
) -> int:
    """Delete branches, and the blocks and data that nothing else refers to.

    Heads and other branches stay as they are. It cannot be undone.
    """
    from odfbuild.apply.branches import delete_branches, plan_deletion
    from odfbuild.inspect.closed_branches import selected
    from odfbuild.report.branches import deletion_to_data, render_deletion
    from odfbuild.wording import count

    if not names and not closed and older_than is None:
        raise typer.BadParameter(
            "name branches, or give --closed or --older-than AGE", param_hint="BRANCH"
        )
    if fetch and not closed:
        raise typer.BadParameter("it needs --closed", param_hint="--fetch")
    console, config, workspace = state.console, state.config(), state.workspace()
    found = selected(
        config,
        workspace,
        names or (),
        only_closed=closed,
        older_than=None if older_than is None else _age(older_than),
        fetch=fetch,
    )
    if not found and not as_json:
        console.result(f"{_none(names, closed, older_than)}: nothing to delete.")
        return 0
    planned = plan_deletion(config, workspace, [each.name for each in found])
    if found and not as_json:
        console.result(render_deletion(planned, found))
    were = "was" if len(found) == 1 else "were"
    refusal = f"{count(len(found), 'branch', 'branches')} {were} not deleted"
    if found and not approved(console, auto_approve, "Delete for good?", refusal):
        return 1
    delete_branches(workspace, planned, waiting(console, lock_timeout))
    if as_json:
        console.data(deletion_to_data(planned))
    else:
        console.result(f"Deleted {count(len(found), 'branch', 'branches')}.")
    return 0


def _none(names: Sequence[str] | None, closed: bool, older_than: str | None) -> str:
    """That no branch is what was asked for."""
    which = "None of these branches" if names else "No branch"
    asked = ["is closed"] if closed else []
    if older_than is not None:
        asked.append(f"has been without a change for {older_than}")
    return f"{which} {' and '.join(asked)}"


def _age(text: str) -> timedelta:
    from odfbuild.project.settings.freshness import parse_age

    try:
        return parse_age(text)
    except ValueError:
        raise typer.BadParameter(
            f"'{text}' is not a number and a unit, such as 36h, 14d or 2w",
            param_hint="--older-than",
        ) from None

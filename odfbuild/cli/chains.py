"""`odfbuild chains`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from odfbuild.cli.context import Context
from odfbuild.cli.defaults import Group
from odfbuild.cli.options import JsonOptions, LockTimeoutOption
from odfbuild.store.lock_holders import LOCK_TIMEOUT

chains = Group(help="Move chains between Git and the storage.")


class Place(StrEnum):
    """Where the blocks of chains are."""

    git = "git"
    storage = "storage"


@chains.command("move")
def move(
    state: Context,
    *,
    to: Annotated[Place, typer.Option("--to", help="Where the blocks are to be: git or storage.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Show what would be copied; change nothing.")
    ] = False,
    lock_timeout: LockTimeoutOption = LOCK_TIMEOUT,
    as_json: JsonOptions,
) -> int:
    """Move the blocks of all chains to the storage, or back to Git.

    Heads, identities and the bytes of blocks stay as they are, so `plan` says the same before and
    after. Run it again if it was interrupted.
    """
    from odfbuild.api.project import Project
    from odfbuild.report.storage import moved_to_data, render_moved

    config = state.config()
    project = Project.given(config.root, config.given)
    moved = project.move_chains(to.value, dry_run=dry_run, lock_timeout=lock_timeout)
    state.console.show(
        as_json, lambda: moved_to_data(moved), lambda: render_moved(moved, dry_run=dry_run)
    )
    return 0

"""Pull and push datasets as a project does it: by its settings, and on the record.

What replaces the history of a dataset here is recorded like a reset, so that it does not look like
drift, and is refused where a policy protects that history.
"""

from __future__ import annotations

from collections.abc import Iterable

from odfbuild.apply.reset import Reset
from odfbuild.apply.run_log import record_resets
from odfbuild.exchange.repositories.branch_requests import (
    BranchRequest,
    branch_pulls,
    branch_pushes,
)
from odfbuild.exchange.repositories.branches import pull_branches, push_branches
from odfbuild.exchange.repositories.open import Remotes
from odfbuild.exchange.repositories.outcome import Transfer, TransferStatus, Watcher
from odfbuild.exchange.repositories.pull import pull
from odfbuild.exchange.repositories.push import push
from odfbuild.exchange.repositories.requests import (
    PullRequest,
    PushRequest,
    pulls_of,
    pushes_of,
)
from odfbuild.project.model import Config, Definition
from odfbuild.store.claims import NOT_WAITING, Waiting
from odfbuild.store.workspace import Workspace
from odfbuild.survey.protection import check_unprotected


def pull_datasets(
    config: Config,
    definitions: Iterable[Definition],
    workspace: Workspace,
    request: PullRequest,
    *,
    dry_run: bool = False,
    waiting: Waiting = NOT_WAITING,
    watcher: Watcher | None = None,
) -> tuple[Transfer, ...]:
    """Carry out a request to pull; raises only what is wrong with the request itself.

    In a branch that is pulled, and no head moves.
    """
    with Remotes(config.root, config.repositories) as remotes:
        if config.branch is not None:
            of_branch = BranchRequest(
                branch=config.branch,
                names=request.references,
                repository=request.repository,
                data=request.data,
                allow=request.allow,
            )
            held = branch_pulls(config, definitions, workspace, remotes, of_branch)
            return pull_branches(workspace, held, dry_run=dry_run, waiting=waiting, watcher=watcher)
        wanted = pulls_of(config, definitions, workspace, remotes, request)
        for each in wanted:
            if each.replace:
                check_unprotected(config, workspace, each.name)
        found = pull(workspace, wanted, dry_run=dry_run, waiting=waiting, watcher=watcher)
    if not dry_run:
        replaced = [each for each in found if each.status is TransferStatus.REPLACED]
        record_resets(config.cache, map(_as_reset, replaced), workspace) if replaced else None
    return found


def push_datasets(
    config: Config,
    workspace: Workspace,
    request: PushRequest,
    *,
    dry_run: bool = False,
    watcher: Watcher | None = None,
) -> tuple[Transfer, ...]:
    """Carry out a request to push; raises only what is wrong with the request itself.

    In a branch that is pushed, beside the heads.
    """
    with Remotes(config.root, config.repositories) as remotes:
        if config.branch is not None:
            of_branch = BranchRequest(
                branch=config.branch,
                names=request.names,
                repository=request.repository,
                allow=request.allow,
            )
            held = branch_pushes(config, workspace, remotes, of_branch)
            return push_branches(workspace, held, dry_run=dry_run, watcher=watcher)
        wanted = pushes_of(config, workspace, remotes, request)
        return push(workspace, wanted, dry_run=dry_run, watcher=watcher)


def _as_reset(transfer: Transfer) -> Reset:
    if transfer.before is None or transfer.after is None:
        raise AssertionError("a history that was replaced had a head before and has one now")
    return Reset(
        name=transfer.name,
        head=transfer.before,
        to=transfer.after,
        records=transfer.lost_records,
        blocks=transfer.lost_blocks,
    )

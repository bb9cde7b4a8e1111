"""Which datasets of a branch are pushed where, or pulled from where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import cast

from odfbuild.errors import PlanError
from odfbuild.exchange.repositories.addresses import Repository, find_repository, within
from odfbuild.exchange.repositories.branches import BranchTransfer, no_such_branch
from odfbuild.exchange.repositories.listing import names_at
from odfbuild.exchange.repositories.open import Remotes
from odfbuild.exchange.repositories.requests import USAGE, named_apart
from odfbuild.project.model import Config, Definition
from odfbuild.project.settings.by_name import last_matching
from odfbuild.store.place import Place
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value
from odfbuild.wording import named


class BranchRequest(Value, kw_only=True):
    """Push or pull a branch, by default all of it, to or from a repository.

    Without `repository` that is where `publish` in odfbuild.yaml says. `allow` names the datasets
    whose branch on the other side, or here, may be replaced.
    """

    branch: str
    names: Sequence[str] | None = None
    repository: str | None = None
    data: bool = True
    allow: Sequence[str] = ()


def branch_pushes(
    config: Config, workspace: Workspace, remotes: Remotes, request: BranchRequest
) -> list[BranchTransfer]:
    """The datasets in the branch, of these names if any are given."""
    held = [name for name, branch in workspace.in_branches() if branch == request.branch]
    names = held if request.names is None else _within(request, held)
    found = [_transfer(remotes, request, _target(config, request, x), x, write=True) for x in names]
    return named_apart(found, request.allow)


def branch_pulls(
    config: Config,
    definitions: Iterable[Definition],
    workspace: Workspace,
    remotes: Remotes,
    request: BranchRequest,
) -> list[BranchTransfer]:
    """The datasets that repositories have in the branch; `BranchError` E1143 when there are none.

    Folders and stores tell what they have; elsewhere the datasets of the project are asked for.
    """
    known = sorted({*workspace.aliases(), *(each.name for each in definitions)})
    names = known if request.names is None else list(request.names)
    found = []
    for repository in _repositories(config, request):
        listed = names
        if request.names is None and not repository.scheme.startswith(("http", "odf+http")):
            listed = names_at(cast(Place, remotes.place(repository)))
        for name in listed:
            if request.repository is None and _published(config, name) != str(repository):
                continue
            transfer = _transfer(remotes, request, repository, name, write=False)
            if request.names is not None or transfer.open().head() is not None:
                found.append(transfer)
    if not found:
        where = named([str(each) for each in _repositories(config, request)])
        raise no_such_branch(request.branch, where)
    return named_apart(found, request.allow)


def _transfer(
    remotes: Remotes, request: BranchRequest, repository: Repository, name: str, *, write: bool
) -> BranchTransfer:
    address = within(repository, name)
    return BranchTransfer(
        name=name,
        branch=request.branch,
        address=address.address,
        open=partial(remotes.branch, address, request.branch, write=write),
        heads=partial(remotes.dataset, address),
        replace=name.lower() in {each.lower() for each in request.allow},
        data=request.data,
    )


def _within(request: BranchRequest, held: Sequence[str]) -> list[str]:
    """Those of the names that are asked for; the others are what they are on the head."""
    wanted = {each.lower() for each in request.names or ()}
    return [name for name in held if name.lower() in wanted]


def _repositories(config: Config, request: BranchRequest) -> list[Repository]:
    if request.repository is not None:
        return [find_repository(request.repository, config.repositories)]
    if not config.publish:
        raise _unclear(request, "pulled from", "--from")
    names = dict.fromkeys(each.to for each in config.publish)
    return [find_repository(each, config.repositories) for each in names]


def _published(config: Config, name: str) -> str | None:
    entry = last_matching(config.publish, name)
    return None if entry is None else entry.to


def _target(config: Config, request: BranchRequest, name: str) -> Repository:
    text = request.repository or _published(config, name)
    if text is None:
        raise _unclear(request, "pushed to", "--to")
    return find_repository(text, config.repositories)


def _unclear(request: BranchRequest, what: str, option: str) -> PlanError:
    verb = "pull" if option == "--from" else "push"
    return PlanError(
        f"it is not clear where the branch '{request.branch}' is to be {what}",
        code="E1032",
        help=f"name a repository: `odfbuild {verb} -b {request.branch} {option} REPOSITORY`, or "
        "list the datasets under `publish` in odfbuild.yaml",
        exit_code=USAGE,
    )

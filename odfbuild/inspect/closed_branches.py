"""Which branches are no longer needed: promoted ones, and those of closed pull requests.

A branch remembers the branch of Git that it was begun on. That tells when its pull request is
closed: Git has merged it, or it is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta

from odfbuild.inspect.branches import Branch, branches, chosen
from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.git.branches import ended
from odfbuild.project.model import Config
from odfbuild.store.workspace import Workspace


def closed(config: Config, found: Iterable[Branch], *, fetch: bool = False) -> dict[str, str]:
    """Those of these branches that are closed, and why; `fetch` asks the remotes of Git."""
    known = list(found)
    over = ended(config.root, {name for each in known for name in each.git_branches}, fetch=fetch)
    reasons = {}
    for each in known:
        if each.is_promoted:
            reasons[each.name] = "promoted"
        elif each.git_branches and over.keys() >= each.git_branches:
            name = min(each.git_branches)
            reasons[each.name] = f"Git branch '{name}' is {over[name]}"
    return reasons


def overdue(config: Config, workspace: Workspace, *, fetch: bool = False) -> list[str]:
    """Names of closed branches that did not change for as long as the project keeps them."""
    period = config.branches.keep
    found = selected(config, workspace, only_closed=True, older_than=period, fetch=fetch)
    return [each.name for each in found]


def selected(
    config: Config,
    workspace: Workspace,
    patterns: Sequence[str] = (),
    *,
    only_closed: bool = False,
    older_than: timedelta | None = None,
    fetch: bool = False,
) -> list[Branch]:
    """Branches by patterns (default: all), of these the closed ones, and those without news.

    `BranchError` E1102 and E1140 as `chosen`.
    """
    found = branches(workspace, chosen(workspace, patterns) if patterns else None)
    if older_than is not None:
        found = _idle(found, older_than)
    if only_closed:
        over: Collection[str] = closed(config, found, fetch=fetch)
        found = [each for each in found if each.name in over]
    return found


def _idle(found: Iterable[Branch], period: timedelta) -> list[Branch]:
    """Those that did not change for that long; nobody knows of one without any time."""
    since = Timestamp.now().millis - period.total_seconds() * 1000
    return [each for each in found if each.updated and each.updated.millis <= since]

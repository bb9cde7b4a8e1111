"""The status of a project: stale, locked and failed datasets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Any

from odfbuild.errors import PlanError
from odfbuild.plan.model import Action, DatasetPlan
from odfbuild.project.git.references import references_in
from odfbuild.project.git.repository import inside, repository
from odfbuild.project.model import Config
from odfbuild.store.lock_holders import LockHolder
from odfbuild.survey.runs import LastResult, last_results
from odfbuild.survey.survey import Survey
from odfbuild.values import Value

GROUPS = {
    "refused": (Action.REFUSE,),
    "new": (Action.CREATE,),
    "changed": (Action.REBUILD, Action.RENAME, Action.APPEND),
    "stale": (Action.RUN,),
    "to be checked": (Action.POLL,),
    "no definition": (Action.FORGET,),
}
"""Groups of datasets by what apply will do; a dataset is in the first that fits."""
NOT_PULLED = "not pulled"
"""The group of datasets of others that nobody pulled yet."""
EARLIER_QUERY = "earlier query"
"""The group of those to which nothing happens although their query changed."""


class ProjectStatus(Value, kw_only=True):
    """A project at a glance.

    `groups` are names by the group of `GROUPS`, without empty ones; `failed` is how the last run
    ended for those datasets for which it ended badly; `git` is `{"commit", "dirty"}` if known.
    `in_conflict` are those whose head a merge of Git has left to be chosen, `external` datasets of
    others that are pinned.
    """

    project: str
    env: str | None
    git: Mapping[str, Any] | None
    datasets: int
    groups: Mapping[str, tuple[str, ...]]
    held: tuple[LockHolder, ...] = ()
    failed: Mapping[str, LastResult] = field(default_factory=dict)
    in_conflict: tuple[str, ...] = ()
    external: tuple[str, ...] = ()


def project_status(found: Survey, chosen: Collection[str] | None = None) -> ProjectStatus:
    """How a project stands by its plan, its locks and its runs; `chosen`: only these datasets."""
    from odfbuild.project.git.revision import revision

    config = found.project.config
    datasets = [d for d in found.plan.datasets if chosen is None or d.name in chosen]
    names = {dataset.name for dataset in datasets}
    external = [e for e in found.plan.external if chosen is None or e.name in chosen]
    groups: dict[str, list[str]] = {group: [] for group in (*GROUPS, NOT_PULLED, EARLIER_QUERY)}
    groups[NOT_PULLED] = [each.name for each in external if each.head is None]
    for dataset in datasets:
        group = _group(dataset)
        if group is not None:
            groups[group].append(dataset.name)
    failed = {
        name: result
        for name, result in sorted(last_results(config.cache, config.branch).items())
        if result.is_failure and name in names
    }
    return ProjectStatus(
        project=config.name,
        env=config.env,
        git=revision(config.root),
        datasets=len(datasets),
        groups={group: tuple(sorted(each)) for group, each in groups.items() if each},
        held=tuple(found.workspace.holders(sorted(names))),
        failed=failed,
        in_conflict=tuple(
            name
            for name in _in_conflict(config)
            if name in names or name in {each.name for each in external}
        ),
        external=tuple(each.name for each in external if each.head is not None),
    )


def _in_conflict(config: Config) -> list[str]:
    """Datasets below `state` whose heads or branches Git could not merge."""
    try:
        with repository(config.root, "no merge is going on") as repo:
            folder = inside(repo, config.state)
            if folder is None:
                return []
            said = repo.git.ls_files("--unmerged", "--full-name", "-z", "--", f":/{folder}")
    except PlanError:
        return []
    paths = {line.partition("\t")[2] for line in said.split("\0")}
    return sorted({name for name, _ in references_in(paths, folder).values()})


def _group(dataset: DatasetPlan) -> str | None:
    if dataset.query_waits:
        return EARLIER_QUERY
    actions = set(dataset.actions)
    return next((group for group, each in GROUPS.items() if actions & set(each)), None)

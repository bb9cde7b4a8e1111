"""A saved plan: read it, select a part of it, refuse datasets that have moved since.

Definitions are not planned again: what the file says is what will be done.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odfbuild.errors import BranchError, OdfbuildError, PlanError, StaleHeadError
from odfbuild.exchange.repositories.fetch_on_demand import workspace_of
from odfbuild.plan.model import Action, DatasetPlan, Plan
from odfbuild.plan.saved import SavedPlan, read_plan
from odfbuild.plan.subset import MovedHead, Subset, moved, subset
from odfbuild.project.model import Config, Project
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.odf.multihash import Multihash
    from odfbuild.plan.graph.selection import Selection


def load_plan(file: Path) -> SavedPlan:
    """The plan in a file; raises `PlanError` when it is none, or was changed."""
    try:
        data: Any = json.loads(file.read_bytes())
    except OSError as error:
        raise PlanError(
            f"{file} cannot be read: {error.strerror}",
            code="E0360",
            help="`odfbuild plan -o FILE` saves a plan",
        ) from None
    except ValueError as error:
        raise PlanError(
            f"{file} is not a plan: it is not JSON ({error})",
            code="E0360",
            help="make it again with `odfbuild plan -o FILE`",
        ) from None
    return read_plan(data, str(file))


def check_digest(actual: str, approved: str) -> None:
    """Raise `PlanError` E0363, exit code 5, unless the plan is the one that was approved."""
    wanted = approved if approved.startswith("sha256:") else f"sha256:{approved}"
    if actual == wanted:
        return
    raise PlanError(
        "this is not the plan that was approved",
        code="E0363",
        notes=(f"approved: {wanted}", f"now: {actual}"),
        help="review the current plan with `odfbuild plan`, and approve its digest",
        exit_code=5,
    )


class Approved(Value, kw_only=True):
    """A saved plan in its project; datasets that moved since are refused in `plan`."""

    plan: Plan
    project: Project
    workspace: Workspace

    def locate(self, dataset: str, error: OdfbuildError) -> OdfbuildError:
        """`error` with its place in the project's files, as far as they are still the same."""
        from odfbuild.project.load import read_project
        from odfbuild.survey.locate import locate

        try:
            return locate(
                read_project(self.project.config.root, self.project.config.given), dataset, error
            )
        except OdfbuildError:
            return error


def approve(saved: SavedPlan, config: Config) -> Approved:
    """Bring a saved plan to its project and look for heads that moved."""
    if saved.plan.project != config.name:
        raise PlanError(
            f"this plan is for the project '{saved.plan.project}', and this is '{config.name}'",
            code="E0362",
            help="go to the folder of that project, or give it with --directory",
        )
    check_branch(saved.plan, config.branch)
    workspace = workspace_of(config)
    projections = workspace.readable()
    heads = {name.lower(): projection.head for name, projection in projections.items()}
    for dataset in saved.plan.datasets:
        if dataset.renamed_from is not None and dataset.renamed_from.lower() in heads:
            heads.setdefault(dataset.name.lower(), heads[dataset.renamed_from.lower()])
    found = moved(saved.plan, heads)
    stale = {name: _refusal(name, gone, workspace, saved.plan) for name, gone in found.items()}
    datasets = tuple(
        _refused(d, stale[d.name]) if d.name in stale else d for d in saved.plan.datasets
    )
    return Approved(
        plan=replace(saved.plan, datasets=datasets),
        project=Project(config=config, definitions=()),
        workspace=workspace,
    )


def check_branch(plan: Plan, branch: str | None) -> None:
    """Raise `BranchError` E1107 unless the plan was made in that branch (`None`: on the heads)."""
    planned = plan.branch.name if plan.branch else None
    if planned != branch:
        raise BranchError(
            f"this plan is for {_called(planned)}, and not for {_called(branch)}",
            code="E1107",
            help="leave --branch out, or make a plan for that branch",
        )


def _called(branch: str | None) -> str:
    return "the heads" if branch is None else f"the branch '{branch}'"


def take_part(saved: SavedPlan, selection: Selection, config: Config) -> Subset:
    """The part of a saved plan that a selection asks for."""
    from odfbuild.plan.graph.selection import Selection
    from odfbuild.survey.selectable import selected_of_plan

    plan = saved.plan
    everything = {dataset.name for dataset in plan.datasets}
    chosen, excluded = everything, frozenset[str]()
    if selection.select:
        chosen = set(selected_of_plan(Selection(select=selection.select), plan, config))
    if selection.exclude:
        excluded = selected_of_plan(Selection(select=selection.exclude), plan, config)
    return subset(plan, chosen, excluded)


def _refused(dataset: DatasetPlan, error: StaleHeadError) -> DatasetPlan:
    """What was planned is not done, so that it is not shown either."""
    if dataset.refusal is not None:
        return dataset
    return replace(dataset, actions=(Action.REFUSE,), changes=(), pending=None, refusal=error)


def _refusal(
    name: str, gone: tuple[MovedHead, ...], workspace: Workspace, plan: Plan
) -> StaleHeadError:
    first = gone[0]
    what = (
        f"'{name}' moved" if first.name == name else f"the input '{first.name}' of '{name}' moved"
    )
    return StaleHeadError(
        f"{what} since the plan was made: {_short(first.planned)} → {_short(first.actual)}",
        code="E0701",
        dataset=name,
        notes=tuple(_who(each, workspace) for each in gone),
        help=f"plan it again: `odfbuild promote {plan.promotes} -o FILE`, unless `odfbuild branch "
        "list` shows that the branch is promoted"
        if plan.promotes
        else f"plan it again: `odfbuild plan -s {name}`; "
        f"the others can be applied with `--exclude {name}`",
    )


def _who(each: MovedHead, workspace: Workspace) -> str:
    if each.actual is None:
        return f"the chain of '{each.name}' is gone"
    store = workspace.dataset(each.name)
    if store.head() is None:
        return f"'{each.name}' is not renamed yet"
    block = store.read_block(each.actual)
    number, kind = block.sequence_number, block.event.KIND
    return f"the head of '{each.name}' is block #{number}, {kind}, of {block.system_time}"


def _short(head: Multihash | None) -> str:
    return "nothing" if head is None else f"…{str(head)[-8:]}"

"""The drift that a plan shows: of histories, and of definitions that it would revert."""

from __future__ import annotations

from collections.abc import Mapping

from odfbuild.odf.chain.projection import Projection
from odfbuild.plan.drift import ChainDrift, DriftCause
from odfbuild.plan.model import Action, Plan, ReasonCode
from odfbuild.project.model import Project
from odfbuild.store.workspace import Workspace
from odfbuild.survey.authors import Authors
from odfbuild.survey.known_heads import departure, gone, noted_heads


def drift_of_plan(
    plan: Plan, project: Project, workspace: Workspace, projections: Mapping[str, Projection]
) -> tuple[ChainDrift, ...]:
    """The drift that a plan tells: of histories, and of definitions that it would put back.

    Where nobody noted heads in Git, only what the plan found anyway.
    """
    found = [
        read_elsewhere(reason.input, dataset.name)
        for dataset in plan.datasets
        if dataset.refusal is not None
        for reason in dataset.reasons
        if reason.code is ReasonCode.INPUT_REWRITTEN and reason.input is not None
    ]
    noted = noted_heads(project.config)
    if not noted:
        return tuple(found)
    authors = Authors(project.config, workspace, noted)
    for dataset in plan.datasets:
        known, state = noted.get(dataset.name), projections.get(dataset.name)
        if known is None or dataset.renamed_from is not None:
            continue
        if state is None:
            found.append(gone(dataset.name, known))
        elif state.head != known.head:
            left = departure(workspace.dataset(dataset.name), state.head, known)
            if left is not None:
                found.append(left)
            elif Action.APPEND in dataset.actions:
                found += authors.since_noted(dataset, known)
    return tuple(sorted(found, key=lambda drift: drift.dataset))


def read_elsewhere(source: str, reader: str) -> ChainDrift:
    """The drift of a dataset that no longer holds a block that one of its readers consumed."""
    return ChainDrift(
        dataset=source,
        cause=DriftCause.READ_ELSEWHERE,
        message=f"its history no longer holds the block that '{reader}' consumed",
        help=f"restore that chain (`odfbuild reset {source} --to BLOCK`), "
        f"or compute '{reader}': `odfbuild apply --allow rebuild:{reader}+`",
    )

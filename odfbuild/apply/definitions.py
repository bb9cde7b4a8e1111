"""Bring planned definition events into the form in which a chain holds them."""

from __future__ import annotations

from dataclasses import replace

from odfbuild.errors import PlanError
from odfbuild.odf.identity import DatasetAlias, DatasetId
from odfbuild.odf.model import MetadataEvent, SetTransform, TransformInput
from odfbuild.plan.model import DatasetPlan
from odfbuild.store.workspace import Workspace


def resolve_changes(item: DatasetPlan, workspace: Workspace) -> tuple[MetadataEvent, ...]:
    """The events to append, with inputs named by DID now that all of them have chains."""
    return tuple(_resolved(change.after, item.name, workspace) for change in item.changes)


def _resolved(event: MetadataEvent, dataset: str, workspace: Workspace) -> MetadataEvent:
    if not isinstance(event, SetTransform):
        return event
    return replace(
        event, inputs=tuple(_resolved_input(i, dataset, workspace) for i in event.inputs)
    )


def _resolved_input(declared: TransformInput, dataset: str, workspace: Workspace) -> TransformInput:
    if isinstance(declared.dataset_ref, DatasetId):
        return declared
    alias: DatasetAlias = declared.dataset_ref
    projection = workspace.projection(str(alias))
    if projection is None:
        raise PlanError(
            f"input '{alias}' of '{dataset}' has no chain",
            code="E0311",
            dataset=dataset,
            help=f"define '{alias}' in this project, or bring its chain here",
        )
    return TransformInput(dataset_ref=projection.dataset_id, alias=declared.alias or str(alias))

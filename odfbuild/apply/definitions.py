"""Convert planned definition events into the form in which chains store them."""

from __future__ import annotations

from dataclasses import replace

from odfbuild.errors import PlanError
from odfbuild.odf.identity import DatasetAlias, DatasetId
from odfbuild.odf.model import MetadataEvent, SetTransform, TransformInput
from odfbuild.plan.model import DatasetPlan
from odfbuild.sql.translate.named import NO_ENGINES, Engines, is_remote_release
from odfbuild.sql.translate.runnable import is_spark, release_for
from odfbuild.store.workspace import Workspace


def resolve_changes(
    item: DatasetPlan, workspace: Workspace, engine_version: str, engines: Engines = NO_ENGINES
) -> tuple[MetadataEvent, ...]:
    """The events to append, with inputs named by DID now that all of them have chains.

    Transformations say which release of the engine will compute them (`engine_version`).
    """
    return tuple(
        _resolved(change.after, item.name, workspace, engine_version, engines)
        for change in item.changes
    )


def _resolved(
    event: MetadataEvent,
    dataset: str,
    workspace: Workspace,
    engine_version: str,
    engines: Engines = NO_ENGINES,
) -> MetadataEvent:
    if not isinstance(event, SetTransform):
        return event
    inputs = tuple(_resolved_input(i, dataset, workspace) for i in event.inputs)
    return pinned(replace(event, inputs=inputs), dataset, engine_version, engines)


def pinned(
    event: SetTransform, dataset: str, engine_version: str, engines: Engines = NO_ENGINES
) -> SetTransform:
    """The transformation with the release of its engine; `PlanError` if it asks for another one."""
    wanted = event.transform.version
    release = release_for(event.transform, engine_version, engines)
    if not release:
        return event
    if wanted is not None and not release.startswith(wanted):
        raise PlanError(
            f"'{dataset}' asks for version {wanted} of its engine, and this is {release}",
            code="E0317",
            dataset=dataset,
            help="install that release, or leave `version` out: the chain then says which it was",
        )
    return replace(event, transform=replace(event.transform, version=release))


def by_another_engine(
    event: SetTransform | None, engine_version: str, engines: Engines = NO_ENGINES
) -> SetTransform | None:
    """The transformation to append when the one in force was pinned to another release.

    `None` when it is the same, or the chain says none of an engine that is Spark.
    """
    if event is None:
        return None
    recorded = event.transform.version
    release = release_for(event.transform, engine_version, engines)
    untold = recorded is None and is_spark(event.transform) and not is_remote_release(release)
    if untold or release in ("", recorded):
        return None
    return replace(event, transform=replace(event.transform, version=release))


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

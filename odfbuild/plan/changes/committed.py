"""The definition in a chain: the latest event of each kind, inputs by alias. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from odfbuild.odf.chain.projection import DESCRIPTIONS, Projection
from odfbuild.odf.identity import DatasetAlias, DatasetId
from odfbuild.odf.model import (
    AddPushSource,
    DatasetSnapshot,
    MetadataEvent,
    SetPollingSource,
    SetTransform,
    SetVocab,
    TransformInput,
)
from odfbuild.plan.changes.equality import unpinned

Aliases = Mapping[DatasetId, str]
"""Names of datasets by identity; those that are missing stay identities."""


def committed_snapshot(name: str, projection: Projection, aliases: Aliases) -> DatasetSnapshot:
    """A definition that plans to nothing over this chain.

    A schema is part of it only where nothing else says what records look like.
    """
    events = [
        unpinned(event) if isinstance(event, SetTransform) else event
        for event in _events(projection, aliases)
    ]
    if projection.schema is not None and not any(map(_is_source, events)):
        events.insert(0, projection.schema)
    return DatasetSnapshot(
        name=DatasetAlias.parse(name), kind=projection.kind, metadata=tuple(events)
    )


def committed_counterpart(
    name: str, projection: Projection, aliases: Aliases, defined: DatasetSnapshot
) -> DatasetSnapshot:
    """What the chain says about all that the definition `defined` can change.

    Kinds of events that a definition does not mention belong to whoever appended them, but a
    source that it does not mention is disabled.
    """
    mentioned = {type(event): event for event in defined.metadata}
    transform = mentioned.get(SetTransform)
    events = [
        unpinned(event, transform)
        if isinstance(event, SetTransform) and isinstance(transform, SetTransform)
        else event
        for event in (*_events(projection, aliases), projection.schema)
        if event is not None and (type(event) in mentioned or _is_source(event))
    ]
    if SetVocab in mentioned and projection.vocab is None:
        events.append(SetVocab())
    return DatasetSnapshot(
        name=DatasetAlias.parse(name), kind=projection.kind, metadata=tuple(events)
    )


def _is_source(event: MetadataEvent) -> bool:
    return isinstance(event, SetPollingSource | AddPushSource | SetTransform)


def _events(projection: Projection, aliases: Aliases) -> Iterator[MetadataEvent]:
    if projection.polling_source is not None:
        yield projection.polling_source
    yield from (projection.push_sources[name] for name in sorted(projection.push_sources))
    if projection.transform is not None:
        inputs = tuple(_by_alias(each, aliases) for each in projection.transform.inputs)
        yield replace(projection.transform, inputs=inputs)
    for field in (*DESCRIPTIONS.values(), "vocab"):
        event = getattr(projection, field)
        if event is not None:
            yield event


def _by_alias(declared: TransformInput, aliases: Aliases) -> TransformInput:
    ref = declared.dataset_ref
    alias = aliases.get(ref) if isinstance(ref, DatasetId) else None
    return declared if alias is None else replace(declared, dataset_ref=DatasetAlias.parse(alias))

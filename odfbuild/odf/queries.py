"""The queries of a definition."""

from __future__ import annotations

from collections.abc import Iterator

from odfbuild.odf.model import (
    AddPushSource,
    DatasetSnapshot,
    MetadataEvent,
    SetPollingSource,
    SetTransform,
    TransformSql,
)


def queries_of(snapshot: DatasetSnapshot) -> Iterator[tuple[MetadataEvent, TransformSql]]:
    """The transformation and the preparation of sources, each with its event."""
    for event in snapshot.metadata:
        if isinstance(event, SetTransform):
            yield event, event.transform
        elif isinstance(event, SetPollingSource | AddPushSource) and event.preprocess is not None:
            yield event, event.preprocess

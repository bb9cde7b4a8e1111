"""Changed descriptions and other attributes of the columns of a source.

They change nothing but the schema of the dataset, so the plan appends that schema and shows it.
"""

from __future__ import annotations

from collections.abc import Sequence

from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import (
    AddPushSource,
    DataSchema,
    DatasetSnapshot,
    MetadataEvent,
    SetDataSchema,
    SetPollingSource,
)
from odfbuild.odf.schema.attributes import redescribed
from odfbuild.plan.model import EventChange


def described_otherwise(
    snapshot: DatasetSnapshot, projection: Projection, changes: Sequence[EventChange]
) -> EventChange | None:
    """The schema to append for sources among `changes`; `None` when they describe it as before.

    A `SetDataSchema` in the definition goes before what a source says, and columns that come from
    a query are described by none. A source that is new describes only columns that are.
    """
    committed = projection.schema
    if committed is None or any(isinstance(e, SetDataSchema) for e in snapshot.metadata):
        return None
    present = committed
    for change in changes:
        if change.before is not None:
            now = _attributes(change.before), _attributes(change.after)
            if now != (None, None):
                present = redescribed(present, *now) or present
    return None if present is committed else EventChange(before=committed, after=present)


def _attributes(event: MetadataEvent) -> DataSchema | None:
    """The schema in which a source may describe its columns: DDL has no attributes."""
    if not isinstance(event, SetPollingSource | AddPushSource) or event.preprocess is not None:
        return None
    return event.read.schema

"""The state that the rules of the chain need, updated from block to block.

So a chain of n blocks is validated in n steps, whether it is appended to, planned or verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from msgspec.structs import replace

from odfbuild.odf.model import (
    AddData,
    AddPushSource,
    DisablePollingSource,
    DisablePushSource,
    ExecuteTransform,
    ExecuteTransformInput,
    MetadataBlock,
    MetadataEvent,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
    SourceState,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.values import Value


class LastData(Value, kw_only=True):
    """The newest block with an event of one kind that carries data."""

    last_offset: int | None
    checkpoint: Multihash | None
    watermark: Timestamp | None
    source_state: SourceState | None = None
    inputs: tuple[ExecuteTransformInput, ...] = ()


class ChainState(Value, kw_only=True):
    """What the rules need to know of a chain whose newest block is `head`.

    `data` is the newest `AddData` or `ExecuteTransform`, `added` and `executed` the newest of each.
    `push_sources` holds the latest of each name that was not disabled since.
    """

    head: Multihash
    sequence_number: int
    system_time: Timestamp
    data: LastData | None = None
    added: LastData | None = None
    executed: LastData | None = None
    schema: SetDataSchema | None = None
    transform: SetTransform | None = None
    polling: bool = False
    push_sources: Mapping[str, AddPushSource] = field(default_factory=dict)


def advance(state: ChainState | None, head: Multihash, block: MetadataBlock) -> ChainState:
    """The state after `block`, whose hash is `head`; does not check anything."""
    if state is None:
        return ChainState(
            head=head, sequence_number=block.sequence_number, system_time=block.system_time
        )
    return replace(
        state,
        head=head,
        sequence_number=block.sequence_number,
        system_time=block.system_time,
        **_changes(state, block.event),
    )


def _changes(state: ChainState, event: MetadataEvent) -> dict[str, Any]:
    """What the event changes of a state, by field."""
    match event:
        case AddData():
            last = _last(event)
            return {"data": last, "added": last}
        case ExecuteTransform():
            last = _last(event)
            return {"data": last, "executed": last}
        case SetDataSchema():
            return {"schema": event}
        case SetTransform():
            return {"transform": event}
        case SetPollingSource():
            return {"polling": True}
        case DisablePollingSource():
            return {"polling": False}
        case AddPushSource(source_name=name):
            return {"push_sources": {**state.push_sources, name: event}}
        case DisablePushSource(source_name=name):
            kept = {key: value for key, value in state.push_sources.items() if key != name}
            return {"push_sources": kept}
    return {}


def _last(event: AddData | ExecuteTransform) -> LastData:
    data, checkpoint = event.new_data, event.new_checkpoint
    return LastData(
        last_offset=data.offset_interval.end if data else event.prev_offset,
        checkpoint=checkpoint.physical_hash if checkpoint else None,
        watermark=event.new_watermark,
        source_state=event.new_source_state if isinstance(event, AddData) else None,
        inputs=event.query_inputs if isinstance(event, ExecuteTransform) else (),
    )

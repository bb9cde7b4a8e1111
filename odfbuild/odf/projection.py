"""What a chain says at its head: the latest of each kind of event, offsets, watermark, schema.

A projection is a pure function of the blocks up to a head, so it can be cached under that head's
hash and never be stale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, fields, replace
from types import SimpleNamespace
from typing import Any

from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import (
    AddData,
    AddPushSource,
    DatasetKind,
    DisablePollingSource,
    DisablePushSource,
    ExecuteTransform,
    ExecuteTransformInput,
    MetadataBlock,
    Seed,
    SetAttachments,
    SetDataSchema,
    SetInfo,
    SetLicense,
    SetPollingSource,
    SetTransform,
    SetVocab,
    SourceState,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.values import dataclass


@dataclass(frozen=True, slots=True)
class QueryEra:
    """Records `first` to `last` (inclusive offsets) were made under one `SetTransform` block."""

    sequence_number: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """State of a dataset at `head`.

    `last_offset` is the offset of the newest record, `records` and `data_bytes` count all slices,
    `inputs` is what transforms left of each input, with `prev` folded into `new`: the last block
    and offset that were consumed. Inputs of the last `ExecuteTransform` come first, then those that
    were inputs once: one that comes back goes on where it was left.
    """

    dataset_id: DatasetId
    kind: DatasetKind
    head: Multihash
    blocks: int
    system_time: Timestamp
    polling_source: SetPollingSource | None = None
    push_sources: Mapping[str, AddPushSource] = field(default_factory=dict)
    transform: SetTransform | None = None
    transform_sequence_number: int | None = None
    vocab: SetVocab | None = None
    attachments: SetAttachments | None = None
    info: SetInfo | None = None
    license: SetLicense | None = None
    schema: SetDataSchema | None = None
    last_offset: int | None = None
    records: int = 0
    data_bytes: int = 0
    watermark: Timestamp | None = None
    last_checkpoint: Multihash | None = None
    source_state: SourceState | None = None
    inputs: tuple[ExecuteTransformInput, ...] = ()
    eras: tuple[QueryEra, ...] = ()
    ever_ran: bool = False

    @property
    def consumed(self) -> tuple[ExecuteTransformInput, ...]:
        """Of `inputs`, those that the transformation in force still has."""
        if self.transform is None:
            return ()
        present = {each.dataset_ref for each in self.transform.inputs}
        return tuple(each for each in self.inputs if each.dataset_id in present)


_FIELDS = tuple(field.name for field in fields(Projection))


def start(head: Multihash, block: MetadataBlock) -> Projection:
    """The projection of a chain that consists of its seed; `ValueError` if `block` is no seed."""
    if not isinstance(block.event, Seed):
        raise ValueError("the first block of a chain must be a Seed")
    return Projection(
        dataset_id=block.event.dataset_id,
        kind=block.event.dataset_kind,
        head=head,
        blocks=1,
        system_time=block.system_time,
    )


def advance(before: Projection, head: Multihash, block: MetadataBlock) -> Projection:
    """The projection one block further on."""
    return replace(before, **_changes(before, head, block))


def fold(
    before: Projection | None, blocks: Iterable[tuple[Multihash, MetadataBlock]]
) -> Projection:
    """The projection after `blocks`, oldest first; from the seed on if `before` is `None`.

    The same as `advance` block by block, in a fraction of the time. `ValueError` when there is
    nothing to fold, or the first block is no seed.
    """
    remaining = iter(blocks)
    if before is None:
        first = next(remaining, None)
        if first is None:
            raise ValueError("a chain has at least one block")
        before = start(*first)
    draft = _Draft(**{name: getattr(before, name) for name in _FIELDS})
    for head, block in remaining:
        draft.__dict__.update(_changes(draft, head, block))
    return Projection(**draft.__dict__)


class _Draft(SimpleNamespace):
    """The fields of a projection while blocks are folded into it."""


def _changes(before: Projection | _Draft, head: Multihash, block: MetadataBlock) -> dict[str, Any]:
    """The fields that `block` changes."""
    changes: dict[str, Any] = {
        "head": head,
        "blocks": before.blocks + 1,
        "system_time": block.system_time,
    }
    match block.event:
        case AddData() | ExecuteTransform() as data:
            changes |= _data_changes(before, data)
        case SetPollingSource() as source:
            changes["polling_source"] = source
        case DisablePollingSource():
            changes["polling_source"] = None
        case AddPushSource() as source:
            changes["push_sources"] = {**before.push_sources, source.source_name: source}
        case DisablePushSource() as gone:
            changes["push_sources"] = {
                name: source
                for name, source in before.push_sources.items()
                if name != gone.source_name
            }
        case SetTransform() as transform:
            changes["transform"] = transform
            changes["transform_sequence_number"] = block.sequence_number
        case SetVocab() as vocab:
            changes["vocab"] = vocab
        case SetAttachments() as attachments:
            changes["attachments"] = attachments
        case SetInfo() as info:
            changes["info"] = info
        case SetLicense() as license_:
            changes["license"] = license_
        case SetDataSchema() as schema:
            changes["schema"] = schema
    return changes


def _data_changes(before: Projection | _Draft, event: AddData | ExecuteTransform) -> dict[str, Any]:
    changes: dict[str, Any] = {
        "ever_ran": True,
        # A block without a watermark does not take the last one back.
        "watermark": event.new_watermark or before.watermark,
        "last_checkpoint": event.new_checkpoint.physical_hash if event.new_checkpoint else None,
    }
    if event.new_data is not None:
        interval = event.new_data.offset_interval
        changes["last_offset"] = interval.end
        changes["records"] = before.records + interval.end - interval.start + 1
        changes["data_bytes"] = before.data_bytes + event.new_data.size
        changes["eras"] = _extend_eras(before, interval.start, interval.end)
    if isinstance(event, AddData):
        # Only the most recent AddData counts, also when it carries no state.
        changes["source_state"] = event.new_source_state
    else:
        left = tuple(
            ExecuteTransformInput(
                dataset_id=i.dataset_id,
                new_block_hash=i.new_block_hash or i.prev_block_hash,
                new_offset=i.prev_offset if i.new_offset is None else i.new_offset,
            )
            for i in event.query_inputs
        )
        present = {i.dataset_id for i in left}
        gone = tuple(i for i in before.inputs if i.dataset_id not in present)
        changes["inputs"] = (*left, *gone)
    return changes


def _extend_eras(before: Projection | _Draft, first: int, last: int) -> tuple[QueryEra, ...]:
    eras: tuple[QueryEra, ...] = before.eras
    number = before.transform_sequence_number
    if number is None:
        return eras
    if eras and eras[-1].sequence_number == number:
        return (*eras[:-1], replace(eras[-1], last=last))
    return (*eras, QueryEra(number, first, last))

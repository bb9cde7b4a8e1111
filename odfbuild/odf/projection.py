"""What a chain says at its head: the latest of each kind of event, offsets, watermark, schema.

A projection is a pure function of the blocks up to a head, so it can be cached under that head's
hash and never be stale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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
    `inputs` is what the last `ExecuteTransform` left of each input, with `prev` folded into `new`:
    the last block and offset that were consumed.
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
    after = replace(before, head=head, blocks=before.blocks + 1, system_time=block.system_time)
    match block.event:
        case SetPollingSource() as source:
            return replace(after, polling_source=source)
        case DisablePollingSource():
            return replace(after, polling_source=None)
        case AddPushSource() as source:
            return replace(after, push_sources={**before.push_sources, source.source_name: source})
        case DisablePushSource() as gone:
            kept = {k: v for k, v in before.push_sources.items() if k != gone.source_name}
            return replace(after, push_sources=kept)
        case SetTransform() as transform:
            return replace(
                after,
                transform=transform,
                transform_sequence_number=block.sequence_number,
            )
        case SetVocab() as vocab:
            return replace(after, vocab=vocab)
        case SetAttachments() as attachments:
            return replace(after, attachments=attachments)
        case SetInfo() as info:
            return replace(after, info=info)
        case SetLicense() as license_:
            return replace(after, license=license_)
        case SetDataSchema() as schema:
            return replace(after, schema=schema)
        case AddData() | ExecuteTransform() as data:
            return _with_data(after, data)
    return after


def _with_data(after: Projection, event: AddData | ExecuteTransform) -> Projection:
    result = replace(
        after,
        ever_ran=True,
        # A block without a watermark does not take the last one back.
        watermark=event.new_watermark or after.watermark,
        last_checkpoint=event.new_checkpoint.physical_hash if event.new_checkpoint else None,
    )
    if event.new_data is not None:
        interval = event.new_data.offset_interval
        result = replace(
            result,
            last_offset=interval.end,
            records=after.records + interval.end - interval.start + 1,
            data_bytes=after.data_bytes + event.new_data.size,
            eras=_extend_eras(after, interval.start, interval.end),
        )
    if isinstance(event, AddData):
        # Only the most recent AddData counts, also when it carries no state.
        return replace(result, source_state=event.new_source_state)
    return replace(
        result,
        inputs=tuple(
            ExecuteTransformInput(
                dataset_id=i.dataset_id,
                new_block_hash=i.new_block_hash or i.prev_block_hash,
                new_offset=i.prev_offset if i.new_offset is None else i.new_offset,
            )
            for i in event.query_inputs
        ),
    )


def _extend_eras(after: Projection, first: int, last: int) -> tuple[QueryEra, ...]:
    number = after.transform_sequence_number
    if number is None:
        return after.eras
    if after.eras and after.eras[-1].sequence_number == number:
        return (*after.eras[:-1], replace(after.eras[-1], last=last))
    return (*after.eras, QueryEra(number, first, last))

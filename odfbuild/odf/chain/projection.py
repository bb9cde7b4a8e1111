"""The state of a chain at its head: latest event of each kind, offsets, watermark, schema.

A projection is a pure function of the blocks up to a head, so it can be cached under that head's
hash and never be stale.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import field, fields, replace
from operator import attrgetter
from types import SimpleNamespace

from odfbuild.odf import model
from odfbuild.odf.identity import DatasetAlias, DatasetId
from odfbuild.odf.model import (
    AddData,
    AddPushSource,
    DatasetKind,
    Description,
    DisablePollingSource,
    DisablePushSource,
    ExecuteTransform,
    ExecuteTransformInput,
    MetadataBlock,
    MetadataEvent,
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
from odfbuild.odf.model.record import Record
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.values import Value


class QueryEra(Value):
    """Records `first` to `last` (inclusive offsets) were made under one `SetTransform` block."""

    sequence_number: int
    first: int
    last: int


class Projection(Value, kw_only=True):
    """State of a dataset at `head`.

    `last_offset` is the offset of the newest record, `records` and `data_bytes` count all slices,
    `inputs` is what transforms left of each input, with `prev` folded into `new`: the last block
    and offset that were consumed. Inputs of the last `ExecuteTransform` come first, then those that
    were inputs once: one that comes back goes on where it was left. `last_query` is the number of
    the block whose transformation made the last step.
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
    last_query: int | None = None

    @property
    def query_waits(self) -> bool:
        """Whether the transformation in force is another than that of the last step."""
        return self.last_query is not None and self.last_query != self.transform_sequence_number

    @property
    def consumed(self) -> tuple[ExecuteTransformInput, ...]:
        """Of `inputs`, those that the transformation in force still has."""
        if self.transform is None:
            return ()
        present = {each.dataset_ref for each in self.transform.inputs}
        return tuple(each for each in self.inputs if each.dataset_id in present)


_OBJECTS = tuple(
    each
    for each in vars(model).values()
    if isinstance(each, type) and issubclass(each, Record) and not each.__subclasses__()
)
"""Objects of blocks. Those of engines are loaded or not: all subclasses would not be the same."""


def layout(*classes: type[Value]) -> str:
    """A text that changes whenever values of these classes would be understood differently.

    They may hold objects of the protocol.
    """
    parts: list[type[Value]] = [
        *classes,
        Multihash,
        Timestamp,
        DatasetId,
        DatasetAlias,
        *_OBJECTS,
    ]
    found = sorted((each.__name__, each.__struct_fields__) for each in parts)
    return hashlib.sha256(repr(found).encode()).hexdigest()


_FIELDS = tuple(field.name for field in fields(Projection))
_VALUES = attrgetter(*_FIELDS)

IN_FORCE: Mapping[type, str] = {
    SetPollingSource: "polling_source",
    SetTransform: "transform",
    SetInfo: "info",
    SetLicense: "license",
    SetVocab: "vocab",
    SetAttachments: "attachments",
    SetDataSchema: "schema",
}
"""Events of which the newest one holds, and the field of a projection that has it."""

DESCRIPTIONS: Mapping[type[Description], str] = {
    event: name for event, name in IN_FORCE.items() if issubclass(event, Description)
}
"""Those of `IN_FORCE` that tell people something and change nothing else."""


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
    return fold(before, [(head, block)])


def fold(
    before: Projection | None, blocks: Iterable[tuple[Multihash, MetadataBlock]]
) -> Projection:
    """The projection after `blocks`, oldest first; from the seed on if `before` is `None`.

    `ValueError` when there is nothing to fold, or the first block is no seed.
    """
    remaining = iter(blocks)
    if before is None:
        first = next(remaining, None)
        if first is None:
            raise ValueError("a chain has at least one block")
        before = start(*first)
    draft = _Draft(**dict(zip(_FIELDS, _VALUES(before), strict=True)))
    for head, block in remaining:
        draft.head = head
        draft.blocks += 1
        draft.system_time = block.system_time
        event = block.event
        name = IN_FORCE.get(type(event))
        if name is not None:
            setattr(draft, name, event)
            if isinstance(event, SetTransform):
                draft.transform_sequence_number = block.sequence_number
        else:
            _take_other(draft, event)
    return Projection(**draft.__dict__)


class _Draft(SimpleNamespace):
    """The fields of a projection while blocks are folded into it."""


def _take_other(draft: _Draft, event: MetadataEvent) -> None:
    """An event that does more than replace the last one of its kind."""
    match event:
        case AddData() | ExecuteTransform():
            _take_data(draft, event)
        case DisablePollingSource():
            draft.polling_source = None
        case AddPushSource():
            draft.push_sources = {**draft.push_sources, event.source_name: event}
        case DisablePushSource():
            draft.push_sources = {
                name: source
                for name, source in draft.push_sources.items()
                if name != event.source_name
            }


def _take_data(draft: _Draft, event: AddData | ExecuteTransform) -> None:
    draft.ever_ran = True
    # A block without a watermark does not take the last one back.
    draft.watermark = event.new_watermark or draft.watermark
    draft.last_checkpoint = event.new_checkpoint.physical_hash if event.new_checkpoint else None
    if event.new_data is not None:
        interval = event.new_data.offset_interval
        draft.last_offset = interval.end
        draft.records += interval.end - interval.start + 1
        draft.data_bytes += event.new_data.size
        draft.eras = _extend_eras(draft, interval.start, interval.end)
    if isinstance(event, AddData):
        # Only the most recent AddData counts, also when it carries no state.
        draft.source_state = event.new_source_state
        return
    draft.last_query = draft.transform_sequence_number
    left = tuple(
        ExecuteTransformInput(
            dataset_id=i.dataset_id,
            new_block_hash=i.new_block_hash or i.prev_block_hash,
            new_offset=i.prev_offset if i.new_offset is None else i.new_offset,
        )
        for i in event.query_inputs
    )
    present = {i.dataset_id for i in left}
    draft.inputs = (*left, *(i for i in draft.inputs if i.dataset_id not in present))


def _extend_eras(before: _Draft, first: int, last: int) -> tuple[QueryEra, ...]:
    eras: tuple[QueryEra, ...] = before.eras
    number = before.transform_sequence_number
    if number is None:
        return eras
    if eras and eras[-1].sequence_number == number:
        return (*eras[:-1], replace(eras[-1], last=last))
    return (*eras, QueryEra(number, first, last))

"""The rules of the metadata chain: what may follow what.

A chain is replayed block by block into a small state; `check` tells whether one more block fits,
`advance` adds it. Each rule has its own message and the reference's name for it. Sources: Open Data
Fabric, "Metadata Chain", "Event types"; reference behaviour, metadata-chain validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from odfbuild.errors import ChainError
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import (
    AddData,
    AddPushSource,
    DataField,
    DataTypeList,
    DataTypeOption,
    DataTypeStruct,
    DisablePollingSource,
    DisablePushSource,
    ExecuteTransform,
    ExecuteTransformInput,
    FetchStepEthereumLogs,
    MetadataBlock,
    Seed,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
    TransformSql,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp

DataEvent = AddData | ExecuteTransform


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainState:
    """What the rules need to know of the blocks up to `head`."""

    head: Multihash
    sequence_number: int
    system_time: Timestamp
    last_data: DataEvent | None = None
    transform: SetTransform | None = None
    inputs: tuple[DatasetId, ...] | None = None
    """Ids that the next `ExecuteTransform` must list, in order."""
    schema: SetDataSchema | None = None
    polling: bool = False
    push_sources: Mapping[str, AddPushSource] = field(default_factory=dict)


def check(state: ChainState | None, block: MetadataBlock) -> None:
    """Raise `ChainError` unless `block` may follow the chain in `state` (`None`: it is empty)."""
    _check_block(state, block)
    if state is None:
        return
    _check_link(state, block)
    event = block.event
    if isinstance(event, AddData | ExecuteTransform):
        _check_data(state, event)
    match event:
        case AddData():
            _check_add_data(state, event)
        case ExecuteTransform():
            _check_execute_transform(state, event)
        case SetPollingSource():
            if state.push_sources:
                raise _invalid("a polling source cannot be added while push sources are active")
        case AddPushSource():
            _check_push_source(state, event)
        case DisablePollingSource():
            if not state.polling:
                raise _invalid("there is no polling source to disable")
        case DisablePushSource():
            if event.source_name not in state.push_sources:
                raise _invalid(f"there is no push source '{event.source_name}' to disable")
        case SetDataSchema():
            _check_schema(state, event)


def advance(state: ChainState | None, head: Multihash, block: MetadataBlock) -> ChainState:
    """The state one block further on; the block is not checked."""
    event = block.event
    if state is None:
        return ChainState(
            head=head, sequence_number=block.sequence_number, system_time=block.system_time
        )
    after = replace(
        state, head=head, sequence_number=block.sequence_number, system_time=block.system_time
    )
    match event:
        case AddData() | ExecuteTransform():
            ids = state.inputs
            if isinstance(event, ExecuteTransform):
                ids = tuple(i.dataset_id for i in event.query_inputs)
            return replace(after, last_data=event, inputs=ids)
        case SetTransform():
            refs = tuple(i.dataset_ref for i in event.inputs)
            ids = tuple(ref for ref in refs if isinstance(ref, DatasetId))
            return replace(after, transform=event, inputs=ids)
        case SetDataSchema():
            return replace(after, schema=event)
        case SetPollingSource():
            return replace(after, polling=True)
        case DisablePollingSource():
            return replace(after, polling=False)
        case AddPushSource():
            return replace(after, push_sources={**state.push_sources, event.source_name: event})
        case DisablePushSource():
            kept = {k: v for k, v in state.push_sources.items() if k != event.source_name}
            return replace(after, push_sources=kept)
    return after


# --- Rules on the block alone ---


def _check_block(state: ChainState | None, block: MetadataBlock) -> None:
    event = block.event
    if isinstance(event, Seed):
        if block.prev_block_hash is not None or state is not None:
            raise _error(
                "AppendingSeedBlockToNonEmptyChain", "a Seed can only be the first block"
            )
    elif block.prev_block_hash is None:
        raise _error("FirstBlockMustBeSeed", "the first block of a chain must be a Seed")
    if state is None and block.prev_block_hash is not None:
        raise _error("PrevBlockNotFound", f"previous block {block.prev_block_hash} is not there")
    if state is None and block.sequence_number != 0:
        raise _error(
            "SequenceIntegrity",
            f"sequence numbers start with 0, not with {block.sequence_number}",
        )
    match event:
        case AddData():
            if not (
                event.new_data
                or event.new_checkpoint
                or event.new_watermark
                or event.new_source_state
            ):
                raise _error("NoOpEvent", "the event is empty")
            _check_interval(event)
        case ExecuteTransform():
            if not (event.new_data or event.new_checkpoint or event.new_watermark):
                raise _error("NoOpEvent", "the event is empty")
            _check_interval(event)
        case SetPollingSource():
            _check_source(event)
            fetch = event.fetch
            if (
                isinstance(fetch, FetchStepEthereumLogs)
                and fetch.chain_id is None
                and fetch.node_url is None
            ):
                raise _invalid("an Ethereum source must specify chainId or nodeUrl")
        case AddPushSource():
            _check_source(event)
        case SetTransform():
            _check_inputs(event)
            _check_normal(event.transform, "transform")


def _check_interval(event: DataEvent) -> None:
    if event.new_data is None:
        return
    interval = event.new_data.offset_interval
    if interval.end < interval.start:
        raise _invalid(f"offset interval [{interval.start}, {interval.end}] is reversed")


def _check_source(event: SetPollingSource | AddPushSource) -> None:
    if event.preprocess is not None:
        _check_normal(event.preprocess, "preprocess")
    if event.read.schema is not None and event.read.ddl_schema is not None:
        raise _invalid("both a DDL and an ODF schema are given")


def _check_inputs(event: SetTransform) -> None:
    if not event.inputs:
        raise _invalid("a transformation must have at least one input")
    for each in event.inputs:
        if not isinstance(each.dataset_ref, DatasetId):
            raise _invalid(f"input '{each.dataset_ref}' is not resolved to a DID")
        if each.alias is None:
            raise _invalid(f"input {each.dataset_ref} has no alias")
    ids = [each.dataset_ref for each in event.inputs]
    if len(set(ids)) < len(ids):
        raise _invalid("an input is listed twice")


def _check_normal(transform: TransformSql, what: str) -> None:
    if transform.query is not None:
        raise _invalid(f"queries of {what} are not in normal form: `query` is set")
    if not transform.queries:
        raise _invalid(f"{what} has no queries")
    *steps, last = transform.queries
    if last.alias is not None:
        raise _invalid(f"the last query of {what} has an alias")
    if any(step.alias is None for step in steps):
        raise _invalid(f"a query of {what} that is not the last one has no alias")


# --- Rules on the block and its predecessor ---


def _check_link(state: ChainState, block: MetadataBlock) -> None:
    if block.prev_block_hash != state.head:
        raise _error("PrevBlockNotFound", f"previous block {block.prev_block_hash} is not the head")
    if block.sequence_number != state.sequence_number + 1:
        raise _error(
            "SequenceIntegrity",
            f"block {block.sequence_number} cannot follow block {state.sequence_number}",
        )
    if block.system_time < state.system_time:
        raise _error(
            "SystemTimeIsNotMonotonic",
            f"system time {block.system_time} is before that of the previous block, "
            f"{state.system_time}",
        )


def _check_data(state: ChainState, event: DataEvent) -> None:
    last = state.last_data
    if last is not None and last.new_watermark is not None:
        new = event.new_watermark
        if new is None or new < last.new_watermark:
            raise _error(
                "WatermarkIsNotMonotonic",
                f"watermark {new or 'none'} is behind the last one, {last.new_watermark}",
            )
    if last is not None and event.prev_offset != last_offset(last):
        raise _invalid(
            f"prevOffset {event.prev_offset} is not the last offset, {last_offset(last)}"
        )
    if event.new_data is not None:
        expected = 0 if event.prev_offset is None else event.prev_offset + 1
        start = event.new_data.offset_interval.start
        if start != expected:
            raise _error(
                "OffsetsAreNotSequential", f"offsets start with {start} instead of {expected}"
            )


def last_offset(event: DataEvent) -> int | None:
    """Offset of the last record up to and including the event."""
    return event.new_data.offset_interval.end if event.new_data else event.prev_offset


# --- Rules on one kind of event ---


def _check_push_source(state: ChainState, event: AddPushSource) -> None:
    if state.polling:
        raise _invalid("a push source cannot be added while a polling source is active")
    if state.push_sources.get(event.source_name) == event:
        raise _error("NoOpEvent", f"push source '{event.source_name}' is like that already")


def _check_add_data(state: ChainState, event: AddData) -> None:
    last = state.last_data if isinstance(state.last_data, AddData) else None
    _check_schema_known(state, event)
    _check_checkpoint(event, last)
    if event.new_data is None:
        advanced = (
            (_checkpoint(event) is not None and _checkpoint(event) != event.prev_checkpoint)
            or event.new_watermark != (last.new_watermark if last else None)
            or event.new_source_state != (last.new_source_state if last else None)
        )
        if not advanced:
            raise _error(
                "NoOpEvent",
                "the event has no data and advances neither checkpoint, watermark nor source state",
            )


def _check_execute_transform(state: ChainState, event: ExecuteTransform) -> None:
    _check_schema_known(state, event)
    if state.inputs is None:
        raise _invalid("ExecuteTransform must come after a SetTransform")
    if tuple(i.dataset_id for i in event.query_inputs) != state.inputs:
        raise _invalid("inputs must be those of the last SetTransform, in the same order")
    last = state.last_data if isinstance(state.last_data, ExecuteTransform) else None
    if last is not None:
        for new, old in zip(event.query_inputs, last.query_inputs, strict=False):
            _check_input(new, old)
    _check_checkpoint(event, last)
    if event.new_data is None:
        advanced = (
            (_checkpoint(event) is not None and _checkpoint(event) != event.prev_checkpoint)
            or event.new_watermark != (last.new_watermark if last else None)
            or any(i.new_block_hash is not None for i in event.query_inputs)
        )
        if not advanced:
            raise _error(
                "NoOpEvent",
                "the event has no data and advances neither checkpoint, watermark nor inputs",
            )


def _check_input(new: ExecuteTransformInput, old: ExecuteTransformInput) -> None:
    where = f"input {new.dataset_id}"
    if new.new_block_hash is not None and new.new_block_hash == new.prev_block_hash:
        raise _invalid(f"{where}: the interval of blocks is empty")
    if new.new_offset is not None and new.new_offset == new.prev_offset:
        raise _invalid(f"{where}: the interval of offsets is empty")
    if new.prev_block_hash != (old.new_block_hash or old.prev_block_hash):
        raise _invalid(f"{where}: prevBlockHash is not the last block that was consumed")
    consumed = old.prev_offset if old.new_offset is None else old.new_offset
    if new.prev_offset != consumed:
        raise _invalid(f"{where}: prevOffset is not the last offset that was consumed")
    if new.new_offset is not None and new.new_block_hash is None:
        raise _invalid(f"{where}: there are new offsets without new blocks")


def _check_schema_known(state: ChainState, event: DataEvent) -> None:
    if event.new_data is not None and state.schema is None:
        raise _invalid("a SetDataSchema must come before the first data")


def _check_checkpoint(event: DataEvent, last: DataEvent | None) -> None:
    if event.prev_checkpoint != (_checkpoint(last) if last else None):
        raise _invalid("prevCheckpoint is not the last checkpoint of the chain")


def _checkpoint(event: DataEvent) -> Multihash | None:
    return event.new_checkpoint.physical_hash if event.new_checkpoint else None


def _check_schema(state: ChainState, event: SetDataSchema) -> None:
    if state.schema is None:
        return
    if event == state.schema:
        raise _error("NoOpEvent", "the schema is the one in force already")
    if event.schema is None or state.schema.schema is None:
        # Raw Arrow schemas are compared where Arrow is at hand, before data is written.
        return
    problem = _evolution(state.schema.schema.fields, event.schema.fields)
    if problem:
        raise _invalid(f"the schema does not follow from the one in force: {problem}")


def _evolution(old: tuple[DataField, ...], new: tuple[DataField, ...]) -> str | None:
    """Why `new` may not follow `old`; optional columns may be added, everything else stays."""
    found = {each.name: each for each in new}
    known = {each.name for each in old}
    for each in old:
        if each.name not in found:
            return f"column '{each.name}' is missing"
        problem = _type_evolution(each.type, found[each.name].type)
        if problem:
            return f"column '{each.name}' {problem}"
    for each in new:
        if each.name not in known and not isinstance(each.type, DataTypeOption):
            return f"new column '{each.name}' is not optional"
    return None


def _type_evolution(old: object, new: object) -> str | None:
    match old, new:
        case DataTypeOption(), DataTypeOption():
            return _type_evolution(old.inner, new.inner)
        case DataTypeOption(), _:
            return "was optional and is required"
        case _, DataTypeOption():
            return "was required and is optional"
        case DataTypeStruct(), DataTypeStruct():
            return _evolution(old.fields, new.fields)
        case DataTypeList(), DataTypeList():
            if old.fixed_length != new.fixed_length:
                return "changes its length"
            return _type_evolution(old.item_type, new.item_type)
    return None if old == new else "changes its type"


def _invalid(message: str) -> ChainError:
    return _error("InvalidEvent", message)


_CODES = {
    "InvalidEvent": "E0601",
    "NoOpEvent": "E0602",
    "FirstBlockMustBeSeed": "E0603",
    "AppendingSeedBlockToNonEmptyChain": "E0604",
    "PrevBlockNotFound": "E0605",
    "SequenceIntegrity": "E0606",
    "SystemTimeIsNotMonotonic": "E0607",
    "WatermarkIsNotMonotonic": "E0608",
    "OffsetsAreNotSequential": "E0609",
}


def _error(rule: str, message: str) -> ChainError:
    error = ChainError(message, code=_CODES[rule])
    error.rule = rule
    return error

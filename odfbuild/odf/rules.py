"""The rules that every block of a chain keeps, as pure functions.

`check` says whether a block may follow, `advance` carries what later rules need to know: a chain of
n blocks is validated in n steps, whether it is appended to, planned or verified. Neither reads
anything. Whether an event suits the kind of the dataset is not a rule of the chain: that is checked
where definitions are read. Source: Open Data Fabric, "Metadata Chain"; reference behaviour, "chain
validation".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn

from odfbuild.errors import ChainError
from odfbuild.odf.defaults import same_meaning
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import (
    AddData,
    AddPushSource,
    DataSchema,
    DisablePollingSource,
    DisablePushSource,
    ExecuteTransform,
    ExecuteTransformInput,
    FetchStepEthereumLogs,
    MetadataBlock,
    ReadStep,
    Seed,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
    SourceState,
    Transform,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp

_NAMES = {
    "E0601": "FirstBlockMustBeSeed",
    "E0602": "AppendingSeedBlockToNonEmptyChain",
    "E0603": "PrevBlockNotFound",
    "E0604": "SequenceIntegrity",
    "E0605": "SystemTimeIsNotMonotonic",
    "E0606": "WatermarkIsNotMonotonic",
    "E0607": "OffsetsAreNotSequential",
    "E0609": "NoOpEvent",
    "E0611": "HashMismatch",
    "E0615": "NoOpEvent",
    "E0617": "NoOpEvent",
    "E0648": "NoOpEvent",
    "E0649": "NoOpEvent",
    "E0650": "NoOpEvent",
    "E0655": "NoOpEvent",
}
"""The reference's name of the kind of error behind a code; of all others: `InvalidEvent`.

Every rule has a code of its own; docs/reference/chain-rules.md lists them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _LastData:
    """The newest block with an event of one kind that carries data."""

    last_offset: int | None
    checkpoint: Multihash | None
    watermark: Timestamp | None
    source_state: SourceState | None = None
    inputs: tuple[ExecuteTransformInput, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainState:
    """What the rules need to know of a chain whose newest block is `head`.

    `data` is the newest `AddData` or `ExecuteTransform`, `added` and `executed` the newest of each.
    `push_sources` holds the latest of each name that was not disabled since.
    """

    head: Multihash
    sequence_number: int
    system_time: Timestamp
    data: _LastData | None = None
    added: _LastData | None = None
    executed: _LastData | None = None
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
    after = replace(
        state, head=head, sequence_number=block.sequence_number, system_time=block.system_time
    )
    match block.event:
        case AddData() as event:
            last = _last(event)
            return replace(after, data=last, added=last)
        case ExecuteTransform() as event:
            last = _last(event)
            return replace(after, data=last, executed=last)
        case SetDataSchema() as schema:
            return replace(after, schema=schema)
        case SetTransform() as transform:
            return replace(after, transform=transform)
        case SetPollingSource():
            return replace(after, polling=True)
        case DisablePollingSource():
            return replace(after, polling=False)
        case AddPushSource() as source:
            return replace(after, push_sources={**state.push_sources, source.source_name: source})
        case DisablePushSource(source_name=name):
            kept = {key: value for key, value in state.push_sources.items() if key != name}
            return replace(after, push_sources=kept)
    return after


def _last(event: AddData | ExecuteTransform) -> _LastData:
    data, checkpoint = event.new_data, event.new_checkpoint
    return _LastData(
        last_offset=data.offset_interval.end if data else event.prev_offset,
        checkpoint=checkpoint.physical_hash if checkpoint else None,
        watermark=event.new_watermark,
        source_state=event.new_source_state if isinstance(event, AddData) else None,
        inputs=event.query_inputs if isinstance(event, ExecuteTransform) else (),
    )


def check(state: ChainState | None, block: MetadataBlock) -> None:
    """Raise `ChainError` unless `block` may be the next block; `state` is `None` before the seed.

    `ChainError.rule` is the reference's name of the kind of error.
    """
    event = block.event
    _check_seed(state, block)
    match event:
        case AddData() | ExecuteTransform():
            _check_data_alone(event)
        case AddPushSource():
            _check_read(event.read)
            _check_queries(event.preprocess)
        case SetPollingSource():
            _check_polling(event)
        case SetTransform():
            _check_transform(event)
    if state is None:
        return
    _check_link(state, block)
    match event:
        case AddData():
            _check_progress(state, event)
            _check_added(state, event)
        case ExecuteTransform():
            _check_progress(state, event)
            _check_executed(state, event)
        case AddPushSource() | SetPollingSource() | DisablePollingSource() | DisablePushSource():
            _check_source_change(state, event)
        case SetDataSchema(schema=DataSchema() as schema) if state.schema is not None:
            _check_schema(state.schema, schema)


def check_hash(expected: Multihash, actual: Multihash) -> None:
    """Raise `ChainError` unless a block that came from elsewhere has the hash it was named by."""
    if expected != actual:
        _refuse("E0611", f"the block hashes to {actual}, not to {expected}")


def _refuse(code: str, message: str, *notes: str, help: str | None = None) -> NoReturn:
    error = ChainError(message, code=code, notes=notes, help=help)
    error.rule = _NAMES.get(code, "InvalidEvent")
    raise error


# --- Place in the chain ---


def _check_seed(state: ChainState | None, block: MetadataBlock) -> None:
    previous = block.prev_block_hash
    if isinstance(block.event, Seed):
        if previous is not None or state is not None:
            _refuse("E0602", "a chain has only one Seed, its first block")
        if block.sequence_number != 0:
            _refuse(
                "E0604",
                f"the first block has sequence number {block.sequence_number}, not 0",
            )
        return
    if previous is None:
        _refuse("E0601", "the first block of a chain must be a Seed")
    if state is None:
        _refuse("E0603", f"the previous block {previous} does not exist")


def _check_link(state: ChainState, block: MetadataBlock) -> None:
    if block.prev_block_hash != state.head:
        _refuse(
            "E0603",
            "the block does not follow the newest one",
            f"its previous block: {block.prev_block_hash}",
            f"the newest block:   {state.head}",
        )
    if block.sequence_number != state.sequence_number + 1:
        _refuse(
            "E0604",
            f"block number {block.sequence_number} follows block number {state.sequence_number}",
        )
    if block.system_time < state.system_time:
        _refuse(
            "E0605",
            f"the system time {block.system_time} lies before that of the previous block, "
            f"{state.system_time}",
            help="check the clock of this machine",
        )


# --- Sources and transformations ---


def _check_polling(event: SetPollingSource) -> None:
    fetch = event.fetch
    if isinstance(fetch, FetchStepEthereumLogs) and not (
        fetch.chain_id is not None or fetch.node_url is not None
    ):
        _refuse("E0644", "an EthereumLogs source needs a chainId or a nodeUrl")
    _check_read(event.read)
    _check_queries(event.preprocess)


def _check_read(read: ReadStep) -> None:
    if read.schema is not None and read.ddl_schema is not None:
        _refuse(
            "E0645",
            "a read step has both a schema and a ddlSchema",
            help="keep one of the two",
        )


def _check_queries(transform: Transform | None) -> None:
    if transform is None:
        return
    if transform.query is not None:
        _refuse("E0640", "a committed transform lists its queries, and has no single `query`")
    if not transform.queries:
        _refuse("E0641", "a transform has no query")
    *views, result = transform.queries
    if result.alias is not None:
        _refuse("E0642", f"the last query is the result and has no alias: '{result.alias}'")
    if any(step.alias is None for step in views):
        _refuse("E0643", "every query but the last needs an alias")


def _check_transform(event: SetTransform) -> None:
    if not event.inputs:
        _refuse("E0651", "a transform has no inputs")
    for each in event.inputs:
        if not isinstance(each.dataset_ref, DatasetId):
            _refuse("E0652", f"the input '{each.dataset_ref}' was not resolved to a DID")
        if each.alias is None:
            _refuse("E0653", f"the input {each.dataset_ref} has no alias")
    if len({each.dataset_ref for each in event.inputs}) < len(event.inputs):
        _refuse("E0654", "a dataset is listed twice among the inputs")
    _check_queries(event.transform)


SourceChange = SetPollingSource | AddPushSource | DisablePollingSource | DisablePushSource


def _check_source_change(state: ChainState, event: SourceChange) -> None:
    match event:
        case SetPollingSource() if state.push_sources:
            names = ", ".join(f"'{name}'" for name in sorted(state.push_sources))
            _refuse(
                "E0646",
                f"a polling source cannot be set while push sources are active: {names}",
                help="disable them first (DisablePushSource)",
            )
        case AddPushSource() if state.polling:
            _refuse(
                "E0647",
                "a push source cannot be added while the polling source is active",
                help="disable it first (DisablePollingSource)",
            )
        case AddPushSource():
            existing = state.push_sources.get(event.source_name)
            if existing is not None and same_meaning(existing, event):
                _refuse("E0648", f"the push source '{event.source_name}' is there already")
        case DisablePollingSource() if not state.polling:
            _refuse("E0649", "there is no active polling source to disable")
        case DisablePushSource() if event.source_name not in state.push_sources:
            _refuse("E0650", f"there is no active push source '{event.source_name}' to disable")


# --- Data ---


def _check_data_alone(event: AddData | ExecuteTransform) -> None:
    has_state = isinstance(event, AddData) and event.new_source_state is not None
    if not (event.new_data or event.new_checkpoint or event.new_watermark or has_state):
        _refuse("E0609", "the event is empty")
    if event.new_data is None:
        return
    interval = event.new_data.offset_interval
    expected = 0 if event.prev_offset is None else event.prev_offset + 1
    if interval.start != expected:
        _refuse(
            "E0607",
            f"the new records start at offset {interval.start}, expected {expected}",
        )
    if interval.end < interval.start:
        _refuse("E0608", f"the offset interval [{interval.start}, {interval.end}] is not valid")


def _check_progress(state: ChainState, event: AddData | ExecuteTransform) -> None:
    """Watermarks and offsets continue those of the newest block with data of either kind."""
    last = state.data
    if last is not None:
        new = event.new_watermark
        if last.watermark is not None and (new is None or new < last.watermark):
            _refuse(
                "E0606",
                f"the watermark goes back from {last.watermark} to {new or 'none'}",
            )
        if event.prev_offset != last.last_offset:
            _refuse(
                "E0612",
                f"the event continues from offset {_or_none(event.prev_offset)}, "
                f"the chain's last offset is {_or_none(last.last_offset)}",
            )


def _check_schema_present(state: ChainState, event: AddData | ExecuteTransform) -> None:
    if event.new_data is not None and state.schema is None:
        _refuse("E0613", "records cannot be added before a SetDataSchema event")


def _check_checkpoint(last: _LastData | None, event: AddData | ExecuteTransform) -> None:
    expected = last.checkpoint if last else None
    if event.prev_checkpoint != expected:
        _refuse(
            "E0614",
            f"the event continues from checkpoint {_or_none(event.prev_checkpoint)}, "
            f"the last one in the chain is {_or_none(expected)}",
        )


def _moves(last: _LastData | None, event: AddData | ExecuteTransform) -> bool:
    checkpoint = event.new_checkpoint.physical_hash if event.new_checkpoint else None
    watermark = last.watermark if last else None
    return (
        event.new_data is not None
        or checkpoint != event.prev_checkpoint
        or event.new_watermark != watermark
    )


def _check_added(state: ChainState, event: AddData) -> None:
    last = state.added
    _check_schema_present(state, event)
    _check_checkpoint(last, event)
    if not _moves(last, event) and event.new_source_state == (last.source_state if last else None):
        _refuse(
            "E0615",
            "the event neither has records nor advances checkpoint, watermark or source state",
        )


def _check_executed(state: ChainState, event: ExecuteTransform) -> None:
    last = state.executed
    _check_schema_present(state, event)
    if state.transform is None:
        _refuse("E0616", "ExecuteTransform comes before any SetTransform")
    committed = [each.dataset_ref for each in state.transform.inputs]
    if [each.dataset_id for each in event.query_inputs] != committed:
        _refuse("E0630", "the inputs are not those of SetTransform in the same order")
    if last is not None:
        for number, (new, old) in enumerate(
            zip(event.query_inputs, last.inputs, strict=False), start=1
        ):
            _check_input(number, new, old)
    _check_checkpoint(last, event)
    advanced = any(each.new_block_hash is not None for each in event.query_inputs)
    if not _moves(last, event) and not advanced:
        _refuse(
            "E0617",
            "the event neither has records nor advances inputs, checkpoint or watermark",
        )


def _check_input(number: int, new: ExecuteTransformInput, old: ExecuteTransformInput) -> None:
    def refuse(code: str, problem: str) -> NoReturn:
        _refuse(code, f"input {number}, {new.dataset_id}: {problem}")

    if new.new_block_hash is not None and new.new_block_hash == new.prev_block_hash:
        refuse("E0631", "its interval of blocks ends where it begins")
    if new.new_offset is not None and new.new_offset == new.prev_offset:
        refuse("E0632", "its interval of offsets ends where it begins")
    if new.prev_block_hash != (old.new_block_hash or old.prev_block_hash):
        refuse("E0633", "prevBlockHash is not the last block that was consumed")
    if new.prev_offset != (old.prev_offset if old.new_offset is None else old.new_offset):
        refuse("E0634", "prevOffset is not the last offset that was consumed")
    if new.new_offset is not None and new.new_block_hash is None:
        refuse("E0635", "records without the blocks that hold them")


def _or_none(value: object) -> str:
    return "none" if value is None else str(value)


# --- Schema ---


def _check_schema(current: SetDataSchema, new: DataSchema) -> None:
    from odfbuild.odf.schema_compare import Comparison, compare, forbidden_changes, strip_encoding

    legacy = current.schema is None
    if current.schema is not None:
        before = current.schema
    else:
        from odfbuild.odf.arrow_schema import schema_of, to_odf

        before = to_odf(schema_of(current))
    before = strip_encoding(before)
    if not legacy and compare(before, new) is Comparison.IDENTICAL:
        _refuse("E0655", "the new schema is identical to the current one")
    problems = forbidden_changes(before, new, ignore_optionality=legacy)
    if problems:
        _refuse(
            "E0656",
            "the new schema is not compatible with the current one",
            *problems,
            help="only new optional columns, another order and other attributes are possible",
        )

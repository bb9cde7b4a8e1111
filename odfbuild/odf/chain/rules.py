"""The rules that every block of a chain keeps, as pure functions.

`check` says whether a block may follow those of a `ChainState`; it reads nothing. Whether an event
suits the kind of the dataset is not a rule of the chain: that is checked where definitions are
read. Source: Open Data Fabric, "Metadata Chain"; reference behaviour, "chain validation".
"""

from __future__ import annotations

from odfbuild.errors import IntegrityError
from odfbuild.odf.chain.data_rules import check_data, check_data_follows
from odfbuild.odf.chain.rule_errors import refuse
from odfbuild.odf.chain.state import ChainState
from odfbuild.odf.defaults import same_meaning
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import (
    AddData,
    AddPushSource,
    DataSchema,
    DataTypeList,
    DataTypeMap,
    DataTypeOption,
    DataTypeStruct,
    DisablePollingSource,
    DisablePushSource,
    ExecuteTransform,
    FetchStepEthereumLogs,
    MetadataBlock,
    ReadStep,
    Seed,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
    Transform,
)
from odfbuild.odf.multihash import Multihash


def check(state: ChainState | None, block: MetadataBlock) -> None:
    """Raise `ChainError` unless `block` may be the next block; `state` is `None` before the seed.

    `ChainError.rule` is the reference's name of the kind of error.
    """
    event = block.event
    _check_seed(state, block)
    match event:
        case AddData() | ExecuteTransform():
            check_data(event)
        case AddPushSource():
            _check_read(event.read)
            _check_queries(event.preprocess)
        case SetPollingSource():
            _check_polling(event)
        case SetTransform():
            _check_transform(event)
        case SetDataSchema():
            _check_schema_alone(event)
    if state is None:
        return
    _check_link(state, block)
    match event:
        case AddData() | ExecuteTransform():
            check_data_follows(state, event)
        case AddPushSource() | SetPollingSource() | DisablePollingSource() | DisablePushSource():
            _check_source_change(state, event)
        case SetDataSchema(schema=DataSchema() as schema) if state.schema is not None:
            _check_schema(state.schema, schema)


def check_hash(expected: Multihash, actual: Multihash) -> None:
    """Raise `ChainError` unless a block that came from elsewhere has the hash it was named by."""
    if expected != actual:
        refuse("E0611", f"the block hashes to {actual}, not to {expected}")


# --- Place in the chain ---


def _check_seed(state: ChainState | None, block: MetadataBlock) -> None:
    previous = block.prev_block_hash
    if isinstance(block.event, Seed):
        if previous is not None or state is not None:
            refuse("E0602", "a chain has only one Seed, its first block")
        if block.sequence_number != 0:
            refuse(
                "E0604",
                f"the first block has sequence number {block.sequence_number}, not 0",
            )
        return
    if previous is None:
        refuse("E0601", "the first block of a chain must be a Seed")
    if state is None:
        refuse("E0603", f"the previous block {previous} does not exist")


def _check_link(state: ChainState, block: MetadataBlock) -> None:
    if block.prev_block_hash != state.head:
        refuse(
            "E0603",
            "the block does not follow the newest one",
            f"its previous block: {block.prev_block_hash}",
            f"the newest block:   {state.head}",
        )
    if block.sequence_number != state.sequence_number + 1:
        refuse(
            "E0604",
            f"block number {block.sequence_number} follows block number {state.sequence_number}",
        )
    if block.system_time < state.system_time:
        refuse(
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
        refuse("E0644", "an EthereumLogs source needs a chainId or a nodeUrl")
    _check_read(event.read)
    _check_queries(event.preprocess)


def _check_read(read: ReadStep) -> None:
    if read.schema is not None and read.ddl_schema is not None:
        refuse(
            "E0645",
            "a read step has both a schema and a ddlSchema",
            help="keep one of the two",
        )


def _check_queries(transform: Transform | None) -> None:
    if transform is None:
        return
    if transform.query is not None:
        refuse("E0640", "a committed transform lists its queries, and has no single `query`")
    if not transform.queries:
        refuse("E0641", "a transform has no query")
    *views, result = transform.queries
    if result.alias is not None:
        refuse("E0642", f"the last query is the result and has no alias: '{result.alias}'")
    if any(step.alias is None for step in views):
        refuse("E0643", "every query but the last needs an alias")


def _check_transform(event: SetTransform) -> None:
    if not event.inputs:
        refuse("E0651", "a transform has no inputs")
    for each in event.inputs:
        if not isinstance(each.dataset_ref, DatasetId):
            refuse("E0652", f"the input '{each.dataset_ref}' was not resolved to a DID")
        if each.alias is None:
            refuse("E0653", f"the input {each.dataset_ref} has no alias")
    if len({each.dataset_ref for each in event.inputs}) < len(event.inputs):
        refuse("E0654", "a dataset is listed twice among the inputs")
    _check_queries(event.transform)


SourceChange = SetPollingSource | AddPushSource | DisablePollingSource | DisablePushSource


def _check_source_change(state: ChainState, event: SourceChange) -> None:
    match event:
        case SetPollingSource() if state.push_sources:
            names = ", ".join(f"'{name}'" for name in sorted(state.push_sources))
            refuse(
                "E0646",
                f"a polling source cannot be set while push sources are active: {names}",
                help="disable them first (DisablePushSource)",
            )
        case AddPushSource() if state.polling:
            refuse(
                "E0647",
                "a push source cannot be added while the polling source is active",
                help="disable it first (DisablePollingSource)",
            )
        case AddPushSource():
            existing = state.push_sources.get(event.source_name)
            if existing is not None and same_meaning(existing, event):
                refuse("E0648", f"the push source '{event.source_name}' is there already")
        case DisablePollingSource() if not state.polling:
            refuse("E0649", "there is no active polling source to disable")
        case DisablePushSource() if event.source_name not in state.push_sources:
            refuse("E0650", f"there is no active push source '{event.source_name}' to disable")


# --- Schema ---


_MAX_NESTED = 20
"""Types in types: three tables each, of which a reader follows 64."""


def _check_schema_alone(event: SetDataSchema) -> None:
    if (event.raw_arrow_schema is None) == (event.schema is None):
        refuse("E0658", "the event holds one schema, as `schema` or as `rawArrowSchema`")
    if event.schema is not None:
        _check_depth(event.schema)
        return
    from odfbuild.odf.schema.arrow_form import read_schema

    try:
        read_schema(event)
    except IntegrityError as error:
        refuse("E0659", error.message, *error.notes)


def _check_depth(schema: DataSchema) -> None:
    waiting: list[tuple[object, int]] = [(field.type, 1) for field in schema.fields]
    while waiting:
        kind, depth = waiting.pop()
        if depth > _MAX_NESTED:
            refuse("E0657", f"the schema is nested more than {_MAX_NESTED} deep")
        match kind:
            case DataTypeOption(inner=inner):
                waiting.append((inner, depth))
            case DataTypeList(item_type=item):
                waiting.append((item, depth + 1))
            case DataTypeMap(key_type=key, value_type=value):
                waiting += [(key, depth + 1), (value, depth + 1)]
            case DataTypeStruct(fields=fields):
                waiting += [(field.type, depth + 1) for field in fields]


def _check_schema(current: SetDataSchema, new: DataSchema) -> None:
    from odfbuild.odf.schema.compare import Comparison, compare, forbidden_changes, strip_encoding

    legacy = current.schema is None
    if current.schema is not None:
        before = current.schema
    else:
        from odfbuild.odf.schema.arrow_form import odf_form, read_schema

        before = odf_form(read_schema(current))
    before = strip_encoding(before)
    if not legacy and compare(before, new) is Comparison.IDENTICAL:
        refuse("E0655", "the new schema is identical to the current one")
    problems = forbidden_changes(before, new, ignore_optionality=legacy)
    if problems:
        refuse(
            "E0656",
            "the new schema is not compatible with the current one",
            *problems,
            help="only new optional columns, another order and other attributes are possible",
        )

"""Run the steps of a root dataset: from source files to `AddData`, one transaction per file.

Source: Open Data Fabric, "Data Ingestion", "Merge Strategies"; reference behaviour, data writer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any

from odfbuild.apply.cut_offs import remember_merge
from odfbuild.apply.data_event import data_event
from odfbuild.apply.linked_objects import linked_objects
from odfbuild.apply.root_pieces import add_pieces, stays, written_by_executors
from odfbuild.apply.schema import ensure_schema
from odfbuild.apply.staging import stage_slice
from odfbuild.apply.transaction import Transaction
from odfbuild.engine.contract import (
    NO_DRIFT,
    NONE_SKIPPED,
    Drift,
    Engine,
    EngineResult,
    IngestTask,
    InputSlices,
    ReadPolicies,
    Skipped,
    ValidateTask,
    in_one_job,
)
from odfbuild.engine.own_rows import records_of_own_rows
from odfbuild.engine.personal import sealing_of
from odfbuild.engine.precision import micros_in
from odfbuild.engine.slice import StagedSlice
from odfbuild.errors import QueryError
from odfbuild.ingest.fetch import FetchContext, Fetched
from odfbuild.ingest.file_kind import refuse_other_kind
from odfbuild.ingest.prepare import prepare
from odfbuild.ingest.resume import has_moved
from odfbuild.odf.model import (
    AddData,
    AddPushSource,
    DataField,
    DataTypeInt32,
    MergeStrategy,
    MergeStrategySnapshot,
    ReadStep,
    ReadStepParquet,
    SetDataSchema,
    SetPollingSource,
    SourceState,
)
from odfbuild.odf.schema.arrow_schema import declared_columns, schema_of
from odfbuild.odf.schema.ddl import parse_ddl, quoted_name
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.project.model import Config
from odfbuild.project.settings.watermarks import BY_RECORDS, WatermarkRule, rule_of
from odfbuild.records import merge_slices
from odfbuild.records.key_index import key_index
from odfbuild.store.workspace import Workspace
from odfbuild.survey.late_files import LATE_FILE, late_files
from odfbuild.values import Value
from odfbuild.wording import count

WORTH_AN_INDEX = 1_000
"""Keys of so many records are indexed behind each commit; fewer are indexed by the next merge."""
_CONTENT = "odfbuild/content"
"""Attribute of `AddData`. A server may give another ETag for the same bytes, which tells them."""


class Arrival(ReadPolicies, kw_only=True):
    """A file that enters a dataset, and by which source.

    `display_name` is what messages call the file, `event_time` the time of records that carry none
    (`None`: the system time), `source_state` where the source stands with it, `content` a hash of
    the bytes that it stands for; `late` is the name of a file that leaves the source where it
    stood. `own_rows`: odfbuild wrote the file itself, of values that it checked. `watermark` says
    how it moves, and `recorded` are more attributes of the event.
    """

    source: SetPollingSource | AddPushSource
    file: Path
    display_name: str
    event_time: Timestamp | None
    source_state: SourceState | None
    content: str | None = None
    late: str | None = None
    whole: bool = False
    changes: bool = False
    own_rows: bool = False
    watermark: WatermarkRule = BY_RECORDS
    recorded: Mapping[str, Any] = field(default_factory=dict)


class Ingested(Value):
    """New records, bad ones that were skipped, drift, warnings, a note on where it was computed."""

    records: int = 0
    skipped: Skipped = NONE_SKIPPED
    drift: Drift = NO_DRIFT
    warnings: tuple[str, ...] = ()
    note: str = ""


def fetch_context(transaction: Transaction, config: Config, scratch: Path) -> FetchContext:
    """What fetching the source of a dataset needs to know besides its definition."""
    source = transaction.state.polling_source
    return FetchContext(
        project=config.name,
        dataset=transaction.alias,
        root=config.root,
        scratch=scratch,
        cache=config.cache,
        inbox=config.inbox,
        now=transaction.system_time,
        settings=config.ingest,
        moved=source is not None and has_moved(source.fetch, transaction.base),
        content=_content_read(transaction),
        late=_late(transaction, config),
        columns=_columns(transaction, source),
        merge=source.merge if source is not None else None,
        vocab=vocabulary_of(transaction.state.vocab),
        stays=partial(stays, transaction, config),
    )


def _columns(transaction: Transaction, source: SetPollingSource | None) -> tuple[str, ...] | None:
    """The columns that a definition declares, and the one of operations, which it may leave out."""
    declared = declared_columns(source.read) if source is not None else None
    if declared is None:
        return None
    return (*declared.names, vocabulary_of(transaction.state.vocab).operation_type)


def _late(transaction: Transaction, config: Config) -> tuple[str, ...]:
    """Paths of the late files that are to be read."""
    source, base, name = transaction.state.polling_source, transaction.base, transaction.alias
    if source is None or base is None or config.ingest.late_policy(name) != "read":
        return ()
    return tuple(late_files(transaction.workspace, name, base, source, str(config.root)))


def _content_read(transaction: Transaction) -> str | None:
    """A hash of the bytes for which the state of the source stands, if the chain tells."""
    state = transaction.state.source_state
    if state is None or transaction.base is None:
        return None
    store = transaction.workspace.dataset(transaction.alias)
    for _, block in store.walk(transaction.base.head):
        if not isinstance(block.event, AddData):
            continue
        if block.event.new_source_state != state:
            break
        content = (block.event.extra or {}).get(_CONTENT)
        if isinstance(content, str):
            return content
    return state.value  # of a file it is the hash itself


def stage_polled(
    transaction: Transaction,
    get_engine: Callable[[], Engine],
    fetched: Fetched,
    scratch: Path,
    config: Config,
    ready: EngineResult | None = None,
) -> Ingested:
    """Prepare a fetched file and stage it; returns what came of it.

    `ready` is what the engine gave for it already, if it was read together with others.
    """
    rule = rule_of(config.watermarks, transaction.alias)
    note = ""
    if fetched.elsewhere is not None:
        file = scratch / "elsewhere"
        arrival = _arrival(transaction, fetched, file, scratch, config)
        task, source = task_for(transaction, arrival, scratch), fetched.elsewhere.source
        written = written_by_executors(transaction, get_engine, task, source, config.engine)
        if pieces := written.pieces:
            add_pieces(transaction, pieces, fetched.state, rule)
            wrote = f"executors wrote {count(len(pieces), 'slice')}"
            return Ingested(sum(e.data.records for e in pieces if e.data is not None), note=wrote)
        note = f"read through this machine, because {written.why}"
        fetched = fetched.here()
    if fetched.file is None:
        _add_event(transaction, None, fetched.state, rule, _recorded(fetched.content))
        return Ingested(note=fetched.note)
    arrival = _arrival(transaction, fetched, fetched.file, scratch, config)
    came = stage_ingest(transaction, get_engine, arrival, scratch, ready)
    return replace(came, note="; ".join(filter(None, (came.note, note))))


def _arrival(
    transaction: Transaction, fetched: Fetched, file: Path, scratch: Path, config: Config
) -> Arrival:
    source = transaction.state.polling_source
    if source is None:
        raise AssertionError("only a dataset with a polling source is polled")
    place, settings = config.root, config.ingest
    steps = source.prepare or ()
    file, name = prepare(steps, file, fetched.display_name, scratch, place, settings)
    policies = settings.policies(transaction.alias)
    if getattr(source.fetch, "event_time", None) is not None:
        # A definition that says where event times come from says so for these records, too.
        policies = replace(policies, blank_event_times="fill")
    return Arrival(
        source=source,
        file=file,
        display_name=name,
        event_time=fetched.event_time,
        source_state=fetched.state,
        content=fetched.content,
        late=fetched.display_name.rpartition("/")[2] if fetched.late else None,
        whole=fetched.whole,
        changes=fetched.changes,
        own_rows=fetched.own_rows and not steps,
        watermark=rule_of(config.watermarks, transaction.alias),
        **policies.policies(),
    )


def read_together(
    transaction: Transaction,
    get_engine: Callable[[], Engine],
    batch: Sequence[Fetched],
    folders: Sequence[Path],
    config: Config,
) -> Sequence[EngineResult | None]:
    """What the engine makes of several files in one job; nothing where they go one by one.

    Whatever is wrong with one of them is found, and told, when it is ingested alone.
    """
    if len(batch) > 1:
        pairs = zip(batch, folders, strict=True)
        tasks = [task_of(transaction, fetched, scratch, config) for fetched, scratch in pairs]
        known = [task for task in tasks if task is not None]
        if len(known) == len(batch):
            return in_one_job(get_engine(), known)
    return [None] * len(batch)


def task_of(
    transaction: Transaction, fetched: Fetched, scratch: Path, config: Config
) -> IngestTask | None:
    """How a file is read together with others; `None` where it is to be prepared before."""
    source = transaction.state.polling_source
    if fetched.file is None or source is None or source.prepare:
        return None
    arrival = _arrival(transaction, fetched, fetched.file, scratch, config)
    return task_for(transaction, arrival, scratch)


def stage_ingest(
    transaction: Transaction,
    get_engine: Callable[[], Engine],
    arrival: Arrival,
    scratch: Path,
    ready: EngineResult | None = None,
) -> Ingested:
    """Read and merge a file, add the resulting events; returns what came of it.

    `ready` is what the engine gave for it already. No engine is asked for where none is needed.
    Adds nothing when the file holds nothing new and the state of the source is the same.
    """
    source = arrival.source
    refuse_other_kind(arrival.file, source.read, arrival.display_name, transaction.alias)
    vocab = vocabulary_of(transaction.state.vocab)
    try:
        result = ready or _computed(task_for(transaction, arrival, scratch), arrival, get_engine)
        may_grow = arrival.on_schema_change == "append_new_columns"
        counts_until = arrival.watermark.counts_until(transaction.system_time)
        staged = stage_slice(
            transaction, result, vocab, scratch, may_grow=may_grow, counts_until=counts_until
        )
    except QueryError as error:
        raise error.noted(f"with the data of '{arrival.display_name}'") from None
    extra = {**_recorded(arrival.content), **arrival.recorded}
    if arrival.late is not None:
        extra[LATE_FILE] = arrival.late
    if staged is not None and transaction.state.schema is not None:
        store = transaction.workspace.dataset(transaction.alias)
        extra |= linked_objects(store, schema_of(transaction.state.schema), staged.path) or {}
    _add_event(transaction, staged, arrival.source_state, arrival.watermark, extra)
    records = staged.records if staged else 0
    cut = _cut(source, transaction.state.schema, vocab.event_time) if staged else ""
    notes = (result.note, cut, _ahead(staged.ahead) if staged and staged.ahead else "")
    note = "; ".join(filter(None, notes))
    return Ingested(records, result.skipped, result.drift, result.warnings, note)


def _computed(task: IngestTask, arrival: Arrival, get_engine: Callable[[], Engine]) -> EngineResult:
    plain = records_of_own_rows(task) if arrival.own_rows else None
    return plain or get_engine().run(task)


def task_for(transaction: Transaction, arrival: Arrival, scratch: Path) -> IngestTask:
    """The task of an engine to read an arrival and to merge it with what the chain has."""
    state, source = transaction.state, arrival.source
    merge = _merge(source, arrival)
    seal = None
    if transaction.base is not None and state.schema is not None and merge.COMPARES:
        seal = sealing_of(transaction.workspace.dataset(transaction.alias), state)
    return IngestTask(
        dataset=transaction.alias,
        file=arrival.file,
        source_name=arrival.display_name,
        read=_read(source.read, arrival, vocabulary_of(state.vocab).operation_type),
        preprocess=source.preprocess,
        merge=merge,
        vocab=vocabulary_of(state.vocab),
        history=transaction.workspace.committed(transaction.alias, transaction.base),
        history_schema=schema_of(state.schema) if state.schema else None,
        event_time=arrival.event_time or transaction.system_time,
        scratch=scratch,
        **arrival.policies(),
        of_changes=arrival.changes,
        seal=seal,
    )


def _merge(source: SetPollingSource | AddPushSource, arrival: Arrival) -> MergeStrategy:
    """How a file joins the history: the state of a source of changes by what is different."""
    if arrival.whole and source.merge.HAS_CHANGES:
        return MergeStrategySnapshot(primary_key=source.merge.key)
    return source.merge


def _read(read: ReadStep, arrival: Arrival, operation: str) -> ReadStep:
    """How a file is read: changes have the column of operations, whether it is declared or not."""
    if not (arrival.whole or arrival.changes) or not isinstance(read, ReadStepParquet):
        return read
    if read.schema is not None:
        fields = [each for each in read.schema.fields if each.name != operation]
        if arrival.changes:
            fields.append(DataField(name=operation, type=DataTypeInt32()))
        return replace(read, schema=replace(read.schema, fields=tuple(fields)))
    if not read.ddl_schema:
        return read
    columns = [each for each in read.ddl_schema if parse_ddl((each,)).names != [operation]]
    if arrival.changes:
        columns.append(f"{quoted_name(operation)} INT")
    return replace(read, ddl_schema=tuple(columns))


def stage_by_clock(transaction: Transaction, rule: WatermarkRule) -> str:
    """Move the watermark without records where the clock has come so far; says so."""
    state = transaction.state
    if not rule.is_due(state, transaction.system_time):
        return ""
    transaction.add(data_event(transaction, None, None, state.source_state, rule))
    return f"the watermark moved to {transaction.state.watermark} by the clock"


def _cut(
    source: SetPollingSource | AddPushSource, committed: SetDataSchema | None, event_time: str
) -> str:
    """Declared times that lose digits, since the chain was begun by a release that cut them."""
    declared = declared_columns(source.read)
    if declared is None or source.preprocess is not None or committed is None:
        return ""
    fine = micros_in(declared) - micros_in(schema_of(committed)) - {event_time}
    names = ", ".join(sorted(fine))
    return f"milliseconds are kept for {names}, as in its first records" if fine else ""


def _ahead(records: int) -> str:
    verb = "lies" if records == 1 else "lie"
    return f"{count(records, 'record')} {verb} too far in the future to move the watermark"


def keep_side_cars(workspace: Workspace, alias: str, merge: MergeStrategy | None) -> None:
    """Bring what readers and the next merge of this kind look at up to the head, after a commit.

    Of few records nothing is kept: a merge reads their keys faster than side-cars are written.
    Whatever prevents that costs them time, and nothing else.
    """
    state = workspace.projection(alias)
    if state is None or state.schema is None:
        return
    if merge is not None and merge.COMPARES:
        remember_merge(workspace, alias, state)
    committed = workspace.committed(alias, state)
    if state.blocks >= merge_slices.MANY:
        merge_slices.keep_merged(committed)
    if (state.last_offset or 0) < WORTH_AN_INDEX:
        return
    if merge is not None and merge.LOOKS_UP:
        offset = vocabulary_of(state.vocab).offset if merge.COMPARES else None
        key_index(committed, schema_of(state.schema), merge.key, offset)


def _add_event(
    transaction: Transaction,
    staged: StagedSlice | None,
    source_state: SourceState | None,
    rule: WatermarkRule,
    extra: dict[str, Any],
) -> None:
    if staged is None and source_state == transaction.state.source_state:
        return
    data, newest = (staged.data, staged.max_event_time) if staged else (None, None)
    event = data_event(transaction, data, newest, source_state, rule, extra)
    if event.new_data or event.new_watermark or event.new_source_state:
        transaction.add(event)


def validate_source(
    transaction: Transaction,
    source: SetPollingSource | AddPushSource,
    get_engine: Callable[[], Engine],
) -> None:
    """Bring the schema in line with a changed source, from its declared columns alone.

    Without declared columns only the data can tell, and then the next ingestion does it. Raises
    `QueryError` when the change is breaking.
    """
    state = transaction.state
    if state.schema is None:
        return
    columns = declared_columns(source.read)
    if columns is None:
        return
    vocab = vocabulary_of(state.vocab)
    if source.preprocess is not None:
        given = InputSlices(alias="input", schema=columns, vocab=vocab)
        columns = get_engine().run(
            ValidateTask(
                dataset=transaction.alias,
                transform=source.preprocess,
                inputs=(given,),
                vocab=vocab,
                preprocess=True,
            )
        )
    if columns is None:
        return
    if vocab.event_time not in columns.names:
        columns = columns.append(schema_of(state.schema).field(vocab.event_time))
    ensure_schema(transaction, columns, vocab)


def _recorded(content: str | None) -> dict[str, Any]:
    """The attribute by which a block says what bytes its source state stands for."""
    return {} if content is None else {_CONTENT: content}

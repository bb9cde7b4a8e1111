"""Run one step of a derivative: from new records of its inputs to an `ExecuteTransform`.

Source: Open Data Fabric, "Derivative Transformations"; what a step reads is decided in `odf.step`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

import pyarrow as pa

from odfbuild.apply.cut_offs import changes_nothing
from odfbuild.apply.staging import stage_slice
from odfbuild.apply.transaction import Transaction
from odfbuild.engine.contract import (
    Engine,
    SliceFile,
    Told,
    TransformResult,
    TransformTask,
    ValidateTask,
)
from odfbuild.engine.event_windows import count_late, late_records, windows_of
from odfbuild.engine.personal import committed_files
from odfbuild.engine.request import (
    StepInput,
    checkpoint_of_engine,
    is_computed,
    is_exact,
    key_of,
    transform_task,
)
from odfbuild.engine.slice import dataset_schema
from odfbuild.errors import ChainError, EngineError, PlanError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.chain.step import (
    Closeness,
    Interval,
    Unread,
    interval_between,
    next_step,
    one_step,
    output_watermark,
    told_watermark,
)
from odfbuild.odf.digest import physical_hash
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import (
    Checkpoint,
    DatasetKind,
    DataSlice,
    ExecuteTransform,
    ExecuteTransformInput,
    SetTransform,
    SetVocab,
    TransformInput,
    TransformSql,
)
from odfbuild.odf.schema.arrow_schema import schema_of
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary, vocabulary_of
from odfbuild.plan.changes.equality import unpinned
from odfbuild.plan.ways import Computation
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import WINDOWS, Choice, Mode
from odfbuild.store.branches import Limit
from odfbuild.store.cache import project
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value


def read_inputs(
    workspace: Workspace,
    dataset: str,
    state: Projection,
    closeness: Closeness = Closeness.FREE,
) -> tuple[StepInput, ...] | None:
    """The next step of a derivative, input by input; `None` while an input has no schema yet.

    It reads as many blocks as `closeness` lets it.

    Raises `PlanError` when an input is gone, or the chain says no transformation, and `ChainError`
    when the history of an input was rewritten.
    """
    if state.transform is None:
        raise PlanError(
            f"the chain of '{dataset}' says no transformation",
            code="E0330",
            dataset=dataset,
            help="add a SetTransform to its definition",
        )
    consumed = {i.dataset_id: i for i in state.inputs}
    unread = []
    for declared in state.transform.inputs:
        dataset_id, alias = _locate(workspace, dataset, declared)
        now = workspace.projection(alias)
        if now is None or now.schema is None:
            return None
        store = workspace.dataset(alias)
        unread.append(_unread(declared.alias or alias, store, now, consumed.get(dataset_id)))
    return tuple(
        _read_input(workspace, each, taken)
        for each, taken in zip(unread, _one_step(state, unread, closeness), strict=True)
    )


class _Unread(Value):
    """An input, called `name` in the query, and what it gained since it was read."""

    name: str
    store: DatasetStore
    now: Projection
    consumed: ExecuteTransformInput | None
    interval: Interval


def _unread(
    name: str, store: DatasetStore, now: Projection, consumed: ExecuteTransformInput | None
) -> _Unread:
    after = consumed.new_block_hash if consumed else None
    interval = interval_between(now.head, after, store.read_block)
    if interval is None:
        raise ChainError(
            f"the history of '{store.name}' no longer holds block {after}, which was consumed",
            code="E0610",
            dataset=store.name,
            help="run `odfbuild plan`: it shows what to do",
        )
    return _Unread(name, store, now, consumed, interval)


def _one_step(
    state: Projection, inputs: Sequence[_Unread], closeness: Closeness
) -> tuple[int, ...]:
    """How many blocks of each input a step reads."""
    events = (block.event for each in inputs for _, block in each.interval.links)
    if closeness is Closeness.LATE and any(isinstance(event, SetVocab) for event in events):
        closeness = Closeness.EVERY  # a column of the past may have another name
    unread = [Unread(e.interval, not (e.consumed and e.consumed.new_block_hash)) for e in inputs]

    def is_late(number: int, data: DataSlice, promised: Timestamp) -> bool:
        each = inputs[number]
        file = SliceFile(each.store.bring("data", data.physical_hash), promised)
        return any(late_records([file], vocabulary_of(each.now.vocab), None))

    return one_step(unread, state.watermark, closeness, is_late)


def _locate(workspace: Workspace, dataset: str, declared: TransformInput) -> tuple[DatasetId, str]:
    if not isinstance(declared.dataset_ref, DatasetId):
        raise AssertionError("committed inputs are identified by DID")
    alias = workspace.resolve(declared.dataset_ref)
    if alias is None:
        raise PlanError(
            f"input {declared.dataset_ref} of '{dataset}' has no chain here",
            code="E0310",
            dataset=dataset,
            help="bring its chain back: git checkout, or `odfbuild pull REPOSITORY/NAME`",
        )
    return declared.dataset_ref, alias


def _read_input(workspace: Workspace, each: _Unread, taken: int) -> StepInput:
    store, now = each.store, each.now
    links = each.interval.links
    interval = Interval(links[:taken], each.interval.watermark_before)
    step = next_step(now.dataset_id, each.consumed, interval)
    if taken < len(links):
        step = replace(step, complete=False)
    at_end = now
    if not step.complete and step.block is not None:
        at_end = project(store, step.block, None)
    if at_end.schema is None:
        raise AssertionError("a step ends before a change of schema, never before the first one")
    limit = _limit_of(workspace, store, now)
    copies = workspace.committed(store.name, now).copies()
    return StepInput(
        each.name,
        store,
        step,
        at_end.schema,
        at_end.vocab,
        key_of(at_end),
        is_exact(at_end),
        limit,
        copies,
    )


def _limit_of(workspace: Workspace, store: DatasetStore, now: Projection) -> Limit | None:
    """How an input is limited; what was made from a sample in the branch is not sampled again."""
    limit = workspace.limit
    if limit is None or workspace.branch is None or now.kind is DatasetKind.Root:
        return limit
    in_branch = store.branch_head(workspace.branch) is not None
    return replace(limit, sample=None) if in_branch else limit


class Derived(Value):
    """What a step gave, and the data files of inputs that it `read`.

    Of those that were read elsewhere, `counted` says how many records they have.
    `note` says how it was computed, where plans could not tell.
    `late` counts the records that came behind a window, by input. With `in_full`, the records so
    far are what the query gives for all records of its inputs.
    """

    records: int = 0
    note: str = ""
    late: Mapping[str, int] = field(default_factory=dict)
    read: frozenset[Path] = frozenset()
    counted: Mapping[Path, int] = field(default_factory=dict)
    in_full: bool = False


_CUT_OFF = Derived(note="no column that its query uses changed: nothing is computed", in_full=True)


def stage_transform(
    transaction: Transaction,
    engine: Callable[[], Engine],
    inputs: Sequence[StepInput],
    scratch: Path,
    computation: Computation | None = None,
) -> Derived:
    """Run the transformation over what is new and add the resulting events.

    Adds an `ExecuteTransform` whenever an input advanced or a changed query is brought about, with
    or without records. `engine` is asked for only where something has to be computed; it keeps to
    the limits of the planned `computation`.
    """
    state = transaction.state
    vocab = vocabulary_of(state.vocab)
    derived = Derived()
    data = told = None
    if is_computed(state, inputs) and changes_nothing(transaction, inputs):
        derived = _CUT_OFF
    elif is_computed(state, inputs):
        base = transaction.base
        history = transaction.workspace.committed(transaction.alias, base) if base else None
        now = transaction.system_time
        task = transform_task(
            transaction.alias, state, inputs, scratch, history, now, is_proof=False
        )
        if computation is not None:
            most, never = computation.most_records, computation.never_in_full
            task = replace(task, most_records=most, never_full=never)
        result = engine().run(task)
        told = result.told
        if told is not None:
            _check_columns(transaction, result, vocab)
        staged = stage_slice(transaction, result, vocab, scratch)
        data = staged.data if staged else None
        notes = (
            other_than_planned(task.transform, result.choice),
            result.note,
            result.extent.note if result.extent else "",
        )
        note = "; ".join(filter(None, notes))
        late = _late(result.choice, task, inputs)
        read = committed_files(result.read, [each.store for each in inputs])
        in_full = result.choice.mode is Mode.CHANGELOG and not any(each.limit for each in inputs)
        records = staged.records if staged else 0
        derived = Derived(records, note, late, read, in_full=in_full)
    wrong = record_step(transaction, inputs, data, scratch, told)
    return replace(derived, note="; ".join(filter(None, (derived.note, wrong))))


def record_step(
    transaction: Transaction,
    inputs: Sequence[StepInput],
    data: DataSlice | None,
    scratch: Path,
    told: Told | None = None,
) -> str:
    """Add the event of a step that gave `data`, unless there is nothing to tell.

    Returns what was wrong with what a program `told`.
    """
    state = transaction.state
    steps = [each.step for each in inputs]
    advances = any(step.advances for step in steps)
    if data is None and not advances and not state.query_waits:
        return ""
    promised = [step.watermark for step in steps]
    watermark, wrong = output_watermark(state.watermark, promised), ""
    if told is not None:
        watermark, wrong = told_watermark(state.watermark, told.watermark, promised)
    event_inputs = tuple(step.as_event() for step in steps)
    limit = transaction.workspace.limit
    checkpoint = _kept(transaction, told) if told is not None else None
    if checkpoint is not None and limit is not None:
        raise _state_of_a_part(transaction)
    if checkpoint is not None:
        pass
    elif limit is not None or (data is None and (watermark is None or not advances)):
        # The records are what the changed query gives, too: that nobody does it again.
        query = None if advances else state.transform_sequence_number
        said: dict[str, object] = {} if query is None else {"query": query}
        if limit is not None:
            said |= {"limit": limit.to_data(), "sampled": _sampled(inputs)}
        checkpoint = _stage_positions(transaction, event_inputs, scratch, said)
    transaction.add(
        ExecuteTransform(
            query_inputs=event_inputs,
            prev_checkpoint=state.last_checkpoint,
            prev_offset=state.last_offset,
            new_data=data,
            new_checkpoint=checkpoint,
            new_watermark=watermark,
        )
    )
    return wrong


def _check_columns(transaction: Transaction, result: TransformResult, vocab: Vocabulary) -> None:
    """Raise `EngineError` E1444 when a program gives other columns for the query of the last step.

    A changed query may add some.
    """
    state, base = transaction.state, transaction.base
    if result.schema is None or state.schema is None or state.transform is None:
        return
    before = base.transform if base is not None and not base.query_waits else None
    if before is None or unpinned(before) != unpinned(state.transform):
        return
    from odfbuild.engine.process.accused import Accused
    from odfbuild.engine.process.checks import other_columns

    differences = other_columns(schema_of(state.schema), dataset_schema(result.schema, vocab))
    if differences:
        transform = state.transform.transform
        accused = Accused(transform.engine, transform.version or "", transaction.alias)
        raise accused.broken("the result has other columns than the dataset", "E1444", *differences)


def _kept(transaction: Transaction, told: Told) -> Checkpoint | None:
    """The checkpoint of a program: the new one, or the one before where it wrote none."""
    state = transaction.state
    if told.checkpoint is not None:
        hash, size = physical_hash(told.checkpoint)
        transaction.add_checkpoint(told.checkpoint, hash)
        return Checkpoint(physical_hash=hash, size=size)
    if transaction.base is None or state.last_checkpoint is None:
        return None
    store = transaction.workspace.dataset(transaction.alias)
    before = checkpoint_of_engine(store, state)
    if before is None:
        return None
    return Checkpoint(physical_hash=state.last_checkpoint, size=before.stat().st_size)


def _state_of_a_part(transaction: Transaction) -> EngineError:
    return EngineError(
        f"'{transaction.alias}' cannot be computed from a part of its inputs: its engine keeps "
        "state of its own, which would be that of the part",
        code="E1448",
        dataset=transaction.alias,
        help="use a branch without --sample and --since, or leave it out: --exclude "
        f"{transaction.alias}",
    )


def _sampled(inputs: Sequence[StepInput]) -> list[str]:
    """Identities of the inputs of which a sample was read."""
    found = (each for each in inputs if each.limit is not None and each.limit.sample is not None)
    return [str(each.step.dataset_id) for each in found]


def other_than_planned(transform: TransformSql, choice: Choice) -> str:
    """What is to be said of a mode that the text of the query does not tell."""
    if choice.mode is expected_mode(transform).mode:
        return ""
    return f"kept up to date as {choice.mode.value}: {choice.reason}"


def _late(choice: Choice, task: TransformTask, inputs: Sequence[StepInput]) -> Mapping[str, int]:
    """How many new records of each input came behind a window, where there are any."""
    windows = windows_of(task.transform) if choice == WINDOWS else None
    if windows is None:
        return {}
    found: Counter[str] = Counter()
    for read, each in zip(task.inputs, inputs, strict=True):
        found[each.store.name] += count_late(read.slices, read.vocab, windows)
    return +found


def _stage_positions(
    transaction: Transaction,
    inputs: Sequence[ExecuteTransformInput],
    scratch: Path,
    more: Mapping[str, object],
) -> Checkpoint:
    """A checkpoint that says how far the inputs were read, and `more`.

    A block must bring records, a watermark or a checkpoint. A step whose records were all dropped,
    while an input promises nothing yet, has only this to say, and must say it in order not to be
    done again.
    """
    positions = [
        {
            "datasetId": str(each.dataset_id),
            "blockHash": str(each.new_block_hash or each.prev_block_hash),
            "offset": each.prev_offset if each.new_offset is None else each.new_offset,
        }
        for each in inputs
    ]
    file = scratch / "positions.json"
    file.write_text(json.dumps({"consumed": positions, **more}, indent=1) + "\n", encoding="utf-8")
    hash, size = physical_hash(file)
    transaction.add_checkpoint(file, hash)
    return Checkpoint(physical_hash=hash, size=size)


def validated_schema(
    engine: Engine,
    dataset: str,
    transform: SetTransform,
    inputs: tuple[StepInput, ...],
    vocab: Vocabulary,
) -> pa.Schema | None:
    """Result schema of a transformation from its inputs' schemas alone, if that tells it."""
    return engine.run(
        ValidateTask(
            dataset=dataset,
            transform=transform.transform,
            inputs=tuple(each.as_slices() for each in inputs),
            vocab=vocab,
        )
    )

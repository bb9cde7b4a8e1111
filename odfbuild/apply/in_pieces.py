"""Run a step of a derivative by executors, which read and write in the project's storage.

For queries that handle each record alone, over one input: there a step over many slices gives the
records that steps over one slice each give, so it is run as several. Each of them is an
`ExecuteTransform` that can be verified alone; all of them are committed together. Steps of other
queries are run as they are (`whole_steps`). Whether executors do it follows from the sizes that
chains tell. Anything else goes through the coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from odfbuild.apply.derive import Derived, record_step
from odfbuild.apply.schema import ensure_schema
from odfbuild.apply.transaction import Transaction
from odfbuild.apply.whole_steps import StoredStep
from odfbuild.engine.contract import Engine
from odfbuild.engine.request import StepInput, is_computed
from odfbuild.engine.settings import EngineSettings, bytes_of, in_force
from odfbuild.engine.stored_steps import StepRequests, are_stored, is_personal
from odfbuild.odf.chain.step import InputStep, in_pieces, interval_between
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.plan.ways import Computation
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import Mode
from odfbuild.wording import count


def stage_by_executors(
    transaction: Transaction,
    engine: Callable[[], Engine],
    inputs: Sequence[StepInput],
    scratch: Path,
    settings: EngineSettings,
    computation: Computation | None = None,
) -> Derived | None:
    """Run a step, or the steps that it is cut into, and add the events.

    `None`: nothing was added but perhaps the schema, and `stage_transform` is to do it. Raises as
    that does, and `EngineProblem` E1680 to E1684 where workers cannot do it.
    """
    settings = in_force(settings)
    transform = transaction.state.transform
    if transform is None or not may_use_executors(transaction):
        return None
    own = transaction.workspace.dataset(transaction.alias)
    size = sum(data.size for each in inputs for data in each.step.slices)
    # Of few new records, the coordinator may find that few of the others are needed.
    if not settings.by_executors(size) or not is_computed(transaction.state, inputs):
        return None
    if is_personal(own, transaction.state, inputs):
        return None
    if len(inputs) == 1 and expected_mode(transform.transform).mode is Mode.MAP:
        each = inputs[0]
        if not size or not are_stored(each.store, each.step.slices):
            return None
        return _in_pieces(transaction, engine, each, scratch, settings)
    if settings.remote:
        return None
    if computation is not None and (computation.most_records or computation.never_in_full):
        return None
    step = StoredStep(transaction, inputs)
    stores = [*(each.store for each in inputs), own]
    stored = all(are_stored(*each) for each in zip(stores, step.slices, strict=True))
    return step.stage(engine, scratch) if stored and any(step.slices) else None


def _in_pieces(
    transaction: Transaction,
    engine: Callable[[], Engine],
    each: StepInput,
    scratch: Path,
    settings: EngineSettings,
) -> Derived | None:
    """Run a step as one for each piece of its input."""
    storage = transaction.workspace.storage
    assert storage is not None, "asked before"
    step = StepRequests(transaction.alias, transaction.state, storage, transaction.system_time)
    result = step.columns(engine(), [each])
    if result is None:
        return None
    schema = ensure_schema(transaction, result, vocabulary_of(transaction.state.vocab))
    pieces = _pieces(each, bytes_of(settings.slice_size))
    task = step.in_pieces(each, (piece.slices for piece in pieces), schema)
    written = engine().run(task)
    if written is None:
        return None
    slices = [found.data for found in written if found.data is not None]
    for number, (piece, found) in enumerate(zip(pieces, written, strict=True)):
        folder = scratch / f"piece-{number}"
        folder.mkdir()
        record_step(transaction, [replace(each, step=piece)], found.data, folder)
    place = each.store.object_path
    return Derived(
        records=sum(data.records for data in slices),
        note=f"executors wrote {count(len(slices), 'slice')}",
        counted={place("data", data.physical_hash): data.records for data in each.step.slices},
    )


def may_use_executors(transaction: Transaction) -> bool:
    """Whether executors may write slices of a dataset, as its storage and its rules say."""
    return not (
        transaction.workspace.storage is None
        or transaction.audit is not None
        or transaction.workspace.limit is not None
    )


def _pieces(each: StepInput, most_bytes: int) -> tuple[InputStep, ...]:
    step = each.step
    assert step.new_block is not None, "it has records to read"
    interval = interval_between(step.new_block, step.prev_block, each.store.read_block)
    assert interval is not None, "it was walked through just now"
    return in_pieces(step, interval, most_bytes)

"""Run a step of a derivative by executors, which read and write in the project's storage.

For queries that handle each record alone, over one input: there a step over many slices gives the
records that steps over one slice each give, so it is run as several. Each of them is an
`ExecuteTransform` that can be verified alone; all of them are committed together. Steps of other
queries are run as they are (`whole_steps`). Whether executors do it follows from the sizes that
chains tell. Anything else goes through the coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from odfbuild.apply.derive import Derived, record_step
from odfbuild.apply.schema import ensure_schema
from odfbuild.apply.transaction import Transaction
from odfbuild.apply.whole_steps import StoredStep
from odfbuild.engine.contract import Engine, InputSlices, ValidateTask
from odfbuild.engine.in_pieces import PiecesTask, StorageAddress
from odfbuild.engine.personal import scope_of
from odfbuild.engine.request import StepInput, is_computed
from odfbuild.engine.settings import EngineSettings, SlicesBy, bytes_of, in_force
from odfbuild.odf.chain.step import InputStep, in_pieces, interval_between
from odfbuild.odf.model import DataSlice
from odfbuild.odf.schema.arrow_schema import schema_of
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.plan.ways import Computation
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import Mode
from odfbuild.store.dataset import DatasetStore
from odfbuild.wording import count

_ASKED_AT_ONCE = 8


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
    if transform is None or not may_use_executors(transaction, settings):
        return None
    is_personal = any(_is_personal(transaction, each) for each in inputs)
    size = sum(data.size for each in inputs for data in each.step.slices)
    # Of few new records, the coordinator may find that few of the others are needed.
    is_large = settings.slices is SlicesBy.EXECUTORS or size > bytes_of(settings.slice_size)
    if is_personal or not is_large or not is_computed(transaction.state, inputs):
        return None
    if len(inputs) == 1 and expected_mode(transform.transform).mode is Mode.MAP:
        each = inputs[0]
        if not size or not _are_stored(each.store, each.step.slices):
            return None
        return _in_pieces(transaction, engine, each, scratch, settings)
    if settings.remote:
        return None
    if computation is not None and (computation.most_records or computation.never_in_full):
        return None
    step = StoredStep(transaction, inputs)
    stores = [*(each.store for each in inputs), transaction.workspace.dataset(transaction.alias)]
    stored = all(_are_stored(*each) for each in zip(stores, step.slices, strict=True))
    return step.stage(engine, scratch) if stored and any(step.slices) else None


def _in_pieces(
    transaction: Transaction,
    engine: Callable[[], Engine],
    each: StepInput,
    scratch: Path,
    settings: EngineSettings,
) -> Derived | None:
    """Run a step as one for each piece of its input."""
    pieces = _pieces(each, bytes_of(settings.slice_size))
    storage = transaction.workspace.storage
    transform = transaction.state.transform
    assert storage is not None and transform is not None, "asked before"
    vocab = vocabulary_of(transaction.state.vocab)
    view = InputSlices(
        alias=each.alias,
        schema=schema_of(each.schema),
        vocab=vocabulary_of(each.vocab),
    )
    result = engine().run(
        ValidateTask(
            dataset=transaction.alias,
            transform=transform.transform,
            inputs=(view,),
            vocab=vocab,
        )
    )
    if result is None:
        return None
    schema = ensure_schema(transaction, result, vocab)
    last = transaction.state.last_offset
    task = PiecesTask(
        dataset=transaction.alias,
        transform=transform.transform,
        alias=view.alias,
        input_schema=view.schema,
        input_vocab=view.vocab,
        vocab=vocab,
        schema=schema,
        pieces=tuple(piece.slices for piece in pieces),
        storage=StorageAddress(storage.address, storage.root),
        first_offset=0 if last is None else last + 1,
        system_time=transaction.system_time,
    )
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


def may_use_executors(transaction: Transaction, settings: EngineSettings) -> bool:
    """Whether executors may write slices of a dataset, as settings in force and its rules say."""
    return not (
        transaction.workspace.storage is None
        or settings.slices is SlicesBy.COORDINATOR
        or (settings.slices is SlicesBy.AUTO and settings.embedded)
        or transaction.audit is not None
        or transaction.workspace.limit is not None
    )


def _is_personal(transaction: Transaction, each: StepInput) -> bool:
    """Whether values have to be decrypted or encrypted, for which only the coordinator has keys."""
    own = transaction.workspace.dataset(transaction.alias)
    personal = each.store.personal
    return scope_of(own, transaction.state) is not None or (
        personal is not None and personal.of(each.store.name, each.step.dataset_id) is not None
    )


def _are_stored(store: DatasetStore, slices: Sequence[DataSlice]) -> bool:
    """Whether the storage has these objects: those of others, or of before it, it may not have."""
    storage, withdrawn = store.storage, store.withdrawn()
    if storage is None or any(("data", each.physical_hash) in withdrawn for each in slices):
        return False
    with ThreadPoolExecutor(_ASKED_AT_ONCE, thread_name_prefix="storage") as pool:
        sizes = pool.map(lambda each: storage.size("data", each.physical_hash), slices)
        return all(size == each.size for size, each in zip(sizes, slices, strict=True))


def _pieces(each: StepInput, most_bytes: int) -> tuple[InputStep, ...]:
    step = each.step
    assert step.new_block is not None, "it has records to read"
    interval = interval_between(step.new_block, step.prev_block, each.store.read_block)
    assert interval is not None, "it was walked through just now"
    return in_pieces(step, interval, most_bytes)

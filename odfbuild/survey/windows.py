"""Count the records that matter to windows before a plan is carried out.

Reads the event times of data files that are here already; asks no storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from odfbuild.engine.contract import SliceFile
from odfbuild.engine.event_windows import EventWindows, Handover, count_late, handover, windows_of
from odfbuild.errors import EnvironmentProblem
from odfbuild.extras import has_engine
from odfbuild.odf.model import SetTransform
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.plan.model import Action, DatasetPlan
from odfbuild.plan.windows import WindowRecords
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import Mode
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.odf.chain.step import PromisedSlice
    from odfbuild.odf.multihash import Multihash
    from odfbuild.plan.slices import SliceIndex
    from odfbuild.store.dataset import DatasetStore


class Chains(Value):
    """The committed chains: by alias in lower case what they say, their slices, their folders."""

    states: Mapping[str, Projection]
    slices: SliceIndex
    store_of: Callable[[str], DatasetStore]


def window_records(datasets: Sequence[DatasetPlan], chains: Chains) -> tuple[WindowRecords, ...]:
    """What is to be told of the windows of those of `datasets` that have any."""
    counted = (_of_dataset(each, chains) for each in datasets)
    return tuple(each for each in counted if each is not None)


def _of_dataset(dataset: DatasetPlan, chains: Chains) -> WindowRecords | None:
    changed = any(isinstance(each.after, SetTransform) for each in dataset.changes)
    runs = not {Action.RUN, Action.POLL}.isdisjoint(dataset.actions)
    if not (runs or changed) or dataset.snapshot is None or dataset.refusal is not None:
        return None
    transform = next((e for e in dataset.snapshot.metadata if isinstance(e, SetTransform)), None)
    inputs = [each for each in dataset.inputs if each.lower() in chains.states]
    windows = windows_of(transform.transform) if transform is not None and inputs else None
    state = None if Action.REBUILD in dataset.actions else chains.states.get(dataset.name.lower())
    late: int | None = 0
    if runs and windows is not None:
        read = {each.dataset_id: each.new_block_hash for each in state.inputs} if state else {}
        blocks = [(name, read.get(chains.states[name.lower()].dataset_id)) for name in inputs]
        late = _total(_late(name, after, chains, windows) for name, after in blocks)
    passed: Handover | None = Handover()
    if changed and state is not None and transform is not None:
        passed = _handover(transform, inputs, windows, chains, state)
    if late == 0 and passed == Handover():
        return None
    if passed is None:
        return WindowRecords(
            dataset=dataset.name, late=late, for_new_query=None, dropped=None, repeated=None
        )
    return WindowRecords(
        dataset=dataset.name,
        late=late,
        for_new_query=passed.taken,
        dropped=passed.dropped,
        repeated=passed.repeated,
    )


def _handover(
    transform: SetTransform,
    inputs: Sequence[str],
    new: EventWindows | None,
    chains: Chains,
    state: Projection,
) -> Handover | None:
    """What becomes of the records that the previous query read; `None` when they are not here."""
    old = windows_of(state.transform.transform) if state.transform else None
    is_recomputed = expected_mode(transform.transform).mode is Mode.CHANGELOG
    if is_recomputed or old is new is None:
        return Handover()
    present = {each.lower() for each in inputs}
    names = {each.dataset_id: name for name, each in chains.states.items()}
    total = Handover()
    for each in state.inputs:
        name, upto = names.get(each.dataset_id), each.new_block_hash
        if name is None or upto is None:
            continue
        files = _read_before(name, upto, chains)
        if files is None:
            return None
        vocab = vocabulary_of(chains.states[name].vocab)
        total += handover(files, vocab, old, new if name in present else None, state.watermark)
    return total


def _late(name: str, after: Multihash | None, chains: Chains, windows: EventWindows) -> int | None:
    files = _files(name, after, chains)
    vocab = vocabulary_of(chains.states[name.lower()].vocab)
    return None if files is None else count_late(files, vocab, windows)


def _read_before(name: str, upto: Multihash, chains: Chains) -> Sequence[SliceFile] | None:
    """The data files of the blocks until `upto`; `None` when they cannot be read here."""
    now = _files(name, None, chains)
    later = _files(name, upto, chains)
    return None if now is None or later is None else now[: len(now) - len(later)]


def _files(name: str, after: Multihash | None, chains: Chains) -> Sequence[SliceFile] | None:
    """The data files of the blocks after `after`; `None` when they cannot be read here."""
    try:
        interval = chains.slices.since(name, after)
    except EnvironmentProblem:  # the blocks are in the storage, which a plan does not ask
        return None
    if interval is None:
        return ()
    store = chains.store_of(name)
    files = [_file(store, each) for each in interval.promised_slices]
    can_read = not files or (has_engine() and all(each.path.exists() for each in files))
    return files if can_read else None


def _file(store: DatasetStore, found: PromisedSlice) -> SliceFile:
    data, promised = found
    return SliceFile(store.object_path("data", data.physical_hash), promised)


def _total(numbers: Iterable[int | None]) -> int | None:
    found = list(numbers)
    return None if None in found else sum(each or 0 for each in found)

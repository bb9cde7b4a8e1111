"""Ask executors to check objects and to recompute steps, where the data is in the storage.

They read what a chain names from the storage, and tell hashes, counts and the first record that
differs. What they cannot do is done here; `ByExecutors` tells how much of it was not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TypeVar

import pyarrow as pa

from odfbuild.engine.contract import Engine
from odfbuild.engine.in_pieces import CheckTask, Recorded, StorageAddress, WrittenPiece
from odfbuild.engine.request import as_limited, is_computed
from odfbuild.engine.settings import EngineSettings, in_force
from odfbuild.engine.stored_steps import (
    StepRequests,
    are_stored,
    is_personal,
    slices_before,
    stored_input,
)
from odfbuild.inspect.verify.replay import Replay
from odfbuild.odf.model import DataSlice
from odfbuild.records.intact import Damage
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import Mode
from odfbuild.sql.translate.named import is_remote_release
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.storage import Storage
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value

SchemaInForce = Callable[[str, Replay, pa.Schema], pa.Schema]
"""The schema of a step's data files, by that of its result now; `IntegrityError` if it changed."""
_Key = TypeVar("_Key", bool, str)


class ByExecutors(Value):
    """How many objects and steps executors did, and how many steps of which datasets they did not.

    `objects_here` were in the folder of the project, or are not in the storage.
    """

    objects: int
    objects_here: int
    steps: int
    steps_here: tuple[tuple[str, int], ...]


class Executors:
    """Executors that may be asked, as the settings in force say, and what they have done."""

    def __init__(
        self, storage: Storage, settings: EngineSettings, engine: Callable[[], Engine]
    ) -> None:
        self._storage, self._settings, self._engine = storage, settings, engine
        self._objects: Counter[bool] = Counter()
        self._steps: Counter[str] = Counter()
        self._steps_here: Counter[str] = Counter()
        self._lock = Lock()

    @property
    def done(self) -> ByExecutors | None:
        """What they did; `None`: there was nothing for them."""
        if not self._objects[True] and not self._steps:
            return None
        here = tuple(sorted(self._steps_here.items()))
        return ByExecutors(self._objects[True], self._objects[False], self._steps.total(), here)

    def has(self, store: DatasetStore, data: DataSlice) -> bool:
        """Whether a slice is for them, because it lies in the storage only."""
        hash = data.physical_hash
        away = (
            store.storage is not None
            and not store.object_path("data", hash).exists()
            and ("data", hash) not in store.withdrawn()
        )
        if not away:
            self._count(self._objects, False, 1)
        return away

    def checked(
        self, store: DatasetStore, slices: Sequence[tuple[DataSlice, str]], *, logical: bool
    ) -> Sequence[Damage | None] | None:
        """What is wrong with slices, each with its column of offsets.

        `None`: they have to be checked here.
        """
        found: Sequence[Damage | None] | None = None
        if self._settings.by_executors(sum(data.size for data, _ in slices)):
            task = CheckTask(
                dataset=store.name,
                slices=tuple(slices),
                storage=StorageAddress(self._storage.address, self._storage.root),
                logical=logical,
            )
            found = self._engine().run(task)
        self._count(self._objects, found is not None, len(slices))
        return found

    def recomputed(
        self, store: DatasetStore, replays: Sequence[Replay], schema: SchemaInForce
    ) -> Sequence[WrittenPiece] | None:
        """What steps of one dataset give now; `None`: they have to be recomputed here.

        Several are alike, and handle each record alone.
        """
        first = replays[0]
        if not is_computed(first.before, first.inputs):
            return None
        found = None
        try:
            if self._may_recompute(store, replays):
                mode = expected_mode(first.transform.transform).mode
                if len(first.inputs) == 1 and mode is Mode.MAP:
                    found = self._in_pieces(store, replays, schema)
                else:
                    found = self._one_by_one(store, replays, schema)
            return found
        finally:
            steps = self._steps_here if found is None else self._steps
            self._count(steps, store.name, len(replays))

    def _may_recompute(self, store: DatasetStore, replays: Sequence[Replay]) -> bool:
        first = replays[0]
        return (
            first.before.schema is not None
            and store.storage is not None
            and not is_remote_release(first.transform.transform.version)
            and not is_personal(store, first.before, first.inputs)
            and not any(
                each.limit is not None
                for replay in replays
                for each in as_limited(store, replay.recorded, replay.inputs)
            )
        )

    def _in_pieces(
        self, store: DatasetStore, replays: Sequence[Replay], schema: SchemaInForce
    ) -> Sequence[WrittenPiece] | None:
        (first,) = replays[0].inputs
        slices = [replay.inputs[0].step.slices for replay in replays]
        read = [data for each in slices for data in each]
        results = [each.recorded.new_data for each in replays if each.recorded.new_data]
        if not all(slices) or not self._are_large(read):
            return None
        if not are_stored(first.store, read) or not are_stored(store, results):
            return None
        step = self._step(store, replays[0])
        result = step.columns(self._engine(), [first])
        if result is None:
            return None
        recorded = tuple(_recorded(self._step(store, each), each) for each in replays)
        columns = schema(store.name, replays[0], result)
        return self._engine().run(step.in_pieces(first, slices, columns, recorded))

    def _one_by_one(
        self, store: DatasetStore, replays: Sequence[Replay], schema: SchemaInForce
    ) -> Sequence[WrittenPiece] | None:
        found = []
        for replay in replays:
            piece = self._as_a_whole(store, replay, schema)
            if piece is None:
                return None
            found.append(piece)
        return found

    def _as_a_whole(
        self, store: DatasetStore, replay: Replay, schema: SchemaInForce
    ) -> WrittenPiece | None:
        if self._settings.remote:
            return None
        inputs = tuple(map(stored_input, replay.inputs))
        previous = slices_before(store, replay.before.head)
        read = [[data for data, _ in each.all_slices] for each in inputs]
        # A step that has later ones with the same query is recomputed here from what it changed.
        counts = [data for each in inputs for data, _ in each.slices]
        if not replay.from_change:
            counts = [data for each in (*read, previous) for data in each]
        if not any(read) or not self._are_large(counts):
            return None
        recorded = replay.recorded.new_data
        own = previous if recorded is None else (*previous, recorded)
        stores = [*(each.store for each in replay.inputs), store]
        if not all(are_stored(*each) for each in zip(stores, [*read, own], strict=True)):
            return None
        step = self._step(store, replay)
        result = step.columns(self._engine(), replay.inputs)
        if result is None:
            return None
        columns = schema(store.name, replay, result)
        task = step.as_a_whole(inputs, previous, columns, _recorded(step, replay))
        written = self._engine().run(task)
        return None if written is None else written.piece

    def _count(self, numbers: Counter[_Key], key: _Key, more: int) -> None:
        with self._lock:
            numbers[key] += more

    def _are_large(self, slices: Sequence[DataSlice]) -> bool:
        return self._settings.by_executors(sum(data.size for data in slices))

    def _step(self, store: DatasetStore, replay: Replay) -> StepRequests:
        return StepRequests(store.name, replay.before, self._storage, replay.system_time)


def executors_of(
    workspace: Workspace, settings: EngineSettings | None, engine: Callable[[], Engine]
) -> Executors | None:
    """The executors that may be asked; `None` where settings leave nothing to them, however large.

    Without a storage of the project there are none either.
    """
    if settings is None or workspace.storage is None:
        return None
    settings = in_force(settings)
    return Executors(workspace.storage, settings, engine) if settings.by_executors(_MUCH) else None


_MUCH = 1 << 62


def _recorded(step: StepRequests, replay: Replay) -> Recorded:
    return Recorded(replay.recorded.new_data, step.first_offset, step.system_time)

"""Build the requests for steps that executors carry out, which read and write in the storage.

`apply` and `verify` share this code, as they do `engine.request`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from odfbuild.engine.contract import Engine, InputSlices, ValidateTask
from odfbuild.engine.in_pieces import (
    PiecesTask,
    Recorded,
    StorageAddress,
    StoredInput,
    WholeTask,
)
from odfbuild.engine.personal import scope_of
from odfbuild.engine.request import StepInput
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.chain.step import interval_between
from odfbuild.odf.model import DataSlice, TransformSql
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.schema.arrow_schema import schema_of
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.storage import Storage
from odfbuild.values import Value

_ASKED_AT_ONCE = 8


def is_personal(own: DatasetStore, state: Projection, inputs: Iterable[StepInput]) -> bool:
    """Whether values have to be decrypted or encrypted, for which only the coordinator has keys."""
    return scope_of(own, state) is not None or any(
        each.store.personal is not None
        and each.store.personal.of(each.store.name, each.step.dataset_id) is not None
        for each in inputs
    )


def are_stored(store: DatasetStore, slices: Sequence[DataSlice]) -> bool:
    """Whether the storage has these objects: those of others, or of before it, it may not have."""
    storage, withdrawn = store.storage, store.withdrawn()
    if storage is None or any(("data", each.physical_hash) in withdrawn for each in slices):
        return False
    with ThreadPoolExecutor(_ASKED_AT_ONCE, thread_name_prefix="storage") as pool:
        sizes = pool.map(lambda each: storage.size("data", each.physical_hash), slices)
        return all(size == each.size for size, each in zip(sizes, slices, strict=True))


def stored_input(each: StepInput) -> StoredInput:
    """What a step reads of an input, by its chain."""
    step = each.step
    return StoredInput(
        alias=each.alias,
        schema=schema_of(each.schema),
        vocab=vocabulary_of(each.vocab),
        slices=step.promised_slices,
        earlier=_promised(each.store, step.prev_block),
        watermark=step.watermark,
    )


def slices_before(store: DatasetStore, head: Multihash | None) -> tuple[DataSlice, ...]:
    """The slices of a dataset up to a block."""
    return tuple(data for data, _ in _promised(store, head))


def _promised(
    store: DatasetStore, head: Multihash | None
) -> tuple[tuple[DataSlice, Timestamp | None], ...]:
    interval = interval_between(head, None, store.read_block) if head is not None else None
    return interval.promised_slices if interval is not None else ()


class StepRequests(Value):
    """The next step, or steps, of `dataset`, which says `state`; committed at `system_time`."""

    dataset: str
    state: Projection
    storage: Storage
    system_time: Timestamp

    @property
    def transform(self) -> TransformSql:
        """What is carried out."""
        assert self.state.transform is not None, "only a dataset with a transformation is derived"
        return self.state.transform.transform

    @property
    def first_offset(self) -> int:
        """The offset of the first record that the step gives."""
        last = self.state.last_offset
        return 0 if last is None else last + 1

    def columns(self, engine: Engine, inputs: Iterable[StepInput]) -> pa.Schema | None:
        """The columns of the result, as `ValidateTask` tells them."""
        views = (
            InputSlices(
                alias=each.alias, schema=schema_of(each.schema), vocab=vocabulary_of(each.vocab)
            )
            for each in inputs
        )
        return engine.run(
            ValidateTask(
                dataset=self.dataset,
                transform=self.transform,
                inputs=tuple(views),
                vocab=vocabulary_of(self.state.vocab),
            )
        )

    def in_pieces(
        self,
        each: StepInput,
        pieces: Iterable[tuple[DataSlice, ...]],
        schema: pa.Schema,
        recorded: tuple[Recorded, ...] = (),
    ) -> PiecesTask:
        """The request for steps over pieces of the one input; `schema` is that of data files."""
        return PiecesTask(
            dataset=self.dataset,
            transform=self.transform,
            alias=each.alias,
            input_schema=schema_of(each.schema),
            input_vocab=vocabulary_of(each.vocab),
            vocab=vocabulary_of(self.state.vocab),
            schema=schema,
            pieces=tuple(pieces),
            storage=StorageAddress(self.storage.address, self.storage.root),
            first_offset=self.first_offset,
            system_time=self.system_time,
            recorded=recorded,
        )

    def as_a_whole(
        self,
        inputs: tuple[StoredInput, ...],
        previous: tuple[DataSlice, ...],
        schema: pa.Schema,
        recorded: Recorded | None = None,
    ) -> WholeTask:
        """The request for one step, of which `previous` are the slices before it."""
        return WholeTask(
            dataset=self.dataset,
            transform=self.transform,
            inputs=inputs,
            vocab=vocabulary_of(self.state.vocab),
            schema=schema,
            previous=previous,
            storage=StorageAddress(self.storage.address, self.storage.root),
            first_offset=self.first_offset,
            system_time=self.system_time,
            watermark_before=self.state.watermark,
            recorded=recorded,
        )

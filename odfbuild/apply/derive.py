"""One step of a derivative dataset: from its inputs' new records to an `ExecuteTransform`.

Source: Open Data Fabric, "Derivative Transformations", "Watermark"; intervals as in the reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from odfbuild.apply.history import slices_between
from odfbuild.apply.staging import stage_slice
from odfbuild.apply.transaction import Transaction
from odfbuild.engine.contract import Engine, InputSlices, TransformTask, Vocabulary, vocabulary_of
from odfbuild.errors import PlanError
from odfbuild.odf.arrow_schema import schema_of
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import DataSlice, ExecuteTransform, ExecuteTransformInput, SetTransform
from odfbuild.odf.projection import Projection
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class InputState:
    """An input as it is now, and what of it was consumed before."""

    alias: str
    store: DatasetStore
    now: Projection
    consumed: ExecuteTransformInput | None
    slices: tuple[DataSlice, ...]

    @property
    def prev_offset(self) -> int | None:
        """Offset of the last consumed record."""
        return self.consumed.new_offset if self.consumed else None

    @property
    def new_offset(self) -> int | None:
        """Offset of the last record to consume, `None` when there are no new ones."""
        return None if self.now.last_offset == self.prev_offset else self.now.last_offset

    def as_event(self) -> ExecuteTransformInput:
        """The intervals that this step consumes."""
        prev_block = self.consumed.new_block_hash if self.consumed else None
        return ExecuteTransformInput(
            dataset_id=self.now.dataset_id,
            prev_block_hash=prev_block,
            new_block_hash=None if self.now.head == prev_block else self.now.head,
            prev_offset=self.prev_offset,
            new_offset=self.new_offset,
        )

    def as_slices(self) -> InputSlices:
        """The new records for the engine."""
        schema = self.now.schema
        if schema is None:
            raise AssertionError("an input without a schema has nothing to transform")
        vocab = vocabulary_of(self.now.vocab)
        last = self.new_offset
        if last is None:
            return InputSlices(alias=self.alias, schema=schema_of(schema), vocab=vocab)
        return InputSlices(
            alias=self.alias,
            schema=schema_of(schema),
            vocab=vocab,
            files=tuple(self.store.object_path("data", s.physical_hash) for s in self.slices),
            first=0 if self.prev_offset is None else self.prev_offset + 1,
            last=last,
        )


def read_inputs(
    workspace: Workspace, dataset: str, state: Projection
) -> tuple[InputState, ...] | None:
    """The inputs of a derivative with what is new in each; `None` while one has no schema yet."""
    if state.transform is None:
        return None
    consumed = {i.dataset_id: i for i in state.inputs}
    inputs = []
    for declared in state.transform.inputs:
        if not isinstance(declared.dataset_ref, DatasetId):
            raise AssertionError("committed inputs are identified by DID")
        alias = workspace.resolve(declared.dataset_ref)
        if alias is None:
            raise PlanError(
                f"input {declared.dataset_ref} of '{dataset}' has no chain here",
                code="E0310",
                dataset=dataset,
                help="bring its chain back (git checkout, or pull it from a peer)",
            )
        now = workspace.projection(alias)
        if now is None or now.schema is None:
            return None
        before = consumed.get(declared.dataset_ref)
        store = workspace.dataset(alias)
        inputs.append(
            InputState(
                alias=declared.alias or alias,
                store=store,
                now=now,
                consumed=before,
                slices=slices_between(store, before.new_block_hash if before else None, now.head),
            )
        )
    return tuple(inputs)


def has_advanced(state: Projection, inputs: tuple[InputState, ...]) -> bool:
    """Whether a step would add anything: new records to read, or a later watermark.

    Blocks of an input that bring neither, such as a changed description, stop here.
    """
    watermark = output_watermark(state.watermark, tuple(i.now.watermark for i in inputs))
    return watermark != state.watermark or any(i.new_offset is not None for i in inputs)


def stage_transform(
    transaction: Transaction, engine: Engine, inputs: tuple[InputState, ...], scratch: Path
) -> int:
    """Run the transformation over what is new and add the resulting events; returns the records.

    Always adds an `ExecuteTransform` when something is new, with or without records.
    """
    state = transaction.state
    if state.transform is None:
        raise AssertionError("only a dataset with a transformation is derived")
    vocab = vocabulary_of(state.vocab)
    records = 0
    data = None
    if state.schema is None or any(i.new_offset is not None for i in inputs):
        result = engine.transform(
            TransformTask(
                dataset=transaction.alias,
                transform=state.transform.transform,
                inputs=tuple(i.as_slices() for i in inputs),
                vocab=vocab,
                scratch=scratch,
            )
        )
        staged = stage_slice(transaction, result, vocab, scratch)
        if staged is not None:
            data, records = staged.data, staged.records
    watermark = output_watermark(state.watermark, tuple(i.now.watermark for i in inputs))
    if data is not None or watermark is not None:
        transaction.add(
            ExecuteTransform(
                query_inputs=tuple(i.as_event() for i in inputs),
                prev_checkpoint=state.last_checkpoint,
                prev_offset=state.last_offset,
                new_data=data,
                new_watermark=watermark,
            )
        )
    return records


def output_watermark(
    previous: Timestamp | None, inputs: tuple[Timestamp | None, ...]
) -> Timestamp | None:
    """The minimum over all inputs of their last watermark, never below the previous one.

    While an input has none, nothing can be promised, and the previous one stays.
    """
    known = [watermark for watermark in inputs if watermark is not None]
    if len(known) < len(inputs):
        return previous
    lowest = min(known)
    return lowest if previous is None else max(previous, lowest)


def validated_schema(
    engine: Engine,
    dataset: str,
    transform: SetTransform,
    inputs: tuple[InputState, ...],
    vocab: Vocabulary,
) -> pa.Schema:
    """Result schema of a transformation from its inputs' schemas alone."""
    return engine.validate(
        dataset,
        transform.transform,
        [(i.alias, i.as_slices().schema) for i in inputs],
        vocab,
    )

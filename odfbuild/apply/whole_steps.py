"""Run a step of a derivative by executors as a whole: any query, over all of its inputs.

For steps that cannot be cut into pieces (`in_pieces`): joins, aggregations, windows. All objects
have to be in the storage, those of the inputs and those of the result so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from odfbuild.apply.derive import Derived, other_than_planned, record_step
from odfbuild.apply.schema import ensure_schema
from odfbuild.apply.transaction import Transaction
from odfbuild.engine.contract import Engine
from odfbuild.engine.request import StepInput
from odfbuild.engine.stored_steps import StepRequests, slices_before, stored_input
from odfbuild.odf.model import DataSlice
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.wording import count


class StoredStep:
    """What a step reads, by the chains: slices of its inputs, and those of the result so far."""

    def __init__(self, transaction: Transaction, inputs: Sequence[StepInput]) -> None:
        self._transaction, self._inputs = transaction, inputs
        self.inputs = tuple(map(stored_input, inputs))
        base = transaction.base
        store = transaction.workspace.dataset(transaction.alias)
        self.previous = slices_before(store, base.head if base else None)

    @property
    def slices(self) -> tuple[tuple[DataSlice, ...], ...]:
        """The slices of each input, and of the result so far."""
        found = [tuple(data for data, _ in each.all_slices) for each in self.inputs]
        return (*found, self.previous)

    def stage(self, engine: Callable[[], Engine], scratch: Path) -> Derived | None:
        """Run it, and add its events; `None`: nothing was added but perhaps the schema."""
        transaction = self._transaction
        workspace, state = transaction.workspace, transaction.state
        transform, storage = state.transform, workspace.storage
        assert transform is not None and storage is not None, "asked before"
        step = StepRequests(transaction.alias, state, storage, transaction.system_time)
        result = step.columns(engine(), self._inputs)
        if result is None:
            return None
        schema = ensure_schema(transaction, result, vocabulary_of(state.vocab))
        written = engine().run(step.as_a_whole(self.inputs, self.previous, schema))
        if written is None:
            return None
        data = written.piece.data
        record_step(transaction, self._inputs, data, scratch)
        other = other_than_planned(transform.transform, written.choice)
        wrote = f"executors wrote {count(0 if data is None else 1, 'slice')}"
        names = {each.alias: each.store.name for each in self._inputs}
        return Derived(
            records=data.records if data is not None else 0,
            note="; ".join(filter(None, (other, wrote))),
            late={names[alias]: records for alias, records in written.late.items()},
            counted={
                each.store.object_path("data", data.physical_hash): data.records
                for each, stored in zip(self._inputs, self.inputs, strict=True)
                for data, _ in stored.all_slices
            },
        )

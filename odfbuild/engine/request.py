"""Build the engine request for one step of a transformation.

`apply` and `verify` share this code, so that a step is recomputed exactly as it was computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from odfbuild.engine.contract import InputSlices, SliceFile, TransformTask
from odfbuild.engine.personal import (
    is_erased_from,
    plain_files,
    plain_input,
    read_columns,
    scope_of,
)
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.chain.step import InputStep, Interval, PromisedSlice
from odfbuild.odf.model import (
    ExecuteTransform,
    MergeStrategy,
    SetDataSchema,
    SetVocab,
    TransformSql,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.schema.arrow_schema import schema_of
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import Mode
from odfbuild.store.branches import Limit
from odfbuild.store.committed import Committed, files_of
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.merged_copies import NO_COPIES, MergedCopies
from odfbuild.values import Value


class StepInput(Value):
    """An input of one step: its name in queries, and schema and vocabulary at the step's end.

    With a `limit` only part of its records are read; a sample goes by the `key`, if it has one.
    `is_exact` is what `is_exact` says of it. Proofs have no `copies` of others.
    """

    alias: str
    store: DatasetStore
    step: InputStep
    schema: SetDataSchema
    vocab: SetVocab | None
    key: tuple[str, ...] = ()
    is_exact: bool = False
    limit: Limit | None = None
    copies: MergedCopies = NO_COPIES

    def as_slices(self) -> InputSlices:
        """The records of the step for the engine."""
        interval = self.step.offset_interval
        return InputSlices(
            alias=self.alias,
            schema=schema_of(self.schema),
            vocab=vocabulary_of(self.vocab),
            slices=_files(self.store, self.step.promised_slices),
            first=interval.start if interval else None,
            last=interval.end if interval else None,
            watermark_before=self.step.watermark_before,
            watermark=self.step.watermark,
            watermarks=self.step.watermarks,
            dataset=self.store.name,
            dataset_id=self.step.dataset_id,
            earlier=cache(lambda: history_files(self.store, self.step.prev_block)),
            copies=self.copies,
            is_exact=self.is_exact,
        )

    def part(self, scratch: Path) -> InputSlices:
        """The records that the engine reads; those of a part are written into `scratch`."""
        if self.limit is None:
            return self.as_slices()
        from odfbuild.engine.part_of_inputs import part_of

        folder = scratch / f"part-{self.step.dataset_id.multibase}"
        return part_of(self.as_slices(), self.limit, self.key, folder)


def key_of(state: Projection) -> tuple[str, ...]:
    """The primary key of a dataset, if its source has one."""
    keys = {each.key for each in _merges(state)}
    return keys.pop() if len(keys) == 1 else ()


def is_exact(state: Projection) -> bool:
    """Whether the merges of a dataset never retract a record that is not there."""
    merges = _merges(state)
    return bool(merges) and all(each.ONLY_APPENDS or each.COMPARES for each in merges)


def _merges(state: Projection) -> list[MergeStrategy]:
    sources = [state.polling_source, *state.push_sources.values()]
    return [each.merge for each in sources if each is not None]


def as_limited(
    store: DatasetStore, event: ExecuteTransform, inputs: Sequence[StepInput]
) -> tuple[StepInput, ...]:
    """The inputs of a recorded step, with the limits that it was computed under."""
    from odfbuild.engine.step_limits import limit_of_step

    found = limit_of_step(store, event)
    if found is None:
        return tuple(inputs)
    return tuple(replace(each, limit=found.of(each.step.dataset_id)) for each in inputs)


def is_computed(state: Projection, inputs: Sequence[StepInput]) -> bool:
    """Whether a step takes an engine: for new records, windows that may close, or a changed query.

    `state` is what the derivative says before the step. Only a query whose text groups by something
    has windows.
    """
    if state.transform is None:
        raise AssertionError("only a dataset with a transformation is derived")
    steps = [each.step for each in inputs]
    if state.schema is None or any(step.new_offset is not None for step in steps):
        return True
    handles_each_alone = expected_mode(state.transform.transform).mode is Mode.MAP
    return not handles_each_alone and (state.query_waits or any(step.advances for step in steps))


def transform_task(
    dataset: str,
    state: Projection,
    inputs: Sequence[StepInput],
    scratch: Path,
    history: Committed | None,
    system_time: Timestamp | None = None,
    *,
    is_proof: bool = True,
) -> TransformTask:
    """The request for the next step of a derivative that says `state` (transformation included).

    `history` is what it has committed so far, if anything. A proof is computed over all records,
    whatever was committed. `system_time` is that of the block which is to record the step.
    Personal values are plain in it; `PersonalDataError` E1604 where it takes keys that are not
    here.
    """
    if state.transform is None:
        raise AssertionError("only a dataset with a transformation is derived")
    stores = [each.store for each in inputs] + ([history.store] if history else [])
    return TransformTask(
        dataset=dataset,
        transform=state.transform.transform,
        inputs=plain_inputs(state.transform.transform, inputs, scratch),
        vocab=vocabulary_of(state.vocab),
        scratch=scratch,
        watermark_before=state.watermark,
        previous=_previous(history, state, scratch),
        copies=_copies(history, state),
        dataset_id=state.dataset_id,
        system_time=system_time,
        first_offset=0 if state.last_offset is None else state.last_offset + 1,
        checkpoint=cache(lambda: checkpoint_of_engine(history.store, state) if history else None),
        continued=not is_proof and is_continued(state, inputs) and not is_erased_from(stores),
    )


def plain_inputs(
    transform: TransformSql, inputs: Sequence[StepInput], scratch: Path
) -> tuple[InputSlices, ...]:
    """The records that the engine reads, personal ones decrypted where the query reads them."""
    found = []
    is_read: Callable[[str, str], bool] | None = None
    for each in inputs:
        part, store = each.part(scratch), each.store
        scope = None
        if store.personal is not None:
            scope = store.personal.of(store.name, each.step.dataset_id)
        scope = scope.within(part.schema.names) if scope is not None else None
        if scope is not None:
            if is_read is None:
                schemas = {one.alias: schema_of(one.schema) for one in inputs}
                is_read = read_columns(transform, schemas)
            scope = scope.within([name for name in scope.subjects if is_read(each.alias, name)])
        found.append(part if scope is None else plain_input(part, store, scope, scratch))
    return tuple(found)


def _previous(
    history: Committed | None, state: Projection, scratch: Path
) -> Callable[[], tuple[Path, ...]]:
    """The files of the records so far, which the plain result is compared with."""
    if history is None:
        return tuple
    slices = cache(lambda: files_of(history.slices()))
    scope = scope_of(history.store, state)
    return slices if scope is None else plain_files(slices, history.store, scope, scratch)


def _copies(history: Committed | None, state: Projection) -> MergedCopies:
    """What stands in for slices of the records so far, where these are plain."""
    if history is None or scope_of(history.store, state) is not None:
        return NO_COPIES
    return history.copies()


def is_continued(state: Projection, inputs: Sequence[StepInput]) -> bool:
    """Whether the last step had the transformation in force, and both read all of their inputs."""
    return (
        state.last_query is not None
        and not state.query_waits
        and all(each.limit is None for each in inputs)
    )


def checkpoint_of_engine(store: DatasetStore, state: Projection) -> Path | None:
    """What an engine kept at the last step; `None` where nothing, or where odfbuild wrote it."""
    from odfbuild.engine.step_limits import is_of_coordinator

    if state.last_checkpoint is None:
        return None
    file = store.bring("checkpoints", state.last_checkpoint)
    return None if is_of_coordinator(file) else file


def history_files(store: DatasetStore, head: Multihash | None) -> tuple[SliceFile, ...]:
    """The data files of a chain up to a block, oldest first."""
    if head is None:
        return ()
    links = tuple(reversed(list(store.walk(head))))
    return _files(store, Interval(links, None).promised_slices)


def _files(store: DatasetStore, slices: Sequence[PromisedSlice]) -> tuple[SliceFile, ...]:
    """The files of slices, but for those that were withdrawn."""
    withdrawn = store.withdrawn()
    slices = [each for each in slices if ("data", each[0].physical_hash) not in withdrawn]
    files = store.bring_all("data", (data.physical_hash for data, _ in slices))
    return tuple(
        SliceFile(file, promised) for file, (_, promised) in zip(files, slices, strict=True)
    )

"""One step of a transformation: a request of a coordinator, carried out as `apply` does it.

What the request does not say (earlier records, watermarks of inputs that stand still, the schema)
comes from the checkpoint. Files get their final names when they are complete.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.contract import (
    Engine,
    InputSlices,
    SliceFile,
    TransformResult,
    TransformTask,
)
from odfbuild.engine.event_times import event_times
from odfbuild.engine.event_windows import windows_of
from odfbuild.engine.process.files import in_steps
from odfbuild.engine.process.server.at_hand import (
    Desk,
    check_types,
    schema_in,
    slices_of,
    unreadable,
)
from odfbuild.engine.process.server.checkpoint import (
    InputState,
    Kept,
    State,
    read_checkpoint,
    write_checkpoint,
)
from odfbuild.engine.process.server.output import complete
from odfbuild.engine.process.server.problems import RESET, TOO_LARGE, malformed
from odfbuild.engine.slice import dataset_schema, write_slice
from odfbuild.errors import Code, EngineError, OdfbuildError, QueryError
from odfbuild.odf.chain.step import output_watermark
from odfbuild.odf.digest import LogicalHasher
from odfbuild.odf.model.data import OffsetInterval
from odfbuild.odf.model.messages import (
    DatasetVocabulary,
    TransformRequest,
    TransformRequestInput,
    TransformResponseSuccess,
)
from odfbuild.odf.schema.evolution import described_as, grow, required_as
from odfbuild.odf.schema.pyarrow_form import from_pyarrow, to_pyarrow
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.sql.mode import Mode
from odfbuild.values import Value

LARGEST = 256 << 20
"""Bytes of earlier records in a checkpoint."""


def carry_out(
    engine: Engine, request: TransformRequest, desk: Desk, largest: int = LARGEST
) -> TransformResponseSuccess:
    """Compute what `request` asks for, and write its files.

    A checkpoint keeps up to `largest` bytes of earlier records.
    """
    step = _Step.of(request, desk)
    try:
        result = engine.run(step.task)
    except Exception as error:
        if isinstance(error, OdfbuildError) and error.code != Code.FAILING_RECORD:
            raise
        # Spark takes a damaged file for a record that makes the query fail.
        raise (failing_file(step.task.inputs) or error) from error
    step.check_kept(result)
    schema = step.schema_of(result)
    watermark = output_watermark(
        step.task.watermark_before, [each.watermark for each in step.task.inputs]
    )
    with complete(Path(request.new_data_path)) as data:
        staged = write_slice(
            result,
            dataset=step.task.dataset,
            schema=schema,
            vocab=step.task.vocab,
            first_offset=request.next_offset,
            system_time=request.system_time,
            target=data,
        )
        if staged is None:
            pq.write_table(schema.empty_table(), data, compression="snappy")
        interval = None if staged is None else staged.data.offset_interval
        after = step.after(result, schema, data, interval, largest)
        with complete(Path(request.new_checkpoint_path)) as checkpoint:
            write_checkpoint(replace(after, watermark=watermark), checkpoint)
    return TransformResponseSuccess(new_offset_interval=interval, new_watermark=watermark)


class _Step(Value):
    """A request with what is known from before it."""

    request: TransformRequest
    before: State
    task: TransformTask

    @classmethod
    def of(cls, request: TransformRequest, desk: Desk) -> _Step:
        dataset = str(request.dataset_alias)
        before = _before(request, desk)
        inputs = tuple(_input(each, before, desk) for each in request.query_inputs)
        return cls(
            request,
            before,
            TransformTask(
                dataset=dataset,
                transform=in_steps(request.transform),
                inputs=inputs,
                vocab=_vocabulary(request.vocab),
                scratch=desk.scratch,
                watermark_before=before.watermark,
                previous=lambda: before.results,
            ),
        )

    def check_kept(self, result: TransformResult) -> None:
        """Refuse what was computed of a part of the records where it takes all of them."""
        mode, dataset = result.choice.mode, self.task.dataset
        if mode is Mode.MAP:
            return
        for asked in self.request.query_inputs:
            kept = _state_of(asked, self.before).kept
            changed = fingerprint(self.request) != self.before.query
            if kept is Kept.NONE or (kept is Kept.OPEN and (mode is Mode.CHANGELOG or changed)):
                raise _needs_reset(dataset, f"the earlier records of input '{asked.query_alias}'")
        if mode is Mode.CHANGELOG and self.before.kept_results is not Kept.ALL:
            raise _needs_reset(dataset, "its own earlier records")

    def schema_of(self, result: TransformResult) -> pa.Schema:
        """In which schema records are written; `QueryError` E0521 where it is no longer the same.

        Columns may join, as in any dataset.
        """
        if result.schema is None:
            raise AssertionError("the result of a query has a schema")
        columns = dataset_schema(result.schema, self.task.vocab)
        LogicalHasher(columns)  # columns without a hash are refused before the first record comes
        if self.before.schema is None:
            return columns
        old = from_pyarrow(pa.ipc.read_schema(pa.py_buffer(self.before.schema)))
        growth = grow(old, required_as(described_as(from_pyarrow(columns), old), old))
        if growth.problems:
            raise QueryError(
                f"the result no longer has the schema of the records of '{self.task.dataset}'",
                code="E0521",
                dataset=self.task.dataset,
                notes=growth.problems,
                help="cast or rename the columns back, or define a new dataset",
            )
        return to_pyarrow(growth.schema)

    def after(
        self,
        result: TransformResult,
        schema: pa.Schema,
        data: Path,
        interval: OffsetInterval | None,
        largest: int,
    ) -> State:
        """What the next step has to know, but for the watermark."""
        request = self.request
        next_offset = request.next_offset if interval is None else interval.end + 1
        state = State(
            query=fingerprint(request),
            next_offset=next_offset,
            schema=schema.serialize().to_pybytes(),
            inputs={
                asked.dataset_id: _after(_state_of(asked, self.before), each)
                for asked, each in zip(request.query_inputs, self.task.inputs, strict=True)
            },
            kept_results=self.before.kept_results,
            results=(*self.before.results, *([] if interval is None else [data])),
            known=self.before.known,
        )
        if result.choice.mode is Mode.MAP:
            return _without_records(state)
        if state.size <= largest:
            return state
        return self._only_open(result, state, largest)

    def _only_open(self, result: TransformResult, state: State, largest: int) -> State:
        """Without records of windows that have closed; `EngineError` E1403 where that is no way."""
        windows = windows_of(self.task.transform) if result.choice.mode is Mode.STREAM else None
        reached = output_watermark(
            self.task.watermark_before, [each.watermark for each in self.task.inputs]
        )
        if windows is not None and reached is not None:
            since = reached.millis - windows.length // 1000 - 1
            inputs = {
                asked.dataset_id: _since(state.inputs[asked.dataset_id], each.vocab, since)
                for asked, each in zip(self.request.query_inputs, self.task.inputs, strict=True)
            }
            small = replace(state, inputs=inputs, results=(), kept_results=Kept.NONE)
            if small.size <= largest:
                return small
        raise EngineError(
            f"'{self.task.dataset}' needs {state.size >> 20} MiB of earlier records "
            f"({result.choice.reason}), and a checkpoint keeps up to {largest >> 20} MiB",
            code=TOO_LARGE,
            dataset=self.task.dataset,
            help="start the engine with a larger --checkpoint-limit, or build the dataset with "
            "odfbuild itself, which needs no checkpoints",
        )


def fingerprint(request: TransformRequest) -> str:
    """What tells one transformation from another: queries, what they read, names of columns."""
    transform = in_steps(request.transform)
    said = (
        transform.engine.lower(),
        [(each.alias, each.query) for each in transform.queries or ()],
        [(each.name, each.primary_key) for each in transform.temporal_tables or ()],
        [(str(each.dataset_id), each.query_alias) for each in request.query_inputs],
        _vocabulary(request.vocab),
    )
    return hashlib.sha256(repr(said).encode()).hexdigest()


def _before(request: TransformRequest, desk: Desk) -> State:
    if request.prev_checkpoint_path is not None:
        known = [each.dataset_id for each in request.query_inputs]
        state = read_checkpoint(Path(request.prev_checkpoint_path), desk.scratch, known)
        if state.next_offset not in (None, request.next_offset):
            raise malformed(
                f"the checkpoint belongs to the step before offset {state.next_offset}, and the "
                f"next offset is {request.next_offset}"
            )
        return state
    if request.next_offset == 0:
        return State()
    unknown = InputState(next_offset=None, kept=Kept.NONE)
    inputs = {each.dataset_id: unknown for each in request.query_inputs}
    return State(next_offset=None, inputs=inputs, kept_results=Kept.NONE)


def _vocabulary(vocab: DatasetVocabulary) -> Vocabulary:
    default = Vocabulary()
    return Vocabulary(
        vocab.offset_column or default.offset,
        vocab.operation_type_column or default.operation_type,
        vocab.system_time_column or default.system_time,
        vocab.event_time_column or default.event_time,
    )


def _state_of(asked: TransformRequestInput, before: State) -> InputState:
    """How the step before left an input."""
    interval = asked.offset_interval
    if interval is not None and interval.start == 0:
        known = before.inputs.get(asked.dataset_id)
        return InputState(watermark=known.watermark) if known is not None else InputState()
    return before.inputs.get(asked.dataset_id) or (
        InputState() if interval is None else InputState(next_offset=None, kept=Kept.NONE)
    )


def _input(asked: TransformRequestInput, before: State, desk: Desk) -> InputSlices:
    interval = asked.offset_interval
    paths = [Path(each) for each in asked.data_paths]
    if (interval is None) != (not paths):
        raise malformed(f"input '{asked.query_alias}' has files without an interval, or vice versa")
    vocab = _vocabulary(asked.vocab)
    schema = schema_in(Path(asked.schema_file))
    for path in paths:
        check_types(path, schema)
    known = before.inputs.get(asked.dataset_id)
    expected = None if known is None else known.next_offset
    if interval is not None and expected not in (None, interval.start):
        raise malformed(
            f"input '{asked.query_alias}' was read up to offset {expected}, which does not come "
            f"just before {interval.start}"
        )
    state = _state_of(asked, before)
    watermarks = asked.explicit_watermarks
    slices: tuple[SliceFile, ...] = ()
    if interval is not None:
        slices = slices_of(paths, interval, watermarks, state.watermark, vocab, desk)
    reached = [each.event_time for each in watermarks]
    if state.watermark is not None:
        reached.append(state.watermark)
    return InputSlices(
        alias=asked.query_alias,
        schema=schema,
        vocab=vocab,
        slices=slices,
        first=None if interval is None else interval.start,
        last=None if interval is None else interval.end,
        watermark_before=state.watermark,
        watermark=max(reached, default=None),
        earlier=lambda: state.slices,
    )


def _needs_reset(dataset: str, what: str) -> EngineError:
    return EngineError(
        f"'{dataset}' needs {what}, which its checkpoint does not keep",
        code=RESET,
        dataset=dataset,
        notes=(
            "the query was changed, its inputs began to retract records, or another engine "
            "computed the steps before",
        ),
        help="reset the dataset, so that it is computed from the beginning",
    )


def _after(before: InputState, now: InputSlices) -> InputState:
    """An input as this step leaves it."""
    return InputState(
        next_offset=before.next_offset if now.last is None else now.last + 1,
        watermark=now.watermark,
        kept=before.kept,
        slices=() if before.kept is Kept.NONE else (*before.slices, *now.slices),
    )


def _without_records(state: State) -> State:
    """For queries that handle each record alone."""
    inputs = {
        id: replace(each, slices=(), kept=each.kept if each.next_offset == 0 else Kept.NONE)
        for id, each in state.inputs.items()
    }
    kept = state.kept_results if state.next_offset == 0 else Kept.NONE
    return replace(state, inputs=inputs, results=(), kept_results=kept)


def _since(state: InputState, vocab: Vocabulary, millis: int) -> InputState:
    """Without files whose records all lie before a time."""
    if state.kept is Kept.NONE:
        return state
    slices = [
        each for each in state.slices if event_times(each.path, vocab.event_time).last >= millis
    ]
    return replace(state, slices=tuple(slices), kept=Kept.OPEN)


def failing_file(inputs: Sequence[InputSlices]) -> EngineError | None:
    """The error of a slice that is damaged inside; `None` where all can be read."""
    for each in inputs:
        for file in each.files:
            try:
                with pq.ParquetFile(file) as opened:
                    for _ in opened.iter_batches():
                        pass
            except (OSError, pa.ArrowException) as error:
                return unreadable(file, error)
    return None

"""Let executors carry out a step of any query: all tasks read, and one of them writes the slice.

Each partition of an input is one of its objects, of which Spark gets the columns that the query
reads. The result is what the way through the coordinator gives, in the same order, so that the
slice has the same bytes: it is sorted by one task, on its disk, and never leaves the executors. All
records of the inputs are read, also those that a step through the coordinator can leave out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from odfbuild.engine.contract import InputSlices, TransformTask
from odfbuild.engine.event_windows import windows_of
from odfbuild.engine.in_pieces import StoredInput, WholeTask, WrittenPiece, WrittenStep
from odfbuild.engine.precision import micros_in
from odfbuild.engine.spark.internals.catalyst import Catalyst, optimised_plan_of
from odfbuild.engine.spark.internals.process import set_up
from odfbuild.engine.spark.internals.records import empty_frame, layout_of
from odfbuild.engine.spark.pieces import tasks
from odfbuild.engine.spark.pieces.columns import columns_read
from odfbuild.engine.spark.pieces.run import (
    Workplace,
    by_tasks,
    check_stored,
    ddl,
    piece_of,
    wrong,
)
from odfbuild.engine.spark.queries.checked import known_plan, known_result
from odfbuild.engine.spark.queries.inputs import folded, weight
from odfbuild.engine.spark.queries.modes import changelog, stream
from odfbuild.engine.spark.queries.modes.choose import choose, key_of
from odfbuild.engine.spark.queries.modes.shape import Windowed, inputs_of
from odfbuild.engine.spark.queries.step import steps_of
from odfbuild.engine.spark.queries.ties import is_collated
from odfbuild.engine.spark.queries.transform import Decision, decide
from odfbuild.engine.spark.queries.validate import result_of
from odfbuild.engine.spark.results.frames import in_views, marked, quote, union
from odfbuild.engine.spark.results.order import committed_form, in_one_task, time_first
from odfbuild.odf.chain.step import PromisedSlice
from odfbuild.odf.model import DataSlice
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.sql.mode import WINDOWS, Choice, Mode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARTITION_BYTES = 32 << 20
"""Bytes of objects for each task behind a shuffle, in which they take several times as much."""
_MOST_PARTITIONS = 2_000
_MOST_WATERMARKS = 64
"""Watermarks between which slices of an input came: each takes a job's plan some nodes more."""
_JOINS = {
    # How many records tasks give is known when they have given them, not before.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "10m",
}
_Slices = Sequence[PromisedSlice]


def write_whole(
    spark: SparkSession, task: WholeTask, scratch: Path, cluster: str
) -> WrittenStep | None:
    """Carry out the step; `None` where it has to go through the coordinator."""
    schemas = [task.schema, *(each.schema for each in task.inputs)]
    if task.transform.temporal_tables or any(
        pa.types.is_nested(field.type) for schema in schemas for field in schema
    ):
        return None
    found = decide(spark, _request(task, scratch))
    if any(map(is_collated, known_plan(found.report).output)):
        return None
    is_map = found.choice.mode is Mode.MAP
    if is_map and task.vocab.operation_type in known_result(found.report).columns:
        return None
    seen = next((data for each in task.inputs for data, _ in each.all_slices), None)
    only_reads = task.recorded is not None
    place = Workplace(task.dataset, task.storage, scratch, cluster, only_reads=only_reads)
    _tune(spark, task)
    try:
        with by_tasks(spark, place, seen):
            return _Whole(spark, task, found, found.choice).written()
    except tasks.NeedsOperations as retracting:
        if is_map:
            return None
        choice = choose(found.report, found.shape, [retracting.message])
        with by_tasks(spark, place, seen):
            return _Whole(spark, task, found, choice, retracts=True).written()


def _request(task: WholeTask, scratch: Path) -> TransformTask:
    """The task as one without any record, by which queries are checked."""
    return TransformTask(
        dataset=task.dataset,
        transform=task.transform,
        inputs=tuple(
            InputSlices(
                alias=each.alias, schema=each.schema, vocab=each.vocab, watermark=each.watermark
            )
            for each in task.inputs
        ),
        vocab=task.vocab,
        scratch=scratch,
        watermark_before=task.watermark_before,
    )


def _tune(spark: SparkSession, task: WholeTask) -> None:
    """Set up the session of the request for as many bytes as there are."""
    slices = [data for each in task.inputs for data, _ in each.all_slices]
    bytes = sum(data.size for data in (*slices, *task.previous))
    parts = max(8, spark.sparkContext.defaultParallelism * 2, bytes // _PARTITION_BYTES)
    number = str(min(parts, _MOST_PARTITIONS))
    set_up(spark, {**_JOINS, "spark.sql.shuffle.partitions": number})


class _Whole:
    """One attempt of a step in the mode of `choice`; inputs may hold anything if it `retracts`."""

    def __init__(
        self,
        spark: SparkSession,
        task: WholeTask,
        found: Decision,
        choice: Choice,
        *,
        retracts: bool = False,
    ) -> None:
        self._spark, self._task, self._found, self._choice = spark, task, found, choice
        self._retracts = retracts
        self._catalyst = Catalyst(spark)
        self._columns: frozenset[str] | None = None
        if not retracts:  # which records were taken back is told by all of their columns
            self._columns = self._read_columns()

    def written(self) -> WrittenStep | None:
        """What one task writes of the result."""
        match self._choice.mode:
            case Mode.MAP:
                result: DataFrame | None = self._rows()
            case Mode.CHANGELOG:
                result = self._changes()
            case _ if isinstance(self._found.shape, Windowed):
                if any(len(self._by_watermark(e)) > _MOST_WATERMARKS for e in self._task.inputs):
                    return None
                result = self._windows(self._found.shape)
            case _:
                result = self._pairs()
        piece = WrittenPiece(None) if result is None else self._write(result)
        told = self._choice == WINDOWS and self._task.recorded is None
        late = self._late() if told else {}
        return WrittenStep(piece, self._choice, late)

    def _write(self, result: DataFrame) -> WrittenPiece:
        task, first = self._task, self._task.first_offset
        how = tasks.Writing(
            task.dataset,
            task.schema,
            task.vocab,
            (first,),
            task.system_time,
            task.storage,
            () if task.recorded is None else (task.recorded,),
        )
        rows = result.mapInArrow(partial(tasks.write, how), ddl(tasks.REPORT)).collect()
        if len(rows) > 1:
            raise wrong(task.dataset, f"{len(rows)} tasks told of what one of them wrote")
        # Spark starts no task for a result of which it knows that it is empty.
        piece = piece_of(rows[0], first) if rows else WrittenPiece(None)
        if task.recorded is None:
            check_stored(task.dataset, task.storage, [piece])
        return piece

    # --- Modes ---

    def _rows(self) -> DataFrame:
        """What becomes of each new record, in the order in which the query reads them."""
        self._show(self._task.inputs, [each.slices for each in self._task.inputs])
        _, result = result_of(self._spark, steps_of(self._found.task.transform))
        return result.coalesce(1)  # one task for all partitions, one after the other

    def _changes(self) -> DataFrame:
        """How the result over all records differs from the one so far."""
        task = self._task
        for each in task.inputs:
            frame = self._records(each, each.all_slices)
            if self._retracts:
                frame = marked(folded(frame, each.vocab), each.schema)
            self._catalyst.show(frame, each.alias)
        plan, result = result_of(self._spark, steps_of(self._found.task.transform))
        result = committed_form(result, micros_in(task.schema) - {task.vocab.event_time})
        order = time_first(result.columns, task.vocab.event_time)
        if not task.previous:
            return in_one_task(result, order)
        difference = changelog.difference(result, self._so_far(result.columns))
        operation = task.vocab.operation_type
        key = key_of(plan)
        return changelog.changes_of(
            difference, result.columns, key, order, operation, arranged=in_one_task
        )

    def _so_far(self, names: Sequence[str]) -> DataFrame:
        """The result so far, with weights as `changelog.MORE`."""
        task, operation = self._task, self._task.vocab.operation_type
        wanted = pa.schema([task.schema.field(name) for name in (*names, operation)])
        before = self._frame(task.previous, wanted, task.vocab)
        return before.selectExpr(*map(quote, names), f"{weight(task.vocab)} AS {changelog.MORE}")

    def _windows(self, shape: Windowed) -> DataFrame | None:
        """The windows that the watermark closes."""
        task = self._found.task
        span = stream.closing(task)
        if span is None:
            return None
        after, upto = span
        for each in self._task.inputs:
            frames = [
                (self._records(each, slices), max(after, promised), False, False)
                for promised, slices in self._by_watermark(each).items()
            ] or [(self._records(each, ()), after, True, True)]
            stream.show_windows(frames, each.alias, each.vocab.event_time, upto, shape.length)
        plan, _ = result_of(self._spark, steps_of(task.transform))
        return self._in_order_of_time(stream.closed_windows(self._spark, plan, task, shape))

    def _by_watermark(self, each: StoredInput) -> Mapping[int, list[PromisedSlice]]:
        """All slices of an input by the watermark before them, as far as it tells of windows."""
        span = stream.closing(self._found.task)
        after = span[0] if span is not None else 0
        groups: dict[int, list[PromisedSlice]] = {}
        for data, promised in each.all_slices:
            since = after if promised is None else max(after, promised.millis)
            groups.setdefault(since, []).append((data, promised))
        return groups

    def _pairs(self) -> DataFrame | None:
        """What new records add to a join, input by input as in `stream.new_pairs`."""
        task = self._found.task
        self._show(self._task.inputs, [() for _ in self._task.inputs])
        plan, _ = result_of(self._spark, steps_of(task.transform))
        aliases = tuple(each.alias for each in self._task.inputs)
        read = inputs_of(self._catalyst.inline(plan), aliases)
        inputs = [each for each in self._task.inputs if each.alias.lower() in read]
        found = []
        for number, fresh in enumerate(inputs):
            slices = [
                each.slices
                if other == number
                else each.earlier
                if other < number
                else each.all_slices
                for other, each in enumerate(inputs)
            ]
            if not fresh.slices or not all(slices):
                continue
            self._show(inputs, slices)
            found.append(result_of(self._spark, steps_of(task.transform))[1])
        return self._in_order_of_time(union(found)) if found else None

    def _show(self, inputs: Sequence[StoredInput], slices: Sequence[_Slices]) -> None:
        for each, some in zip(inputs, slices, strict=True):
            self._catalyst.show(self._records(each, some), each.alias)

    def _in_order_of_time(self, frame: DataFrame) -> DataFrame:
        return in_one_task(frame, time_first(frame.columns, self._task.vocab.event_time))

    # --- Records ---

    def _read_columns(self) -> frozenset[str]:
        """The names of the columns that the query reads of any input, as the optimiser finds."""
        self._show(self._task.inputs, [each.all_slices for each in self._task.inputs])
        _, result = result_of(self._spark, steps_of(self._found.task.transform))
        times = {each.vocab.event_time for each in self._task.inputs}
        return columns_read(optimised_plan_of(result)) | times

    def _records(self, each: StoredInput, slices: _Slices) -> DataFrame:
        """Records of an input; columns that nobody reads are empty."""
        return self._frame([data for data, _ in slices], each.schema, each.vocab, each.alias)

    def _frame(
        self, slices: Sequence[DataSlice], schema: pa.Schema, vocab: Vocabulary, alias: str = ""
    ) -> DataFrame:
        """The records of slices, a partition for each; without `alias` those of the result."""
        shape, size = in_views(schema, vocab), len(slices)
        if not slices:
            return marked(empty_frame(self._spark, shape), schema)
        how = tasks.Reading(
            tuple((data,) for data in slices),
            layout_of(shape),
            vocab,
            self._task.storage,
            alias,
            operations=self._retracts or not alias,
            columns=self._columns if alias else None,
        )
        numbers = self._spark.range(0, size, 1, size)
        return marked(numbers.mapInArrow(partial(tasks.read, how), shape), schema)

    def _late(self) -> dict[str, int]:
        """How many new records of each input came behind a window, where there are any."""
        windows = windows_of(self._task.transform)
        found: dict[str, int] = {}
        for each in self._task.inputs if windows is not None else ():
            promised = tuple(one for one in each.slices if one[1] is not None)
            if not promised or windows is None:
                continue
            how = tasks.Watching(promised, each.vocab, windows, self._task.storage)
            numbers = self._spark.range(0, len(promised), 1, len(promised))
            rows = numbers.mapInArrow(partial(tasks.late, how), ddl(tasks.LATE)).collect()
            found[each.alias] = sum(row.records for row in rows)
        return {alias: records for alias, records in found.items() if records}

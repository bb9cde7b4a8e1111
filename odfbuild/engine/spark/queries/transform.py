"""Steps of transformations: how each is carried out, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from odfbuild.engine.affected_records import check_extent, is_worth_it
from odfbuild.engine.contract import (
    Extent,
    InputSlices,
    TransformResult,
    TransformTask,
)
from odfbuild.engine.precision import Micros, micros_of_step
from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.internals.status import CANCELLED, fault_of
from odfbuild.engine.spark.queries.changes_of_parts import changes_of_parts
from odfbuild.engine.spark.queries.checked import checked, found_before, known_plan, known_result
from odfbuild.engine.spark.queries.few_changes import few_changes
from odfbuild.engine.spark.queries.findings import Report
from odfbuild.engine.spark.queries.foreign import in_spark
from odfbuild.engine.spark.queries.inputs import has_operations
from odfbuild.engine.spark.queries.kept_totals import KeptTotals
from odfbuild.engine.spark.queries.modes import changelog, map, stream
from odfbuild.engine.spark.queries.modes.bounds import bounds_of
from odfbuild.engine.spark.queries.modes.choose import choose, key_of
from odfbuild.engine.spark.queries.modes.shape import Joined, Windowed, inputs_of, shape_of
from odfbuild.engine.spark.queries.step import history_views, steps_of, tuned
from odfbuild.engine.spark.queries.ties import is_collated
from odfbuild.engine.spark.queries.validate import result_of
from odfbuild.engine.spark.results import small_jobs as few
from odfbuild.engine.spark.results.executor import computes_here, write_parts
from odfbuild.engine.spark.results.frames import marked_uuids, to_arrow_schema
from odfbuild.engine.spark.results.order import committed_form, time_first
from odfbuild.engine.spark.results.sorted_parts import ordered_parts
from odfbuild.errors import QueryError
from odfbuild.fallbacks import fell_back
from odfbuild.sql.mode import SUBQUERY, Choice, Mode

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from odfbuild.engine.spark.internals.node import Node


@dataclass(frozen=True, slots=True)
class Decision:
    """How a step is carried out: what checking the query found, and the mode that fits.

    The task's queries are in the SQL of the engine. `retracting` are inputs that hold retractions.
    Plan and result of the report stand over what is new of the inputs, or over their `whole` state.
    """

    task: TransformTask
    report: Report
    shape: Windowed | Joined | None
    retracting: Sequence[str]
    choice: Choice
    whole: bool = False


def decide(spark: SparkSession, task: TransformTask, *, whole: bool = False) -> Decision:
    """Check a query and choose the mode.

    With `whole`, views are those of all records where a query is known to need them, if they are
    few.
    """
    view = partial(map.increment_view, task.scratch)
    whole = whole and _needs_all(task) and computes_here(spark)
    if whole:
        few.tune(spark, {*task.previous(), *(f for each in task.inputs for f in each.all_files())})
        view = partial(changelog.history_view, scratch=task.scratch)
    # Most queries handle each record alone, and are checked over what they are to read.
    report = checked(spark, task.dataset, task.transform, task.inputs, task.vocab, view=view)
    tables = [each.alias for each in task.inputs]
    task = replace(task, transform=in_spark(spark, task.transform, task.dataset, tables))
    shape = None if report.row_wise else _shape(spark, report, task)
    retracting = [each.alias for each in task.inputs if _retracts(each, whole=shape is not None)]
    choice = choose(report, shape, retracting)
    if choice.mode is not Mode.MAP:
        _refuse_operation(report, task)
    return Decision(task, report, shape, retracting, choice, whole)


def _needs_all(task: TransformTask) -> bool:
    """Whether a query, which was found right before, is computed over all records, which are few.

    Then it is planned once, over these.
    """
    known = found_before(task.dataset, task.transform, task.inputs)
    return known is not None and not known.row_wise and not is_worth_it(task.inputs)


def derive(spark: SparkSession, task: TransformTask) -> TransformResult:
    """Bring a result up to date, in the mode that fits its query and its inputs."""
    found = decide(spark, task, whole=True)
    task = found.task
    result = known_result(found.report)
    names = [name for name in result.columns if name != task.vocab.event_time]
    committed = _committed(task) if found.choice.mode is Mode.CHANGELOG else None
    micros = micros_of_step(names, task.inputs, committed)
    schema = to_arrow_schema(result, [task.vocab.event_time], micros, marked_uuids(result))
    extent = None
    match found.choice.mode:
        case Mode.MAP if found.retracting and task.vocab.operation_type not in schema.names:
            made = _map_with_operations(spark, task)
        case Mode.MAP:
            made = mapped(result, task, quick=found.report.quick)
        case Mode.STREAM if isinstance(found.shape, Windowed):
            made = _windows(spark, task, found.shape)
        case Mode.STREAM:
            made = _pairs(spark, found)
        case Mode.CHANGELOG:
            made, extent = _changelog(spark, found, schema, micros)
    parts, files = made
    if found.choice.mode is Mode.MAP:  # few records are handed over, not read by Spark
        files = {file.resolve() for each in task.inputs for file in each.files}
    return TransformResult(
        parts=parts, schema=schema, choice=found.choice, read=frozenset(files), extent=extent
    )


Made = tuple[tuple[Path, ...], set[Path]]
"""The parts of a result, and the files that Spark read."""


def _shape(spark: SparkSession, report: Report, task: TransformTask) -> Windowed | Joined | None:
    if any(each.words == SUBQUERY for each in report.not_row_wise):
        return None
    plan = Catalyst(spark).inline(known_plan(report))
    return shape_of(plan, _event_times(task))


def _event_times(task: TransformTask) -> dict[str, str]:
    return {each.alias: each.vocab.event_time for each in task.inputs}


def _retracts(each: InputSlices, *, whole: bool) -> bool:
    """Whether new records, or all of the `whole` history, hold anything but appended ones."""
    return has_operations(each.all_files() if whole else each.files, each.vocab)


def _map_with_operations(spark: SparkSession, task: TransformTask) -> Made:
    for number, each in enumerate(task.inputs):
        map.traced_view(spark, number, each)
    plan, _ = result_of(spark, steps_of(task.transform))
    frame = map.with_operations(spark, plan, task)
    files = tuned(frame, task)
    return map.write_with_operations(frame, task.vocab.operation_type, task.scratch), files


def _windows(spark: SparkSession, task: TransformTask, shape: Windowed) -> Made:
    span = stream.closing(task)
    if span is None:
        return (), set()
    for each in task.inputs:
        stream.window_view(spark, each, span, shape.length)
    plan, _ = result_of(spark, steps_of(task.transform))
    frame = stream.closed_windows(spark, plan, task, shape)
    return _in_order_of_time(frame, task)


def _pairs(spark: SparkSession, found: Decision) -> Made:
    task = found.task
    if found.whole and not any(each.earlier() for each in task.inputs):
        # All pairs are new.
        frame: DataFrame | None = known_result(found.report)
        read = {file.resolve() for each in task.inputs for file in each.files}
    else:
        frame, read = pairs(spark, task, lambda: result_of(spark, steps_of(task.transform))[1])
    return ((), set()) if frame is None else (_in_order_of_time(frame, task)[0], read)


def pairs(
    spark: SparkSession, task: TransformTask, result: Callable[[], DataFrame]
) -> tuple[DataFrame | None, set[Path]]:
    """What new records add to a join; `None` for nothing. `result` is the query over the views.

    Also the files that are read.
    """
    plan, _ = result_of(spark, steps_of(task.transform))
    catalyst = Catalyst(spark)
    plan = catalyst.inline(plan)
    times = _event_times(task)
    # New records of an input that no join reads make no pairs, and all pairs would come once more.
    read = inputs_of(plan, tuple(times))
    inputs = [each for each in task.inputs if each.alias.lower() in read]
    bounds = bounds_of(catalyst, plan, times)
    return stream.new_pairs(spark, inputs, bounds, result, task.scratch)


def mapped(frame: DataFrame, task: TransformTask, *, quick: bool) -> Made:
    """Write a row-wise result; a `quick` one of few records is computed without a job."""
    folder = task.scratch / "parts"
    if quick and computes_here(frame.sparkSession) and few.collect_computed(frame, folder):
        return tuple(folder.iterdir()), set()
    files = tuned(frame, task)
    return write_parts(frame, folder), files


def _in_order_of_time(frame: DataFrame, task: TransformTask) -> Made:
    """Records that are all appended: by event time, then by all other values."""
    files = tuned(frame, task)
    order = time_first(frame.columns, task.vocab.event_time)
    return ordered_parts(frame, order, task.scratch / "parts"), files


def _committed(task: TransformTask) -> pa.Schema | None:
    """The schema of the last records, which a changelog is compared with."""
    previous = task.previous()
    return pq.read_schema(previous[-1]) if previous else None


def _changelog(
    spark: SparkSession, found: Decision, schema: pa.Schema, micros: Micros
) -> tuple[Made, Extent | None]:
    task = found.task
    inputs = {file for each in task.inputs for file in each.all_files()}
    read = {file.resolve() for file in inputs}
    extent = totals = None
    if _may_be_in_parts(spark, found):
        try:
            parts, extent, totals = changes_of_parts(spark, task, schema, micros)
        except Exception as error:
            fault = fault_of(error)
            if fault is not None and fault.condition == CANCELLED:
                raise
            # Where a record belongs to several keys, others of some of these are missing, and an
            # expression may fail for what it never meets in full.
            fell_back(__name__, f"{task.dataset} is computed in full", error, foreseen=bool(fault))
            parts = None
        check_extent(task, extent, in_full=parts is None)
        if parts is not None:
            return (parts, read), extent
        few.tune_anew(spark)
    else:
        check_extent(task, None, in_full=True)
    if found.whole:
        plan, result = known_plan(found.report), known_result(found.report)
    else:
        few.tune(spark, inputs.union(task.result_files()))
        history_views(spark, task, task.scratch)
        plan, result = result_of(spark, steps_of(task.transform))
    of_groups = None if totals is None else _of_groups(totals, plan, task)
    result = committed_form(result if of_groups is None else of_groups, micros)
    parts = None
    has_collation = any(is_collated(each) for each in plan.output)
    if task.previous() and of_groups is None and not has_collation:
        parts = few_changes(result, task, schema, key_of(plan))
    if parts is not None:
        return (parts, read), extent
    if task.previous() or of_groups is not None:
        before = changelog.committed(spark, task, schema) if task.previous() else None
        frame = changelog.difference(result, before)
        if of_groups is None:
            tuned(frame, task)
        parts = changelog.write_changes(frame, task, key_of(plan))
    else:
        parts, _ = _in_order_of_time(result, task)
    return (parts, read), extent


def _of_groups(totals: KeptTotals, plan: Node, task: TransformTask) -> DataFrame | None:
    """The result of a plan over all records by way of totals, which are kept for the next steps."""
    try:
        return totals.of_all(plan)
    except Exception as error:
        fault = fault_of(error)
        if fault is not None and fault.condition == CANCELLED:
            raise
        fell_back(__name__, f"{task.dataset} keeps no totals", error, foreseen=bool(fault))
        return None


def _may_be_in_parts(spark: SparkSession, found: Decision) -> bool:
    """Whether the records so far are what the query gave, in full, for the earlier records.

    Where it appended what was final as long as no input held retractions, that may be less.
    """
    task = found.task
    if not task.continued or not computes_here(spark) or not is_worth_it(task.inputs):
        return False
    if any(is_collated(each) for each in known_plan(found.report).output):
        return False
    return found.shape is None or any(
        has_operations([file.path for file in each.earlier()], each.vocab) for each in task.inputs
    )


def _refuse_operation(report: Report, task: TransformTask) -> None:
    if task.vocab.operation_type in known_result(report).columns:
        raise QueryError(
            f"the result has a column '{task.vocab.operation_type}', which only queries that "
            f"handle each record alone may give; here is {report.not_row_wise[0]}",
            code="E0514",
            dataset=task.dataset,
            help="leave it out: odfbuild finds out by itself what to retract or correct",
        )

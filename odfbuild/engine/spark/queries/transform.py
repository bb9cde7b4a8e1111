"""Transformations and preprocessing: checked queries over views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
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
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.internals.status import CANCELLED, fault_of
from odfbuild.engine.spark.queries.changes_of_parts import changes_of_parts
from odfbuild.engine.spark.queries.findings import Report, unfit_columns
from odfbuild.engine.spark.queries.fingerprint import fingerprint_of, holds_for_all
from odfbuild.engine.spark.queries.foreign import as_written, differences, in_spark
from odfbuild.engine.spark.queries.hidden_columns import Carrier
from odfbuild.engine.spark.queries.inputs import empty_view, has_operations
from odfbuild.engine.spark.queries.modes import changelog, map, stream
from odfbuild.engine.spark.queries.modes.bounds import bounds_of
from odfbuild.engine.spark.queries.modes.choose import choose, key_of
from odfbuild.engine.spark.queries.modes.shape import Joined, Windowed, inputs_of, shape_of
from odfbuild.engine.spark.queries.step import history_views, steps_of, tuned
from odfbuild.engine.spark.queries.temporal import make_view, versions_of, views_of
from odfbuild.engine.spark.queries.ties import is_collated
from odfbuild.engine.spark.queries.validate import NO_OFFSETS, check_steps, result_of, screen_steps
from odfbuild.engine.spark.results import small_jobs as few
from odfbuild.engine.spark.results.executor import computes_here, write_parts
from odfbuild.engine.spark.results.frames import marked_uuids, quote, to_arrow_schema
from odfbuild.engine.spark.results.order import committed_form, time_first
from odfbuild.engine.spark.results.sorted_parts import ordered_parts
from odfbuild.errors import Errors, QueryError
from odfbuild.fallbacks import fell_back
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.sql.mode import SUBQUERY, Choice, Mode
from odfbuild.sql.translate.runnable import is_spark, runnable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from odfbuild.odf.model import TransformSql


_RIGHT: dict[str, Report] = {}
"""What was found of queries that are right, without their plans, by text and by fingerprint: a
query is checked before anything runs, and runs then, often several times."""
_COLUMNS: dict[str, pa.Schema] = {}
"""The columns of results of right queries, by fingerprint."""
_REMEMBERED = 2_000


@dataclass(frozen=True, slots=True)
class Decision:
    """How a step is carried out: what checking the query found, and the mode that fits.

    The task's queries are in the SQL of the engine. `retracting` are inputs that hold retractions.
    """

    task: TransformTask
    report: Report
    shape: Windowed | Joined | None
    retracting: Sequence[str]
    choice: Choice


def decide(spark: SparkSession, task: TransformTask) -> Decision:
    """Check a query over views of what is new, and choose the mode."""
    # Most queries handle each record alone, and are checked over what they are to read.
    view = partial(map.increment_view, task.scratch)
    report = checked(spark, task.dataset, task.transform, task.inputs, task.vocab, view=view)
    tables = [each.alias for each in task.inputs]
    task = replace(task, transform=in_spark(spark, task.transform, task.dataset, tables))
    shape = None if report.row_wise else _shape(spark, report, task)
    retracting = [each.alias for each in task.inputs if _retracts(each, whole=shape is not None)]
    choice = choose(report, shape, retracting)
    if choice.mode is not Mode.MAP:
        _refuse_operation(report, task)
    return Decision(task, report, shape, retracting, choice)


def derive(spark: SparkSession, task: TransformTask) -> TransformResult:
    """Bring a result up to date, in the mode that fits its query and its inputs."""
    found = decide(spark, task)
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
            made = _pairs(spark, task)
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


def _pairs(spark: SparkSession, task: TransformTask) -> Made:
    frame = pairs(spark, task, lambda: result_of(spark, steps_of(task.transform))[1])
    return ((), set()) if frame is None else _in_order_of_time(frame, task)


def pairs(
    spark: SparkSession, task: TransformTask, result: Callable[[], DataFrame]
) -> DataFrame | None:
    """What new records add to a join; `None` for nothing. `result` is the query over the views."""
    plan, _ = result_of(spark, steps_of(task.transform))
    catalyst = Catalyst(spark)
    plan = catalyst.inline(plan)
    times = _event_times(task)
    # New records of an input that no join reads make no pairs, and all pairs would come once more.
    read = inputs_of(plan, tuple(times))
    inputs = [each for each in task.inputs if each.alias.lower() in read]
    return stream.new_pairs(spark, inputs, bounds_of(catalyst, plan, times), result)


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
    extent = None
    if _may_be_in_parts(spark, found):
        try:
            parts, extent = changes_of_parts(spark, task, schema, micros)
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
    else:
        check_extent(task, None, in_full=True)
    few.tune(spark, inputs.union(task.result_files()))
    history_views(spark, task, task.scratch)
    plan, result = result_of(spark, steps_of(task.transform))
    result = committed_form(result, micros)
    if task.previous():
        frame = changelog.difference(result, changelog.committed(spark, task, schema))
        tuned(frame, task)
        parts = changelog.write_changes(frame, task, key_of(plan))
    else:
        parts, _ = _in_order_of_time(result, task)
    return (parts, read), extent


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


def checked(
    spark: SparkSession,
    dataset: str,
    transform: TransformSql,
    inputs: Sequence[InputSlices],
    vocab: Vocabulary,
    view: Callable[[SparkSession, InputSlices], None] = empty_view,
) -> Report:
    """What there is to know of a transformation of a derivative without reading data.

    `view` makes the views of inputs, over which `plan` and `result` of the report stand.
    Raises `Errors` with all problems.
    """
    for each in inputs:
        view(spark, each)
    tables = versions_of(dataset, transform, inputs)
    for table in tables:
        make_view(spark, table)
    names = [each.alias for each in inputs] + [table.view for table in tables]
    offsets = {each.alias.lower(): each.vocab.offset for each in inputs}
    columns = [(e.alias, e.schema.serialize().to_pybytes(), e.vocab) for e in inputs]
    like = fingerprint_of(transform, inputs, vocab)
    report = _checked_steps(spark, dataset, transform, names, repr(columns), offsets, like)
    frame = known_result(report)
    operation = _unfit_operation(frame, dataset, vocab)
    problems = unfit_columns(frame, dataset) + _system_columns(frame, dataset, vocab)
    problems += [operation] if operation else []
    if problems:
        raise Errors(problems)
    report.result = _with_operation(frame, vocab)
    return report


def result_columns(
    request: Callable[[str], AbstractContextManager[SparkSession]],
    dataset: str,
    transform: TransformSql,
    inputs: Sequence[InputSlices],
    vocab: Vocabulary,
) -> pa.Schema:
    """See `contract.Engine.validate`; a `request` is made once for all queries that are alike."""
    like = fingerprint_of(transform, inputs, vocab)
    known = _COLUMNS.get(like or "")
    if known is not None:
        return known
    with request(dataset) as spark:
        report = checked(spark, dataset, transform, inputs, vocab)
        frame = known_result(report)
        micros = micros_of_step(frame.columns, inputs)
        schema = to_arrow_schema(frame, [vocab.event_time], micros, marked_uuids(frame))
    if like is not None and holds_for_all(report, schema.names):
        if len(_COLUMNS) >= _REMEMBERED:
            _COLUMNS.clear()
        _COLUMNS[like] = schema
    return schema


def _refuse_operation(report: Report, task: TransformTask) -> None:
    if task.vocab.operation_type in known_result(report).columns:
        raise QueryError(
            f"the result has a column '{task.vocab.operation_type}', which only queries that "
            f"handle each record alone may give; here is {report.not_row_wise[0]}",
            code="E0514",
            dataset=task.dataset,
            help="leave it out: odfbuild finds out by itself what to retract or correct",
        )


def preprocess(
    spark: SparkSession, dataset: str, transform: TransformSql, carried: Sequence[str] = ()
) -> tuple[DataFrame, bool]:
    """The lazy result of preprocessing the view `input`, and whether it keeps the order of rows.

    Where it does, it has the hidden columns `carried` of that view, too.
    """
    columns = spark.table("input").schema.json()
    report = _checked_steps(spark, dataset, transform, ["input"], columns)
    frame = known_result(report)
    problems = unfit_columns(frame, dataset)
    if problems:
        raise Errors(problems)
    if carried and report.row_wise:
        catalyst = Catalyst(spark)
        carrier = Carrier(catalyst, ["input"], carried)
        frame = catalyst.frame(carrier.carry(catalyst.inline(known_plan(report))))
    return frame, report.row_wise


def _checked_steps(
    spark: SparkSession,
    dataset: str,
    transform: TransformSql,
    names: Sequence[str],
    columns: str,
    offsets: Mapping[str, str] = NO_OFFSETS,
    like: str | None = None,
) -> Report:
    """Check queries, unless they were found right over inputs with the same `columns` before.

    Or some with the same fingerprint, `like` them.
    """
    # Its chain pins a version, which the definition that was checked before had not yet.
    key = repr((replace(transform, version=None), names, columns, offsets))
    known = _RIGHT.get(key) or _RIGHT.get(like or key)
    if known is not None:
        plan, frame = result_of(spark, steps_of(in_spark(spark, transform, dataset, names)))
        return replace(known, plan=plan, result=frame)
    with as_written(transform):
        steps = steps_of(in_spark(spark, transform, dataset, names))
        report = check_steps(spark, dataset, steps, names, offsets)
        problems = [*report.errors, *report.order_bound]
        if report.plan is not None and not problems and not is_spark(transform):
            engine = transform.engine.lower()
            problems = differences(Catalyst(spark), report.plan, dataset, engine)
        _raise_first_of_each(problems)
    if len(_RIGHT) >= _REMEMBERED:
        _RIGHT.clear()
    found = replace(report, plan=None, result=None)
    _RIGHT[key] = found
    if like is not None and holds_for_all(found, known_result(report).columns):
        _RIGHT[like] = found
    return report


def screen(
    spark: SparkSession, dataset: str, transform: TransformSql, inputs: Sequence[str]
) -> None:
    """What can be told of queries before any column of their inputs is known; raises `Errors`."""
    names = [*inputs, *views_of(transform)]
    with as_written(transform):
        steps = steps_of(runnable(transform, dataset))
        _raise_first_of_each(screen_steps(spark, dataset, steps, names))


def known_plan(report: Report) -> Node:
    """The analysed plan of a query that was found right."""
    if report.plan is None:
        raise AssertionError("a query without errors has a plan")
    return report.plan


def known_result(report: Report) -> DataFrame:
    """The result of a query that was found right."""
    if report.result is None:
        raise AssertionError("a query without errors has a result")
    return report.result


def _raise_first_of_each(problems: Sequence[QueryError]) -> None:
    """Raise all problems, each message and place once."""
    unique = {(error.message, str(error.location)): error for error in problems}
    if len(unique) == 1:
        raise next(iter(unique.values()))
    if unique:
        raise Errors(unique.values())


def _system_columns(frame: DataFrame, dataset: str, vocab: Vocabulary) -> list[QueryError]:
    errors = []
    names = {name.lower(): name for name in frame.columns}
    for name in (vocab.offset, vocab.system_time):
        if name.lower() in names:
            errors.append(
                QueryError(
                    f"the result has a column '{name}', which is a system column",
                    code="E0514",
                    dataset=dataset,
                    help=f"leave it out, or rename it: {name} AS source_{name}",
                )
            )
    event_time = next((f for f in frame.schema.fields if f.name == vocab.event_time), None)
    if event_time is None:
        errors.append(
            QueryError(
                f"the result has no column '{vocab.event_time}'",
                code="E0515",
                dataset=dataset,
                help=f"select {vocab.event_time}: every record needs the time at which its event "
                "happened",
            )
        )
    elif event_time.dataType.typeName() not in ("timestamp", "timestamp_ntz", "date"):
        errors.append(
            QueryError(
                f"'{vocab.event_time}' is {event_time.dataType.simpleString()}, "
                "not a timestamp or date",
                code="E0516",
                dataset=dataset,
                help=f"CAST({vocab.event_time} AS TIMESTAMP)",
            )
        )
    return errors


def _unfit_operation(frame: DataFrame, dataset: str, vocab: Vocabulary) -> QueryError | None:
    name = vocab.operation_type
    field = next((f for f in frame.schema.fields if f.name.lower() == name.lower()), None)
    if field is None:
        return None
    if field.name != name:
        message = (
            f"the result has a column '{field.name}', which is a system column but for its case"
        )
        help_ = f"leave it out, or write it as `{name}`"
    elif field.dataType.typeName() not in ("byte", "short", "integer"):
        kind = field.dataType.simpleString().upper()
        message = f"'{name}' is {kind}, but an operation is a small number"
        help_ = f"CAST({name} AS INT)"
    else:
        return None
    return QueryError(
        message,
        code="E0514",
        dataset=dataset,
        notes=("0 appends, 1 retracts, 2 and 3 correct from and to",),
        help=help_,
    )


def _with_operation(frame: DataFrame, vocab: Vocabulary) -> DataFrame:
    """Operations as int, where the query carries them; a code that is none makes it fail."""
    if vocab.operation_type not in frame.columns:
        return frame
    name = quote(vocab.operation_type)
    found = f"coalesce(CAST({name} AS STRING), 'NULL')"
    why = f"concat('a record of the result has ', {found}, ', which is no operation (0 to 3)')"
    operation = (
        f"CASE WHEN {name} BETWEEN 0 AND 3 THEN CAST({name} AS INT) "
        f"ELSE CAST(raise_error({why}) AS INT) END AS {name}"
    )
    return frame.selectExpr(
        *(operation if c == vocab.operation_type else quote(c) for c in frame.columns)
    )

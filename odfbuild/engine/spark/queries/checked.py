"""Check queries over views of their inputs, and remember which ones are right.

A query is checked before anything runs, and runs then, often several times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from odfbuild.engine.contract import InputSlices, ValidateTask
from odfbuild.engine.precision import micros_of_step
from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.queries.findings import Report, unfit_columns
from odfbuild.engine.spark.queries.fingerprint import fingerprint_of, holds_for_all
from odfbuild.engine.spark.queries.foreign import as_written, differences, in_spark
from odfbuild.engine.spark.queries.hidden_columns import Carrier
from odfbuild.engine.spark.queries.inputs import empty_view
from odfbuild.engine.spark.queries.step import steps_of
from odfbuild.engine.spark.queries.temporal import make_view, versions_of, views_of
from odfbuild.engine.spark.queries.validate import NO_OFFSETS, check_steps, result_of, screen_steps
from odfbuild.engine.spark.results.frames import marked_uuids, quote, to_arrow_schema
from odfbuild.errors import Errors, QueryError
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.sql.translate.runnable import is_spark, runnable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from odfbuild.odf.model import TransformSql

_RIGHT: dict[str, Report] = {}
"""What was found of queries that are right, without their plans, by text and by fingerprint: a
query is checked before anything runs, and runs then, often several times."""
_COLUMNS: dict[str, pa.Schema] = {}
"""The columns of results of right queries, by text and by fingerprint."""
_REMEMBERED = 2_000


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
    for table in versions_of(dataset, transform, inputs):
        make_view(spark, table)
    names, columns, offsets = _relations(dataset, transform, inputs)
    like = fingerprint_of(transform, inputs, vocab)
    report = _checked_steps(spark, dataset, transform, names, columns, offsets, like)
    frame = known_result(report)
    operation = _unfit_operation(frame, dataset, vocab)
    problems = unfit_columns(frame, dataset) + _system_columns(frame, dataset, vocab)
    problems += [operation] if operation else []
    if problems:
        raise Errors(problems)
    report.result = _with_operation(frame, vocab)
    return report


def result_columns(
    request: Callable[[str], AbstractContextManager[SparkSession]], task: ValidateTask
) -> pa.Schema:
    """See `ValidateTask`; a `request` is made once for all queries that are alike."""
    dataset, transform, inputs, vocab = task.dataset, task.transform, task.inputs, task.vocab
    like = fingerprint_of(transform, inputs, vocab)
    key = _key(transform, *_relations(dataset, transform, inputs)) + repr(vocab)
    known = _COLUMNS.get(key) or _COLUMNS.get(like or key)
    if known is not None:
        return known
    with request(dataset) as spark:
        report = checked(spark, dataset, transform, inputs, vocab)
        frame = known_result(report)
        micros = micros_of_step(frame.columns, inputs)
        schema = to_arrow_schema(frame, [vocab.event_time], micros, marked_uuids(frame))
    if len(_COLUMNS) >= _REMEMBERED:
        _COLUMNS.clear()
    _COLUMNS[key] = schema
    if like is not None and holds_for_all(report, schema.names):
        _COLUMNS[like] = schema
    return schema


def found_before(
    dataset: str, transform: TransformSql, inputs: Sequence[InputSlices]
) -> Report | None:
    """What was found of a query that is right, without its plan, if it was checked before."""
    return _RIGHT.get(_key(transform, *_relations(dataset, transform, inputs)))


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


def _relations(
    dataset: str, transform: TransformSql, inputs: Sequence[InputSlices]
) -> tuple[list[str], str, Mapping[str, str]]:
    """The names of what a query may read, a text of its columns, and the columns of offsets."""
    names = [each.alias for each in inputs]
    if transform.temporal_tables:
        names += [table.view for table in versions_of(dataset, transform, inputs)]
    columns = [(e.alias, e.schema.serialize().to_pybytes(), e.vocab) for e in inputs]
    return names, repr(columns), {each.alias.lower(): each.vocab.offset for each in inputs}


def _key(
    transform: TransformSql, names: Sequence[str], columns: str, offsets: Mapping[str, str]
) -> str:
    """What checking a query depends on, as text."""
    # Its chain pins a version, which the definition that was checked before had not yet.
    return repr((replace(transform, version=None), names, columns, offsets))


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
    key = _key(transform, names, columns, offsets)
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

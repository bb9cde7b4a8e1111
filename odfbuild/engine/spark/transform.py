"""Transformations and preprocessing: checked queries over views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from odfbuild.engine.contract import EngineResult, TransformTask, Vocabulary
from odfbuild.engine.spark.frames import input_view, quote, to_arrow_schema, write_parts
from odfbuild.engine.spark.validate import Report, Step, check_steps, unfit_columns
from odfbuild.errors import Errors, QueryError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from odfbuild.odf.model import TransformSql


def steps_of(transform: TransformSql) -> list[Step]:
    """The queries of a transformation in normal form."""
    return [Step(step.alias, step.query) for step in transform.queries or ()]


def derive(spark: SparkSession, task: TransformTask) -> EngineResult:
    """Run a row-wise transformation over the new records of its inputs, in their order."""
    retracting = [each.alias for each in task.inputs if input_view(spark, each)]
    frame = checked(spark, task.dataset, task.transform, [i.alias for i in task.inputs], task.vocab)
    if retracting and task.vocab.operation_type not in frame.columns:
        raise QueryError(
            f"input '{retracting[0]}' holds retractions or corrections, and the query drops them",
            code="E0509",
            dataset=task.dataset,
            help=f"select `{task.vocab.operation_type}` so that they carry over",
        )
    schema = to_arrow_schema(frame, [task.vocab.event_time])
    return EngineResult(parts=write_parts(frame, task.scratch / "parts"), schema=schema)


def checked(
    spark: SparkSession,
    dataset: str,
    transform: TransformSql,
    inputs: Sequence[str],
    vocab: Vocabulary,
) -> DataFrame:
    """The lazy result of a transformation of a derivative; raises `Errors` with all problems."""
    _check_engine(dataset, transform)
    report = check_steps(spark, dataset, steps_of(transform), inputs)
    problems = [*report.errors, *report.not_row_wise, *report.order_bound]
    _raise_first_of_each(problems)
    frame = _result(report)
    problems = unfit_columns(frame, dataset) + _system_columns(frame, dataset, vocab)
    if problems:
        raise Errors(problems)
    return _with_operation(frame, vocab)


def preprocess(
    spark: SparkSession, dataset: str, transform: TransformSql
) -> tuple[DataFrame, bool]:
    """The lazy result of preprocessing the view `input`, and whether it keeps the order of rows."""
    _check_engine(dataset, transform)
    report = check_steps(spark, dataset, steps_of(transform), ["input"])
    _raise_first_of_each([*report.errors, *report.order_bound])
    frame = _result(report)
    problems = unfit_columns(frame, dataset)
    if problems:
        raise Errors(problems)
    return frame, report.row_wise


def total_order(frame: DataFrame) -> DataFrame:
    """Rows in an order that depends on their values only."""
    from pyspark.sql.functions import expr

    keys = []
    for field in frame.schema.fields:
        name = quote(field.name)
        keys.append(name)
        if field.dataType.typeName() in ("float", "double"):
            keys.append(f"CAST({name} AS STRING)")  # tells -0.0 from 0.0, which are equal
    return frame.orderBy(*[expr(key) for key in keys])


def _result(report: Report) -> DataFrame:
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


def _check_engine(dataset: str, transform: TransformSql) -> None:
    if transform.engine.lower() != "spark":
        raise QueryError(
            f"engine '{transform.engine}' is not available here",
            code="E0513",
            dataset=dataset,
            help="set `engine: spark` and write the query in Spark SQL",
        )


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
                help=f"select {vocab.event_time}: every record has a time at which it was true",
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


def _with_operation(frame: DataFrame, vocab: Vocabulary) -> DataFrame:
    """Operations as int, where the query carries them."""
    if vocab.operation_type not in frame.columns:
        return frame
    name = quote(vocab.operation_type)
    return frame.selectExpr(
        *(
            f"CAST({name} AS INT) AS {name}" if c == vocab.operation_type else quote(c)
            for c in frame.columns
        )
    )

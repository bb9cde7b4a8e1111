"""Raw queries: run a query over its inputs once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfbuild.engine.contract import EngineResult, InputSlices, QueryTask
from odfbuild.engine.precision import micros_of_step
from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.queries.findings import Step, unfit_columns
from odfbuild.engine.spark.queries.inputs import new_records, state
from odfbuild.engine.spark.queries.validate import check_steps
from odfbuild.engine.spark.results import small_jobs as few
from odfbuild.engine.spark.results.executor import write_parts
from odfbuild.engine.spark.results.frames import read_slices, to_arrow_schema
from odfbuild.errors import Code, Errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def answer(spark: SparkSession, task: QueryTask) -> EngineResult:
    """See `contract.Engine.query`."""
    few.tune(spark, [*task.chosen.values(), *(file for e in task.inputs for file in e.files)])
    for each in task.inputs:
        _view(spark, each, task)
    names = [each.alias for each in task.inputs]
    offsets = {each.alias.lower(): each.vocab.offset for each in task.inputs}
    steps = [*(Step(each.alias, each.query) for each in task.steps), Step(None, task.sql)]
    report = check_steps(spark, "", steps, names, offsets)
    # Else rows may be any that fit: nothing is committed that has to be the same.
    errors = [*report.errors, *(report.order_bound if task.repeatable else ())]
    if errors:
        raise errors[0] if len(errors) == 1 else Errors(errors)
    assert report.result is not None
    twice = [
        each for each in unfit_columns(report.result, "") if each.code == Code.DUPLICATE_COLUMN
    ]
    if twice:
        raise twice[0]
    if report.quick:
        few.compute_in_place(spark)
    frame = report.result if task.limit is None else report.result.limit(task.limit)
    schema = to_arrow_schema(frame, (), micros_of_step(frame.columns, task.inputs))
    return EngineResult(parts=write_parts(frame, task.scratch / "answer"), schema=schema)


def _view(spark: SparkSession, each: InputSlices, task: QueryTask) -> None:
    """A dataset as it is now, or all of its records with the system columns, in order.

    Or the records that were chosen: a file of their offsets.
    """
    if task.history:
        frame = new_records(spark, each, task.scratch)
    else:
        vocab, chosen = each.vocab, task.chosen.get(each.alias)
        if chosen is None:
            records = state(spark, each, each.files, task.scratch)
        else:
            records = read_slices(spark, each.files, each.schema, vocab)
            records = records.join(spark.read.parquet(str(chosen)), vocab.offset, "left_semi")
        frame = records.drop(vocab.offset, vocab.operation_type, vocab.system_time)
    Catalyst(spark).show(frame, each.alias)

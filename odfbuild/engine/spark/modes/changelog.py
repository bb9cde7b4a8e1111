"""Mode `changelog`: compute over the whole history, append how the result differs.

Any deterministic query can be kept this way, also over inputs that retract. Where the result has a
key, the old and the new record of one key stand side by side as a correction; other differences are
retractions and appended records. Sources: Open Data Fabric, "Retractions and corrections"; RFC-015
(two-event changelog stream).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from odfbuild.engine.contract import InputSlices, TransformTask
from odfbuild.engine.operation import APPEND, CORRECT_FROM, CORRECT_TO, RETRACT
from odfbuild.engine.spark.frames import quote, read_slices
from odfbuild.engine.spark.inputs import (
    state,
    weight,
)
from odfbuild.engine.spark.order import committed_form, time_first, total_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def history_view(spark: SparkSession, each: InputSlices) -> None:
    """Make a view of what the whole history of an input amounts to."""
    files = [one.path for one in (*each.earlier(), *each.slices)]
    state(spark, each, files).createOrReplaceTempView(quote(each.alias))


def changes(
    spark: SparkSession,
    task: TransformTask,
    result: DataFrame,
    schema: pa.Schema,
    key: Sequence[str] | None,
) -> DataFrame:
    """What to append so that the dataset, which has records, amounts to `result`, in order.

    `schema` is that of `result`; `key` are columns that no two of its records share (`()`: there is
    one record at most, `None`: none are known).
    """
    columns = result.columns
    units = _units(_difference(spark, task, committed_form(result), schema), columns, key)
    # The first record of a unit decides where all of it stands; expanding keeps that order.
    placed = units.selectExpr(
        *(f"unit[0].record.{quote(name)} AS {quote(name)}" for name in columns),
        "unit[0].op AS __odf_op",
        "unit AS __odf_unit",
    )
    by = [*time_first(columns, task.vocab.event_time), "__odf_op"]
    return (
        total_order(placed, by)
        .selectExpr("explode(__odf_unit) AS change")
        .selectExpr(
            f"change.op AS {quote(task.vocab.operation_type)}",
            *(f"change.record.{quote(name)} AS {quote(name)}" for name in columns),
        )
    )


def _difference(
    spark: SparkSession, task: TransformTask, result: DataFrame, schema: pa.Schema
) -> DataFrame:
    """Distinct records as `record`, and by how many there are `more` of them than before."""
    names = [quote(name) for name in result.columns]
    operation = pa.field(task.vocab.operation_type, pa.int32())
    before = read_slices(spark, task.previous(), schema.append(operation), task.vocab)
    counted = result.selectExpr(*names, "1 AS __odf_weight").unionAll(
        before.selectExpr(*names, f"-{weight(task.vocab)} AS __odf_weight")
    )
    return (
        counted.groupBy(*names)
        .agg({"__odf_weight": "sum"})
        .selectExpr(
            f"struct({', '.join(names)}) AS record", "CAST(`sum(__odf_weight)` AS INT) AS more"
        )
        .where("more <> 0")
    )


def _units(difference: DataFrame, columns: Sequence[str], key: Sequence[str] | None) -> DataFrame:
    """Changes as `unit`: an array with a correction's two records, or with any other one."""
    single = (
        f"array_repeat(array(named_struct('op', IF(more > 0, {APPEND}, {RETRACT}),"
        " 'record', record)), abs(more))"
    )
    if key is None:
        return difference.selectExpr(f"explode({single}) AS unit")
    keys = [f"record.{quote(name)}" for name in key]
    same_key = difference.groupBy(*_as_columns(keys)).agg(*_as_columns([_COLLECTED]))
    correction = (
        f"array(array(named_struct('op', {CORRECT_FROM}, 'record', found[0].record),"
        f" named_struct('op', {CORRECT_TO}, 'record', found[1].record)))"
    )
    others = single.replace("more", "one.more").replace("record)", "one.record)")
    is_correction = "size(found) = 2 AND found[0].more = -1 AND found[1].more = 1"
    return same_key.selectExpr(
        f"explode(CASE WHEN {is_correction} THEN {correction}"
        f" ELSE flatten(transform(found, one -> {others})) END) AS unit"
    )


_COLLECTED = "sort_array(collect_list(struct(more, record))) AS found"


def _as_columns(expressions: Sequence[str]) -> list[object]:
    from pyspark.sql.functions import expr

    return [expr(each) for each in expressions]

"""The order of records in a result that has none of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from odfbuild.engine.precision import Micros
from odfbuild.engine.spark.results.frames import quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def total_order(frame: DataFrame, columns: Sequence[str] = ()) -> DataFrame:
    """Rows in an order that depends on their values only: by `columns`, or by all of them."""
    return frame.orderBy(*_keys(frame, columns))


def in_one_task(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The same in one partition, whose task sorts on its disk what does not fit in memory."""
    return frame.repartition(1).sortWithinPartitions(*_keys(frame, columns))


def _keys(frame: DataFrame, columns: Sequence[str]) -> list[Column]:
    from pyspark.sql.functions import expr

    kinds = {field.name: field.dataType.typeName() for field in frame.schema.fields}
    keys = []
    for column in columns or frame.columns:
        name = quote(column)
        keys.append(name)
        if kinds[column] in ("float", "double"):
            keys.append(f"CAST({name} AS STRING)")  # tells -0.0 from 0.0, which are equal
    return [expr(key) for key in keys]


def time_first(columns: Sequence[str], event_time: str) -> list[str]:
    """`columns` with the event time in front: records of a result stand in the order of time."""
    return sorted(columns, key=lambda column: column != event_time)


def committed_form(frame: DataFrame, micros: Micros) -> DataFrame:
    """Values as a chain will hold them: milliseconds but for columns in `micros`, one zero.

    A result compared with what was committed must not differ by what committing takes away.
    """
    columns = []
    for field in frame.schema.fields:
        name = quote(field.name)
        kind = field.dataType.typeName()
        if kind in ("timestamp", "timestamp_ntz") and field.name not in micros:
            value = f"date_trunc('MILLISECOND', CAST({name} AS TIMESTAMP))"
        elif kind in ("float", "double"):
            value = f"{name} + CAST(0 AS {kind})"  # -0.0 equals 0.0, and grouping keeps either
        else:
            value = name
        columns.append(f"{value} AS {name}")
    return frame.selectExpr(*columns)

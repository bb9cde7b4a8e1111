"""Days of the week and counted units are the same numbers in DuckDB and, translated, in Spark."""

from __future__ import annotations

import duckdb
import pytest

from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.exchange.dbt.model import Query
from odfbuild.exchange.dbt.spark_query import spark_query

TABLE = "odfbuild_input_0_"
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
CALLS = (
    "extract(dow from a)",
    "extract(isodow from a)",
    "date_part('dow', a)",
    "dayofweek(a)",
    "isodow(a)",
    "weekday(a)",
    "2 * isodow(a)",
    "date_diff('day', a::date, b::date)",
    "b::date - a::date",
    *(f"datediff('{unit}', a, b)" for unit in UNITS),
)
TIMES = (
    "2023-02-28 14:05:00",
    "2024-12-29 23:59:59",
    "2024-12-30 00:00:00",
    "2025-01-01 05:55:00",
    "2025-01-06 00:00:00",
    "2025-01-12 01:00:00",
)


@pytest.mark.spark
def test_spark_counts_as_duckdb_does(spark_engine: SparkEngine) -> None:
    listed = ", ".join(f"{each} AS c{number}" for number, each in enumerate(CALLS))
    sql = f"SELECT {listed} FROM {TABLE}"
    pairs = [(a, b) for a in TIMES for b in TIMES]
    rows = ", ".join(f"(TIMESTAMP '{a}', TIMESTAMP '{b}')" for a, b in pairs)
    values = f"SELECT * FROM (VALUES {rows}) AS t(a, b)"
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE {TABLE} AS {values}")
        expected = database.execute(sql).fetchall()
    columns = {"a": "TIMESTAMP", "b": "TIMESTAMP"}
    made = spark_query(Query(sql, ("model.x.t",)), "duckdb", ["t"], [columns], None).text
    with spark_engine.request("t") as spark:
        spark.sql(values).createOrReplaceTempView("t")
        found = [tuple(row)[: len(CALLS)] for row in spark.sql(made).collect()]
    assert [dict(zip(CALLS, row, strict=True)) for row in found] == [
        dict(zip(CALLS, row, strict=True)) for row in expected
    ]

"""Queries of other databases become Spark SQL, as near to their text as possible."""

from __future__ import annotations

import pytest

from odfbuild.api.authoring.from_dbt import DIALECTS
from odfbuild.exchange.dbt.model import Query
from odfbuild.exchange.dbt.spark_query import NO_TIME, NoQuery, replaced_tables, spark_query
from odfbuild.exchange.dbt.usage import used_columns

ORDERS = {"id": "BIGINT", "day": "DATE", "amount": "DOUBLE", "pieces": "INT"}
TIMED = {**ORDERS, "at": "TIMESTAMP"}
TABLE = "odfbuild_input_0_"


def converted(sql: str, dialect: str = "duckdb", columns=ORDERS, event_time: str | None = "day"):
    query = Query(sql.replace("ORDERS", TABLE), ("model.x.orders",))
    return spark_query(query, dialect, ["orders"], [columns], event_time)


@pytest.mark.parametrize(
    ("dialect", "sql", "expected"),
    [
        (
            "duckdb",
            "select id -- kept\nfrom ORDERS  \nwhere day > '2026-01-01';",
            "select id -- kept\nfrom orders\nwhere day > '2026-01-01'",
        ),
        ("duckdb", "select * from ORDERS", "select id, day, amount, pieces from orders"),
        ("duckdb", "select o.* from ORDERS o", "select id, day, amount, pieces from orders o"),
        (
            "databricks",
            "select * except (day) from ORDERS",
            "select id, amount, pieces from orders",
        ),
        (
            "duckdb",
            "with orders as (select id from ORDERS) select id from orders",
            "with orders as (select id from orders_input) select id from orders",
        ),
        (
            "duckdb",
            "select sum(amount) as a from ORDERS",
            "select CAST(sum(CAST(amount AS DECIMAL(38, 12))) AS DOUBLE) as a from orders",
        ),
        (
            "duckdb",
            "select sum(pieces) as a, count(*) as n from ORDERS",
            "select sum(pieces) as a, count(*) as n from orders",
        ),
        (
            "duckdb",
            "select sum(amount) over (partition by id) as a from ORDERS",
            "select CAST(sum(CAST(amount AS DECIMAL(38, 12))) over (partition by id) AS DOUBLE) "
            "as a from orders",
        ),
        (
            "duckdb",
            "select datediff('day', day, date '2026-01-01') as days from ORDERS",
            "SELECT\n  DATEDIFF(CAST('2026-01-01' AS DATE), day) AS days\nFROM orders",
        ),
        (
            "duckdb",
            "select datediff('hour', at, at) as a, extract(dow from at) as b, isodow(at) as c, "
            "date_part('dow', at) as d, weekday(at) as e, 2 * dayofweek(at) as f from ORDERS",
            "SELECT\n  DATEDIFF(HOUR, DATE_TRUNC('HOUR', at), DATE_TRUNC('HOUR', at)) AS a,\n"
            "  DAYOFWEEK(at) - 1 AS b,\n  WEEKDAY(at) + 1 AS c,\n  DAYOFWEEK(at) - 1 AS d,\n"
            "  DAYOFWEEK(at) - 1 AS e,\n  2 * (\n    DAYOFWEEK(at) - 1\n  ) AS f\nFROM orders",
        ),
        (
            "bigquery",
            "select date_diff(day, day, month) as a, extract(dayofweek from day) as b from ORDERS",
            "SELECT\n  DATEDIFF(MONTH, DATE_TRUNC('MONTH', day), DATE_TRUNC('MONTH', day)) AS a,\n"
            "  EXTRACT(DAYOFWEEK FROM day) AS b\nFROM orders",
        ),
        (
            "duckdb",
            "select day - date '2026-01-01' as days, pieces - 1 as fewer from ORDERS",
            "SELECT\n  DATEDIFF(day, CAST('2026-01-01' AS DATE)) AS days,\n  pieces - 1 AS fewer\n"
            "FROM orders",
        ),
        (
            "postgres",
            "select pieces / 2 as half, amount / 2 as a from ORDERS",
            "SELECT\n  pieces DIV 2 AS half,\n  amount / 2 AS a\nFROM orders",
        ),
        (
            "duckdb",
            "select cast(id as text) as id, strpos(note, 'a') as place from ORDERS",
            "SELECT\n  CAST(id AS STRING) AS id,\n  LOCATE('a', note) AS place\nFROM orders",
        ),
        (
            "snowflake",
            "select dateadd(month, 2, at) as later, dateadd(day, pieces, at) as soon from ORDERS",
            "SELECT\n  (\n    at + INTERVAL '2' MONTH\n  ) AS later,\n"
            "  (\n    at + (\n      pieces\n    ) * INTERVAL '1' DAY\n  ) AS soon\nFROM orders",
        ),
        (
            "snowflake",
            "select dateadd(days, -30, day) as before from ORDERS",
            "SELECT\n  DATE_ADD(day, -30) AS before\nFROM orders",
        ),
    ],
)
def test_a_query_is_changed_only_where_spark_reads_it_in_another_way(
    dialect: str, sql: str, expected: str
) -> None:
    columns = TIMED if " at" in sql else ORDERS
    assert converted(sql, dialect, columns).text == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select id from ORDERS", f"select id, {NO_TIME} from orders"),
        (
            "select\n    id,\n    day -- of the order\nfrom ORDERS",
            f"select\n    id,\n    day,\n    {NO_TIME} -- of the order\nfrom orders",
        ),
        (
            "select id from ORDERS union all select id from ORDERS",
            f"select id, {NO_TIME} from orders union all select id, {NO_TIME} from orders",
        ),
        (
            "(select id from ORDERS)",
            f"SELECT *, {NO_TIME}\nFROM (\n  (select id from orders)\n)",
        ),
        ("select day as event_time from ORDERS", "select day as event_time from orders"),
    ],
)
def test_records_without_a_time_get_one_that_is_always_the_same(sql: str, expected: str) -> None:
    found = converted(sql, event_time=None)
    assert found.text == expected
    assert found.made_time == (NO_TIME in expected)


@pytest.mark.parametrize("dialect", ["duckdb", "snowflake", "postgres"])
def test_names_of_columns_stay_as_they_are_written(dialect: str) -> None:
    found = converted("select Id as orderId, * from ORDERS", dialect, {"Id": "INT", "Day": "DATE"})
    assert [*found.columns] == ["orderId", "Id", "Day"]
    query = Query(f"select Id from {TABLE}", ("source.x.a.orders",))
    assert used_columns([query], "source.x.a.orders", dialect) == ["Id"]


def test_columns_of_the_result_are_known_with_their_types() -> None:
    found = converted("with a as (select * from ORDERS) select *, pieces * 2 as twice from a")
    assert found.columns == {**ORDERS, "twice": "INT"}


@pytest.mark.parametrize(
    ("sql", "columns", "why", "line"),
    [
        ("select *\nfrom ORDERS", None, "it takes all columns of orders, which are not known", 1),
        ("select a from", ORDERS, "this is not understood as SQL", 1),
        ("delete from ORDERS", ORDERS, "it is no SELECT", None),
        ("select 1; select 2", ORDERS, "it is no SELECT", None),
        ("select\n* from ORDERS join b using (id)", ORDERS, "`*` of a join with USING", 2),
        ("select " + "(" * 2000 + "1" + ")" * 2000, ORDERS, "nested too deeply", None),
    ],
)
def test_a_query_that_cannot_be_moved_says_why(sql: str, columns, why: str, line) -> None:
    with pytest.raises(NoQuery) as refused:
        converted(sql, columns=columns)
    assert why in refused.value.why
    assert refused.value.line == line


def test_tables_of_a_compiled_query_are_found_by_their_names() -> None:
    sql = 'select * from "db"."main"."orders" o join other on true join DB.MAIN.ORDERS p on true'
    found = replaced_tables(sql, "duckdb", {"db.main.orders": "model.x.orders"})
    assert found.sql == f"select * from {TABLE} o join other on true join {TABLE} p on true"
    assert found.inputs == ("model.x.orders",)


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("with s as (select * from ORDERS) select id as a, day from s where Pieces > 1", 3),
        ("select o.id from ORDERS o join b on o.day = b.day", 2),
        ("select * from ORDERS", None),
        ("with s as (select * from ORDERS) select *, 1 as one from s", None),
        ("select id from ORDERS, b", None),
    ],
)
def test_columns_that_nobody_declares_are_those_that_queries_name(sql: str, names) -> None:
    query = Query(sql.replace("ORDERS", TABLE), ("source.x.a.orders",))
    found = used_columns([query], "source.x.a.orders", "duckdb")
    assert (found if found is None else len(found)) == names


@pytest.mark.parametrize("dialect", sorted(set(DIALECTS.values())))
def test_every_adapter_has_a_dialect_that_is_read(dialect: str) -> None:
    assert "orders" in converted("select id from ORDERS", dialect).text


def test_written_out_columns_leave_no_blanks_at_the_ends_of_lines() -> None:
    columns = {f"a_long_name_of_a_column_{n}": "INT" for n in range(6)}
    found = converted(
        "select *\nfrom ORDERS", columns=columns, event_time="a_long_name_of_a_column_0"
    )
    assert not [line for line in found.text.splitlines() if line != line.rstrip()]
    inner = converted(
        "with a as (\n  select * from ORDERS\n)\nselect * from a",
        columns=columns,
        event_time="a_long_name_of_a_column_0",
    )
    assert "  select\n" in inner.text

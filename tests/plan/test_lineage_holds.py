"""What a lineage leaves out does not matter: queries run with one column of an input changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odfbuild.odf.model import SqlQueryStep, TransformSql
from odfbuild.sql.columns.query_lineage import lineage_of
from odfbuild.sql.lineage import Lineage

TABLES = {"a": ("id", "x", "y"), "b": ("id", "u", "v")}
_EXPRESSIONS = (
    "{0}",
    "{0} + {1}",
    "coalesce({0}, {1})",
    "CASE WHEN {0} > 1 THEN {1} ELSE {2} END",
    # Not row_number: how it numbers equals is up to the engine.
    "rank() OVER (PARTITION BY {0} ORDER BY {1})",
    "sum({2}) OVER (PARTITION BY {0})",
    "(SELECT max(v) FROM b AS s WHERE s.id = {0})",
)
_AGGREGATES = ("sum({0})", "count(*)", "max({0} + {1})", "count(DISTINCT {1})")
_CONDITIONS = (
    "{0} > 1",
    "{0} IN (SELECT u FROM b AS s)",
    "EXISTS (SELECT 1 FROM a AS s WHERE s.x = {0})",
    "{0} = {1} OR {2} < 2",
)
_A = ("a.id", "a.x", "a.y")
_BOTH = (*_A, "b.u", "b.v")


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A query over `a`, or over `a` and `b`; its columns are called c0, c1 …"""
    joined = draw(st.booleans())
    names = _BOTH if joined else _A

    def filled(templates: tuple[str, ...]) -> str:
        chosen = draw(st.lists(st.sampled_from(names), min_size=3, max_size=3))
        return draw(st.sampled_from(templates)).format(*chosen)

    source = "a"
    if draw(st.booleans()):
        source = "(SELECT id, y AS x, x + 1 AS y FROM a WHERE y < 4) AS a"
    if joined:
        kind = draw(st.sampled_from(["JOIN", "LEFT JOIN"]))
        source += f" {kind} b ON a.id = b.id"
    where = f" WHERE {filled(_CONDITIONS)}" if draw(st.booleans()) else ""
    count = draw(st.integers(1, 3))
    if draw(st.booleans()):
        key = draw(st.sampled_from(names))
        items = [key, *(filled(_AGGREGATES) for _ in range(count))]
        having = f" HAVING {filled(_AGGREGATES)} > 1" if draw(st.booleans()) else ""
        tail = f"{where} GROUP BY {key}{having}"
    else:
        items = [filled(_EXPRESSIONS) for _ in range(count)]
        tail = where
    listed = ", ".join(f"{item} AS c{number}" for number, item in enumerate(items))
    distinct = "DISTINCT " if draw(st.booleans()) else ""
    query = f"SELECT {distinct}{listed} FROM {source}{tail}"
    if draw(st.booleans()):
        operation = draw(st.sampled_from(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"]))
        other = ", ".join(
            f"{draw(st.sampled_from(TABLES['b']))} AS c{n}" for n in range(len(items))
        )
        query = f"{query} {operation} SELECT {other} FROM b"
    if draw(st.booleans()):
        order = ", ".join(f"c{number}" for number in range(len(items)))
        query = f"SELECT * FROM ({query}) AS q ORDER BY {order} LIMIT 2"
    if draw(st.booleans()):
        query = f"WITH w AS ({query}) SELECT * FROM w"
    return query


ROWS = st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as opened:
        yield opened


def _result(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    rows: dict[str, list[tuple[int, ...]]],
    columns: list[str],
) -> Counter[tuple[object, ...]]:
    for name, fields in TABLES.items():
        values = ", ".join(map(str, rows[name]))
        listed = ", ".join(fields)
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM (VALUES {values}) t({listed})"
        )
    kept = ", ".join(columns) or "1"
    return Counter(connection.execute(f"SELECT {kept} FROM ({query})").fetchall())


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(queries(), ROWS, ROWS, st.data())
def test_a_column_outside_the_lineage_changes_nothing(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    a: list[tuple[int, ...]],
    b: list[tuple[int, ...]],
    data: st.DataObject,
) -> None:
    steps = (SqlQueryStep(query=query),)
    lineage = lineage_of(TransformSql(engine="spark", queries=steps), TABLES)
    assert isinstance(lineage, Lineage), query
    table = data.draw(st.sampled_from(sorted(TABLES)))
    column = data.draw(st.integers(0, 2))
    touched = (table, TABLES[table][column])
    if any((alias, name) == touched for alias, name, _ in lineage.records):
        return
    kept = [
        name
        for name, origins in lineage.columns.items()
        if all((alias, read) != touched for alias, read, _ in origins)
    ]
    before = {"a": a, "b": b}
    other = [(*r[:column], data.draw(st.integers(0, 4)), *r[column + 1 :]) for r in before[table]]
    after = {**before, table: other}
    assert _result(connection, query, before, kept) == _result(connection, query, after, kept), (
        query
    )

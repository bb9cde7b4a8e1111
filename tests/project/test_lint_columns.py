"""Columns that queries name and no input has: found where they are certain, silence elsewhere."""

from __future__ import annotations

import pytest

from odfbuild.odf.model import SetTransform, SqlQueryStep, TransformInput, TransformSql
from odfbuild.project.lint.columns import flaws_of_columns

TABLES = {
    "t": dict.fromkeys(("offset", "op", "event_time", "city", "addr", "items", "celsius")),
    "u": dict.fromkeys(("event_time", "city", "people")),
    "us.bts": dict.fromkeys(("id",)),
    "unknown": None,
}


def found(*queries: SqlQueryStep | str, engine: str = "spark") -> list[tuple[str, int, int, int]]:
    steps = tuple(q if isinstance(q, SqlQueryStep) else SqlQueryStep(query=q) for q in queries)
    event = SetTransform(
        inputs=(TransformInput(dataset_ref="x", alias="t"),),
        transform=TransformSql(engine=engine, queries=steps),
    )
    flaws = flaws_of_columns(event, TABLES, ("metadata", 0))
    return [
        (flaw.message, *flaw.query[1:], flaw.length) for flaw in flaws if flaw.query is not None
    ]


def test_a_column_of_a_named_input_that_is_not_there() -> None:
    (flaw,) = found("SELECT t.city,\n  t.celsus FROM t")
    assert flaw == ("'t' has no column 'celsus'", 2, 5, 6)


def test_a_bare_column_that_no_input_has_is_told_once_each() -> None:
    said = found("SELECT town, city FROM t WHERE town > 1 GROUP BY town, city")
    assert [(message, column) for message, _, column, _ in said] == [
        ("no input has a column 'town'", 8),
        ("no input has a column 'town'", 32),
        ("no input has a column 'town'", 50),
    ]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x.town FROM t AS x JOIN u ON x.city = u.city",
        "SELECT city FROM t JOIN u ON t.event_time = u.evnt_time",
        "WITH a AS (SELECT town FROM t) SELECT a.town FROM a",
        "SELECT city FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.city = t.town)",
        "SELECT city FROM t UNION ALL SELECT u.town FROM u",
        "SELECT explode(items) AS i, t.town FROM t",
    ],
)
def test_wherever_it_stands(query: str) -> None:
    assert len(found(query)) == 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT T.City, `t`.`CELSIUS`, offset FROM t",
        "SELECT addr.street, t.addr.street, addr.a.b FROM t",
        "SELECT celsius * 2 AS twice, twice + 1 AS more FROM t ORDER BY more",
        "SELECT city, count(*) AS n FROM t GROUP BY 1 HAVING n > 1 ORDER BY n",
        "SELECT transform(items, i -> i + 1) AS x, filter(items, (a, b) -> a > b) FROM t",
        "SELECT i, p.z FROM t LATERAL VIEW explode(items) p AS i",
        "SELECT anything, unknown.anything FROM unknown",
        "SELECT anything FROM t JOIN unknown ON t.city = unknown.city",
        "WITH t AS (SELECT city AS town FROM u) SELECT t.town FROM t",
        "SELECT q.town FROM (SELECT city AS town FROM t) q",
        "SELECT city FROM t WHERE EXISTS (SELECT 1 FROM u WHERE people = celsius)",
        "SELECT timestampdiff(MINUTE, event_time, event_time), trunc(event_time, 'MM') FROM t",
        "SELECT extract(YEAR FROM event_time), date_add(MONTH, 1, event_time), current_date FROM t",
        "SELECT window(event_time, '1 day').start AS s FROM t",
        "SELECT max(celsius) OVER w AS m FROM t WINDOW w AS (PARTITION BY city)",
        "SELECT * FROM t PIVOT (sum(celsius) FOR city IN ('a', 'b'))",
        "SELECT us.bts.id, id FROM us.bts",
        "SELECT t.*, u.people FROM t JOIN u USING (city)",
        "SELECT named_struct('a', city).a, struct(city AS b).b FROM t",
        "SELECT value FROM VALUES (1) AS v(value)",
        "SELECT FROM WHERE",
    ],
)
def test_what_is_not_certain_is_not_said(query: str) -> None:
    assert found(query) == []


def test_columns_of_steps_and_of_other_engines_are_not_followed() -> None:
    assert (
        found(SqlQueryStep(query="SELECT city AS town FROM t", alias="t"), "SELECT town FROM t")
        == []
    )
    assert found("SELECT town FROM t", engine="flink") == []

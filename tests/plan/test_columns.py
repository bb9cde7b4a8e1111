"""Columns of results as planning tells them; `None` where only Spark can."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from odfbuild.odf.model import SqlQueryStep, TransformSql
from odfbuild.odf.schema.pyarrow_form import from_pyarrow
from odfbuild.sql.columns.of_query import Result, columns_of, result_of

T = pa.schema(
    [
        ("event_time", pa.timestamp("ms", "UTC")),
        ("id", pa.int64()),
        ("Name", pa.string()),
        ("s", pa.struct([("f", pa.int64())])),
        ("u", pa.uint8()),
    ]
)
U = pa.schema([("id", pa.int64()), ("x", pa.float64())])
INPUTS = {"t": columns_of(from_pyarrow(T)), "a.b": columns_of(from_pyarrow(U)), "unknown": None}


def told(*queries: str, engine: str = "spark") -> Result | None:
    steps = tuple(
        SqlQueryStep(query=q, alias=f"step{i}" if i < len(queries) - 1 else None)
        for i, q in enumerate(queries)
    )
    return result_of(TransformSql(engine=engine, queries=steps), INPUTS)


def columns(*queries: str) -> list[tuple[str, str | None]] | None:
    result = told(*queries)
    if result is None:
        return None
    return [(c.name, None if c.type is None else str(c.type)) for c in result.columns]


@pytest.mark.parametrize(
    "query, expected",
    [
        ("SELECT id, ID FROM t", [("id", "int64"), ("ID", "int64")]),
        ("SELECT t.id AS key, name FROM t", [("key", "int64"), ("name", "string")]),
        ("SELECT CAST(id AS STRING) AS id FROM t", [("id", "string")]),
        ("SELECT CAST(id AS DECIMAL(10, 2)) AS d FROM t", [("d", "decimal128(10, 2)")]),
        ("SELECT id + 1 AS n FROM t", [("n", None)]),
        ("SELECT s.f, u FROM t", [("f", None), ("u", None)]),
        ("SELECT * FROM `a.b`", [("id", "int64"), ("x", "double")]),
        ("SELECT * FROM a.b", [("id", "int64"), ("x", "double")]),
        ("SELECT * EXCEPT (ID) FROM `a.b`", [("x", "double")]),
        (
            "SELECT b.*, name FROM t JOIN `a.b` AS b ON t.id = b.id",
            [("id", "int64"), ("x", "double"), ("name", "string")],
        ),
        ("SELECT id AS i FROM (SELECT id FROM t)", [("i", "int64")]),
        ("WITH c AS (SELECT id AS k FROM t) SELECT * FROM c", [("k", "int64")]),
        ("SELECT id FROM t UNION ALL SELECT x FROM `a.b`", [("id", None)]),
        ("(SELECT id FROM t)", [("id", "int64")]),
        ("SELECT id FROM unknown", [("id", None)]),
        ("SELECT id FROM t JOIN unknown USING (id)", [("id", None)]),
        ("SELECT w FROM t LATERAL VIEW explode(s) v AS w", [("w", None)]),
        (
            "SELECT * FROM `a.b` LATERAL VIEW explode(x) v AS w",
            [("id", "int64"), ("x", "double"), ("w", None)],
        ),
        ("SELECT explode(m) AS (k, v) FROM t", [("k", None), ("v", None)]),
        ("SELECT * FROM VALUES (1, 2) AS v(one, two)", [("one", None), ("two", None)]),
        ("SELECT * FROM `a.b` AS c(k, y)", [("k", "int64"), ("y", "double")]),
    ],
)
def test_columns_are_told_from_the_text(query: str, expected: list[tuple[str, str | None]]) -> None:
    assert columns(query) == expected


def test_a_later_step_reads_an_earlier_one() -> None:
    assert columns("SELECT id AS k FROM t", "SELECT * FROM step0") == [("k", "int64")]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(id) FROM t",
        "SELECT * FROM unknown",
        "SELECT * FROM t JOIN `a.b` USING (id)",
        "SELECT * FROM t AS x (a, b)",
        "SELECT * FROM t PIVOT (sum(id) FOR name IN ('a'))",
        "VALUES (1, 2)",
        "SELECT id FROM t; SELECT 1 AS one",
        "SELECT FROM WHERE",
        "SELECT " + "(" * 5000,
    ],
)
def test_what_is_not_understood_is_not_guessed(query: str) -> None:
    assert columns(query) is None


def test_the_query_of_another_engine_is_understood_where_it_can_be_translated() -> None:
    quoted = told('SELECT "id"::text AS id FROM t', engine="datafusion")
    assert quoted is not None
    assert [str(each.type) for each in quoted.columns] == ["string"]
    assert told("SELECT regexp_replace(a, b, a) AS q FROM t", engine="datafusion") is None
    assert told("SELECT id FROM t", engine="another") is None


def test_what_decides_about_records_is_told_from_what_decides_about_columns() -> None:
    one, two = told("SELECT id FROM t WHERE id > 1"), told("SELECT id + 1 AS id FROM t where id>1")
    three = told("SELECT id FROM t WHERE id > 2")
    assert one is not None and two is not None and three is not None
    assert one.records == two.records != three.records
    assert one.columns != two.columns


def test_nothing_heavy_is_imported_before_a_query_changed() -> None:
    code = (
        "import sys, odfbuild.plan.build; "
        "print([m for m in ('pyarrow', 'sqlglot') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

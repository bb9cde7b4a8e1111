"""A column of DataFusion may be called as a word of SQL is."""

from __future__ import annotations

import pytest
from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.spark import Spark

from odfbuild.errors import Errors
from odfbuild.sql.translate.query import translate
from odfbuild.sql.translate.runnable import NO_COLUMNS

FORMS = {
    "bare": "SELECT {0} AS x FROM t WHERE {0} > 1",
    "quoted": 'SELECT "{0}" AS x, -"{0}" AS y FROM t',
    "of a table": "SELECT t.{0} AS x FROM t",
    "alias": "SELECT id AS {0} FROM t",
}


def _words() -> list[str]:
    keywords = {*Postgres.Tokenizer.KEYWORDS, *Spark.Tokenizer.KEYWORDS}
    return sorted(each.lower() for each in keywords if each.replace("_", "").isalpha())


def _first_column(query: str) -> str | None:
    try:
        said = translate("datafusion", query, 0, NO_COLUMNS)
    except Errors:
        return None
    text = said.split("FROM t")[0].replace("`", "").lower().split(",")[0]
    return " ".join(text.split()).removeprefix("select ").replace(" as ", " AS ")


def test_a_word_that_datafusion_takes_for_a_column_is_one_in_the_translation() -> None:
    from datafusion import SessionContext

    missing, found = [], 0
    for word in _words():
        context = SessionContext()
        context.from_pydict({"id": [2], word: [3]}, name="t")
        for form, text in FORMS.items():
            query = text.format(word)
            try:
                given = context.sql(query).to_pydict()
            except Exception:
                continue  # no column there either
            name, value = (word, 2) if form == "alias" else ("x", 3)
            if given.get(name) != [value]:
                continue
            found += 1
            source = "id" if form == "alias" else word
            if _first_column(query) not in (f"{source} AS {name}", f"t.{source} AS {name}"):
                missing.append((word, form))
    assert missing == []
    assert found > 1000


def test_words_of_sql_stay_words_elsewhere() -> None:
    query = (
        "SELECT CASE WHEN NOT a THEN b ELSE c END AS n, COUNT(DISTINCT d) AS m, 'as, on' AS s "
        "FROM t LEFT JOIN u ON t.a = u.a WHERE b LIKE 'x' AND (NOT c OR d IS NOT NULL) "
        "GROUP BY 1 HAVING COUNT(*) > 1"
    )
    said = " ".join(translate("datafusion", query, 0, NO_COLUMNS).split())
    assert "`" not in said


@pytest.mark.parametrize(
    "query",
    [
        "SELECT CASE WHEN id = 2 THEN 'F' ELSE 'x' END AS s FROM t",
        "SELECT CASE WHEN 'a' = 'a' THEN 'F' ELSE 'x' END AS s FROM t",
        "SELECT 'a' AS s FROM t",
        "SELECT 'a' as s, 'b' as p FROM t WHERE id BETWEEN 1 AND 2 AND 'q' IN ('q')",
        "SELECT 'it''s' AS s FROM t UNION ALL SELECT 'else' AS s FROM t",
        "SELECT s FROM (SELECT 'a' AS s FROM t) WHERE 'a' = s AND s LIKE 'a' OR s = 'b'",
        "SELECT 'a' || 'b' AS s FROM t WHERE 'x' IS NOT NULL",
        "SELECT CASE 'a' WHEN 'a' THEN 'then' ELSE 'else' END AS s FROM t",
    ],
)
def test_a_word_between_two_texts_is_a_word_of_sql(query: str) -> None:
    from datafusion import SessionContext

    context = SessionContext()
    context.from_pydict({"id": [2]}, name="t")
    expected = context.sql(query).to_pydict()["s"]
    said = translate("datafusion", query, 0, NO_COLUMNS)
    assert sorted(duckdb_of(said)) == sorted(expected)


def duckdb_of(said: str) -> list[str]:
    """The column `s` of a query in Spark SQL that any database understands."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 2 AS id")
        text = said.replace("\\'", "''")
        return [row[0] for row in connection.sql(f"SELECT s FROM ({text})").fetchall()]

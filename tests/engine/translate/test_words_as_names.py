"""A column of DataFusion may be called as a word of SQL is."""

from __future__ import annotations

from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.spark import Spark

from odfbuild.engine.translate.query import translate
from odfbuild.engine.translate.runnable import NO_COLUMNS
from odfbuild.errors import Errors

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

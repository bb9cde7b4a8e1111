"""What checking a query found holds for all queries with its fingerprint."""

from collections import defaultdict
from pathlib import Path

import pytest

from odfbuild.engine.contract import InputSlices
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.queries import checked
from odfbuild.engine.spark.queries.fingerprint import fingerprint_of, holds_for_all
from odfbuild.errors import Errors, OdfbuildError
from odfbuild.odf.model import TemporalTable
from odfbuild.odf.vocabulary import Vocabulary
from tests.engine.inputs import SCHEMA, columns_of, read, rows, slices, sql, task

VOCAB = Vocabulary()
UNION = "SELECT event_time, city FROM {t} WHERE population > {n}"
TEMPLATES = [
    UNION,
    f"{UNION} UNION ALL {UNION}",
    "SELECT * EXCEPT (offset, op, system_time) FROM {t} AS x WHERE (population <= {n})",
    "SELECT event_time, population >= {n} AS large FROM {t}",
    "SELECT event_time, population >= {n} FROM {t}",
    "SELECT event_time, `(population >= {n})` AS p FROM (SELECT *, population >= {n} FROM {t})",
    "SELECT event_time, {t}.city FROM {t}",
    "SELECT event_time, EXTRACT(YEAR FROM event_time) AS year FROM {t}",
    "SELECT event_time, EXTRACT(YEAR FROM {t}) AS y FROM (SELECT *, event_time AS {t} FROM {t})",
    "SELECT event_time, population AS {t} FROM {t}",
    "SELECT event_time, struct(population AS {t}) AS s FROM {t}",
    "SELECT event_time, x.from {t} FROM (SELECT *, city AS `from` FROM {t}) x",
    "WITH {t} AS (SELECT event_time, 1 AS one FROM {t}) SELECT * FROM {t}",
    "WITH w AS (SELECT event_time, 1 AS one FROM {t}) SELECT * FROM w",
    "SELECT event_time, round(population / 3, {n}) AS r FROM {t}",
    "SELECT event_time, 1.5BD > {n} AS a, 1.5BD * {n} AS b FROM {t}",
    "SELECT event_time, transform(array(population), x -> {n}) AS xs FROM {t}",
    "SELECT event_time, transform(array(population), x -> x > {n}) AS xs FROM {t}",
    "SELECT event_time, round(population / 3, scale => {n}) AS r FROM {t}",
    "SELECT event_time, population >> {n} AS x, population > {n} + 0.5 AS y FROM {t}",
    "SELECT event_time, city, '{t}' AS place FROM {t} -- more than {n}",
    "SELECT event_time, city FROM {t} ORDER BY event_time > {n}",
    "SELECT event_time, city FROM {t} LIMIT {n}",
]
GIVEN = [
    ("`eu.cities`", 1),
    ("`eu.towns`", 2),
    ("cities_1", 0),
    ("cities", 999_999_999),
    ("`city`", 1_000_000_000),
    ("`from`", 3_000_000_000),
]


def _input(alias: str) -> InputSlices:
    return InputSlices(alias=alias.strip("`"), schema=SCHEMA, vocab=VOCAB)


def _fingerprint(query: str, *aliases: str) -> str | None:
    return fingerprint_of(sql(query), [_input(each) for each in aliases], VOCAB)


def test_queries_of_one_template_have_one_fingerprint() -> None:
    found = {_fingerprint(TEMPLATES[1].format(t=t, n=n), t) for t, n in GIVEN[:3]}
    assert len(found) == 1
    assert None not in found


@pytest.mark.parametrize("template", [*TEMPLATES[14:17], *TEMPLATES[18:21], TEMPLATES[-1]])
def test_a_number_is_part_of_the_fingerprint_wherever_it_is_not_compared_with(
    template: str,
) -> None:
    one, two = (_fingerprint(template.format(t="`eu.cities`", n=n), "`eu.cities`") for n in (1, 2))
    assert one != two


def test_which_input_stands_where_and_what_columns_it_has_make_another_fingerprint() -> None:
    text = f"{UNION.format(t='`a`', n=1)} UNION ALL {UNION.format(t='`b`', n=1)}"
    assert _fingerprint(text, "a", "b") != _fingerprint(text, "b", "a")
    narrow = InputSlices(alias="a", schema=SCHEMA.remove(4), vocab=VOCAB)
    query = sql("SELECT * FROM `a`")
    assert fingerprint_of(query, [narrow], VOCAB) != fingerprint_of(query, [_input("a")], VOCAB)
    other = Vocabulary(event_time="time")
    assert fingerprint_of(query, [narrow], VOCAB) != fingerprint_of(query, [narrow], other)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'it\\'s' AS x FROM `a`",
        'SELECT "b" AS x FROM `a`',
        "SELECT 1 AS x /* /* */ */ FROM `a`",
        "SELECT $$b$$ AS x FROM `a`",
        "SELECT * FROM \0000",
        "SELECT a.* FROM `a`",
        "SELECT * FROM `a`.`a`",
        "SELECT * FROM `a`(1)",
        "SELECT * FROM a",
        "SELECT a FROM `a`",
    ],
)
def test_a_text_that_may_be_read_in_another_way_has_no_fingerprint(text: str) -> None:
    assert _fingerprint(text, "a") is None


def test_temporal_tables_and_steps_with_the_name_of_an_input_have_no_fingerprint() -> None:
    table = TemporalTable(name="a", primary_key=("city",))
    query = sql("SELECT * FROM `a`")
    versions = type(query)(engine="spark", queries=query.queries, temporal_tables=(table,))
    assert fingerprint_of(versions, [_input("a")], VOCAB) is None
    steps = sql("SELECT * FROM `a`", "SELECT * FROM step0")
    assert fingerprint_of(steps, [_input("a")], VOCAB) is not None
    assert fingerprint_of(steps, [_input("a"), _input("step0")], VOCAB) is None


@pytest.mark.spark
@pytest.mark.parametrize("template", TEMPLATES)
def test_checking_queries_of_one_fingerprint_finds_the_same(
    spark_engine: SparkEngine, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checked, "_RIGHT", {})
    monkeypatch.setattr(checked, "_COLUMNS", {})
    monkeypatch.setattr(checked, "fingerprint_of", lambda *_: None)
    found = defaultdict(list)
    for alias, number in GIVEN:
        query = sql(template.format(t=alias, n=number))
        alike = fingerprint_of(query, [_input(alias)], VOCAB)
        try:
            schema = columns_of(spark_engine, "d", query, [_input(alias)])
        except (Errors, OdfbuildError):
            found[alike].append(None)
            continue
        [report] = checked._RIGHT.values()
        checked._RIGHT.clear()
        checked._COLUMNS.clear()
        if holds_for_all(report, schema.names):
            found[alike].append((schema, report.expressions))
    found.pop(None, None)
    for each in found.values():
        assert all(one == each[0] for one in each), (template, each)


@pytest.mark.spark
def test_spark_is_asked_once_for_the_queries_of_a_template(
    spark_engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = columns_of(spark_engine, "a", sql(UNION.format(t="`a`", n=3)), [_input("a")])
    query = sql(UNION.format(t="`b`", n=4))
    with monkeypatch.context() as patch:
        patch.setattr(SparkEngine, "request", None)
        assert columns_of(spark_engine, "b", query, [_input("b")]).equals(first)
    monkeypatch.setattr(checked, "check_steps", None)
    step = task(tmp_path, query, slices(tmp_path, rows(0, 6), alias="b"))
    assert read(spark_engine.run(step).parts)["city"].to_pylist() == ["city-5"]

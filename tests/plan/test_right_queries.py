"""Queries that the engine accepts are never refused for their text; what is unknown is left to it.

That the engine accepts them, tests of the engine show.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odfbuild.odf.model import SqlQueryStep, TransformSql
from odfbuild.odf.schema.ddl import read_ddl
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.sql.check.check import errors_of
from odfbuild.sql.columns.of_query import Columns, columns_of
from odfbuild.survey.definitions import read_definitions
from odfbuild.survey.queries import wrong_queries
from tests.engine.queries import CHANGELOG, MAP, STREAM

TESTS = Path(__file__).parents[1]
SYSTEM = ["offset BIGINT", "op INT", "system_time TIMESTAMP", "event_time TIMESTAMP"]


def relation(*columns: str) -> Columns:
    return columns_of(read_ddl([*SYSTEM, *columns]))


CITIES = relation("city STRING", "population BIGINT")
EVENTS = relation("id BIGINT", "city STRING", "amount INT", "x DOUBLE", "tags STRING")
PEOPLE = relation("id BIGINT", "name STRING", "city STRING")
VECTORS = "k BIGINT", "v DOUBLE", "s STRING", "q INT", "arr ARRAY<INT>"


def said(inputs: dict[str, Columns | None], *queries: str, result: bool = True) -> list[str]:
    *steps, last = queries
    named = [SqlQueryStep(alias=f"step{n}", query=query) for n, query in enumerate(steps)]
    transform = TransformSql(engine="spark", queries=(*named, SqlQueryStep(query=last)))
    return [each.message for each in errors_of(transform, inputs, Vocabulary() if result else None)]


NOT_UNDERSTOOD = (
    "TABLE cities |> SELECT event_time, upper(city) AS c",
    "SELECT event_time, parse_json(city):a.b::string AS x FROM cities",
    "SELECT event_time, city AS select FROM cities",
)
"""Of `accepted.sql`: syntax that only Spark knows, and `validate --engine` accepts."""


def certain(inputs: dict[str, Columns | None], *queries: str) -> list[str]:
    """Of what is said, all but that a text is not understood."""
    return [each for each in said(inputs, *queries) if "is not understood" not in each]


def refused(
    queries: list[str], inputs: dict[str, Columns | None], *, result: bool = True
) -> dict[str, list[str]]:
    found = {query: said(inputs, query, result=result) for query in queries}
    return {query: messages for query, messages in found.items() if messages}


def accepted() -> list[str]:
    lines = (TESTS / "engine" / "accepted.sql").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("--")]


def test_queries_that_people_write_are_not_refused() -> None:
    found = refused(accepted(), {"cities": CITIES})
    assert [*found] == [*NOT_UNDERSTOOD]
    assert all("is not understood" in said for messages in found.values() for said in messages)


def test_neither_are_they_over_columns_that_only_data_can_tell() -> None:
    assert [*refused(accepted(), {"cities": None})] == [*NOT_UNDERSTOOD]


def test_queries_of_all_modes_are_not_refused() -> None:
    inputs = {"events": EVENTS, "people": PEOPLE}
    queries = [*MAP, *STREAM, *CHANGELOG]
    assert refused(queries, inputs) == {}


def test_the_queries_that_the_conformance_tests_accept_are_not_refused() -> None:
    vectors = json.loads((TESTS / "conformance" / "data" / "sandbox_queries.json").read_text())
    queries = [each["sql"] for each in vectors["cases"] if each["verdict"] == "accept"]
    inputs = {"t": relation(*VECTORS)}
    assert refused(queries, inputs, result=False) == {}
    assert len(queries) > 10


@pytest.mark.parametrize(
    "root",
    [
        TESTS.parent / "example_project",
        *sorted(file.parent for file in (TESTS / "projects").glob("*/odfbuild.yaml")),
    ],
    ids=lambda root: root.name,
)
def test_definitions_that_are_built_elsewhere_are_not_refused(root: Path) -> None:
    assert wrong_queries(read_definitions(root)) == {}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT event_time, anything FROM unknown JOIN cities USING (event_time)",
        "SELECT event_time, city FROM cities MATCH_RECOGNIZE (PATTERN (a b))",
        "SELECT event_time, city FROM cities WATERMARK event_time DELAY OF INTERVAL 1 MINUTE",
        "FROM cities |> SET city = uper(city)",
        "BEGIN SELECT event_time FROM cities; END",
        "SELECT event_time, city.anything.more FROM cities",
        "SELECT " + "(" * 2000 + "1" + ")" * 2000 + " AS x, event_time FROM cities",
    ],
)
def test_what_is_not_certain_is_left_to_the_engine(query: str) -> None:
    assert certain({"cities": CITIES, "unknown": None}, query) == []


def test_units_of_time_are_those_that_spark_has() -> None:
    for unit in ("day", "HOUR", "dayofyear"):
        query = f"SELECT dateadd({unit}, 1, event_time) AS event_time FROM cities"
        assert certain({"cities": CITIES}, query) == []
    for call, message, help in (
        ("dateadd(days, 1, event_time)", "no input has a column 'days'", "the unit is called DAY"),
        ("datediff(days, event_time, event_time)", "no input has a column 'days'",
         "the unit is called DAY"),
        ("datediff('day', event_time, event_time)", "datediff() takes 2 arguments, not 3",
         "write the unit without quotes: datediff(DAY, …)"),
    ):  # fmt: skip
        step = SqlQueryStep(query=f"SELECT event_time, {call} AS x FROM cities")
        transform = TransformSql(engine="spark", queries=(step,))
        (error,) = errors_of(transform, {"cities": CITIES}, Vocabulary())
        assert (error.message, error.help) == (message, help)


def test_a_later_step_reads_an_earlier_one() -> None:
    first = "SELECT event_time, city AS town FROM cities"
    assert said({"cities": CITIES}, first, "SELECT event_time, town FROM step0") == []
    assert said({"cities": CITIES}, first, "SELECT event_time, city FROM step0") == [
        "no input has a column 'city'"
    ]
    unknown = "FROM cities |> SET x"
    assert certain({"cities": CITIES}, unknown, "SELECT event_time, q FROM step0") == []

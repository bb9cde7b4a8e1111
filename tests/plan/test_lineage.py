"""Where the columns and records of a query's result come from, told from its text."""

from __future__ import annotations

import marshal
from dataclasses import replace

import pytest

from odfbuild.odf.model import SqlQueryStep, TemporalTable, TransformSql
from odfbuild.plan.columns.lineages import Lineages
from odfbuild.sql.columns.query_lineage import lineage_of
from odfbuild.sql.lineage import Influence, Lineage

INPUTS = {
    "flights": ("event_time", "carrier", "dep_delay", "Distance"),
    "ca.metro.airlines": ("event_time", "carrier", "name"),
}


def sql(*queries: str) -> TransformSql:
    """Steps; all but the last are called `step0`, `step1` …"""
    last = len(queries) - 1
    steps = (
        SqlQueryStep(alias=None if number == last else f"step{number}", query=query)
        for number, query in enumerate(queries)
    )
    return TransformSql(engine="spark", queries=tuple(steps))


def told(*queries: str) -> dict[str, str]:
    """Lineage as text: `flights.dep_delay copy` by column; that of records under ``."""
    found = lineage_of(sql(*queries), INPUTS)
    assert found is not None
    return {**{name: _text(each) for name, each in found.columns.items()}, "": _text(found.records)}


def _text(origins: frozenset[tuple[str, str, Influence]]) -> str:
    short = {"flights": "f", "ca.metro.airlines": "a"}
    return ", ".join(f"{short[alias]}.{column} {kind}" for alias, column, kind in sorted(origins))


def test_columns_are_copied_or_derived() -> None:
    assert told(
        "SELECT carrier, dep_delay AS delay, dep_delay / distance AS pace FROM flights"
    ) == {
        "carrier": "f.carrier copy",
        "delay": "f.dep_delay copy",
        "pace": "f.dep_delay derivation, f.distance derivation",
        "": "",
    }


def test_filters_joins_and_groups_decide_records() -> None:
    assert told(
        """SELECT a.name, avg(f.dep_delay) AS delay
        FROM flights f JOIN `ca.metro.airlines` a ON f.carrier = a.carrier
        WHERE f.distance > 100 GROUP BY a.name HAVING count(*) > 3"""
    ) == {
        "name": "a.name copy",
        "delay": "f.dep_delay derivation",
        "": "a.carrier join, a.name grouping, f.carrier join, f.distance filter",
    }


def test_stars_and_names_with_dots_are_understood() -> None:
    assert told("SELECT * FROM flights")["distance"] == "f.distance copy"
    assert told("SELECT airlines.name FROM ca.metro.airlines") == {"name": "a.name copy", "": ""}
    assert told("SELECT ca.metro.airlines.name FROM ca.metro.airlines")["name"] == "a.name copy"


def test_steps_common_tables_and_subqueries_are_followed() -> None:
    assert told(
        "SELECT carrier, dep_delay * 2 AS d FROM flights WHERE distance > 1",
        "WITH late AS (SELECT * FROM step0 WHERE d > 5) SELECT d FROM (SELECT d FROM late) AS x",
    ) == {
        "d": "f.dep_delay derivation",
        "": "f.dep_delay filter, f.distance filter",
    }
    assert told(
        """SELECT carrier, (SELECT max(name) FROM ca.metro.airlines a
            WHERE a.carrier = f.carrier) AS n
        FROM flights f WHERE dep_delay IN (SELECT length(name) FROM ca.metro.airlines)"""
    ) == {
        "carrier": "f.carrier copy",
        "n": "a.carrier derivation, a.name derivation, f.carrier derivation",
        "": "a.name filter, f.dep_delay filter",
    }


def test_unions_windows_generators_and_distinct_are_followed() -> None:
    assert told("SELECT carrier FROM flights UNION ALL SELECT name FROM ca.metro.airlines") == {
        "carrier": "a.name copy, f.carrier copy",
        "": "",
    }
    assert told("SELECT carrier FROM flights UNION SELECT name FROM ca.metro.airlines")[""] == (
        "a.name grouping, f.carrier grouping"
    )
    assert told("SELECT DISTINCT carrier FROM flights")[""] == "f.carrier grouping"
    assert told(
        "SELECT row_number() OVER (PARTITION BY carrier ORDER BY distance) AS n FROM flights"
    )["n"] == ("f.carrier derivation, f.distance derivation")
    assert told("SELECT w FROM flights LATERAL VIEW explode(split(carrier, ' ')) t AS w")["w"] == (
        "f.carrier derivation"
    )
    assert told(
        "SELECT distance FROM flights LATERAL VIEW explode(split(carrier, ' ')) t AS w"
    ) == {
        "distance": "f.distance copy",
        "": "f.carrier join",
    }
    assert told("SELECT distance, explode(split(carrier, ' ')) AS w FROM flights")[""] == (
        "f.carrier join"
    )
    assert told(
        "(SELECT carrier FROM flights) UNION ALL (SELECT name FROM ca.metro.airlines) "
        "ORDER BY 1 LIMIT 2"
    )[""] == ("a.name filter, f.carrier filter")
    assert told("SELECT carrier FROM flights ORDER BY distance LIMIT 3")[""] == "f.distance filter"
    assert told("SELECT name FROM flights JOIN ca.metro.airlines USING (carrier)")[""] == (
        "a.carrier join, f.carrier join"
    )


def test_windows_of_time_are_understood() -> None:
    found = told(
        "SELECT window(event_time, '1 day').start AS event_time, count(*) AS n "
        "FROM flights GROUP BY Window (event_time, '1 day')"
    )
    assert found == {
        "event_time": "f.event_time derivation",
        "n": "",
        "": "f.event_time grouping",
    }


@pytest.mark.parametrize("window", ["window", "session_window"])
def test_the_column_that_a_window_of_time_makes_comes_from_its_time(window: str) -> None:
    found = told(
        f"SELECT {window}.start AS event_time, {window}.end, carrier, max(dep_delay) AS n "
        f"FROM flights GROUP BY {window}(event_time, '1 day'), carrier "
        f"HAVING max(distance) > 5 AND {window}.end > DATE '2013-01-01'"
    )
    assert found == {
        "event_time": "f.event_time derivation",
        "end": "f.event_time derivation",
        "carrier": "f.carrier copy",
        "n": "f.dep_delay derivation",
        "": "f.carrier grouping, f.distance filter, f.event_time filter, f.event_time grouping",
    }


RATES = {
    "orders": ("event_time", "currency", "amount"),
    "rates": ("event_time", "currency", "rate"),
    "own": ("seen_at", "id", "x"),
}


@pytest.mark.parametrize(
    "version",
    [
        "rates FOR SYSTEM_TIME AS OF o.event_time AS r",
        "rates for system_time as of (o.event_time + INTERVAL 1 DAY) r",
        "LATERAL TABLE (rates(o.event_time)) AS r",
        "`rates` FOR SYSTEM_TIME AS OF o.event_time AS r",
    ],
)
@pytest.mark.parametrize("orders", ["orders", "`orders`"])
def test_temporal_joins_are_followed(version: str, orders: str) -> None:
    query = f"""SELECT o.event_time, o.currency, r.rate, o.amount * r.rate AS value
        FROM {orders} AS o LEFT JOIN {version} ON o.currency = r.currency"""
    transform = replace(
        sql(query), temporal_tables=(TemporalTable(name="Rates", primary_key=("Currency",)),)
    )
    for found in (lineage_of(transform, RATES), Lineages().of(transform, RATES)):
        assert found is not None
        columns = {
            name: sorted((alias, column, str(kind)) for alias, column, kind in origins)
            for name, origins in found.columns.items()
        }
        assert columns == {
            "event_time": [("orders", "event_time", "copy")],
            "currency": [("orders", "currency", "copy")],
            "rate": [("rates", "rate", "copy")],
            "value": [("orders", "amount", "derivation"), ("rates", "rate", "derivation")],
        }
        assert sorted((alias, column) for alias, column, _ in found.records) == [
            ("orders", "currency"),
            ("orders", "event_time"),
            ("rates", "currency"),
            ("rates", "event_time"),
        ]
        assert {kind for _, _, kind in found.records} == {Influence.JOIN}


def test_versions_of_a_table_with_a_time_of_its_own_depend_on_all_of_its_columns() -> None:
    query = "SELECT o.amount, p.x FROM orders o, own FOR SYSTEM_TIME AS OF o.event_time AS p"
    table = TemporalTable(name="own", primary_key=("id",))
    found = lineage_of(replace(sql(query), temporal_tables=(table,)), RATES)
    assert found is not None
    assert {column for alias, column, _ in found.records if alias == "own"} == {
        "seen_at",
        "id",
        "x",
    }


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("SELECT p.x FROM orders o, own FOR SYSTEM_TIME AS OF o.event_time AS p", "nothing"),
        ("SELECT x FROM own FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01' AS p", None),
        ("SELECT amount FROM orders FOR SYSTEM_TIME AS OF event_time", "id"),
        ("SELECT p.x FROM orders o JOIN own VERSION AS OF 3 AS p ON p.id = o.amount", "id"),
        ("SELECT p.x FROM orders o, own FOR SYSTEM_TIME AS OF event_time AS p", "id"),
    ],
)
def test_versions_that_are_not_understood_are_not_guessed(query: str, key: str | None) -> None:
    tables = () if key is None else (TemporalTable(name="own", primary_key=(key,)),)
    inputs = {**RATES, "own": ("event_time", "id", "x")}
    assert lineage_of(replace(sql(query), temporal_tables=tables), inputs) is None


def test_an_alias_may_be_used_in_the_same_list() -> None:
    found = told("SELECT dep_delay + 1 AS d, d * 2 AS e FROM flights")
    assert found["e"] == "f.dep_delay derivation"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT nothing FROM flights",
        "SELECT carrier FROM elsewhere",
        "SELECT carrier FROM flights PIVOT (sum(dep_delay) FOR carrier IN ('AA'))",
        "SELECT carrier FROM flights TABLESAMPLE (10 PERCENT)",
        "SELECT carrier FROM (SELECT * FROM flights) TABLESAMPLE (10 PERCENT)",
        "SELECT rank() OVER w AS r FROM flights WINDOW w AS (ORDER BY distance)",
        "SELECT name FROM flights NATURAL JOIN ca.metro.airlines",
        "SELECT carrier FROM flights UNION ALL BY NAME SELECT carrier FROM ca.metro.airlines",
        "SELECT count(*) AS n FROM flights GROUP BY ALL",
        "SELECT carrier FROM flights VERSION AS OF 3",
        "(SELECT carrier FROM flights) ORDER BY carrier LIMIT 2",
        "SELECT window.start AS s FROM flights window",
        "not SQL at all (",
        "SELECT 1; SELECT 2",
        "DROP TABLE flights",
    ],
)
def test_what_is_not_understood_is_not_guessed(query: str) -> None:
    assert lineage_of(sql(query), INPUTS) is None


def test_inputs_without_known_columns_and_other_engines_are_not_guessed() -> None:
    assert lineage_of(sql("SELECT carrier FROM flights"), {"flights": None}) is None
    other = TransformSql(engine="another", queries=(SqlQueryStep(query="SELECT 1 AS a"),))
    assert lineage_of(other, INPUTS) is None


def test_answers_are_kept_by_content() -> None:
    query = sql("SELECT carrier, dep_delay + 1 AS d FROM flights WHERE distance > 1")
    first = Lineages()
    answer = first.of(query, INPUTS)
    assert isinstance(answer, Lineage)
    assert first.is_changed
    again = Lineages(lambda: marshal.loads(marshal.dumps(first.kept)))
    assert again.of(query, INPUTS) == answer
    assert not again.is_changed
    assert again.of(query, {"flights": ("carrier", "dep_delay", "distance", "x")}) == answer
    assert again.is_changed
    assert again.of(sql("no SQL ("), INPUTS) is None
    assert Lineages(lambda: again.kept).of(sql("no SQL ("), INPUTS) is None

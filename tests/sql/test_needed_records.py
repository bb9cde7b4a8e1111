"""What the text of a query tells of the records that a step needs, with place and help."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfbuild.sql.increments.parts import Place
from odfbuild.sql.increments.told import Told, needed_records

_SYSTEM = (
    ("offset", "bigint", False),
    ("op", "int", False),
    ("system_time", "timestamp", True),
    ("event_time", "timestamp", True),
)
TABLES = {
    "cities": (*_SYSTEM, ("city", "string", False), ("population", "bigint", False)),
    "events": (*_SYSTEM, ("id", "bigint", False), ("city", "string", False), ("n", "int", False)),
    "people": (*_SYSTEM, ("id", "int", False), ("name", "string", False)),
}


def told(query: str, *unchanged: str) -> Told:
    inputs = {name: columns for name, columns in TABLES.items() if name in query}
    return needed_records(((query, None),), inputs, unchanged)


def test_every_query_of_the_tests_is_told_or_left_to_the_run() -> None:
    engine = Path(__file__).parents[1] / "engine"
    for file in ("accepted.sql", "refused.sql"):
        for query in (engine / file).read_text(encoding="utf-8").splitlines():
            if query and not query.startswith("--"):
                found = needed_records(((query, None),), TABLES, ())
                assert found.added or found.keys or found.why


GROUPED = "SELECT MAX(event_time) AS event_time, city"


@pytest.mark.parametrize(
    ("query", "unchanged", "added", "keys"),
    [
        (f"{GROUPED}, COUNT(*) AS c FROM events GROUP BY city", (), True, ("events.city",)),
        (f"{GROUPED}, COUNT(*) AS c FROM events GROUP BY ALL", (), True, ("events.city",)),
        (f"{GROUPED}, AVG(n) AS a FROM events GROUP BY 2", (), False, ("events.city",)),
        (
            "SELECT e.event_time, p.name FROM events e LEFT JOIN people p USING (id)",
            (),
            False,
            ("events.id = people.id",),
        ),
        (
            "SELECT e.event_time, p.name FROM events e LEFT JOIN people p USING (id)",
            ("people",),
            True,
            ("events.id = people.id",),
        ),
        (
            "SELECT event_time, id FROM events e WHERE NOT EXISTS"
            " (SELECT 1 FROM people p WHERE p.id = e.id)",
            (),
            False,
            ("events.id = people.id",),
        ),
        ("SELECT COUNT(*) AS c, MAX(event_time) AS event_time FROM events", (), True, ()),
    ],
)
def test_the_way_and_the_keys_are_told(
    query: str, unchanged: tuple[str, ...], added: bool, keys: tuple[str, ...]
) -> None:
    found = told(query, *unchanged)
    assert (found.added, tuple(" = ".join(each) for each in found.keys)) == (added, keys)


@pytest.mark.parametrize(
    ("query", "why", "place", "help"),
    [
        (
            "SELECT MAX(event_time) AS event_time,\n  COUNT(DISTINCT id + 1) AS c FROM events",
            "an aggregation is over all records",
            Place(0, 1, 8),
            "totals",
        ),
        (
            "SELECT event_time, id FROM events\nORDER BY n, event_time, id LIMIT 3",
            "LIMIT takes all records into account",
            Place(0, 2, 34),
            "ROW_NUMBER()",
        ),
        (
            "SELECT e.event_time, p.name FROM events e\nLEFT JOIN people p ON e.id > p.id",
            "no column of a join is one of each input that has new records",
            Place(0, 2, 11),
            "ON a.key = b.key",
        ),
    ],
)
def test_what_needs_all_records_has_a_place_and_a_way_out(
    query: str, why: str, place: Place, help: str
) -> None:
    found = told(query)
    assert (found.why, found.place, found.keys, found.added) == (why, place, (), False)
    assert help in found.help


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        (
            "SELECT MAX(e.event_time) AS event_time, p.name, COUNT(*) AS c FROM events e"
            " JOIN people p ON e.id = p.id GROUP BY p.name",
            ("events.id = people.id",),
        ),
        (
            "SELECT MAX(event_time) AS event_time, c, COUNT(*) AS ids FROM (SELECT"
            " MAX(event_time) AS event_time, id, COUNT(*) AS c FROM events GROUP BY id) GROUP BY c",
            ("events.id",),
        ),
        (f"{GROUPED}, COUNT(*) AS c FROM events GROUP BY city ORDER BY c, city LIMIT 3", ()),
        (
            f"{GROUPED}, SUM(n) AS s FROM events GROUP BY city"
            " HAVING SUM(n) > (SELECT SUM(n) / 9 FROM events)",
            (),
        ),
        (
            "SELECT MAX(event_time) AS event_time, COUNT(DISTINCT id) AS c FROM events",
            ("events.id",),
        ),
    ],
)
def test_levels_whose_totals_are_kept_are_told(query: str, keys: tuple[str, ...]) -> None:
    found = told(query)
    assert found.kept
    assert (tuple(" = ".join(each) for each in found.kept_keys), found.keys) == (keys, ())


@pytest.mark.parametrize(
    "query",
    [
        "SELECT event_time, city, n FROM events ORDER BY n, city, event_time LIMIT 3",
        f"{GROUPED}, COUNT(*) AS c FROM events WHERE n > (SELECT AVG(n) FROM events) GROUP BY city",
        "SELECT e.event_time, g.c FROM events e JOIN (SELECT city, COUNT(*) AS c FROM people"
        " JOIN cities ON population > id GROUP BY city) g ON e.n > g.c",
        "SELECT * FROM (SELECT MAX(event_time) AS event_time, id % 2 AS odd, COUNT(*) AS c FROM"
        " events GROUP BY id % 2) g WHERE EXISTS (SELECT 1 FROM people p WHERE p.id = g.odd)",
    ],
)
def test_no_totals_are_kept_where_records_are_compared_with_others(query: str) -> None:
    assert not told(query).kept


def test_a_side_of_a_join_without_new_records_changes_with_a_subquery_in_it() -> None:
    found = told(
        "SELECT e.event_time, p.name FROM events e LEFT JOIN (SELECT * FROM people WHERE id <"
        " (SELECT COUNT(*) FROM events)) p ON e.id = p.id",
        "people",
    )
    assert (found.added, found.keys) == (False, ())

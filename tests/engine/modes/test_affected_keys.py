"""A step over the records of affected keys gives the slice of a step over all records, to the byte.

Queries are made up, and walk at random through appends, retractions and corrections.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.engine import affected_records
from odfbuild.engine.affected_records import _sorted
from odfbuild.engine.contract import Engine
from odfbuild.odf.model import TemporalTable, TransformSql
from odfbuild.records.by_key import RecordsByKey
from odfbuild.sql.increments import affected_keys, parts
from tests.engine.inputs import sql
from tests.engine.queries import CHANGELOG
from tests.engine.stepwise import Derived, Source, millis

EVENTS = [
    pa.field("id", pa.int64()),
    pa.field("city", pa.string()),
    pa.field("amount", pa.int32()),
    pa.field("x", pa.float64()),
    pa.field("price", pa.decimal128(9, 2)),
    pa.field("tags", pa.string()),
]
PEOPLE = [
    pa.field("id", pa.int32()),
    pa.field("name", pa.string()),
    pa.field("city", pa.string()),
]
AGGREGATES = [
    "COUNT(*)",
    "SUM(amount)",
    "MIN(amount)",
    "COUNT(DISTINCT amount)",
    "COUNT(DISTINCT id)",
    "array_sort(collect_list(amount))",
    "AVG(CAST(amount AS DECIMAL(9, 2)))",
]
CITIES = ["Oslo", "Paris", "Rome", None]
BLOCKS = 4


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Histories are short here, most of their keys are affected, and all is kept by key."""
    monkeypatch.setattr(parts, "FEWEST", 0)
    monkeypatch.setattr(parts, "LARGEST_SHARE", 100)
    monkeypatch.setattr(affected_records, "MANY_RECORDS", 0)
    monkeypatch.setattr(affected_records, "FEW", 0)


class Walk:
    """Two inputs that grow, lose and correct records at random, by `least` changes a block.

    Unless events are only `appended`: then people change in the first block alone.
    """

    def __init__(self, folder: Path, seed: int, least: int = 0, *, appended: bool = False) -> None:
        self._chance = random.Random(seed)
        self._appended = appended
        folder.mkdir(exist_ok=True)
        self.sources = (Source(folder, "events", EVENTS), Source(folder, "people", PEOPLE))
        self._live: dict[str, list[tuple[object, ...]]] = {"events": [], "people": []}
        for block in range(BLOCKS):
            for source in self.sources:
                changes = 6 if block == 0 else self._chance.choice([least, 1, 2, 8])
                if appended and source.alias == "people":
                    changes = 0 if block else 12
                self._grow(source, changes)

    def _grow(self, source: Source, changes: int) -> None:
        chance, live = self._chance, self._live[source.alias]
        rows: list[tuple[object, ...]] = []
        ops: list[int] = []
        for _ in range(changes):
            kind = chance.random() if live else 0
            if self._appended and source.alias == "events":
                kind = 0
            if kind < 0.65:
                live.append(self._new(source))
                rows, ops = [*rows, live[-1]], [*ops, 0]
                continue
            old = live.pop(chance.randrange(len(live)))
            if kind < 0.85:
                rows, ops = [*rows, old], [*ops, 1]
                continue
            new = (*old[:2], *self._new(source)[2:])
            live.append(new)
            rows, ops = [*rows, old, new], [*ops, 2, 3]
        source.add(rows, watermark="max" if rows else None, ops=ops)

    def _new(self, source: Source) -> tuple[object, ...]:
        one = self._chance.choice
        time = millis("00:00") + self._chance.randrange(60) * 3_600_000
        if source.alias == "people":
            return time, one([None, *range(5)]), one("AB"), one(CITIES)
        money = one([Decimal("1.10"), Decimal("2.00"), None])
        values = one([None, 1, 2, 3]), one([0.0, -0.0, float("nan"), 1.5, None]), money
        return time, one([None, *range(5)]), one(CITIES), *values, one(["a", "a b"])


def compared(
    engine: Engine,
    folder: Path,
    query: str,
    walk: Walk,
    transform: TransformSql | None = None,
    blocks: int = BLOCKS,
) -> list[bool]:
    """Which of the steps behind the first were computed over affected records, as the rest were.

    Each slice is compared with that of a full step.
    """
    sources = [each for each in walk.sources if each.alias in query]
    results = [
        Derived(engine, folder / name, transform or sql(query), sources, continued=continued)
        for name, continued in (("all", False), ("affected", True))
    ]
    found = []
    for block in range(1, blocks + 1):
        for each in results:
            each.step(*[block] * len(sources))
        whole, part = results
        assert [f.read_bytes() for f in part.files] == [f.read_bytes() for f in whole.files], query
        found.append(part.extent is not None and not part.extent.why)
    return found[1:]


# --- Queries that are made up ---


class Grammar:
    """Queries over `events` and `people`, all of whose results are well defined."""

    def __init__(self, chance: random.Random) -> None:
        self._one = chance.choice
        self._chance = chance

    def query(self) -> str:
        return self._one(
            [self._grouped, self._joined, self._numbered, self._set, self._asked, self._named]
        )()

    def _relation(self, depth: int = 1) -> str:
        """With the columns event_time, id, city and amount."""
        columns = "event_time, id, city, amount"
        kinds = ["events", f"(SELECT {columns} FROM events WHERE amount > 1 OR city IS NULL)"]
        if depth:
            below = self._relation(depth - 1)
            join = self._one(["JOIN", "LEFT JOIN"])
            key = self._one(["id", "city"])
            kinds += [
                f"(SELECT r.event_time, r.id, r.city, r.amount FROM {below} r {join} people p"
                f" ON r.{key} = p.{key})",
                f"(SELECT event_time, id, city, amount FROM {below} UNION ALL"
                " SELECT event_time, CAST(id AS BIGINT), city, 7 FROM people)",
                f"(SELECT MAX(event_time) AS event_time, id, city, COUNT(*) AS amount FROM {below}"
                " GROUP BY id, city)",
            ]
        return self._one(kinds)

    def _grouped(self) -> str:
        times = ["date_trunc('DAY', event_time)", "CAST(event_time AS DATE)"]
        keys = self._chance.sample(["id", "city", "amount", self._one(times)], self._one([1, 1, 2]))
        value = self._one(AGGREGATES)
        named = ", ".join(f"{key} AS k{n}" for n, key in enumerate(keys))
        having = self._one(["", "", " HAVING COUNT(*) > 1"])
        group = self._one([", ".join(keys)] * 3 + [f"GROUPING SETS (({', '.join(keys)}))"])
        return (
            f"SELECT MAX(event_time) AS event_time, {named}, {value} AS v"
            f" FROM {self._relation()} GROUP BY {group}{having}"
        )

    def _joined(self) -> str:
        kind = self._one(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        on = self._one(["a.id = p.id", "a.city <=> p.city", "a.id = p.id AND a.city = p.city"])
        on += self._one(["", "", " AND a.amount > 1"])
        return (
            "SELECT COALESCE(a.event_time, p.event_time) AS event_time, a.id, a.city, p.id AS other"
            f" FROM {self._relation()} a {kind} people p ON {on}"
        )

    def _numbered(self) -> str:
        part = self._one(["city", "id", "city, amount", "date_trunc('DAY', event_time)"])
        return (
            "SELECT * FROM (SELECT event_time, id, city, amount, ROW_NUMBER() OVER (PARTITION BY"
            f" {part} ORDER BY event_time, id, city, amount) AS place FROM {self._relation()})"
            f" WHERE place <= {self._one([1, 2])}"
        )

    def _set(self) -> str:
        operation = self._one(
            ["UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL", "UNION ALL"]
        )
        time = self._one(["event_time", "date_trunc('DAY', event_time) AS event_time"])
        columns = self._one(["id", "city", "id, city"])
        return f"SELECT DISTINCT {time}, {columns} FROM events {operation} " + (
            f"SELECT {time}, {columns} FROM people"
        )

    def _asked(self) -> str:
        same = self._one(["p.id = e.id", "p.city = e.city", "p.city <=> e.city AND p.id = e.id"])
        condition = self._one(
            [
                f"EXISTS (SELECT 1 FROM people p WHERE {same})",
                f"NOT EXISTS (SELECT 1 FROM people p WHERE {same})",
                f"e.amount = 2 OR EXISTS (SELECT 1 FROM people p WHERE {same})",
                "e.id IN (SELECT id FROM people WHERE name = 'A')",
                "e.id NOT IN (SELECT id FROM people WHERE name = 'A')",
                f"e.amount >= (SELECT COUNT(*) FROM people p WHERE {same})",
                "e.amount >= (SELECT COUNT(*) FROM people)",
            ]
        )
        return f"SELECT e.event_time, e.id, e.city FROM {self._relation()} e WHERE {condition}"

    def _named(self) -> str:
        key = self._one(["id", "city"])
        counts = f"SELECT MAX(event_time) AS event_time, {key}, COUNT(*) AS n"
        join = self._one(["JOIN", "LEFT JOIN", "FULL JOIN"])
        return (
            f"WITH c AS ({counts} FROM {self._relation()} GROUP BY {key}), d AS ({counts} FROM"
            f" people GROUP BY {key}) SELECT COALESCE(c.event_time, d.event_time) AS event_time,"
            f" c.{key}, c.n, d.n AS m FROM c {join} {self._one('cd')} AS d ON c.{key} = d.{key}"
        )


def seeds(count: int, slow: int) -> Sequence[object]:
    """The first few run in CI: each takes ten seconds."""
    marks = pytest.mark.slow
    return [*range(count), *(pytest.param(n, marks=marks) for n in range(count, slow))]


@pytest.mark.spark
@pytest.mark.parametrize("seed", seeds(4, 100))
def test_a_slice_made_of_affected_records_is_that_of_all_records(
    spark_engine: Engine, tmp_path: Path, seed: int
) -> None:
    walk, grammar = Walk(tmp_path / "inputs", seed), Grammar(random.Random(seed))
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        compared(spark_engine, folder, grammar.query(), walk)


# --- Which queries fall into parts ---

IN_PARTS = [
    "SELECT MAX(event_time) AS event_time, city, COUNT(DISTINCT id) AS n FROM events GROUP BY city",
    "SELECT MAX(event_time) AS event_time, price, COUNT(*) AS n FROM events GROUP BY price",
    "SELECT MAX(event_time) AS event_time, city, id, COUNT(*) AS n FROM events"
    " GROUP BY GROUPING SETS ((city, id), (city))",
    "SELECT date_trunc('HOUR', event_time) AS event_time, COUNT(*) AS n FROM events"
    " GROUP BY date_trunc('HOUR', event_time)",
    "SELECT CAST(trunc(event_time, 'MONTH') AS TIMESTAMP) AS event_time, MAX(id) AS n FROM events"
    " GROUP BY trunc(event_time, 'MONTH')",
    "SELECT MAX(event_time) AS event_time, id, MAX(n) AS n FROM (SELECT MAX(event_time) AS"
    " event_time, id, city, COUNT(*) AS n FROM events GROUP BY id, city) GROUP BY id",
    "WITH c AS (SELECT MAX(event_time) AS event_time, city, COUNT(*) AS n FROM events"
    " GROUP BY city) SELECT a.event_time, a.city, a.n, b.n AS m FROM c a JOIN c b"
    " ON a.city = b.city",
    "SELECT e.event_time, e.id, p.name FROM events e LEFT JOIN people p ON e.id = p.id",
    "SELECT e.event_time, e.id, p.id AS other FROM events e LEFT JOIN people p"
    " ON date_trunc('DAY', e.event_time) = date_trunc('DAY', p.event_time)",
    "SELECT MAX(event_time) AS event_time, id, COUNT(*) AS n FROM (SELECT COALESCE(e.event_time,"
    " p.event_time) AS event_time, id FROM events e FULL JOIN people p USING (id)) GROUP BY id",
    "SELECT MAX(e.event_time) AS event_time, p.id, COUNT(*) AS n FROM events e, people p"
    " WHERE e.id = p.id AND e.city IS NOT NULL GROUP BY p.id",
    "SELECT e.event_time, e.id FROM events e WHERE e.amount > (SELECT AVG(f.price) FROM events f"
    " WHERE f.id = e.id)",
    "SELECT e.event_time, e.id FROM events e WHERE e.city = 'Oslo' OR EXISTS"
    " (SELECT 1 FROM people p WHERE p.id = e.id)",
    "SELECT event_time, id FROM events EXCEPT ALL SELECT event_time, id FROM people",
    "SELECT * FROM (SELECT event_time, id, city, amount, ROW_NUMBER() OVER (PARTITION BY city"
    " ORDER BY amount, event_time, id) AS r FROM events) WHERE r <= 2",
    "SELECT session_window.start AS event_time, city, COUNT(*) AS n FROM events"
    " GROUP BY session_window(event_time, '2 hours'), city",
]


@pytest.mark.spark
def test_steps_of_queries_that_fall_into_parts_read_no_more_than_these(
    spark_engine: Engine, tmp_path: Path
) -> None:
    walk = Walk(tmp_path / "inputs", 1)
    for number, query in enumerate(IN_PARTS):
        (tmp_path / str(number)).mkdir()
        assert any(compared(spark_engine, tmp_path / str(number), query, walk, blocks=3)), query


@pytest.mark.spark
def test_temporal_joins_and_queries_of_several_steps_fall_into_parts_too(
    spark_engine: Engine, tmp_path: Path
) -> None:
    version = (
        "SELECT e.event_time, e.id, p.name FROM events e LEFT JOIN people FOR SYSTEM_TIME AS OF"
        " e.event_time AS p ON e.id = p.id"
    )
    steps = [
        "SELECT event_time, id, city, amount FROM events WHERE amount IS NOT NULL",
        "SELECT MAX(event_time) AS event_time, city, SUM(amount) AS n FROM step0 GROUP BY city",
        "SELECT s.event_time, s.city, s.n, p.name FROM step1 s LEFT JOIN people p"
        " ON s.city = p.city",
    ]
    people = (TemporalTable(name="people", primary_key=("id",)),)
    both = {
        version: replace(sql(version), temporal_tables=people),
        " ".join(steps): sql(*steps),
    }
    for number, (query, transform) in enumerate(both.items()):
        walk = Walk(tmp_path / f"inputs-{number}", 5)
        folder = tmp_path / str(number)
        folder.mkdir()
        assert any(compared(spark_engine, folder, query, walk, transform)), query


IN_FULL = {
    "SELECT MAX(event_time) AS event_time, COUNT(*) AS n FROM events": "an aggregation is over all",
    "SELECT MAX(event_time) AS event_time, id % 2 AS odd, COUNT(*) AS n FROM events"
    " GROUP BY id % 2": "no column of GROUP BY",
    "SELECT MAX(event_time) AS event_time, city, COUNT(*) AS n FROM events"
    " GROUP BY ROLLUP (city)": "no column of GROUP BY",
    "SELECT MAX(e.event_time) AS event_time, p.name, COUNT(*) AS n FROM events e JOIN people p"
    " ON e.id = p.id GROUP BY p.name": "no column of GROUP BY",
    "SELECT MAX(p.event_time) AS event_time, e.city, COUNT(*) AS n FROM events e RIGHT JOIN people"
    " p ON e.city = p.city GROUP BY e.city": "no column of GROUP BY",
    "SELECT event_time, id, RANK() OVER (ORDER BY amount, event_time, id, city) AS place"
    " FROM events": "a window function is over all",
    "SELECT event_time, id, RANK() OVER (PARTITION BY id ORDER BY amount) AS one,"
    " RANK() OVER (PARTITION BY city ORDER BY amount) AS other FROM events": "PARTITION BY",
    "SELECT e.event_time, e.id FROM events e LEFT JOIN people p ON e.id > p.id": "of a join",
    "SELECT event_time, id FROM events WHERE id NOT IN"
    " (SELECT id FROM people WHERE id > 3)": "of a join",
    "SELECT event_time, id FROM events WHERE amount > (SELECT COUNT(*) FROM people)": "a subquery",
    "SELECT event_time, id, city, amount FROM events ORDER BY amount, event_time, id, city"
    " LIMIT 3": "LIMIT",
}


@pytest.mark.spark
def test_what_takes_all_records_into_account_is_computed_in_full_and_says_why(
    spark_engine: Engine, tmp_path: Path
) -> None:
    walk = Walk(tmp_path / "inputs", 1, least=1)
    for number, (query, why) in enumerate(IN_FULL.items()):
        sources = [each for each in walk.sources if each.alias in query]
        folder = tmp_path / str(number)
        folder.mkdir()
        result = Derived(spark_engine, folder / "all", sql(query), sources, continued=True)
        result.step(*[1] * len(sources))
        result.step()
        assert result.extent is not None, query
        assert why in result.extent.why, query
        assert "computed over all" in result.extent.note


@pytest.mark.spark
def test_every_query_in_mode_changelog_is_the_same_either_way(
    spark_engine: Engine, tmp_path: Path
) -> None:
    walk = Walk(tmp_path / "inputs", 3)
    # The first one says nothing of an input without records.
    for number, query in enumerate(CHANGELOG[1:]):
        (tmp_path / str(number)).mkdir()
        compared(spark_engine, tmp_path / str(number), query, walk, blocks=3)


@pytest.mark.spark
@pytest.mark.parametrize("wrong", ["a key is forgotten", "one side of a join is left out"])
def test_a_wrong_way_shows_as_another_slice(
    spark_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    if wrong == "a key is forgotten":
        monkeypatch.setattr(
            affected_records, "_is_one_of", lambda hashes, wanted: hashes == wanted[0]
        )
    else:
        monkeypatch.setattr(affected_keys, "_together", lambda left, right: left)
    query = "SELECT e.event_time, e.id, p.name FROM events e LEFT JOIN people p ON e.id = p.id"
    with pytest.raises(AssertionError, match="LEFT JOIN"):
        compared(spark_engine, tmp_path, query, Walk(tmp_path / "inputs", 1))


# --- What is kept by key ---


def deleted(folders: list[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder)


def cut(folders: list[Path]) -> None:
    for file in (file for folder in folders for file in folder.glob("*.arrow")):
        file.write_bytes(file.read_bytes()[:-7])


def of_another_machine(folders: list[Path]) -> None:
    for folder in folders:
        file = folder / "manifest.bin"
        data = file.read_bytes()
        start = data.index(b"by key")
        changed = data[start:].replace(b"\n", b"\n" + os.urandom(8), 2)
        file.write_bytes(data[:start] + changed)


def of_an_older_release(folders: list[Path]) -> None:
    for folder in folders:
        file = folder / "manifest.bin"
        file.write_bytes(file.read_bytes().replace(b"records by key 1", b"records by key 0"))


def unharmed(folders: list[Path]) -> None:
    assert folders


@pytest.mark.spark
def test_slices_are_the_same_whatever_becomes_of_what_is_kept_by_key(
    spark_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = Walk(tmp_path / "inputs", 7, least=1)
    query = (
        "SELECT MAX(e.event_time) AS event_time, e.id, p.name, COUNT(DISTINCT e.city) AS n"
        " FROM events e LEFT JOIN people p ON e.id = p.id GROUP BY e.id, p.name"
    )
    found = []

    def counted(self: RecordsByKey, *asked: Any) -> Iterator[pa.Table]:
        found.append(bool(self.held))
        yield from find(self, *asked)

    def while_it_runs(self: RecordsByKey, *asked: Any) -> Iterator[pa.Table]:
        shutil.rmtree(kept, ignore_errors=True)
        yield from counted(self, *asked)

    find, kept = RecordsByKey.find, tmp_path / "inputs" / "side-cars"

    def slices(name: str, harm: Callable[[list[Path]], None] | None) -> list[bytes]:
        shutil.rmtree(kept, ignore_errors=True)
        found.clear()
        continued = harm is not None
        result = Derived(
            spark_engine, tmp_path / name, sql(query), walk.sources, continued=continued
        )
        for block in range(1, BLOCKS + 1):
            if block > 2 and harm is not None and harm is not unharmed:
                harm([each.parent for each in kept.rglob("manifest.bin")])
            result.step(block, block)
        return [file.read_bytes() for file in result.files]

    monkeypatch.setattr(RecordsByKey, "find", counted)
    whole = slices("whole", None)
    assert not found
    for harm in (unharmed, deleted, cut, of_another_machine, of_an_older_release):
        assert slices(harm.__name__, harm) == whole
        assert any(found) is (harm is unharmed)
    monkeypatch.setattr(RecordsByKey, "find", while_it_runs)
    assert slices("while it runs", unharmed) == whole


@pytest.mark.spark
def test_short_histories_and_those_with_much_news_are_read_in_full(
    spark_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = Walk(tmp_path / "inputs", 1)
    query = IN_PARTS[0]

    def extent(name: str) -> object:
        result = Derived(
            spark_engine, tmp_path / name, sql(query), [walk.sources[0]], continued=True
        )
        result.step(1)
        result.step()
        return result.extent

    assert extent("parts") is not None
    monkeypatch.setattr(parts, "LARGEST_SHARE", 0.01)
    assert extent("much") is None
    monkeypatch.setattr(parts, "LARGEST_SHARE", 100)
    monkeypatch.setattr(parts, "FEWEST", 1000)
    assert extent("short") is None


TIMES = st.lists(st.one_of(st.none(), st.integers(-50, 50)), max_size=12)


@given(TIMES, TIMES, st.integers(1, 20))
def test_a_time_is_near_others_where_one_of_them_is_within_the_length(
    new: list[int | None], old: list[int | None], length: int
) -> None:
    found = _sorted([pa.array(new, pa.int64())]).are_near(pa.array(old, pa.int64()), length)
    expected = [
        None in new
        if each is None
        else any(other is not None and abs(each - other) <= length for other in new)
        for each in old
    ]
    assert np.array_equal(found, expected)

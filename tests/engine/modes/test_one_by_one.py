"""New records, added to what was there, give the slice of a step over all records, to the byte."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from odfbuild.engine import affected_records
from odfbuild.engine.contract import Engine
from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.queries import changes_of_parts
from odfbuild.sql.increments import one_by_one, parts
from odfbuild.sql.increments.one_by_one import Additions, additions_of
from odfbuild.sql.increments.plan_inputs import Views
from tests.engine.inputs import sql
from tests.engine.modes.test_affected_keys import BLOCKS, Grammar, Walk, seeds
from tests.engine.stepwise import Derived, Source

ADD_UP = [
    "SELECT MAX(event_time) AS event_time, COUNT(*) AS n, SUM(amount) AS s FROM events",
    "SELECT MAX(event_time) AS event_time, city, COUNT(*) AS n, COUNT(amount) AS c, SUM(amount)"
    " AS s, SUM(price) AS money, MIN(x) AS low, MAX(tags) AS last FROM events GROUP BY city",
    "SELECT MIN(event_time) AS event_time, id % 2 AS odd, x, COUNT(amount) AS n FROM events"
    " GROUP BY id % 2, x",
    "SELECT date_trunc('DAY', event_time) AS event_time, 'all' AS label, COUNT_IF(amount > 1) AS n,"
    " BIT_XOR(amount) AS b, BOOL_AND(amount > 1) AS larger FROM events"
    " GROUP BY date_trunc('DAY', event_time)",
    "SELECT event_time, city, MAX(amount) AS n FROM events GROUP BY event_time, city",
    "SELECT DISTINCT date_trunc('DAY', event_time) AS event_time, city FROM events",
    "SELECT MAX(e.event_time) AS event_time, p.name, COUNT(*) AS n FROM events e JOIN people p"
    " ON e.id = p.id GROUP BY p.name",
    "SELECT MAX(e.event_time) AS event_time, p.city, SUM(e.amount) FILTER (WHERE p.id > 1) AS n"
    " FROM events e LEFT JOIN people p ON e.id >= p.id GROUP BY p.city",
    "SELECT MAX(event_time) AS event_time, id, COUNT(*) AS n FROM events e WHERE NOT EXISTS"
    " (SELECT 1 FROM people p WHERE p.city = e.city) GROUP BY id",
    "SELECT MAX(event_time) AS event_time, tag, COUNT(*) AS n FROM (SELECT event_time,"
    " explode(split(tags, ' ')) AS tag FROM events UNION ALL SELECT event_time, city FROM events)"
    " GROUP BY tag",
    "SELECT MAX(event_time) AS event_time, COUNT(*) AS n FROM events"
    " WHERE amount > (SELECT COUNT(*) FROM people WHERE id > 3)",
    "SELECT MAX(event_time) AS event_time, city, COUNT(*) FILTER (WHERE amount < (SELECT COUNT(*)"
    " FROM people)) AS n, SUM(amount * (SELECT MAX(id) FROM people)) AS s FROM events"
    " GROUP BY city",
    "SELECT MAX(e.event_time) AS event_time, p.name, SUM(e.amount * (SELECT COUNT(*) FROM people))"
    " AS s FROM events e JOIN people p ON e.id = p.id GROUP BY p.name",
    "SELECT e.event_time, e.id, p.name FROM events e LEFT JOIN people p ON e.id = p.id",
    "SELECT e.event_time, e.id, p.name, q.city FROM events e LEFT JOIN people p ON e.id = p.id"
    " LEFT JOIN people q ON e.city = q.city AND q.id > 1",
    "SELECT e.event_time, e.city FROM events e WHERE e.city NOT IN (SELECT city FROM people"
    " WHERE city IS NOT NULL)",
    "SELECT e.event_time, c.n FROM events e JOIN (SELECT id, COUNT(*) AS n FROM people GROUP BY id)"
    " c ON e.id = c.id",
]
OTHERS = [
    "SELECT MAX(event_time) AS event_time, city, AVG(amount) AS a FROM events GROUP BY city",
    "SELECT MAX(event_time) AS event_time, city, COUNT(DISTINCT id) AS a FROM events GROUP BY city",
    "SELECT MAX(event_time) AS event_time, COUNT(*) AS n FROM events GROUP BY city",
    "SELECT MAX(event_time) AS event_time, city, COUNT(*) AS n FROM events GROUP BY city"
    " HAVING COUNT(*) > 2",
    "SELECT MAX(event_time) AS event_time, city, SUM(amount) + 1 AS n FROM events GROUP BY city",
    "SELECT MAX(event_time) AS event_time, city, try_sum(amount) AS n FROM events GROUP BY city",
    "SELECT MAX(event_time) AS event_time, n, COUNT(*) AS m FROM (SELECT MAX(event_time) AS"
    " event_time, city, COUNT(*) AS n FROM events GROUP BY city) GROUP BY n",
    "SELECT MAX(a.event_time) AS event_time, COUNT(*) AS n FROM events a JOIN events b"
    " ON a.id = b.id",
    "SELECT MAX(event_time) AS event_time, id, COUNT(*) AS n FROM (SELECT event_time, id FROM"
    " events UNION ALL SELECT event_time, id FROM people) GROUP BY id",
    "SELECT event_time + INTERVAL '0.0005' SECOND AS event_time, COUNT(*) AS n FROM events"
    " GROUP BY event_time",
    "SELECT t AS event_time, COUNT(*) AS n FROM (SELECT event_time + make_dt_interval(0, 0, 0,"
    " amount * 0.0004) AS t FROM events WHERE amount IS NOT NULL) GROUP BY t",
    "SELECT MAX(event_time) AS event_time, city, MAX(named_struct('a', amount)) AS m FROM events"
    " GROUP BY city",
]


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Histories are short here, and results as large as they are."""
    monkeypatch.setattr(parts, "FEWEST", 0)
    monkeypatch.setattr(affected_records, "MANY_RECORDS", 0)
    monkeypatch.setattr(affected_records, "FEW", 0)
    monkeypatch.setattr(parts, "LARGEST_SHARE", 100)


def added_up(
    engine: Engine, folder: Path, query: str, sources: Sequence[Source], blocks: int = BLOCKS
) -> list[bool]:
    """Which of the steps behind the first read only new records of events, all slices compared."""
    read = [each for each in sources if each.alias in query]
    whole, part = (
        Derived(engine, folder / name, sql(query), read, continued=continued)
        for name, continued in (("all", False), ("added", True))
    )
    found = []
    for block in range(1, blocks + 1):
        for each in (whole, part):
            each.step(*[block] * len(read))
        assert [f.read_bytes() for f in part.files] == [f.read_bytes() for f in whole.files], query
        if part.extent is not None:
            events, *rest = (each.between(block - 1, block) for each in read)
            new = 0 if events.first is None else events.last - events.first + 1
            people = read[1].next_offset if rest else 0
            found.append(new <= part.extent.records <= new + people)
    return found


@pytest.mark.spark
@pytest.mark.parametrize("seed", seeds(1, 10))
def test_a_step_that_adds_to_totals_reads_new_records_alone(
    spark_engine: Engine, tmp_path: Path, seed: int
) -> None:
    walk = Walk(tmp_path / "inputs", seed, 1, appended=True)
    for number, query in enumerate(ADD_UP):
        (tmp_path / str(number)).mkdir()
        found = added_up(spark_engine, tmp_path / str(number), query, walk.sources, blocks=3)
        assert found and all(found), query


@pytest.mark.spark
def test_what_is_no_total_is_computed_otherwise(
    spark_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[Additions | None] = []

    def told(catalyst: Catalyst, plan: Node, views: Views) -> Additions | None:
        said.append(additions_of(catalyst, plan, views))
        return said[-1]

    monkeypatch.setattr(changes_of_parts, "additions_of", told)
    walk = Walk(tmp_path / "inputs", 3, 1, appended=True)
    for number, query in enumerate(OTHERS):
        (tmp_path / str(number)).mkdir()
        added_up(spark_engine, tmp_path / str(number), query, walk.sources, 2)
        assert said and set(said) == {None}, query
        said.clear()


@pytest.mark.spark
@pytest.mark.parametrize("seed", seeds(1, 40))
def test_made_up_queries_over_appended_records_give_the_slices_of_full_steps(
    spark_engine: Engine, tmp_path: Path, seed: int
) -> None:
    walk = Walk(tmp_path / "inputs", seed, appended=True)
    grammar = Grammar(random.Random(seed))
    for number in range(5):
        (tmp_path / str(number)).mkdir()
        added_up(spark_engine, tmp_path / str(number), grammar._grouped(), walk.sources)


@pytest.mark.spark
def test_a_wrong_way_to_add_up_is_noticed(
    spark_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(one_by_one._ADD_UP, "count", "max")
    walk = Walk(tmp_path / "inputs", 1, 1, appended=True)
    with pytest.raises(AssertionError):
        added_up(spark_engine, tmp_path, ADD_UP[0], walk.sources)


@pytest.mark.spark
def test_retracted_records_are_not_added(spark_engine: Engine, tmp_path: Path) -> None:
    walk = Walk(tmp_path / "inputs", 2, 1)
    assert not all(added_up(spark_engine, tmp_path, ADD_UP[1], walk.sources))


@pytest.mark.spark
@pytest.mark.parametrize("again", [False, True])
def test_a_record_whose_retraction_came_before_it_is_not_one_more(
    spark_engine: Engine, tmp_path: Path, again: bool
) -> None:
    folder = tmp_path / "inputs"
    folder.mkdir()
    source = Source(folder, "events", [pa.field("id", pa.int64()), pa.field("x", pa.float64())])
    there, absent, other = ("00:01", 1, 0.5), ("00:02", 2, None), ("00:03", 2, 0.5)
    source.add([there, there, absent], ops=[0, 0, 1])
    source.add([absent if again else other])
    query = "SELECT MAX(event_time) AS event_time, id, COUNT(*) AS n FROM events GROUP BY id"
    found = added_up(spark_engine, tmp_path, query, [source], blocks=2)
    assert again or found[-1]

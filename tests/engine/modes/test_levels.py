"""Queries of several levels give the slices of steps over all records, to the byte.

What a level changes by is found over affected keys, and goes into the totals that are kept of the
next one.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from odfbuild.engine.contract import Engine
from odfbuild.sql.increments.affected_keys import parts_of
from odfbuild.sql.increments.parts import Parts
from tests.engine.inputs import sql
from tests.engine.modes.test_affected_keys import Walk, seeds
from tests.engine.modes.test_kept_totals import any_size, compared
from tests.engine.stepwise import Derived

__all__ = ["any_size"]

TIME = "SELECT TIMESTAMP '2024-05-01 00:00:00' AS event_time"
COUNTS = f"{TIME}, id, COUNT(*) AS n FROM events GROUP BY id"
LEVELS = {
    "a join, grouped by another column": f"{TIME}, p.name, COUNT(*) AS n, SUM(e.amount) AS s,"
    " AVG(e.price) AS a FROM events e JOIN people p ON e.id = p.id GROUP BY p.name",
    "a semi join, grouped by another column": f"{TIME}, city, COUNT(*) AS n FROM events e WHERE"
    " EXISTS (SELECT 1 FROM people p WHERE p.id = e.id AND p.name = 'A') GROUP BY city",
    "groups of groups": f"{TIME}, n, COUNT(*) AS ids FROM ({COUNTS}) GROUP BY n",
    "a mean of each key, compared with records": f"{TIME}, SUM(amount) / 7 AS s FROM events e"
    " WHERE amount > (SELECT AVG(price) FROM events f WHERE f.id = e.id)",
    "the first groups": f"{TIME}, city, COUNT(*) AS n FROM events GROUP BY city"
    " ORDER BY n DESC, city LIMIT 2",
    "groups with a rank": f"SELECT *, RANK() OVER (ORDER BY n DESC) AS place FROM ({COUNTS})",
    "groups compared with the total": f"{TIME}, city, SUM(amount) AS s FROM events GROUP BY city"
    " HAVING SUM(amount) > (SELECT SUM(amount) / 4 FROM events WHERE id > 0)",
    "the greatest groups, with names": f"WITH c AS ({COUNTS}) SELECT c.event_time, c.id, c.n,"
    " p.name FROM c JOIN (SELECT id, COUNT(*) AS names, MIN(name) AS name FROM people GROUP BY id)"
    " p ON c.id = p.id WHERE c.n = (SELECT MAX(n) FROM c)",
    "distinct values of each group": f"{TIME}, city, COUNT(DISTINCT id) AS ids, COUNT(*) AS n"
    " FROM events GROUP BY city",
    "distinct values of all records of a join": f"{TIME}, COUNT(DISTINCT e.id) AS ids,"
    " SUM(DISTINCT e.id) AS s FROM events e LEFT JOIN people p ON e.id = p.id WHERE p.name = 'A'",
}

IN_CI = [
    "a join, grouped by another column",
    "the first groups",
    "the greatest groups, with names",
    "distinct values of all records of a join",
]


@pytest.mark.spark
@pytest.mark.parametrize("seed", seeds(1, 12))
def test_steps_of_several_levels_read_affected_records_and_kept_totals(
    spark_engine: Engine, tmp_path: Path, seed: int
) -> None:
    walk = Walk(tmp_path / "inputs", seed, 1)
    for number, name in enumerate(LEVELS if seed else IN_CI):
        (tmp_path / str(number)).mkdir()
        assert any(compared(spark_engine, tmp_path / str(number), LEVELS[name], walk.sources)), name


def made_up(chance: random.Random) -> str:
    """A query of levels: rows that are joined or grouped, totals of these, and what is above."""
    one = chance.choice
    rows = one(
        [
            "events",
            "(SELECT e.id, p.city, e.amount, e.price FROM events e JOIN people p ON e.id = p.id)",
            "(SELECT e.id, p.name AS city, e.amount, e.price FROM events e LEFT JOIN people p"
            " ON e.city = p.city)",
            "(SELECT * FROM events e WHERE NOT EXISTS (SELECT 1 FROM people p WHERE p.id = e.id))",
            "(SELECT id, city, COUNT(*) AS amount, MAX(price) AS price FROM events GROUP BY id,"
            " city)",
            "(SELECT DISTINCT id, city, amount, price FROM events)",
            "(SELECT id, CAST(n AS STRING) AS city, amount, price FROM (SELECT id, amount, price,"
            " ROW_NUMBER() OVER (PARTITION BY id ORDER BY event_time, city, amount, price) AS n"
            " FROM events))",
        ]
    )
    total = one(
        ["COUNT(*)", "SUM(amount)", "COUNT(DISTINCT id)", "MAX(amount)", "AVG(price)", "MIN(id)"]
    )
    groups = f"{TIME}, city, {total} AS v, COUNT(*) AS n FROM {rows} GROUP BY city"
    return one(
        [
            groups,
            f"{groups} HAVING COUNT(*) > 1",
            f"{groups} ORDER BY v, city LIMIT 2",
            f"SELECT *, RANK() OVER (ORDER BY v, city) AS r FROM ({groups})",
            f"{TIME}, n, COUNT(*) AS m, MAX(v) AS v FROM ({groups}) GROUP BY n",
            f"{groups} HAVING COUNT(*) * 3 > (SELECT COUNT(*) FROM events)",
            f"WITH g AS ({groups}) SELECT * FROM g WHERE n = (SELECT MAX(n) FROM g)",
            f"{groups} UNION ALL {TIME}, name, MAX(id), COUNT(*) FROM people GROUP BY name",
            f"{TIME}, COUNT(DISTINCT city) AS c, {total} AS v FROM {rows}",
        ]
    )


@pytest.mark.spark
@pytest.mark.parametrize("seed", seeds(1, 60))
def test_made_up_queries_of_levels_give_the_slices_of_full_steps(
    spark_engine: Engine, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    walk = Walk(tmp_path / "inputs", seed, 1, appended=seed % 3 == 0)
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        compared(spark_engine, tmp_path / str(number), made_up(chance), walk.sources)


@pytest.mark.spark
def test_a_wrong_key_of_a_level_is_noticed(
    spark_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_the_last(*given: Any) -> Parts:
        found = parts_of(*given)
        return Parts(tuple(space[:1] for space in found.spaces), found.whole)

    monkeypatch.setattr("odfbuild.sql.increments.kept_totals.parts_of", without_the_last)
    walk = Walk(tmp_path / "inputs", 1, 1)
    query = LEVELS["a join, grouped by another column"]
    with pytest.raises(AssertionError):
        compared(spark_engine, tmp_path, query, walk.sources)


NOT_BY_LEVELS = [
    # What is compared with a group is read for it alone.
    f"{TIME}, city, COUNT(*) AS n FROM events GROUP BY city"
    " HAVING COUNT(*) > (SELECT COUNT(*) FROM people p WHERE p.city = events.city)",
    # One value is in several parts.
    f"{TIME}, city, COUNT(DISTINCT amount + 1) AS n FROM events GROUP BY city",
]


@pytest.mark.spark
def test_what_no_level_tells_is_computed_in_full(spark_engine: Engine, tmp_path: Path) -> None:
    walk = Walk(tmp_path / "inputs", 2, 1)
    for number, query in enumerate(NOT_BY_LEVELS):
        sources = [each for each in walk.sources if each.alias in query]
        folder = tmp_path / str(number)
        result = Derived(spark_engine, folder, sql(query), sources, continued=True)
        for block in (1, 2, 3):
            result.step(*[block] * len(sources))
        assert result.extent is not None and result.extent.why, query

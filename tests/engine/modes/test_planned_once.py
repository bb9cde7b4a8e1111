"""A query that was found right is planned once, over all of few records: the same slices."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from odfbuild.engine.contract import Engine
from odfbuild.engine.spark.queries import checked, transform
from tests.engine.inputs import sql
from tests.engine.stepwise import Derived, Source

pytestmark = pytest.mark.spark

A = [pa.field("k", pa.int64()), pa.field("city", pa.string())]
B = [pa.field("k", pa.int64()), pa.field("x", pa.float64())]
QUERIES = {
    "inner": "SELECT a.event_time, a.k, city, x FROM a JOIN b ON a.k = b.k",
    "near": "SELECT a.event_time, a.k, x FROM a JOIN b ON a.k = b.k"
    " AND b.event_time BETWEEN a.event_time - INTERVAL 1 HOUR AND a.event_time",
    "left": "SELECT a.event_time, a.k, city, x FROM a LEFT JOIN b ON a.k = b.k",
    "exists": "SELECT event_time, k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "group": "SELECT max(event_time) AS event_time, city, count(*) AS n FROM a GROUP BY city",
    "distinct": "SELECT DISTINCT date_trunc('DAY', event_time) AS event_time, city FROM a",
    "top": "SELECT * FROM (SELECT event_time, k, city, row_number() OVER (PARTITION BY city"
    " ORDER BY k DESC, event_time) AS place FROM a) WHERE place <= 2",
    "chain": "WITH c AS (SELECT max(event_time) AS event_time, city, count(*) AS n FROM a"
    " GROUP BY city) SELECT max(event_time) AS event_time, n, count(*) AS cities FROM c GROUP BY n",
    "window": "SELECT window.start AS event_time, city, count(*) AS n FROM a"
    " GROUP BY window(event_time, '1 hour'), city",
    "two steps": "SELECT event_time, k, city FROM step0 WHERE k > 1",
}


@pytest.mark.parametrize("name", [*QUERIES])
def test_a_query_planned_once_gives_what_it_gives_where_it_was_never_checked(
    name: str, spark_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = Source(tmp_path, "a", A), Source(tmp_path, "b", B)
    first = ("SELECT event_time, max(k) AS k, city FROM a GROUP BY event_time, city",)
    query = sql(*(first if name == "two steps" else ()), QUERIES[name])
    sources = [a, b] if " b " in QUERIES[name] else [a]
    fresh = Derived(spark_engine, tmp_path / "fresh", query, sources)
    known = Derived(spark_engine, tmp_path / "known", query, sources)
    whole: list[bool] = []
    needs_all = transform._needs_all

    def noted(task: object) -> bool:
        whole.append(needs_all(task))  # type: ignore[arg-type]
        return whole[-1]

    a.add([("10:00", 1, "Rome"), ("10:10", 2, None), ("10:20", 2, "Rome"), ("10:20", 3, "Oslo")])
    b.add([("10:05", 2, -0.0), ("09:59", 1, 1.5), ("10:06", 2, None)])
    for turn in range(3):
        checked._RIGHT.clear()
        wanted = fresh.step()
        with monkeypatch.context() as patch:
            patch.setattr(transform, "_needs_all", noted)
            assert known.step() == wanted, turn
        a.add([("11:00", 2 + turn, "Rome"), ("11:30", 7, "Bern")])
        if turn:
            a.add([("10:00", 1, "Rome")], ops=[1])
            b.add([("11:01", 7, 2.5)])
    assert whole == [True, True, True]
    assert known.hashes == fresh.hashes

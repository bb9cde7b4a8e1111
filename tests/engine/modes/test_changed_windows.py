"""A query with windows is replaced by another one: what becomes of windows that are open."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from odfbuild.engine.contract import Engine
from odfbuild.odf.model import SqlQueryStep, TransformSql
from tests.engine.stepwise import Derived, Source

pytestmark = pytest.mark.spark

HOURLY = (
    "SELECT window.start AS event_time, count(*) AS n FROM t GROUP BY window(event_time, '1 hour')"
)


def of(query: str) -> TransformSql:
    return TransformSql(engine="spark", queries=(SqlQueryStep(query=query),))


@pytest.fixture
def derived(spark_engine: Engine, tmp_path: Path) -> Derived:
    """A result by hours, whose watermark is 2:40: the hours from 1:00 on are reported."""
    source = Source(tmp_path, "t", [pa.field("id", pa.int64())])
    made = Derived(spark_engine, tmp_path / "d", of(HOURLY), [source])
    source.add([("00:30", 1), ("01:10", 2), ("02:10", 3), ("02:40", 4)])
    assert [row[1:] for row in made.step()] == [
        ("00:00", 1),
        ("01:00", 1),
    ]
    return made


def later(made: Derived, query: str) -> list[tuple[str, int]]:
    """What the new query adds when the watermark reaches 6:00."""
    (source,) = made.sources
    source.add([("02:50", 5), ("06:00", 6)])
    made.transform = of(query)
    return [row[1:3] for row in made.step()]


def test_an_open_window_closes_by_the_new_query_with_all_of_its_records(derived: Derived) -> None:
    found = later(derived, HOURLY.replace("count(*)", "count(*) * 100"))
    assert found == [("02:00", 300)]


def test_longer_windows_count_records_of_closed_ones_again(derived: Derived) -> None:
    found = later(derived, HOURLY.replace("1 hour", "3 hours"))
    assert found == [("00:00", 5)]


def test_shorter_windows_that_ended_before_the_watermark_stay_away(derived: Derived) -> None:
    found = later(derived, HOURLY.replace("1 hour", "15 minutes"))
    # The quarter of 2:10 ended at 2:15, before the watermark of 2:40.
    assert found == [("02:30", 1), ("02:45", 1)]


def test_a_query_without_windows_reads_new_records_only(derived: Derived) -> None:
    found = later(derived, "SELECT event_time, id AS n FROM t")
    assert found == [("02:50", 5), ("06:00", 6)]

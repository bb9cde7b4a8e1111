"""Sessions and cumulating windows of Flink: what they hold, and that steps do not matter."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from odfbuild.engine.contract import Engine
from odfbuild.odf.model import SqlQueryStep, TransformSql
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import Mode
from tests.engine.everywhere import cuts, sources
from tests.engine.stepwise import Derived, Source

OF_EACH = (
    "SELECT SESSION_START(event_time, INTERVAL '10' MINUTE) AS event_time, who,"
    " SESSION_ROWTIME(event_time, INTERVAL '10' MINUTE) AS last, COUNT(*) AS n"
    " FROM visits GROUP BY SESSION(event_time, INTERVAL '10' MINUTE), who"
)
OF_ALL = (
    "SELECT window_start AS event_time, window_end, SUM(amount) AS total"
    " FROM TABLE(SESSION(TABLE events, DESCRIPTOR(event_time), INTERVAL '4' MINUTES))"
    " GROUP BY window_start, window_end HAVING COUNT(*) > 1"
)
OF_CITIES = (
    "SELECT window_start AS event_time, window_end, city, COUNT(*) AS n, MAX(amount) AS top"
    " FROM TABLE(SESSION(TABLE events PARTITION BY city, DESCRIPTOR(event_time),"
    " INTERVAL '20' MINUTES)) GROUP BY city, window_start, window_end"
)
SO_FAR = (
    "SELECT window_end AS event_time, window_start, window_time, city, SUM(amount) AS total"
    " FROM TABLE(CUMULATE(TABLE events, DESCRIPTOR(event_time), INTERVAL '20' MINUTES,"
    " INTERVAL '2' HOURS, INTERVAL '5' MINUTES)) AS w"
    " GROUP BY window_start, window_end, window_time, city"
)
ALONE = (
    "SELECT window_end AS event_time, id FROM TABLE("
    " CUMULATE(TABLE events, DESCRIPTOR(event_time), INTERVAL '30' MINUTE, INTERVAL '1' HOUR))"
)


def flink(query: str) -> TransformSql:
    return TransformSql(engine="flink", queries=(SqlQueryStep(query=query),))


@pytest.mark.spark
def test_a_session_grows_and_joins_others_and_is_corrected(
    spark_engine: Engine, tmp_path: Path
) -> None:
    visits = Source(tmp_path, "visits", [pa.field("who", pa.string())])
    found = Derived(spark_engine, tmp_path / "sessions", flink(OF_EACH), [visits])
    visits.add([("10:00", "A"), ("10:05", "B"), ("10:10", "A"), ("10:21", "A")])
    assert found.step() == [
        (0, "10:00", "A", "10:19", 2),
        (0, "10:05", "B", "10:14", 1),
        (0, "10:21", "A", "10:30", 1),
    ]
    assert found.mode is Mode.CHANGELOG
    visits.add([("10:15", "A"), ("10:16", "B")])  # the one in between joins two of A
    assert found.step() == [
        (2, "10:00", "A", "10:19", 2),
        (3, "10:00", "A", "10:30", 4),
        (0, "10:16", "B", "10:25", 1),
        (1, "10:21", "A", "10:30", 1),
    ]


@pytest.mark.spark
@pytest.mark.parametrize("query", [OF_ALL, OF_CITIES, SO_FAR, ALONE])
def test_several_steps_equal_one(spark_engine: Engine, tmp_path: Path, query: str) -> None:
    def after(name: str, *ends: int) -> Derived:
        (tmp_path / name).mkdir()
        events, _ = sources(tmp_path / name)
        derived = Derived(spark_engine, tmp_path / name / "derived", flink(query), [events])
        for end in (*ends, len(events.blocks)):
            derived.step(end)
        return derived

    stepwise, once = after("stepwise", *cuts(query, 1)), after("once")
    assert stepwise.amounts_to() == once.amounts_to() != []
    assert stepwise.mode is (Mode.MAP if query is ALONE else Mode.CHANGELOG)
    assert stepwise.mode is expected_mode(flink(query)).mode

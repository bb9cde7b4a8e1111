"""Mode `stream`: what is appended when windows close and pairs come together, by hand."""

from pathlib import Path

import pyarrow as pa
import pytest

from odfbuild.engine.contract import Engine
from odfbuild.sql.mode import Mode
from tests.engine.inputs import sql
from tests.engine.stepwise import Derived, Source

pytestmark = pytest.mark.spark

CITY = [pa.field("city", pa.string())]
HOURLY = """
    SELECT window.start AS event_time, city, COUNT(*) AS visits
    FROM visits GROUP BY window(event_time, '1 hour'), city"""


@pytest.fixture
def visits(tmp_path: Path) -> Source:
    return Source(tmp_path, "visits", CITY)


def derived(engine: Engine, query: str, *sources: Source, name: str = "derived") -> Derived:
    return Derived(engine, sources[0].folder / name, sql(query), sources)


def test_a_window_is_counted_once_when_the_watermark_passes_its_end(
    spark_engine: Engine, visits: Source
) -> None:
    hourly = derived(spark_engine, HOURLY, visits)
    visits.add([("10:05", "Paris"), ("10:55", "Rome"), ("10:59", "Paris")])
    assert hourly.step() == []
    assert hourly.mode is Mode.STREAM
    assert hourly.reason == "a window is final when the watermark passes its end"
    visits.add([("10:30", "Paris"), ("11:10", "Rome")])
    # 10:30 came behind the watermark, but its window was still open.
    assert hourly.step() == [(0, "10:00", "Paris", 3), (0, "10:00", "Rome", 1)]
    visits.add([("10:40", "Paris"), ("11:20", "Rome")])  # 10:40 is too late
    assert hourly.step() == []
    visits.add([], watermark="14:00")
    assert hourly.step() == [(0, "11:00", "Rome", 2)]
    at_once = derived(spark_engine, HOURLY, visits, name="at-once")
    assert at_once.step() == hourly.all()


def test_windows_that_overlap_close_one_by_one(spark_engine: Engine, visits: Source) -> None:
    query = """SELECT window.end AS event_time, COUNT(*) AS visits FROM visits
        GROUP BY window(event_time, '1 hour', '30 minutes') HAVING COUNT(*) > 1"""
    hopping = derived(spark_engine, query, visits)
    visits.add([("10:05", "Paris"), ("10:40", "Rome")], watermark="11:00")
    assert hopping.step() == [(0, "11:00", 2)]
    visits.add([("11:10", "Rome")], watermark="12:00")
    assert hopping.step() == [(0, "11:30", 2)]


def test_windows_over_several_inputs_wait_for_the_slowest(
    spark_engine: Engine, visits: Source, tmp_path: Path
) -> None:
    calls = Source(tmp_path, "calls", CITY)
    query = """WITH both AS (
          SELECT event_time, city FROM visits WHERE city <> 'Oslo'
          UNION ALL SELECT event_time, upper(city) FROM calls)
        SELECT window.start AS event_time, city, COUNT(*) AS n
        FROM both GROUP BY city, window(event_time, '1 hour')"""
    counted = derived(spark_engine, query, visits, calls)
    visits.add([("10:05", "Paris"), ("10:06", "Oslo"), ("12:05", "Paris")])
    assert counted.step() == []
    calls.add([("10:07", "Paris"), ("11:01", "Rome")])
    assert counted.step() == [(0, "10:00", "PARIS", 1), (0, "10:00", "Paris", 1)]
    calls.add([("11:59", "Rome")], watermark="12:00")
    assert counted.step() == [(0, "11:00", "ROME", 2)]


def test_a_shipment_joins_its_order_whichever_comes_first(
    spark_engine: Engine, tmp_path: Path
) -> None:
    orders = Source(tmp_path, "orders", [pa.field("id", pa.int64()), pa.field("what", pa.string())])
    shipments = Source(tmp_path, "shipments", [pa.field("order_id", pa.int64())])
    query = """SELECT s.event_time, o.id, o.what, o.event_time AS ordered_at
        FROM orders o JOIN shipments s ON o.id = s.order_id
         AND s.event_time BETWEEN o.event_time AND o.event_time + INTERVAL '6' HOURS"""
    shipped = derived(spark_engine, query, orders, shipments)
    orders.add([("08:00", 1, "ink"), ("09:00", 2, "pen")])
    assert shipped.step() == []
    assert (shipped.mode, shipped.reason) == (Mode.STREAM, "new records only make further pairs")
    shipments.add([("10:00", 1), ("14:30", 2), ("15:30", 2)])
    assert shipped.step() == [(0, "10:00", 1, "ink", "08:00"), (0, "14:30", 2, "pen", "09:00")]
    shipments.add([("18:00", 3)])
    assert shipped.step() == []
    orders.add([("17:00", 3, "cap"), ("17:30", 4, "mug")])
    shipments.add([("18:10", 4)])
    assert shipped.step() == [(0, "18:00", 3, "cap", "17:00"), (0, "18:10", 4, "mug", "17:30")]
    at_once = derived(spark_engine, query, orders, shipments, name="at-once")
    assert at_once.step() == shipped.all()


def test_a_retraction_of_an_input_turns_the_result_into_a_changelog(
    spark_engine: Engine, visits: Source
) -> None:
    hourly = derived(spark_engine, HOURLY, visits)
    visits.add([("10:05", "Paris"), ("10:55", "Paris"), ("11:10", "Rome")])
    assert hourly.step() == [(0, "10:00", "Paris", 2)]
    visits.add([("10:05", "Paris")], ops=[1])
    assert hourly.step() == [
        (2, "10:00", "Paris", 2),
        (3, "10:00", "Paris", 1),
        (0, "11:00", "Rome", 1),
    ]
    assert (hourly.mode, hourly.reason) == (Mode.CHANGELOG, "input 'visits' holds retractions")
    visits.add([("12:00", "Oslo")])
    assert hourly.step() == [(0, "12:00", "Oslo", 1)]
    assert hourly.mode is Mode.CHANGELOG


def test_inputs_go_by_their_whole_names_in_all_modes(spark_engine: Engine, tmp_path: Path) -> None:
    visits = Source(tmp_path, "us.all-visits", CITY)
    visits.add([("10:05", "Paris"), ("11:05", "Paris")])
    for mode, query in {
        Mode.MAP: "SELECT event_time, city FROM `us.all-visits`",
        Mode.STREAM: HOURLY.replace("FROM visits", "FROM `US.all-visits`"),
        Mode.CHANGELOG: "SELECT DISTINCT event_time, city FROM `us.all-visits`",
    }.items():
        result = derived(spark_engine, query, visits, name=mode.value)
        assert result.step()[0][:2] == (0, "10:00" if mode is Mode.STREAM else "10:05")
        assert result.mode is mode


NOT_STREAMS = {
    "SELECT window.start AS event_time, COUNT(*) AS n FROM visits "
    "GROUP BY window(event_time + INTERVAL '1' HOUR, '1 hour')": "aggregation",
    "SELECT date_trunc('HOUR', event_time) AS event_time, COUNT(*) AS n FROM visits GROUP BY 1": (
        "aggregation"
    ),
    "SELECT max(event_time) AS event_time, city, COUNT(*) AS n FROM visits "
    "GROUP BY GROUPING SETS ((window(event_time, '1 hour')), (city))": "aggregation",
    "SELECT v.event_time, w.city FROM visits v LEFT JOIN visits w ON v.city = w.city": "a join",
    "SELECT v.event_time FROM visits v JOIN visits w ON v.city = w.city": "a join",
    "SELECT window.start AS event_time, COUNT(*) AS n FROM visits "
    "WHERE city IN (SELECT city FROM visits) GROUP BY window(event_time, '1 hour')": "aggregation",
    "SELECT event_time, city FROM visits UNION ALL "
    "SELECT TIMESTAMP '2024-01-01 00:00:00Z', 'Rome'": "rows that stand in the query itself",
}


@pytest.mark.parametrize("query", NOT_STREAMS, ids=lambda query: query[:60])
def test_what_may_change_later_is_a_changelog(
    spark_engine: Engine, visits: Source, query: str
) -> None:
    visits.add([("10:05", "Paris")])
    result = derived(spark_engine, query, visits)
    result.step()
    assert result.mode is Mode.CHANGELOG
    assert result.reason.startswith(NOT_STREAMS[query])

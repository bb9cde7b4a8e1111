"""The engine of `examples/engine_datafusion`, and a coordinator that acts like the reference."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from odfbuild.engine.process.wire import SOCKET_VARIABLE
from odfbuild.odf.model import SqlQueryStep, TransformSql
from tests.engine.process.coordinator import Chain, Line
from tests.engine.stepwise import Source

ENGINE = Path(__file__).parents[3] / "examples" / "engine_datafusion" / "engine.py"
MAP = "SELECT event_time, id * 10 AS id, upper(city) AS city FROM events WHERE city <> 'x'"


@pytest.fixture(scope="module")
def line() -> Iterator[Line]:
    """The program, on a socket of its own."""
    with tempfile.TemporaryDirectory(prefix="df") as folder:
        socket = Path(folder) / "s"
        process = subprocess.Popen(
            [sys.executable, str(ENGINE)], env={**os.environ, SOCKET_VARIABLE: str(socket)}
        )
        yield Line(f"unix:{socket}")
        process.terminate()
        assert process.wait(60) == 0


@pytest.fixture
def events(tmp_path: Path) -> Source:
    made = Source(tmp_path, "events", [pa.field("id", pa.int64()), pa.field("city", pa.string())])
    made.add([("10:00", 1, "a"), ("10:01", 2, "x"), ("10:02", 3, "b")])
    return made


def sql(*queries: str) -> TransformSql:
    *steps, last = queries
    named = [SqlQueryStep(alias=f"s{n}", query=each) for n, each in enumerate(steps)]
    return TransformSql(engine="datafusion", queries=(*named, SqlQueryStep(query=last)))


@pytest.fixture
def chain(line: Line, tmp_path: Path, events: Source) -> Chain:
    return Chain(line, tmp_path / "d", sql(MAP), [events])


def test_each_step_computes_the_new_records_in_order(chain: Chain, events: Source) -> None:
    assert chain.step() == [(0, "10:00", 10, "A"), (0, "10:02", 30, "B")]
    events.add([("10:05", 5, "c"), ("10:04", 4, "d")])
    assert chain.step() == [(0, "10:05", 50, "C"), (0, "10:04", 40, "D")]
    events.add([])
    assert chain.step() == []
    assert chain.records == 4


def test_the_same_request_gives_the_same_records(
    line: Line, tmp_path: Path, events: Source
) -> None:
    hashes = []
    for folder in ("a", "b"):
        made = Chain(line, tmp_path / folder, sql(f"{MAP} UNION ALL {MAP}"), [events])
        assert [row[2] for row in made.step()] == [10, 30, 10, 30]
        hashes.append(made.hashes)
    assert hashes[0] == hashes[1]


def test_several_queries_and_two_inputs(line: Line, tmp_path: Path, events: Source) -> None:
    more = Source(tmp_path, "com.example.more", [pa.field("id", pa.int64())])
    more.add([("09:00", 7)])
    first = 'SELECT event_time, id FROM "com.example.more"'
    last = "SELECT event_time, id FROM events UNION ALL SELECT event_time, id + 1 FROM s0"
    made = Chain(line, tmp_path / "d", sql(first, last), [events, more])
    assert [row[2] for row in made.step()] == [1, 2, 3, 8]
    assert made.watermark is not None
    assert str(made.watermark) == "2024-05-01T09:00:00Z"
    # Only one input goes on; the other one's watermark is in the checkpoint.
    events.add([("12:00", 9, "z")])
    assert [row[2] for row in made.step()] == [9]
    assert str(made.watermark) == "2024-05-01T09:00:00Z"


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT max(event_time) AS event_time FROM events", "Aggregate, which needs other"),
        ("SELECT event_time, row_number() OVER () AS n FROM events", "WindowAggr"),
        ("SELECT event_time FROM events ORDER BY id LIMIT 1", "Limit"),
        ("SELECT DISTINCT event_time FROM events", "Distinct"),
        ("SELECT e.event_time FROM events e JOIN events f ON e.id = f.id", "Inner Join"),
        ("SELECT event_time FROM events WHERE id IN (SELECT 1)", "Subquery"),
        ("SELECT event_time, now() AS n FROM events", "now() gives another value each time"),
        ("SELECT * FROM events", "the result has a column '"),
        ("SELECT id FROM events", "the result has no column 'event_time', only id"),
        ("SELECT event_time, NULL AS n FROM events", "'n' is NULL without a type"),
        ("SELECT event_time, nothing FROM events", "in query 1: "),
        ("SELECT event_time FROM '/etc/passwd'", "in query 1: "),
        ("CREATE TABLE t AS SELECT 1", "in query 1: "),
        ("SELECT id AS event_time FROM events", "'event_time' is int64"),
        ("SELECT event_time", "in query 1: "),
    ],
)
def test_what_it_cannot_do_is_refused_with_the_reason(chain: Chain, query: str, why: str) -> None:
    answer: Any = chain.asks(transform=sql(query))
    assert answer.KIND == "InvalidQuery"
    assert why in answer.message


def test_retractions_need_the_operation_in_the_result(
    line: Line, tmp_path: Path, events: Source
) -> None:
    events.add([("10:00", 1, "a")], ops=[1])
    answer: Any = Chain(line, tmp_path / "a", sql(MAP), [events]).asks()
    assert answer.KIND == "InvalidQuery"
    assert "select its column 'op'" in answer.message
    made = Chain(line, tmp_path / "b", sql(MAP.replace("SELECT", "SELECT op,")), [events])
    assert [row[0] for row in made.step()] == [0, 0, 1]


def test_a_defect_of_the_surroundings_is_told_and_the_engine_goes_on(
    chain: Chain, events: Source
) -> None:
    answer: Any = chain.asks(new_data_path="/nowhere/at/all")
    assert answer.KIND == "InternalError"
    assert "/nowhere" in answer.message
    assert "Traceback" in answer.backtrace
    assert len(chain.step()) == 2


def test_the_example_stays_short() -> None:
    lines = [text for each in ENGINE.parent.glob("*.py") for text in each.read_text().splitlines()]
    assert len(lines) < 300

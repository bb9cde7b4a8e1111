"""Which records of its inputs a record comes from, worked out by hand, for every kind of query."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.engine.contract import (
    Engine,
    InputSlices,
    Origin,
    ProvenanceTask,
    SliceFile,
    TransformTask,
)
from odfbuild.engine.mode import Mode
from odfbuild.engine.ranges import offsets_of, ranges_of, size_of
from odfbuild.engine.slice import write_slice
from odfbuild.odf.model import TemporalTable
from odfbuild.odf.timestamp import Timestamp
from tests.engine.inputs import sql
from tests.engine.stepwise import VOCAB, Derived, Source, rows_of

ONE = pa.field("id", pa.int64())
Told = dict[int, dict[str, list[int]]]


@given(st.lists(st.integers(0, 30)))
def test_intervals_hold_the_offsets_they_were_made_of_and_no_others(offsets: list[int]) -> None:
    ranges = ranges_of(offsets)
    assert list(offsets_of(ranges)) == sorted(set(offsets))
    assert size_of(ranges) == len(set(offsets))
    assert all(last + 1 < first for (_, last), (first, _) in zip(ranges, ranges[1:], strict=False))


@pytest.fixture
def trades(tmp_path: Path) -> Source:
    return Source(tmp_path, "trades", [pa.field("who", pa.string()), pa.field("n", pa.int64())])


@pytest.fixture
def people(tmp_path: Path) -> Source:
    return Source(tmp_path, "people", [pa.field("who", pa.string()), pa.field("name", pa.string())])


@pytest.fixture(autouse=True)
def records(trades: Source, people: Source) -> None:
    trades.add([("10:00", "A", 10), ("10:01", "B", 20), ("10:02", "A", 30), ("10:03", "C", 5)])
    people.add([("09:00", "A", "Ann"), ("09:01", "B", "Bob")])


def asked(derived: Derived, step: int = -1) -> dict[int, Origin]:
    """The origins of all records of a step."""
    task, file = derived.tasks[step], derived.files[step]
    scratch = file.parent / f"asked-{len(list(file.parent.iterdir()))}"
    scratch.mkdir()
    assert derived.schema is not None
    found = derived.engine.provenance(
        ProvenanceTask(
            step=replace(task, scratch=scratch),
            file=file,
            schema=derived.schema,
            offsets=tuple(pq.read_table(file)["offset"].to_pylist()),
        )
    )
    assert found.choice.mode is derived.mode
    return dict(found.origins)


def told(origins: Mapping[int, Origin]) -> Told:
    """Offsets by record and input."""
    return {
        offset: {alias: list(offsets_of(ranges)) for alias, ranges in origin.records.items()}
        for offset, origin in sorted(origins.items())
    }


@pytest.mark.spark
@pytest.mark.parametrize(
    ("query", "mode", "expected"),
    [
        (
            "SELECT event_time, n * 2 AS n FROM trades WHERE n >= 10",
            Mode.MAP,
            {0: {"trades": [0]}, 1: {"trades": [1]}, 2: {"trades": [2]}},
        ),
        (
            "SELECT event_time, who FROM trades WHERE who = 'A' UNION ALL"
            " SELECT event_time, name FROM people",
            Mode.MAP,
            {
                0: {"trades": [0]},
                1: {"trades": [2]},
                2: {"people": [0]},
                3: {"people": [1]},
            },
        ),
        (
            "SELECT t.event_time, p.name, t.n FROM trades t JOIN people p ON t.who = p.who",
            Mode.STREAM,
            {
                0: {"trades": [0], "people": [0]},
                1: {"trades": [1], "people": [1]},
                2: {"trades": [2], "people": [0]},
            },
        ),
        (
            "SELECT t.event_time, p.name FROM trades t LEFT JOIN people p ON t.who = p.who",
            Mode.CHANGELOG,
            {
                0: {"trades": [0], "people": [0]},
                1: {"trades": [1], "people": [1]},
                2: {"trades": [2], "people": [0]},
                3: {"trades": [3]},
            },
        ),
        (
            "SELECT MAX(event_time) AS event_time, who, SUM(n) AS n FROM trades GROUP BY who",
            Mode.CHANGELOG,
            {0: {"trades": [1]}, 1: {"trades": [0, 2]}, 2: {"trades": [3]}},
        ),
        (
            "WITH best AS (SELECT who, MAX(n) AS n FROM trades GROUP BY who), twice AS ("
            " SELECT a.who, a.n FROM best a JOIN best b ON a.n > b.n)"
            " SELECT p.event_time, p.name, t.n FROM twice t JOIN people p ON p.who = t.who"
            " WHERE p.who = 'B'",
            Mode.CHANGELOG,
            {0: {"trades": [1, 3], "people": [1]}},
        ),
        (
            "SELECT DISTINCT TIMESTAMP '2024-05-01 00:00:00' AS event_time, who FROM trades",
            Mode.CHANGELOG,
            {0: {"trades": [0, 2]}, 1: {"trades": [1]}, 2: {"trades": [3]}},
        ),
        (
            "SELECT event_time, who, ROW_NUMBER() OVER (PARTITION BY who ORDER BY event_time) AS"
            " place FROM trades",
            Mode.CHANGELOG,
            {
                0: {"trades": [0, 2]},
                1: {"trades": [1]},
                2: {"trades": [0, 2]},
                3: {"trades": [3]},
            },
        ),
        (
            "SELECT event_time, RANK() OVER (ORDER BY n) AS place FROM trades",
            Mode.CHANGELOG,
            {number: {"trades": [0, 1, 2, 3]} for number in range(4)},
        ),
        (
            "SELECT MAX(event_time) AS event_time, who, n, COUNT(*) AS c FROM trades"
            " WHERE who <> 'A' GROUP BY ROLLUP (who, n) HAVING who IS NULL OR n IS NOT NULL",
            Mode.CHANGELOG,
            {0: {"trades": [1]}, 1: {"trades": [1, 3]}, 2: {"trades": [3]}},
        ),
        (
            "SELECT t.event_time, t.who, l.name FROM trades t, LATERAL (SELECT MAX(name) AS name"
            " FROM people p WHERE p.who = t.who) l WHERE t.n > 5",
            Mode.CHANGELOG,
            {
                0: {"trades": [0], "people": [0]},
                1: {"trades": [1], "people": [1]},
                2: {"trades": [2], "people": [0]},
            },
        ),
    ],
)
def test_a_record_comes_from_these_records(
    spark_engine: Engine,
    trades: Source,
    people: Source,
    tmp_path: Path,
    query: str,
    mode: Mode,
    expected: Told,
) -> None:
    derived = Derived(spark_engine, tmp_path / "derived", sql(query), [trades, people])
    derived.step()
    origins = asked(derived)
    assert (told(origins), derived.mode) == (expected, mode)
    assert not any(origin.whole or origin.before for origin in origins.values())

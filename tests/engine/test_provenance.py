"""Which records of its inputs a record comes from, worked out by hand, for every kind of query."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
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
from odfbuild.engine.slice import write_slice
from odfbuild.odf.model import TemporalTable
from odfbuild.odf.timestamp import Timestamp
from odfbuild.records.ranges import offsets_of, ranges_of, size_of, union_of
from odfbuild.sql.mode import Mode
from tests.engine.inputs import sql
from tests.engine.stepwise import VOCAB, Derived, Source, rows_of

Told = dict[int, dict[str, list[int]]]


@given(st.lists(st.integers(0, 30)))
def test_intervals_hold_the_offsets_they_were_made_of_and_no_others(offsets: list[int]) -> None:
    ranges = ranges_of(offsets)
    assert list(offsets_of(ranges)) == sorted(set(offsets))
    assert size_of(ranges) == len(set(offsets))
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(ranges))


def trades_in(folder: Path) -> Source:
    """An input with four records."""
    trades = Source(folder, "trades", [pa.field("who", pa.string()), pa.field("n", pa.int64())])
    trades.add([("10:00", "A", 10), ("10:01", "B", 20), ("10:02", "A", 30), ("10:03", "C", 5)])
    return trades


def people_in(folder: Path) -> Source:
    """An input that names two of those in `trades_in`."""
    people = Source(folder, "people", [pa.field("who", pa.string()), pa.field("name", pa.string())])
    people.add([("09:00", "A", "Ann"), ("09:01", "B", "Bob")])
    return people


@pytest.fixture
def trades(tmp_path: Path) -> Source:
    return trades_in(tmp_path)


@pytest.fixture
def people(tmp_path: Path) -> Source:
    return people_in(tmp_path)


def asked(derived: Derived, step: int = -1) -> dict[int, Origin]:
    """The origins of all records of a step."""
    task, file = derived.tasks[step], derived.files[step]
    scratch = file.parent / f"asked-{len(list(file.parent.iterdir()))}"
    scratch.mkdir()
    assert derived.schema is not None
    offsets = pq.read_table(file)["offset"].to_pylist()
    found = derived.engine.run(
        ProvenanceTask(
            step=replace(task, scratch=scratch),
            file=file,
            schema=derived.schema,
            asked=(*(((offset, offset),) for offset in offsets), ((offsets[0], offsets[-1]),)),
        )
    )
    assert found.choice.mode is derived.mode
    *each, together = found.origins
    for alias in task.inputs:
        pieces = [origin.records.get(alias.alias, ()) for origin in each]
        if not any(origin.whole for origin in each):
            assert together.records.get(alias.alias, ()) == union_of(pieces)
    return dict(zip(offsets, each, strict=True))


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


KINDS = {
    "left join": (
        "SELECT t.event_time, t.who, p.name FROM trades t LEFT JOIN people p ON t.who = p.who",
        {
            ("A", "Ann", "10:00"): {"trades": [0], "people": [0]},
            ("A", "Ann", "10:02"): {"trades": [2], "people": [0]},
            ("B", "Bob", "10:01"): {"trades": [1], "people": [1]},
            ("C", None, "10:03"): {"trades": [3]},
        },
    ),
    "group": (
        "SELECT MAX(event_time), who, SUM(n) FROM trades GROUP BY who",
        {
            ("A", "40", "10:02"): {"trades": [0, 2]},
            ("B", "20", "10:01"): {"trades": [1]},
            ("C", "5", "10:03"): {"trades": [3]},
        },
    ),
    "named": (
        "WITH best AS (SELECT who, MAX(n) AS n FROM trades GROUP BY who), more AS ("
        " SELECT a.who, a.n FROM best a JOIN best b ON a.n > b.n)"
        " SELECT p.event_time, p.name, t.n FROM more t JOIN people p ON p.who = t.who"
        " WHERE p.who = 'B'",
        {("Bob", "20", "09:01"): {"trades": [1, 3], "people": [1]}},
    ),
    "distinct": (
        "SELECT DISTINCT TIMESTAMP '2024-05-01 00:00:00', who, 'x' FROM trades WHERE who <> 'C'",
        {("A", "x", "00:00"): {"trades": [0, 2]}, ("B", "x", "00:00"): {"trades": [1]}},
    ),
    "over": (
        "SELECT event_time, who, ROW_NUMBER() OVER (PARTITION BY who ORDER BY event_time)"
        " FROM trades WHERE n > 5",
        {
            ("A", "1", "10:00"): {"trades": [0, 2]},
            ("A", "2", "10:02"): {"trades": [0, 2]},
            ("B", "1", "10:01"): {"trades": [1]},
        },
    ),
    "over all": (
        "SELECT event_time, who, RANK() OVER (ORDER BY n) FROM trades WHERE who = 'A'",
        {("A", "1", "10:00"): {"trades": [0, 2]}, ("A", "2", "10:02"): {"trades": [0, 2]}},
    ),
    "rollup": (
        "SELECT MAX(event_time), who, COUNT(*) FROM trades WHERE who <> 'A'"
        " GROUP BY ROLLUP (who, n) HAVING who IS NULL OR n IS NOT NULL",
        {
            ("B", "1", "10:01"): {"trades": [1]},
            ("C", "1", "10:03"): {"trades": [3]},
            (None, "2", "10:03"): {"trades": [1, 3]},
        },
    ),
    "lateral": (
        "SELECT t.event_time, t.who, l.name FROM trades t, LATERAL (SELECT MAX(name) AS name"
        " FROM people p WHERE p.who = t.who) l WHERE t.who = 'B'",
        {("B", "Bob", "10:01"): {"trades": [1], "people": [1]}},
    ),
}
EVERY_KIND = " UNION ALL ".join(
    f"SELECT c0 AS event_time, '{kind}' AS kind, CAST(c1 AS STRING) AS one,"
    f" CAST(c2 AS STRING) AS two FROM ({query}) AS part(c0, c1, c2)"
    for kind, (query, _) in KINDS.items()
)


@pytest.mark.spark
def test_a_record_of_any_query_comes_from_these_records(
    spark_engine: Engine, trades: Source, people: Source, tmp_path: Path
) -> None:
    derived = Derived(spark_engine, tmp_path / "derived", sql(EVERY_KIND), [trades, people])
    records = derived.step()
    assert derived.mode is Mode.CHANGELOG
    found: dict[str, Any] = {kind: {} for kind in KINDS}
    for (_, time, kind, one, two), origin in zip(
        records, told(asked(derived)).values(), strict=True
    ):
        found[kind][one, two, time] = origin
    assert found == {kind: expected for kind, (_, expected) in KINDS.items()}


@pytest.mark.spark
def test_a_window_comes_from_the_records_in_it_that_came_in_time(
    spark_engine: Engine, trades: Source, people: Source, tmp_path: Path
) -> None:
    query = (
        "SELECT window.start AS event_time, COUNT(*) AS n FROM trades"
        " GROUP BY window(event_time, '2 minutes')"
    )
    derived = Derived(spark_engine, tmp_path / "derived", sql(query), [trades])
    assert derived.step() == [(0, "10:00", 2)]
    trades.add([("10:01", "A", 1), ("10:03", "A", 1), ("10:04", "B", 1)])
    assert derived.step() == [(0, "10:02", 3)]
    assert told(asked(derived, 0)) == {0: {"trades": [0, 1]}}
    assert told(asked(derived, 1)) == {1: {"trades": [2, 3, 5]}}  # 4 came late


@pytest.mark.spark
def test_a_correction_tells_what_both_of_its_records_came_from(
    spark_engine: Engine, trades: Source, tmp_path: Path
) -> None:
    query = "SELECT MAX(event_time) AS event_time, who, SUM(n) AS n FROM trades GROUP BY who"
    derived = Derived(spark_engine, tmp_path / "derived", sql(query), [trades])
    derived.step()
    trades.add([("10:05", "A", 1)])
    assert derived.step() == [(2, "10:02", "A", 40), (3, "10:05", "A", 41)]
    origins = asked(derived)
    taken, given = origins[3], origins[4]
    assert (taken.before, taken.records) == (True, {"trades": ((0, 0), (2, 2))})
    assert (given.before, given.records) == (False, {"trades": ((0, 0), (2, 2), (4, 4))})


@pytest.mark.spark
def test_a_retraction_comes_from_the_retraction_where_each_record_is_handled_alone(
    spark_engine: Engine, trades: Source, tmp_path: Path
) -> None:
    trades.add([("10:02", "A", 30), ("10:03", "C", 5), ("10:03", "C", 6)], ops=[1, 2, 3])
    each = Derived(
        spark_engine,
        tmp_path / "each",
        sql("SELECT event_time, who, n FROM trades WHERE n <> 20"),
        [trades],
    )
    each.step()
    assert told(asked(each)) == {
        number: {"trades": [offset]} for number, offset in enumerate([0, 2, 3, 4, 5, 6])
    }
    total = Derived(
        spark_engine,
        tmp_path / "total",
        sql("SELECT MAX(event_time) AS event_time, who, SUM(n) AS n FROM trades GROUP BY who"),
        [trades],
    )
    assert total.step() == [(0, "10:00", "A", 10), (0, "10:01", "B", 20), (0, "10:03", "C", 6)]
    assert told(asked(total)) == {0: {"trades": [0]}, 1: {"trades": [1]}, 2: {"trades": [6]}}


@pytest.mark.spark
def test_records_of_equal_values_come_from_one_record_each(
    spark_engine: Engine, trades: Source, tmp_path: Path
) -> None:
    query = "SELECT date_trunc('HOUR', event_time) AS event_time, n > 10 AS much FROM trades"
    twice = Derived(spark_engine, tmp_path / "twice", sql(query + " UNION ALL " + query), [trades])
    twice.step()
    assert told(asked(twice)) == {number: {"trades": [number % 4]} for number in range(8)}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("query", "whole", "records"),
    [
        (
            "SELECT event_time, who, n FROM trades ORDER BY n, who, event_time LIMIT 1",
            {"trades": "LIMIT"},
            {},
        ),
        (
            "SELECT event_time, n FROM trades WHERE who IN (SELECT who FROM people)"
            " AND event_time < '2024-05-01 10:01:00'",
            {"people": "a subquery in an expression"},
            {"trades": ((0, 0),)},
        ),
        (
            "SELECT t.event_time, t.who FROM trades t LEFT ANTI JOIN people p ON p.who = t.who",
            {"people": "a join that only asks whether there is a record"},
            {"trades": ((3, 3),)},
        ),
    ],
)
def test_where_no_single_records_can_be_told_the_inputs_are_named(
    spark_engine: Engine,
    trades: Source,
    people: Source,
    tmp_path: Path,
    query: str,
    whole: dict[str, str],
    records: Any,
) -> None:
    derived = Derived(spark_engine, tmp_path / "derived", sql(query), [trades, people])
    derived.step()
    assert asked(derived) == {0: Origin(records, whole)}


@pytest.mark.spark
def test_a_temporal_join_comes_from_the_version_in_force(
    spark_engine: Engine, trades: Source, people: Source, tmp_path: Path
) -> None:
    people.add([("10:01", "A", "Anna")])
    query = replace(
        sql(
            "SELECT t.event_time, t.n, p.name FROM trades t,"
            " LATERAL TABLE (people(t.event_time)) AS p WHERE t.who = p.who"
        ),
        temporal_tables=(TemporalTable(name="people", primary_key=("who",)),),
    )
    derived = Derived(spark_engine, tmp_path / "derived", query, [trades, people])
    derived.step()
    assert told(asked(derived)) == {
        0: {"trades": [0], "people": [0]},
        1: {"trades": [1], "people": [1]},
        2: {"trades": [2], "people": [2]},
    }


@pytest.mark.spark
def test_a_record_that_does_not_follow_from_the_inputs_has_no_records_of_its_own(
    spark_engine: Engine, trades: Source, tmp_path: Path
) -> None:
    derived = Derived(
        spark_engine, tmp_path / "derived", sql("SELECT event_time, n FROM trades"), [trades]
    )
    derived.step()
    forged = pq.read_table(derived.files[0])
    forged = forged.set_column(
        forged.schema.get_field_index("n"), forged.schema.field("n"), [[10, 21, 30, 5]]
    )
    pq.write_table(forged, derived.files[0])
    origins = asked(derived)
    assert origins[1] == Origin({}, {"trades": "the recomputed step gives no such record"})
    assert told(origins)[2] == {"trades": [2]}


# --- What a record comes from is enough to make it ---

QUERIES = [
    "SELECT event_time, tag FROM trades LATERAL VIEW explode(array(who, 'x')) AS tag"
    " WHERE n % 3 <> 0",
    "SELECT window.start AS event_time, who, SUM(n) AS n FROM trades"
    " GROUP BY window(event_time, '10 minutes', '5 minutes'), who",
    "SELECT t.event_time, p.name, MAX(t.n) OVER (PARTITION BY t.who) AS top FROM trades t"
    " FULL JOIN people p ON t.who = p.who AND t.n > 3 WHERE t.event_time IS NOT NULL UNION ALL"
    " SELECT event_time, who, n FROM (SELECT *, RANK() OVER (PARTITION BY who ORDER BY n DESC) AS"
    " place FROM trades) WHERE place <= 2 UNION ALL"
    " SELECT MIN(event_time) AS event_time, kind, COUNT(DISTINCT who) AS n FROM ("
    " SELECT event_time, CAST(n % 2 AS STRING) AS kind, who FROM trades UNION ALL"
    " SELECT event_time, '2', who FROM people) GROUP BY kind HAVING COUNT(*) > 1",
]


@pytest.mark.spark
@pytest.mark.parametrize("query", QUERIES)
def test_the_records_that_a_record_comes_from_are_enough_to_make_it(
    spark_engine: Engine, trades: Source, people: Source, tmp_path: Path, query: str
) -> None:
    chance = random.Random(query)
    derived = Derived(spark_engine, tmp_path / "derived", sql(query), [trades, people])
    derived.step()
    for source in (trades, people):
        rows: list[tuple[Any, ...]] = [
            (f"10:{chance.randrange(10, 59)}", chance.choice("ABCD"), chance.randrange(9))
            for _ in range(20)
        ]
        rows = [(*row[:2], f"{row[1]}{row[2]}") for row in rows] if source is people else rows
        source.add(rows, "10:40")
    derived.step()
    origins = asked(derived)
    made = {row[0]: row[1:] for row in _with_offsets(derived.files[-1])}
    assert made.keys() == origins.keys()
    assert not any(origin.whole for origin in origins.values())
    for offset in chance.sample(sorted(made), 1):
        task = _only(derived.tasks[-1], origins[offset], tmp_path / f"only-{offset}")
        result = derived.engine.run(task)
        staged = write_slice(
            result,
            dataset="derived",
            schema=derived.schema,
            vocab=VOCAB,
            first_offset=0,
            system_time=Timestamp.from_millis(0),
            target=task.scratch / "slice.parquet",
        )
        assert staged is not None
        again = [row[1:] for row in rows_of(pq.read_table(staged.path))]
        assert made[offset][1:] in again, (offset, origins[offset])


def _with_offsets(file: Path) -> list[tuple[Any, ...]]:
    table = pq.read_table(file)
    return [
        (offset, *row)
        for offset, row in zip(table["offset"].to_pylist(), rows_of(table), strict=True)
    ]


def _only(task: TransformTask, origin: Origin, folder: Path) -> TransformTask:
    """The same step over nothing but these records of its inputs."""
    folder.mkdir()
    inputs = tuple(_kept(each, origin, folder) for each in task.inputs)
    if origin.before:
        inputs = tuple(replace(each, slices=(), first=None, last=None) for each in inputs)
    return replace(task, inputs=inputs, scratch=folder, previous=lambda: ())


def _kept(each: InputSlices, origin: Origin, folder: Path) -> InputSlices:
    wanted = pa.array(offsets_of(origin.records.get(each.alias, ())), pa.int64())

    def cut(slices: Sequence[SliceFile]) -> tuple[SliceFile, ...]:
        cuts = []
        for one in slices:
            table = pq.read_table(one.path)
            target = folder / one.path.name
            pq.write_table(table.filter(pc.is_in(table["offset"], wanted)), target)
            cuts.append(replace(one, path=target))
        return tuple(cuts)

    earlier = cut(each.earlier())
    return replace(each, slices=cut(each.slices), earlier=lambda: earlier)

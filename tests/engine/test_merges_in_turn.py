"""Merges of several files in memory: as a plain model does it, file by file."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.engine.spark.merging.in_turn import TIMED, are_comparable, differences_in_turn
from odfbuild.engine.spark.results.hidden import FILE, OP, ROW
from odfbuild.engine.spark.results.sorted_parts import split_in_order
from tests.ingest.merge_model import merge, project

KEY = ["k", "n"]
DAYS = [datetime(2020, 1, day, tzinfo=UTC) for day in (1, 2)]
SCHEMA = pa.schema(
    {
        "k": pa.string(),
        "n": pa.int32(),
        "v": pa.int32(),
        "w": pa.decimal128(5, 2),
        "event_time": pa.timestamp("us", "UTC"),
    }
)

records = st.fixed_dictionaries(
    {
        "k": st.sampled_from(["a", "b", None]),
        "n": st.sampled_from([1, None]),
        "v": st.sampled_from([None, 1, 2]),
        "w": st.sampled_from([None, 1]),
        "event_time": st.sampled_from([None, *DAYS]),
        "op": st.sampled_from([0, 0, 0, 1, 3]),
    }
)
files = st.lists(st.lists(records, max_size=6), min_size=1, max_size=5)


def fallback(file: int) -> datetime:
    """The event time of records of a file that have none."""
    return datetime(2021, 1, file, tzinfo=UTC)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows of files as the engine hands them over."""
    filled = [
        {**row, "event_time": row["event_time"] or fallback(row[FILE])} for row in reversed(rows)
    ]
    found = pa.Table.from_pylist(filled, SCHEMA)
    for name, kind in ((FILE, pa.int32()), (ROW, pa.int64()), (OP, pa.int32())):
        found = found.append_column(name, pa.array([row[name] for row in filled], kind))
    timed = [row["event_time"] is not None for row in reversed(rows)]
    return found.append_column(TIMED, pa.array(timed, pa.bool_()))


def in_turn(
    history: list[dict[str, Any]], batches: list[list[dict[str, Any]]], **options: Any
) -> list[list[dict[str, Any]]]:
    """The operations that each file adds, in their order."""
    rows = [
        {**row, FILE: file, ROW: file * 100 + at, OP: row["op"]}
        for file, batch in enumerate(batches, 1)
        for at, row in enumerate(batch)
    ]
    state = pa.Table.from_pylist([*project(history, KEY).values()], SCHEMA)
    found = differences_in_turn(table(rows), state, len(batches), KEY, **options)
    parts = split_in_order(found, FILE, [*KEY, OP], len(batches))
    assert parts is not None
    return [part.rename_columns({OP: "op"}).drop_columns([FILE]).to_pylist() for part in parts]


@given(files)
def test_upserts_in_turn_are_those_of_one_file_after_the_other(
    batches: list[list[dict[str, Any]]],
) -> None:
    first, *rest = batches
    history = merge("UpsertStream", [], first, key=KEY, fallback=fallback(9))
    options = {"compared": ["v", "w", "event_time"], "event_time": "event_time", "absent": "kept"}
    found = in_turn(history, rest, **options)
    for file, batch in enumerate(rest, 1):
        wanted = merge("UpsertStream", history, batch, key=KEY, fallback=fallback(file))
        assert found[file - 1] == wanted
        history += wanted


@given(files, st.sampled_from([None, ["v"], ["event_time"]]))
def test_snapshots_in_turn_are_those_of_one_file_after_the_other(
    batches: list[list[dict[str, Any]]], compare: list[str] | None
) -> None:
    unique = [
        [*{(row["k"], row["n"]): {**row, "op": 0} for row in batch}.values()] for batch in batches
    ]
    first, *rest = unique
    history = merge("Snapshot", [], first, key=KEY, fallback=fallback(9))
    compared = compare or ["v", "w", "event_time"]
    options = {"compared": compared, "event_time": "event_time", "absent": "retracted"}
    found = in_turn(history, rest, **options)
    for file, batch in enumerate(rest, 1):
        wanted = merge(
            "Snapshot", history, batch, key=KEY, compare=compare, fallback=fallback(file)
        )
        assert found[file - 1] == wanted
        history += wanted


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [(0.0, -0.0, 0), (math.nan, math.nan, 0), (None, None, 0), (math.nan, None, 2), (1.0, 1.5, 2)],
)
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_values_are_equal_in_turn_where_spark_takes_them_for_equal(
    old: float | None, new: float | None, changes: int, kind: pa.DataType
) -> None:
    time = pa.array([DAYS[0]], pa.timestamp("us", "UTC"))
    state = pa.table({"k": [1], "x": pa.array([old], kind), "event_time": time})
    rows = pa.table({"k": [1], "x": pa.array([new], kind), "event_time": time})
    for name, value in ((FILE, 1), (ROW, 0), (OP, 0), (TIMED, True)):
        rows = rows.append_column(name, [[value]])
    found = differences_in_turn(
        rows, state, 1, ["k"], ["x", "event_time"], "event_time", absent="retracted"
    )
    assert found.num_rows == changes


@pytest.mark.parametrize("kind", [pa.uuid(), pa.time32("ms"), pa.list_(pa.int64())])
def test_values_that_are_committed_in_another_form_are_left_to_spark(kind: pa.DataType) -> None:
    assert not are_comparable(pa.schema({"k": pa.int64(), "x": kind}))

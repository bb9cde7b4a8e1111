"""What became of records, and what was true at a time, worked out by hand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odfbuild.records.facts import facts_in, valid_at
from tests.engine.stepwise import VOCAB, Source, millis

A, R, F, T = 0, 1, 2, 3


@pytest.fixture
def prices(tmp_path: Path) -> Source:
    return Source(tmp_path, "prices", [pa.field("who", pa.string()), pa.field("n", pa.int64())])


def files(source: Source) -> list[Path]:
    return [block[0].path for block in source.blocks if block[0] is not None]


def true_at(source: Source, time: str) -> list[int]:
    offsets: list[int] = valid_at(facts_in(files(source), VOCAB), millis(time)).to_pylist()
    return sorted(offsets)


def test_of_each_fact_the_last_form_of_the_time_is_true(prices: Source) -> None:
    prices.add([("10:00", "A", 1), ("10:10", "B", 7)])
    prices.add([("10:00", "A", 1), ("10:20", "A", 2)], ops=[F, T])
    prices.add([("10:20", "A", 2), ("10:40", "A", 3)], ops=[F, T])
    assert true_at(prices, "09:59") == []
    assert true_at(prices, "10:05") == [0]
    assert true_at(prices, "10:30") == [1, 3]
    assert true_at(prices, "10:40") == [1, 5]


def test_a_form_that_came_later_counts_though_it_is_of_an_earlier_time(prices: Source) -> None:
    prices.add([("10:00", "A", 1)])
    prices.add([("10:00", "A", 1), ("10:50", "A", 2)], ops=[F, T])
    prices.add([("10:50", "A", 2), ("10:30", "A", 3)], ops=[F, T])
    assert true_at(prices, "10:20") == [0]
    assert true_at(prices, "10:40") == [4]
    assert true_at(prices, "10:55") == [4]


def test_what_was_retracted_was_never_true(prices: Source) -> None:
    prices.add([("10:00", "A", 1), ("10:00", "A", 1), ("10:05", "B", 2)])
    prices.add([("10:00", "A", 1), ("10:05", "B", 2), ("10:05", "B", 3)], ops=[R, F, T])
    prices.add([("10:05", "B", 3)], ops=[R])
    assert true_at(prices, "10:30") == [0]
    half = facts_in(files(prices)[1:], VOCAB)  # what was taken back came before
    assert [(f.retracted, f.forms[0].offset, f.forms[-1].values["n"]) for f in half.moved] == [
        (True, None, 1),
        (True, None, 3),
    ]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans()), max_size=20))
def test_at_the_end_of_time_it_is_what_the_records_amount_to(
    tmp_path: Path, steps: list[tuple[int, int, bool]]
) -> None:
    """Steps append a value, or take a live one back, for another one or for nothing."""
    live: Counter[int] = Counter()
    rows, ops = [], []
    for pick, value, corrected in steps:
        if pick == 0 or not +live:
            rows.append((value, "x", value))
            ops.append(A)
            live[value] += 1
            continue
        old = sorted((+live).elements())[pick % live.total()]
        live[old] -= 1
        rows.append((old, "x", old))
        ops.append(F if corrected else R)
        if corrected:
            rows.append((value, "x", value))
            ops.append(T)
            live[value] += 1
    source = Source(tmp_path, "facts", [pa.field("who", pa.string()), pa.field("n", pa.int64())])
    source.add(rows[:7], ops=ops[:7])
    source.add(rows[7:], ops=ops[7:])
    offsets = valid_at(facts_in(files(source), VOCAB), 99).to_pylist()
    values = {o: n for f in files(source) for o, n in zip(*_columns(f), strict=True)}
    assert Counter(values[offset] for offset in offsets) == +live


def _columns(file: Path) -> tuple[list[int], list[int]]:
    table = pq.read_table(file)
    return table["offset"].to_pylist(), table["n"].to_pylist()

"""What people write in a unit test, as values of every type of column."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.apply.unit_tests.difference import difference
from odfbuild.apply.unit_tests.typed import typed

JUNE = datetime(2013, 6, 1, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        (pa.bool_(), True, True),
        (pa.bool_(), "false", False),
        (pa.int32(), "12", 12),
        (pa.int64(), 12.0, 12),
        (pa.float64(), 3, 3.0),
        (pa.float64(), "2.5", 2.5),
        (pa.decimal128(6, 2), 1.25, Decimal("1.25")),
        (pa.string(), "x", "x"),
        (pa.timestamp("ms", "UTC"), "2013-06-01T14:30:00+02:00", JUNE),
        (pa.timestamp("ms", "UTC"), "2013-06-01 12:30:00", JUNE),
        (pa.timestamp("us"), "2013-06-01T12:30:00Z", JUNE.replace(tzinfo=None)),
        (pa.date32(), "2013-06-01", date(2013, 6, 1)),
        (pa.time64("us"), "12:30:00", time(12, 30)),
        (pa.binary(), "AAE=", b"\0\1"),
        (pa.binary(2), "AAE=", b"\0\1"),
        (pa.list_(pa.int32()), [1, None], [1, None]),
        (pa.list_(pa.int32()), "[1, 2]", [1, 2]),
        (pa.struct([("a", pa.date32())]), {"a": "2013-06-01"}, {"a": date(2013, 6, 1)}),
        (pa.map_(pa.string(), pa.int32()), {"a": 1}, [("a", 1)]),
    ],
    ids=str,
)
def test_a_value_becomes_one_of_its_type(kind: pa.DataType, written: Any, value: Any) -> None:
    table, unfit = typed([{"C": written}, {}], pa.schema([("c", kind)]), "op", {})
    assert not unfit
    assert table["c"].to_pylist() == [value, None]


def test_uuids_are_written_as_text() -> None:
    text = "00000000-0000-0000-0000-000000000001"
    table, unfit = typed([{"c": text}, {}], pa.schema([("c", pa.uuid())]), "op", {})
    assert not unfit
    assert [str(each) for each in table["c"].to_pylist()] == [text, "None"]


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        (pa.bool_(), 1),
        (pa.int32(), 1.5),
        (pa.int32(), True),
        (pa.int32(), [1]),
        (pa.int8(), 300),
        (pa.float64(), "x"),
        (pa.decimal128(4, 2), 1.234),
        (pa.decimal128(4, 2), "x"),
        (pa.string(), 1),
        (pa.timestamp("ms", "UTC"), "soon"),
        (pa.date32(), "2013-13-01"),
        (pa.time64("us"), "25:00"),
        (pa.binary(), "?"),
        (pa.binary(2), "AA=="),
        (pa.uuid(), "x"),
        (pa.list_(pa.int32()), 1),
        (pa.list_(pa.int32()), "not json"),
        (pa.struct([("a", pa.int32())]), {"b": 1}),
        (pa.map_(pa.string(), pa.int32()), []),
    ],
    ids=str,
)
def test_a_value_of_another_type_is_told(kind: pa.DataType, written: Any) -> None:
    table, unfit = typed([{"c": written}], pa.schema([("c", kind)]), "op", {})
    assert [(each.row, each.column) for each in unfit] == [(0, "c")]
    assert unfit[0].why
    assert table["c"].to_pylist() == [None]


ROWS = st.lists(
    st.fixed_dictionaries({"op": st.just("+A"), "a": st.integers(0, 3), "b": st.integers(0, 3)}),
    max_size=8,
)
COLUMNS = ("op", "a", "b")


@given(expected=ROWS, actual=ROWS)
def test_a_difference_turns_what_came_into_what_was_expected(
    expected: list[dict[str, Any]], actual: list[dict[str, Any]]
) -> None:
    found = difference(COLUMNS, "op", expected, actual)
    wanted = [dict(row) for row in actual]
    for row in (*found.unexpected, *(came for _, came in found.changed)):
        wanted.remove(dict(row))
    wanted += [dict(row) for row in (*found.missing, *(row for row, _ in found.changed))]
    key = [sorted((row["a"], row["b"]) for row in rows) for rows in (wanted, expected)]
    assert key[0] == key[1]
    assert all(found.cells(*pair) for pair in found.changed)


@given(rows=ROWS, order=st.randoms())
def test_order_does_not_count(rows: list[dict[str, Any]], order: Any) -> None:
    other = [dict(row) for row in rows]
    order.shuffle(other)
    assert not difference(COLUMNS, "op", rows, other)


def test_the_last_digits_of_floating_point_numbers_do_not_count() -> None:
    one, other = {"op": "+A", "x": [0.1 + 0.2]}, {"op": "+A", "x": [0.3]}
    assert not difference(("op", "x"), "op", [one], [other])
    assert difference(("op", "x"), "op", [one], [{"op": "+A", "x": [0.3001]}])

"""Two states of a dataset, compared by key and by column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

duckdb = pytest.importorskip("duckdb", reason="the quick tests do without DuckDB")

from odfbuild.inspect.data_diff.compare import SIGN, Side, compare, shared_out  # noqa: E402
from odfbuild.inspect.data_diff.limit import newest, within  # noqa: E402
from odfbuild.inspect.data_diff.model import (  # noqa: E402
    Change,
    ColumnChange,
    ColumnRate,
    DataDiff,
    Key,
    Sample,
)


@pytest.fixture
def db() -> Iterator[Any]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def side(db: Any, name: str, query: str, moves: str | None = None) -> Side:
    """A state with the records of a query, all of them read."""
    db.execute(f"CREATE OR REPLACE VIEW {name} AS {query}")
    db.execute(
        f"CREATE OR REPLACE VIEW {name}_moves AS {moves or f'SELECT *, 1 AS {SIGN} FROM {name}'}"
    )
    (records,) = db.execute(f"SELECT count(*) FROM {name}").fetchone()
    return Side(name, name, f"{name}_moves", records)


def diff(db: Any, old: str, new: str, *key: str) -> DataDiff:
    keys = [Key(columns=key, origin="given")] if key else []
    return compare(db, "x", side(db, "old", old), side(db, "new", new), keys)


def values(*rows: str, columns: str = "id, v") -> str:
    return f"SELECT * FROM (VALUES {', '.join(rows)}) t({columns})"


def test_records_are_added_removed_and_changed_by_key(db: Any) -> None:
    found = diff(
        db,
        values("(1, 'a')", "(2, 'b')", "(3, 'c')"),
        values("(1, 'a')", "(2, 'B')", "(4, 'd')"),
        "id",
    )
    assert (found.added, found.removed, found.changed, found.common) == (1, 1, 1, 2)
    assert found.rates == (ColumnRate(column="v", changed=1),)
    assert found.samples == (
        Sample(change=Change.CHANGED, key={"id": 2}, old={"v": "b"}, new={"v": "B"}),
        Sample(change=Change.REMOVED, key={"id": 3}, old={"v": "c"}),
        Sample(change=Change.ADDED, key={"id": 4}, new={"v": "d"}),
    )


def test_equal_states_have_no_differences_whatever_their_order(db: Any) -> None:
    found = diff(db, values("(1, 'a')", "(2, NULL)"), values("(2, NULL)", "(1, 'a')"))
    assert not found.differs
    assert found.key is None and found.drift == ()


def test_without_a_key_whole_records_are_compared(db: Any) -> None:
    rows = ["(1.5, 2.5)", "(1.5, 2.5)", "(1.0, 1.0)"]
    old = values(
        *[f"({r[1:-1].split(',')[0]}::DOUBLE, {r[1:-1].split(',')[1]}::DOUBLE)" for r in rows]
    )
    found = diff(db, old, f"{old} WHERE id > 1 UNION ALL SELECT 1.5, 2.5")
    assert found.key is None
    assert (found.added, found.removed, found.changed) == (1, 1, 0)
    assert found.samples[0] == Sample(change=Change.REMOVED, key={}, old={"id": 1.0, "v": 1.0})


def test_a_key_is_found_among_columns_whose_values_did_not_change(db: Any) -> None:
    query = "SELECT i // 10 AS day, {} AS label, i % 10 AS n, i::DOUBLE AS v FROM range(100) t(i)"
    found = diff(db, query.format("'a' || i"), query.format("'b' || i"))
    assert found.key is not None
    assert found.key.columns == ("day", "n")
    assert (found.added, found.removed, found.changed) == (0, 0, 100)
    assert found.rates == (ColumnRate(column="label", changed=100),)


def test_nulls_in_keys_identify_like_values(db: Any) -> None:
    found = diff(db, values("(NULL, 'a')", "(1, 'b')"), values("(NULL, 'A')", "(1, 'b')"), "id")
    assert (found.added, found.removed, found.changed) == (0, 0, 1)
    assert found.samples[0].key == {"id": None}


def test_records_of_a_repeated_key_are_not_paired(db: Any) -> None:
    found = diff(
        db,
        values("(1, 'a')", "(1, 'b')", "(2, 'c')"),
        values("(1, 'x')", "(1, 'y')", "(2, 'd')"),
        "id",
    )
    assert (found.added, found.removed, found.changed) == (2, 2, 1)
    assert found.key is not None and found.key.repeated == 1


def test_of_a_repeated_key_one_record_that_differs_is_paired(db: Any) -> None:
    found = diff(db, values("(1, 'a')", "(1, 'b')"), values("(1, 'a')", "(1, 'c')"), "id")
    assert (found.added, found.removed, found.changed) == (0, 0, 1)
    assert found.samples[0].old == {"v": "b"}


def test_a_record_that_is_there_twice_instead_of_once_is_added_once(db: Any) -> None:
    found = diff(db, values("(1, 'a')"), values("(1, 'a')", "(1, 'a')"), "id")
    assert (found.added, found.removed, found.changed) == (1, 0, 0)


def test_floats_are_compared_exactly_and_rounding_is_told_apart(db: Any) -> None:
    columns = "id, v"
    old = values(
        "(1, 0.1::DOUBLE + 0.2)", "(2, 1)", "(3, 'nan')", "(4, -0.0::DOUBLE)", columns=columns
    )
    new = values("(1, 0.3::DOUBLE)", "(2, 1.5)", "(3, 'nan')", "(4, 0)", columns=columns)
    found = diff(db, old, new, "id")
    assert found.changed == 2
    assert found.rates == (ColumnRate(column="v", changed=2, rounding=1),)


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("1::INTEGER", "1::BIGINT", 0),
        ("1::INTEGER", "1::DOUBLE", 0),
        ("1.50::DECIMAL(6,2)", "1.5::DECIMAL(9,4)", 0),
        ("1.50::DECIMAL(6,2)", "1.51::DOUBLE", 1),
        ("TIMESTAMP_MS '2020-01-01 00:00:00.001'", "TIMESTAMP '2020-01-01 00:00:00.001'", 0),
        ("DATE '2020-01-01'", "TIMESTAMP '2020-01-01'", 0),
        ("TIMESTAMPTZ '2020-01-01 00:00:00+00'", "TIMESTAMP '2020-01-01'", 1),
        ("1", "'1'", 0),
        ("1", "'one'", 1),
        ("DATE '2020-01-01'", "20200101", 1),
        ("[1, 2]", "[1, 2]::BIGINT[]", 0),
        ("{'a': 1}", "{'a': 2}", 1),
        ("{'a': 1}", "{'a': 1, 'b': 2}", 1),
        ("MAP {'a': 1}", "MAP {'a': 1}", 0),
        ("'a'::BLOB", "'b'::BLOB", 1),
    ],
)
def test_values_of_other_types_are_compared_by_what_they_mean(
    db: Any, old: str, new: str, changed: int
) -> None:
    found = diff(db, f"SELECT 1 AS id, {old} AS v", f"SELECT 1 AS id, {new} AS v", "id")
    assert (found.added, found.removed, found.changed) == (0, 0, changed)
    kinds = [db.execute(f"SELECT typeof({each})").fetchone()[0] for each in (old, new)]
    retyped = [(each.change, each.column) for each in found.schema]
    assert retyped == ([(ColumnChange.RETYPED, "v")] if kinds[0] != kinds[1] else [])


def test_columns_that_only_one_state_has_are_told_and_not_compared(db: Any) -> None:
    found = diff(db, "SELECT 1 AS id, 2 AS gone", "SELECT 1 AS id, '3' AS come", "id")
    assert [(each.change, each.column) for each in found.schema] == [
        (ColumnChange.ADDED, "come"),
        (ColumnChange.REMOVED, "gone"),
    ]
    assert (found.added, found.removed, found.changed) == (0, 0, 0)
    assert found.differs


def test_a_column_with_all_values_of_a_removed_one_is_renamed(db: Any) -> None:
    found = diff(
        db,
        "SELECT i AS id, i * 7 AS before, 1 AS same FROM range(9) t(i)",
        "SELECT i AS ID, i * 7 AS after, 1 AS alike FROM range(9) t(i)",
        "id",
    )
    renamed = {e.old_name: e.column for e in found.schema if e.change is ColumnChange.RENAMED}
    assert renamed == {"before": "after", "id": "ID"}
    assert {e.column for e in found.schema if e.change is ColumnChange.REMOVED} == {"same"}
    assert found.changed == 0


def test_what_led_to_both_states_is_not_needed(db: Any) -> None:
    taken_back = f"SELECT 1 AS id, 'a' AS v, -1 AS {SIGN} UNION ALL SELECT 1, 'b', 1"
    old = side(
        db, "old", values("(1, 'a')", "(2, 'c')"), f"SELECT 1 AS id, 'a' AS v, 1 AS {SIGN} LIMIT 0"
    )
    new = side(db, "new", values("(1, 'b')", "(2, 'c')"), taken_back)
    found = compare(db, "x", old, new, [Key(columns=("id",), origin="given")])
    assert (found.added, found.removed, found.changed, found.common) == (0, 0, 1, 2)


def test_samples_are_shared_out_among_kinds() -> None:
    many = [Sample(change=Change.ADDED, key={"id": n}) for n in range(30)]
    assert len(shared_out([many, many[:2], many])) == 20
    assert [len(shared_out([many, many[:2], many[:n]])) for n in (0, 1)] == [20, 20]
    assert len(shared_out([[], many[:3], []])) == 3


def test_distributions_tell_only_what_differs_by_more_than_a_little(db: Any) -> None:
    query = (
        "SELECT i AS id, CASE WHEN i % {} = 0 THEN NULL ELSE i % 100 END AS n,"
        " CASE WHEN i % {} = 0 THEN 'x' ELSE 'y' END AS kind,"
        " TIMESTAMPTZ '2020-01-01 00:00:00+00' + i * INTERVAL '1 day' AS t,"
        " [i] AS list FROM range({}) t(i)"
    )
    found = diff(db, query.format(10, 2, 1000), query.format(4, 5, 1010), "id")
    drift = {each.column: each for each in found.drift}
    assert set(drift) == {"id", "n", "kind", "t"}
    assert "nulls" in drift["n"].shifts
    assert drift["kind"].shifts == ("top",)
    assert drift["kind"].old.top == (("x", 500), ("y", 500))
    assert drift["t"].shifts == ("range",)
    assert drift["t"].new.least == "2020-01-01T00:00:00Z"


def test_estimates_are_marked(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from odfbuild.inspect.data_diff import distributions

    monkeypatch.setattr(distributions, "EXACT_RECORDS", 10)
    query = "SELECT i AS id, (i * {})::{} AS v, DATE '2020-01-01' + i::INT AS d FROM range(50) t(i)"
    found = diff(db, query.format(1, "DOUBLE"), query.format(3, "DOUBLE"), "id")
    (drift,) = found.drift
    assert (drift.column, drift.old.exact) == ("v", False)


@pytest.mark.parametrize(
    ("sizes", "limit", "read"),
    [
        ({"a": 10, "b": 20}, 30, {"a": 10, "b": 20}),
        ({"a": 10, "b": 100, "c": 200}, 70, {"a": 10, "b": 30, "c": 30}),
        ({"a": 10, "b": 10}, 0, {"a": 0, "b": 0}),
        ({}, 5, {}),
    ],
)
def test_small_inputs_are_read_whole_and_large_ones_alike(
    sizes: dict[str, int], limit: int, read: dict[str, int]
) -> None:
    assert within(sizes, limit) == read


def test_newest_records_are_as_many_as_bytes_allow() -> None:
    assert [newest(1000, 500, read) for read in (500, 250, 1, 0)] == [1000, 500, 2, 0]
    assert newest(3, 5000, 1) == 1

"""Records without Spark: the views, what is read for them, and that both forms agree."""

from __future__ import annotations

import math
import shutil
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odfbuild.errors import IntegrityError, RecordsError
from odfbuild.records.records import Records, records_of
from tests.records.chains import A, Chain, F, R, T, rows, workspace
from tests.store.chains import create

WHO = pa.field("who", pa.string())
N = pa.field("n", pa.int64())


def asked(records: Records, sql: str = "SELECT * FROM v") -> list[Any]:
    """What a view of DuckDB gives."""
    with duckdb.connect() as connection:
        records.duckdb_view(connection, "v")
        return connection.sql(sql).fetchall()


@pytest.fixture
def people(tmp_path: Path) -> Chain:
    """Ann moves from 1 to 3, Bob goes; of two equal Cyds one goes."""
    chain = Chain(workspace(tmp_path), "people", WHO, N)
    chain.add([(1, "Ann", 1), (2, "Bob", 2), (3, "Cyd", None), (3, "Cyd", None)])
    chain.add([(1, "Ann", 1), (1, "Ann", 3), (2, "Bob", 2), (3, "Cyd", None)], [F, T, R, R])
    return chain


def test_the_current_state_has_no_retracted_records_and_no_system_columns(people: Chain) -> None:
    found = people.records()
    assert found.schema.names == ["event_time", "who", "n"]
    assert rows(found, ["who", "n"]) == [("Cyd", None), ("Ann", 3)]
    assert found.count() == 2
    assert sorted(asked(found, "SELECT who, n FROM v ORDER BY who")) == [("Ann", 3), ("Cyd", None)]


@pytest.mark.parametrize("text", ["x", "x" * 100_000])
def test_members_that_came_later_are_null_in_older_records(tmp_path: Path, text: str) -> None:
    a, b, c = pa.field("a", pa.int32()), pa.field("b", pa.string()), pa.field("c", pa.int64())
    inner = [pa.field("s", pa.struct([c])), pa.field("s", pa.struct([b, c]))]
    chain = Chain(workspace(tmp_path), "places", N, pa.field("place", pa.struct([a, inner[0]])))
    old = [{"a": 1, "s": {"c": 5}}, {"a": None, "s": None}, None]
    chain.add([(day, day, each) for day, each in enumerate(old)])
    chain.grow(N, pa.field("place", pa.struct([b, a, inner[1]])))
    full = {"b": text, "a": 1, "s": {"b": text, "c": 5}}
    taken = {"b": None, "a": 1, "s": {"b": None, "c": 5}}
    chain.add([(0, 0, taken), (0, 0, full)], [F, T])
    nulls = {"b": None, "a": None, "s": None}
    whole = [(0, taken), (1, nulls), (2, None), (0, taken), (0, full)]
    history = chain.records(view="history")
    assert rows(history, ["n", "place"]) == whole
    assert asked(history, 'SELECT n, place FROM v ORDER BY "offset"') == whole
    assert rows(history, ["n", "place"], pc.field("n") > 0) == whole[1:3]
    assert rows(history, ["n"], pc.field("place", "s", "b").is_valid()) == [(0,)]
    assert [(e["n"], e["place"]) for e in history.last(5, ["n", "place"]).to_pylist()] == whole
    now = [(1, nulls), (2, None), (0, full)]
    assert rows(chain.records(), ["n", "place"]) == now
    assert sorted(asked(chain.records(), "SELECT n, place FROM v"), key=repr) == sorted(
        now, key=repr
    )


def test_the_history_has_every_record_in_order(people: Chain) -> None:
    found = people.records(view="history")
    assert [row[:2] for row in rows(found)] == list(enumerate([A, A, A, A, F, T, R, R]))
    assert found.count() == 8
    assert [row[:2] for row in asked(found, "SELECT * FROM v ORDER BY 1")] == [
        (0, 0), (1, 0), (2, 0), (3, 0), (4, 2), (5, 3), (6, 1), (7, 1)
    ]  # fmt: skip


def test_what_was_retracted_is_found_once_for_each_head(
    people: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert people.records().count() == 2
    monkeypatch.setattr("odfbuild.records.retracted._found", None)
    assert people.records().count() == 2
    monkeypatch.undo()
    people.add([(9, "Dan", 9)])
    assert people.records().count() == 3
    people.add([(9, "Dan", 9)], [R])
    assert people.records().count() == 2


def test_records_since_a_pin_are_those_of_the_blocks_after_it(people: Chain) -> None:
    before = people.records().stored.state
    assert people.records(view="history", since=before).count() == 0
    people.add([(9, "Dan", 9), (1, "Ann", 3)], [A, R])
    news = people.records(view="history", since=before)
    assert (news.pin.first, news.pin.last, news.count()) == (8, 9, 2)
    assert rows(news, ["op", "who"]) == [(A, "Dan"), (R, "Ann")]


def test_a_limit_and_the_last_records_keep_the_order(tmp_path: Path) -> None:
    chain = Chain(workspace(tmp_path), "many", N)
    for first in (0, 5_000):
        table = pa.table(
            [range(first, first + 5_000), [0] * 5_000, [0] * 5_000, [0] * 5_000, range(5_000)],
            schema=chain.schema,
        )
        chain.add_table(table, row_group_size=700)
    found = chain.records(view="history")
    offsets = lambda batches: [n for b in batches for n in b["offset"].to_pylist()]  # noqa: E731
    assert offsets(found.batches(limit=1_500)) == list(range(1_500))
    assert offsets(found.batches(limit=0)) == []
    assert found.last(1_000, ["offset"])["offset"].to_pylist() == list(range(9_000, 10_000))
    odd = pc.bit_wise_and(pc.field("offset"), 1) == 1
    assert found.last(3, ["offset"], odd)["offset"].to_pylist() == [9_995, 9_997, 9_999]
    assert offsets(found.batches(["offset"], odd, 3)) == [1, 3, 5]
    assert found.count(pc.field("n") < 10) == 20
    assert found.last(5, filter=pc.field("n") < 0).num_rows == 0


def test_files_whose_offsets_do_not_fit_are_not_opened(people: Chain) -> None:
    found = people.records(view="history")
    found.stored.slices[0].file.write_bytes(b"damaged")
    assert rows(found, ["offset"], pc.field("offset") >= 4) == [(4,), (5,), (6,), (7,)]
    assert found.last(2, ["offset"])["offset"].to_pylist() == [6, 7]
    with pytest.raises(IntegrityError) as raised:
        rows(found)
    assert raised.value.code == "E0815"


def test_no_file_is_opened_to_count_what_was_only_appended(tmp_path: Path) -> None:
    chain = Chain(workspace(tmp_path), "log", N, appends=True)
    chain.add([(1, 1), (2, 2)])
    shutil.rmtree(chain.store.path / "data")
    assert chain.records().count() == 2
    assert chain.records(view="history").count() == 2


def test_a_dataset_without_records_is_an_empty_table(tmp_path: Path) -> None:
    found = Chain(workspace(tmp_path), "none", N).records()
    assert (found.count(), rows(found), found.last(3).num_rows, asked(found)) == (0, [], 0, [])
    assert (found.pin.first, found.pin.last) == (None, None)
    assert "no records" in str(found.pin)


def test_a_dataset_without_columns_is_told_apart(tmp_path: Path) -> None:
    space = workspace(tmp_path)
    create(space, "empty")
    with pytest.raises(RecordsError) as raised:
        records_of(space, "empty")
    assert (raised.value.code, raised.value.help) == ("E1203", "run `odfbuild apply` first")


@pytest.mark.parametrize("view", ["current", "history"])
def test_files_of_other_layouts_show_the_types_of_the_dataset(tmp_path: Path, view: str) -> None:
    """Peers write unsigned system columns; older files lack columns and have other units."""
    columns = [pa.field("u", pa.uuid()), pa.field("t", pa.timestamp("us", "UTC")), N, WHO]
    chain = Chain(workspace(tmp_path), "odd", *columns)
    one = uuid.UUID(int=1)
    time = pa.timestamp("ms", "UTC")
    old = {
        "offset": pa.array([0, 1], pa.uint64()),
        "op": pa.array([0, 0], pa.uint8()),
        "system_time": pa.array([0, 0], time),
        "event_time": pa.array([0, 1], time),
        "u": pa.array([one.bytes, None], pa.binary(16)),
        "t": pa.array([5, None], time),
        "n": pa.array([7, 8], pa.int32()),
    }
    chain.add_table(pa.table(old))
    chain.add([(2, one.bytes, 6, 9, "x")])
    chain.add([(0, one.bytes, 5_000, 7, None)], [R])
    found = chain.records(view=view)
    table = pa.Table.from_batches(found.batches())
    assert table.schema.types == found.schema.types
    kept = [None, one] if view == "current" else [one, None, one, one]
    assert table["u"].to_pylist() == kept
    order = {"current": "event_time", "history": '"offset"'}[view]
    assert asked(found, f"SELECT n, u, who FROM v ORDER BY {order}") == list(
        zip(*(table[name].to_pylist() for name in ("n", "u", "who")), strict=True)
    )


def test_values_that_are_equal_for_spark_are_equal_here(tmp_path: Path) -> None:
    nested = pa.field("l", pa.struct([pa.field("a", pa.list_(pa.float64()))]))
    chain = Chain(workspace(tmp_path), "floats", pa.field("x", pa.float64()), nested)
    zero, minus, none = {"a": [0.0]}, {"a": [-0.0]}, {"a": None}
    chain.add([(1, math.nan, zero), (1, -0.0, None), (1, None, none), (1, None, None)])
    chain.add([(1, -math.nan, minus), (1, 0.0, None), (1, None, none)], [R, R, R])
    assert rows(chain.records(), ["x", "l"]) == [(None, None)]


def test_nan_is_found_in_slices_of_which_statistics_leave_it_out(tmp_path: Path) -> None:
    """Writers leave it out, those of peers as well; DuckDB takes it for greater than all others."""
    nested = pa.field("s", pa.struct([pa.field("a", pa.float32())]))
    chain = Chain(workspace(tmp_path), "floats", pa.field("x", pa.float64()), nested)
    chain.add([(1, 0.5, {"a": 0.5}), (2, math.nan, {"a": math.nan}), (3, None, None)])
    found = chain.records()
    joined = "SELECT epoch_ms(event_time) FROM v JOIN (SELECT 'NaN'::DOUBLE AS nan) ON x = nan"
    newest = "SELECT epoch_ms(event_time) FROM v ORDER BY x DESC NULLS LAST LIMIT 1"
    conditions = ("x > 1", "x = 'NaN'", "isnan(x)", "NOT x <= 0.5", "s.a > 1", "isnan(s.a)")
    for condition in conditions:
        assert asked(found, f"SELECT epoch_ms(event_time) FROM v WHERE {condition}") == [(2,)]
    assert asked(found, joined) == asked(found, newest) == [(2,)]
    for filter in (pc.field("x") != 0.5, ~(pc.field("x") <= 1), pc.field("s", "a") != 0.5):
        assert found.count(filter) == len(rows(found, ["x"], filter)) == 1
        assert found.last(9, ["x"], filter).num_rows == 1


def test_wrong_columns_and_filters_are_told_with_a_way_out(people: Chain) -> None:
    found = people.records()
    with pytest.raises(RecordsError) as raised:
        found.batches(["whom"])
    assert (raised.value.code, raised.value.help) == ("E1201", "did you mean 'who'?")
    with pytest.raises(RecordsError) as raised:
        found.batches(["op"])
    assert (raised.value.code, raised.value.help) == ("E1201", "the history has it")
    for wrong in (pc.field("whom") > 1, pc.field("who") + 1 > 3, pc.field("n") + 1, "n > 3"):
        with pytest.raises(RecordsError) as raised:
            rows(found, filter=wrong)
        assert raised.value.code == "E1202"
        assert raised.value.notes[1] == "columns: offset, op, system_time, event_time, who, n"


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([None, 0, 1]), st.booleans()), max_size=15
    )
)
def test_any_history_amounts_to_what_was_not_taken_back(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int | None, bool]]
) -> None:
    """Steps append a value, or take a live one back, for another one or for nothing."""
    live: Counter[int | None] = Counter()
    found: list[tuple[int, int | None]] = []
    ops = []
    for pick, value, corrected in steps:
        if pick == 0 or not +live:
            found.append((0, value))
            ops.append(A)
            live[value] += 1
            continue
        old = sorted((+live).elements(), key=str)[pick % live.total()]
        live[old] -= 1
        found.append((0, old))
        ops.append(F if corrected else R)
        if corrected:
            found.append((0, value))
            ops.append(T)
            live[value] += 1
    chain = Chain(workspace(tmp_path_factory.mktemp("any")), "any", N)
    half = len(found) // 2
    for part in (slice(None, half), slice(half, None)):
        if found[part]:
            chain.add(found[part], ops[part])
    records = chain.records()
    assert Counter(n for (n,) in rows(records, ["n"])) == +live
    assert Counter(n for (n,) in asked(records, "SELECT n FROM v")) == +live
    assert records.count() == live.total()

"""Delta and Iceberg: what their libraries read, and what each commit leaves as it was."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from odfbuild.errors import TableError
from odfbuild.exchange.tables.contract import TableFormat, TableMoved, Touched
from tests.exchange.tables.open_tables import COLUMNS, part, parts, pin, rows, table, values
from tests.servers.objects import BUCKET, s3_program

FORMATS = ("delta", "iceberg")
NOW = dt.timedelta(0)
UTC = dt.UTC


@pytest.fixture(params=FORMATS)
def format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def own_library(format: str, location: Path) -> pa.Table:
    """The table as the library of its format reads it."""
    if format == "delta":
        return deltalake.DeltaTable(str(location / "t")).to_pyarrow_table()
    catalogue = load_catalog("default", uri=f"sqlite:///{location}/iceberg.db")
    return catalogue.load_table(("default", "t")).scan().to_arrow()


def data_files(format: str, location: Path) -> set[str]:
    if format == "delta":
        return set(deltalake.DeltaTable(str(location / "t")).file_uris())
    catalogue = load_catalog("default", uri=f"sqlite:///{location}/iceberg.db")
    tasks = catalogue.load_table(("default", "t")).scan().plan_files()
    return {each.file.file_path for each in tasks}


# --- Types ---

TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, False, None]),
    "i8": (pa.int8(), [-128, 127, None]),
    "u8": (pa.uint8(), [0, 255, None]),
    "u16": (pa.uint16(), [0, 2**16 - 1, None]),
    "u32": (pa.uint32(), [0, 2**32 - 1, None]),
    "u64": (pa.uint64(), [0, 2**64 - 1, None]),
    "i64": (pa.int64(), [-(2**63), 2**63 - 1, None]),
    "f16": (pa.float16(), [1.5, None, 0.0]),
    "f32": (pa.float32(), [1.5, None, 0.0]),
    "f64": (pa.float64(), [1e300, None, -0.0]),
    "decimal": (pa.decimal128(38, 5), [decimal.Decimal("1.00001"), None, decimal.Decimal(-7)]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "millis": (pa.timestamp("ms", "UTC"), [dt.datetime(1969, 1, 1, tzinfo=UTC), None, None]),
    "micros": (pa.timestamp("us"), [dt.datetime(2024, 2, 29, 1, 2, 3, 4), None, None]),
    "time": (pa.time64("us"), [dt.time(23, 59, 59, 999_999), dt.time(), None]),
    "time_ms": (pa.time32("ms"), [dt.time(23, 59, 59, 999_000), dt.time(), None]),
    "text": (pa.string(), ["", "ü\0'\"\n", None]),
    "large": (pa.large_string(), ["a", None, ""]),
    "view": (pa.string_view(), ["a", None, ""]),
    "binary": (pa.binary(), [b"\x00\xff", b"", None]),
    "fixed": (pa.binary(2), [b"\x00\xff", b"ab", None]),
    "uuid": (pa.uuid(), [uuid.UUID(int=7), None, uuid.UUID(int=2**128 - 1)]),
    "category": (pa.dictionary(pa.int32(), pa.string()), ["a", "b", None]),
    "list": (pa.list_(pa.uint16()), [[1, None], [], None]),
    "struct": (
        pa.struct([("a", pa.uint8()), ("b", pa.string())]),
        [{"a": 200, "b": None}, None, None],
    ),
    "structs": (pa.list_(pa.struct([("a", pa.int32())])), [[{"a": 1}], [], None]),
    "map": (pa.map_(pa.string(), pa.uint8()), [[("a", 1)], [], None]),
    "nothing": (pa.null(), [None, None, None]),
}


def every_type() -> pa.RecordBatch:
    made = {
        name: pa.array([None if v is None else v.bytes for v in given], kind)
        if name == "uuid"
        else pa.array(given, kind)
        for name, (kind, given) in TYPES.items()
    }
    return pa.record_batch(list(made.values()), names=list(made))


def test_values_of_every_type_come_back_as_they_were(format: str, tmp_path: Path) -> None:
    batch = every_type()
    opened = table(format, tmp_path, batch.schema, ())
    state = opened.commit(None, pin(1), None, [Touched((), [batch])])
    (found,) = opened.content_of(state, None)
    assert found.schema.equals(batch.schema)
    assert found.equals(batch)
    own = own_library(format, tmp_path)
    assert own.num_rows == batch.num_rows
    assert own["u64"].to_pylist() == [0, 2**64 - 1, None]
    assert own["u8"].to_pylist() == [0, 255, None]
    assert own["millis"].type == pa.timestamp("us", "UTC")


@pytest.mark.parametrize("kind", [pa.duration("us"), pa.decimal256(50, 2), pa.list_(pa.null())])
def test_a_type_that_a_format_does_not_have_is_refused_with_all_columns_that_have_it(
    format: str, kind: pa.DataType, tmp_path: Path
) -> None:
    columns = pa.schema([("good", pa.int64()), ("one", kind), ("two", kind)])
    with pytest.raises(TableError) as error:
        table(format, tmp_path, columns, ())
    assert error.value.code == "E1360"
    assert [note[:12] for note in error.value.notes] == ["column 'one'", "column 'two'"]


def test_a_value_that_would_lose_digits_is_refused_and_the_table_is_as_it_was(
    format: str, tmp_path: Path
) -> None:
    columns = pa.schema([("k", pa.string()), ("at", pa.timestamp("ns"))])
    opened = table(format, tmp_path, columns)
    first = opened.commit(None, pin(1), None, [part([{"k": "a", "at": 1_000}], columns)])
    with pytest.raises(TableError) as error:
        opened.commit(first, pin(2), [("a",)], [part([{"k": "a", "at": 1}], columns)])
    assert error.value.code == "E1361"
    assert opened.read_state() == first
    assert len(rows(opened, first)) == 1


# --- Partitions ---

ODD = ["a/b=%ü'\"", "x y", "..", "null", "None", "a\\b", "é" * 20]


def test_partitions_of_nulls_and_odd_characters_are_replaced_one_by_one(
    format: str, tmp_path: Path
) -> None:
    opened = table(format, tmp_path)
    keys = [*ODD, None]
    state = opened.commit(None, pin(1), None, parts({key: [1, 2] for key in keys}))
    for number, key in enumerate(keys, 10):
        before = data_files(format, tmp_path)
        state = opened.commit(state, pin(number), [(key,)], parts({key: [number]}))
        after = data_files(format, tmp_path)
        assert (len(before - after), len(after - before)) == (1, 1)
        assert values(opened, [(key,)]) == {key: [number]}
    assert values(opened) == {key: [10 + at] for at, key in enumerate(keys)}
    assert state.files == len(keys)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (pa.int8(), [-1, 0, 5]),
        (pa.uint64(), [0, 2**64 - 1]),
        (pa.bool_(), [True, False]),
        (pa.date32(), [dt.date(1969, 12, 31), dt.date(2024, 2, 29)]),
        (pa.timestamp("ms", "UTC"), [dt.datetime(2024, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)]),
        (pa.timestamp("us"), [dt.datetime(1969, 1, 2, 3, 4, 5, 6), dt.datetime(2024, 1, 1)]),
    ],
    ids=str,
)
def test_partitions_of_every_type_of_key_are_found_again(
    format: str, kind: pa.DataType, given: list[Any], tmp_path: Path
) -> None:
    columns = pa.schema([("a", kind), ("b", pa.string()), ("v", pa.int64())])
    by = ("a", "b")
    opened = table(format, tmp_path, columns, by)
    keys = [(a, b) for a in [*given, None] for b in ("x", None)]

    def content(key: Any, value: int) -> Any:
        return part([{"a": key[0], "b": key[1], "v": value}], columns, by)

    state = opened.commit(None, pin(1), None, [content(key, 1) for key in keys])
    chosen = keys[::3]
    replaced = [content(key, 2) for key in chosen[1:]]
    state = opened.commit(state, pin(2), chosen, replaced)
    found = {(row["a"], row["b"]): row["v"] for row in rows(opened, state)}
    expected = {key: 2 if key in chosen else 1 for key in keys if key != chosen[0]}
    assert found == expected
    assert {(row["a"], row["b"]) for row in rows(opened, state, chosen)} == set(chosen[1:])


def test_an_empty_text_is_no_partition_of_delta(tmp_path: Path) -> None:
    opened = table("delta", tmp_path)
    first = opened.commit(None, pin(1), None, parts({"a": [1]}))
    with pytest.raises(TableError) as error:
        opened.commit(first, pin(2), [("",)], parts({"": [1]}))
    assert error.value.code == "E1364"
    with pytest.raises(TableError):
        opened.commit(first, pin(2), None, parts({"": [1]}))
    assert values(opened) == {"a": [1]}


# --- Commits ---


def test_a_commit_without_content_keeps_every_file_and_moves_the_pin(
    format: str, tmp_path: Path
) -> None:
    opened = table(format, tmp_path)
    first = opened.commit(None, pin(1), None, parts({"a": [1]}))
    before = data_files(format, tmp_path)
    second = opened.commit(first, pin(2), [], [])
    assert (second.pin, second.records) == (pin(2), 1)
    assert data_files(format, tmp_path) == before
    assert opened.read_state() == second


def test_other_columns_and_partitions_come_with_one_commit(format: str, tmp_path: Path) -> None:
    first = table(format, tmp_path).commit(None, pin(1), None, parts({"a": [1], "b": [2]}))
    columns = pa.schema([("v", pa.string()), ("k", pa.date32()), ("new", pa.int64())])
    opened = table(format, tmp_path, columns, ("k", "v"))
    row = {"v": "x", "k": dt.date(2024, 1, 1), "new": None}
    second = opened.commit(first, pin(2), None, [part([row], columns, ("k", "v"))])
    assert rows(opened, second, [(dt.date(2024, 1, 1), "x")]) == [row]
    own = own_library(format, tmp_path)
    assert own.column_names == ["v", "k", "new"]
    assert own.to_pylist() == [row]
    whole = table(format, tmp_path, COLUMNS, ())
    third = whole.commit(
        second, pin(3), None, [part([{"k": "a", "n": 1, "v": 1}], partition_by=())]
    )
    third = whole.commit(third, pin(4), [()], [part([{"k": "b", "n": 1, "v": 2}], partition_by=())])
    assert values(whole) == {"b": [2]}
    back = table(format, tmp_path)
    back.commit(third, pin(5), None, [])
    assert values(back) == {}


def test_of_two_commits_at_once_one_is_made(format: str, tmp_path: Path) -> None:
    opened = table(format, tmp_path)
    state = None
    for number in range(6):
        replaced = None if state is None else [(str(number),)]
        barrier = threading.Barrier(2)

        def commit(
            writer: int, state: Any = state, replaced: Any = replaced, barrier: Any = barrier
        ) -> bool:
            mine = table(format, tmp_path)
            content = parts({replaced[0][0] if replaced else "0": [writer]})
            barrier.wait()
            try:
                mine.commit(state, pin(writer), replaced, content)
            except TableMoved:
                return False
            return True

        with ThreadPoolExecutor(2) as pool:
            made = list(pool.map(commit, range(2)))
        assert sorted(made) == [False, True]
        state = opened.read_state()
        assert state is not None
        assert state.pin == pin(made.index(True))
        assert values(opened)[str(number)] == [made.index(True)]
    assert len(values(opened)) == 6


def test_a_commit_of_another_program_is_told_and_one_that_keeps_records_is_not(
    tmp_path: Path,
) -> None:
    opened = table("delta", tmp_path)
    state = opened.commit(None, pin(1), None, parts({"a": [1]}))
    state = opened.commit(state, pin(2), [("b",)], parts({"b": [2]}))
    other = deltalake.DeltaTable(str(tmp_path / "t"))
    other.optimize.compact()
    other.alter.set_table_properties({"delta.appendOnly": "false"})
    other.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    kept = opened.read_state()
    assert kept is not None
    assert (kept.pin, kept.changed_by) == (pin(2), None)
    other.delete("v = 1")
    changed = opened.read_state()
    assert changed is not None
    assert changed.pin == pin(2)
    assert changed.changed_by is not None
    assert changed.changed_by.startswith("DELETE by delta-rs")


def test_a_snapshot_of_another_program_is_told(tmp_path: Path) -> None:
    opened = table("iceberg", tmp_path)
    opened.commit(None, pin(1), None, parts({"a": [1], "b": [2]}))
    catalogue = load_catalog("default", uri=f"sqlite:///{tmp_path}/iceberg.db")
    catalogue.load_table(("default", "t")).delete("k = 'a'")
    changed = opened.read_state()
    assert changed is not None
    assert changed.pin == pin(1)
    assert changed.changed_by is not None
    assert changed.changed_by.startswith("delete by another program at ")


def test_a_table_that_odfbuild_never_wrote_is_told(format: str, tmp_path: Path) -> None:
    rows_ = pa.table({"k": ["a"]})
    if format == "delta":
        deltalake.write_deltalake(str(tmp_path / "t"), rows_)
    else:
        catalogue = load_catalog("default", uri=f"sqlite:///{tmp_path}/iceberg.db")
        catalogue.create_namespace("default")
        made = catalogue.create_table(
            ("default", "t"), rows_.schema, location=f"file://{tmp_path}/t"
        )
        made.append(rows_)
    state = table(format, tmp_path).read_state()
    assert state is not None
    assert state.pin is None
    assert state.changed_by


# --- Readers ---


def test_pandas_duckdb_and_the_own_library_read_the_same(format: str, tmp_path: Path) -> None:
    opened = table(format, tmp_path)
    opened.commit(None, pin(1), None, parts({"a": [1, 2], None: [3]}))
    expected = [("a", 1), ("a", 2), (None, 3)]

    def found(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
        plain = frame.astype(object).where(frame.notna(), None)
        return sorted(plain[["k", "v"]].itertuples(index=False, name=None), key=lambda row: row[1])

    own = own_library(format, tmp_path)
    assert found(own.to_pandas()) == expected
    assert found(duckdb.sql("SELECT * FROM own").df()) == expected


def test_nothing_that_a_table_tells_of_its_files_hides_nan(format: str, tmp_path: Path) -> None:
    """Statistics leave it out, and readers pass over files by them."""
    nested = pa.field("s", pa.struct([pa.field("a", pa.float32())]))
    columns = pa.schema([("k", pa.string()), ("x", pa.float64()), nested, ("v", pa.int64())])
    numbers = (0.5, math.nan, 0.25)
    given = [{"k": "a", "x": x, "s": {"a": x}, "v": v} for v, x in enumerate(numbers)]
    table(format, tmp_path, columns).commit(None, pin(1), None, [part(given, columns)])
    (file,) = data_files(format, tmp_path)
    for condition in ("x > 1", "s.a = 'NaN'"):
        told = f"SELECT v FROM read_parquet('{file.removeprefix('file://')}') WHERE {condition}"
        assert duckdb.sql(told).fetchall() == [(1,)]
    if format == "delta":
        log = deltalake.DeltaTable(str(tmp_path / "t"))
        query = deltalake.QueryBuilder().register("t", log).execute("SELECT v FROM t WHERE x > 1")
        assert pa.table(query.read_all())["v"].to_pylist() == [1]
    else:
        catalogue = load_catalog("default", uri=f"sqlite:///{tmp_path}/iceberg.db")
        scan = catalogue.load_table(("default", "t")).scan("x > 1")
        assert len(list(scan.plan_files())) == 1  # whether NaN is greater is the reader's to say
        (kept,) = (task.file for task in scan.plan_files())
        assert set(kept.lower_bounds) == set(kept.upper_bounds) == {1, 4}


def test_a_reader_in_a_loop_sees_whole_states_while_old_files_are_removed(
    format: str, tmp_path: Path
) -> None:
    opened = table(format, tmp_path)
    both = [("a",), ("b",)]
    state = opened.commit(None, pin(0), None, parts({"a": [0], "b": [0]}))
    ends, seen, faults = threading.Event(), set(), []

    def read() -> None:
        while not ends.is_set():
            try:
                found = {row["v"] for row in own_library(format, tmp_path).to_pylist()}
                seen.add(frozenset(found))
            except Exception as error:
                faults.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(1, 16):
        content = parts({"a": [number], "b": [number]})
        state = opened.commit(state, pin(number), both, content)
        if number % 5 == 0:
            opened.collect(dt.timedelta(hours=1))
            state = opened.read_state() or state
    ends.set()
    reader.join()
    assert faults == []
    assert len(seen) > 1
    assert all(len(each) == 1 for each in seen)


# --- Garbage ---


def test_collecting_removes_what_no_state_within_the_grace_period_names(
    format: str, tmp_path: Path
) -> None:
    opened = table(format, tmp_path)
    state = opened.commit(None, pin(1), None, parts({"a": [1], "b": [1]}))
    first = data_files(format, tmp_path)
    state = opened.commit(state, pin(2), [("a",)], parts({"a": [2]}))
    (leftover,) = first - data_files(format, tmp_path)
    stray = tmp_path / "t" / "data" / "killed.parquet"
    if format == "delta":
        stray = tmp_path / "t" / "k=a" / "part-killed.parquet"
    stray.write_bytes(b"x")
    time.sleep(0.05)
    assert opened.collect(dt.timedelta(days=1)).files == ()
    planned = opened.collect(NOW, dry_run=True)
    assert Path(leftover.removeprefix("file://")).is_file()
    removed = opened.collect(NOW)
    assert removed == planned
    assert removed.bytes > 0
    assert not stray.is_file()
    assert not Path(leftover.removeprefix("file://")).is_file()
    left = opened.read_state()
    assert left is not None
    assert (left.pin, left.changed_by) == (pin(2), None)
    assert list(opened.missing(left)) == []
    assert values(opened) == {"a": [2], "b": [1]}
    assert opened.collect(NOW).files == ()
    state = opened.commit(left, pin(3), [("b",)], [])
    assert values(opened) == {"a": [2]}


def test_a_lost_data_file_is_named(format: str, tmp_path: Path) -> None:
    opened = table(format, tmp_path)
    state = opened.commit(None, pin(1), None, parts({"a'/b": [1], "b": [1]}))
    assert list(opened.missing(state)) == []
    lost = [Path(each.removeprefix("file://")) for each in sorted(data_files(format, tmp_path))]
    lost[0].unlink()
    lost[1].write_bytes(b"PAR1")
    named = {str(tmp_path / "t" / each) for each in opened.missing(state)}
    assert named == {str(each) for each in lost}


# --- Damage ---


def test_no_table_of_delta_is_made_in_a_folder_with_other_files(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "notes.txt").write_text("mine")
    with pytest.raises(TableError) as error:
        table("delta", tmp_path).commit(None, pin(1), None, [])
    assert error.value.code == "E1363"
    assert (tmp_path / "t" / "notes.txt").read_text() == "mine"


def test_left_overs_of_a_first_publication_that_was_killed_are_no_other_files(
    tmp_path: Path,
) -> None:
    opened = table("delta", tmp_path)
    opened.commit(None, pin(1), None, parts({"a": [1], None: [2]}))
    for each in (tmp_path / "t" / "_delta_log").iterdir():
        each.unlink()
    assert opened.read_state() is None
    opened.commit(None, pin(1), None, parts({"a": [1]}))
    assert values(opened) == {"a": [1]}


def test_a_list_of_files_of_iceberg_that_no_partition_is_in_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odfbuild.exchange.tables.iceberg._IN_A_LIST", 2)
    opened = table("iceberg", tmp_path)

    def lists() -> set[str]:
        catalogue = load_catalog("default", uri=f"sqlite:///{tmp_path}/iceberg.db")
        found = catalogue.load_table(("default", "t"))
        snapshot = found.current_snapshot()
        assert snapshot is not None
        return {each.manifest_path for each in snapshot.manifests(found.io)}

    content: dict[Any, Iterable[int]] = {"a": [1], "b": [2], "c": [3], "d": [4]}
    state = opened.commit(None, pin(1), None, parts(content))
    assert state.pin == pin(1)
    assert values(opened) == content
    before = lists()
    assert len(before) == 2
    state = opened.commit(state, pin(2), [("c",)], parts({"c": [5]}))
    assert values(opened) == content | {"c": [5]}
    assert len(before & lists()) == 1
    state = opened.commit(state, pin(3), None, parts(content))
    assert state == table("iceberg", tmp_path).read_state()
    assert values(opened) == content


def test_a_publication_loads_a_table_of_delta_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table("delta", tmp_path).commit(None, pin(1), None, parts({"a": [1], "b": [2]}))
    loaded: list[Any] = []
    load = deltalake.DeltaTable.__init__

    def counted(self: deltalake.DeltaTable, *args: Any, **more: Any) -> None:
        loaded.append(args)
        load(self, *args, **more)

    monkeypatch.setattr(deltalake.DeltaTable, "__init__", counted)
    opened = table("delta", tmp_path)
    state = opened.read_state()
    assert state is not None
    old = opened.content_of(state, [("a",)])
    after = opened.commit(state, pin(2), [("a",)], [Touched(("a",), old)])
    assert len(loaded) == 1
    assert after.pin == pin(2)
    assert after == table("delta", tmp_path).read_state()
    assert values(opened) == {"a": [1], "b": [2]}


def test_a_damaged_log_of_delta_is_an_error_with_the_way_out(tmp_path: Path) -> None:
    opened = table("delta", tmp_path)
    opened.commit(None, pin(1), None, parts({"a": [1]}))
    log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    log.write_text("{")
    with pytest.raises(TableError) as error:
        opened.read_state()
    assert error.value.code == "E1362"


@pytest.mark.parametrize("damage", ["metadata", "catalogue"])
def test_a_damaged_table_of_iceberg_is_an_error_with_the_way_out(
    damage: str, tmp_path: Path
) -> None:
    opened = table("iceberg", tmp_path)
    opened.commit(None, pin(1), None, parts({"a": [1]}))
    if damage == "metadata":
        for each in (tmp_path / "t" / "metadata").glob("*.json"):
            each.unlink()
    else:
        (tmp_path / "iceberg.db").write_bytes(b"no database" * 100)
    with pytest.raises(TableError) as error:
        table("iceberg", tmp_path).read_state()
    assert error.value.code == "E1365"


def test_iceberg_in_a_store_of_objects_needs_a_catalogue() -> None:
    with pytest.raises(TableError) as error:
        table("iceberg", "s3://lake/tables")
    assert error.value.code == "E1366"


# --- Kills ---

KILLED = """
import os, signal, sys
from pathlib import Path
from tests.exchange.tables.open_tables import parts, pin, table
format, location, at = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
opened = table(format, location)
def content():
    for number, each in enumerate(parts({str(k): [2] for k in range(8)})):
        if number == at:
            os.kill(os.getpid(), signal.SIGKILL)
        yield each
opened.commit(opened.read_state(), pin(2), [(str(k),) for k in range(8)], content())
"""


@pytest.mark.parametrize("at", [1, 7])
def test_a_kill_while_content_is_written_leaves_the_old_state(
    format: str, at: int, tmp_path: Path
) -> None:
    """Kills at what follows are in `test_kills_at_requests.py`."""
    opened = table(format, tmp_path)
    opened.commit(None, pin(1), None, parts({str(k): [1] for k in range(8)}))
    command = [sys.executable, "-c", KILLED, format, str(tmp_path), str(at)]
    assert subprocess.run(command, check=False).returncode == -9
    old, new = ({str(k): [each] for k in range(8)} for each in (1, 2))
    left = opened.read_state()
    assert left is not None
    assert left.pin == pin(1)
    assert values(opened) == old
    keys = [(str(k),) for k in range(8)]
    again = opened.commit(left, pin(2), keys, parts({str(k): [2] for k in range(8)}))
    assert values(opened) == new
    time.sleep(0.02)
    opened.collect(NOW)
    assert list(opened.missing(opened.read_state() or again)) == []
    assert values(opened) == new


# --- Stores of objects ---


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with s3_program(tmp_path_factory.mktemp("s3")):
        yield f"s3://{BUCKET}/tables"


def test_a_table_in_a_store_of_objects_is_as_one_in_a_folder(
    format: str, bucket: str, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {}
    if format == "iceberg":
        settings["catalogue"] = (("uri", f"sqlite:///{tmp_path}/lake.db"),)

    def opened() -> TableFormat:
        return table(format, bucket, **settings)

    first = opened().commit(None, pin(1), None, parts({"a": [1], None: [2], "x/y": [3]}))
    second = opened().commit(first, pin(2), [("a",)], parts({"a": [4]}))
    assert values(opened()) == {"a": [4], None: [2], "x/y": [3]}
    with pytest.raises(TableMoved):
        opened().commit(first, pin(3), [("a",)], [])
    assert list(opened().missing(second)) == []
    time.sleep(1.1)  # the store tells times in seconds
    assert len(opened().collect(NOW).files) >= 1
    assert values(opened(), [("x/y",)]) == {"x/y": [3]}


def test_who_lacks_the_library_is_told_which_extra_brings_it(
    format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = {"delta": "deltalake", "iceberg": "pyiceberg"}[format]
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"odfbuild.exchange.tables.{format}", raising=False)
    for name in [each for each in sys.modules if each.startswith(f"{library}.")]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(Exception, match=f"the extra '{format}'"):
        table(format, tmp_path)

"""A table of kartothek that odfbuild publishes: commits, kills, two writers, garbage, refusals."""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from odfbuild.errors import InSettings, TableError
from odfbuild.exchange.tables.contract import TableMoved, Touched
from odfbuild.exchange.tables.kartothek.format import KartothekTable
from odfbuild.exchange.tables.kartothek.garbage import unneeded
from odfbuild.records.kartothek.dataset import open_dataset
from odfbuild.store.place import Folder, PlacedFile, Unconditional
from tests.exchange.tables.kartothek.tables import (
    EVERY_TYPE,
    INDEXABLE,
    content,
    pin,
    record,
    table_at,
    touched,
)

KEYS = ("part", "year")
SMALL = pa.schema({"offset": pa.int64(), "part": pa.string(), "name": pa.string()})
NEVER, NOW = dt.timedelta(days=7), dt.timedelta(0)


def small(offset: int, part: str) -> dict[str, Any]:
    return {"offset": offset, "part": part, "name": f"n{offset}"}


def small_table(folder: Path, **settings: Any) -> KartothekTable:
    given = {"partition_by": ("part",), "indices": ("name",), "schema": SMALL}
    return table_at(folder, **{**given, **settings})


def publish(table: KartothekTable, number: int, records: list[dict[str, Any]], *keys: Any) -> None:
    """Commit records; `keys` are the partitions that they replace, all if there are none."""
    state = table.read_state()
    named = table._keys
    table.commit(state, pin(number), keys or None, touched(records, named, table._spec.schema))


def files(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}


def test_records_of_every_type_come_back_as_they_were(tmp_path: Path) -> None:
    table = table_at(tmp_path, partition_by=KEYS, indices=INDEXABLE)
    records = [
        record(0, "a/b", 2020),
        record(1, "", 2020, bare=True),
        record(2, "ü = %", -1),
        *(record(n, "many", 2021, bare=n % 3 == 0) for n in range(3, 12)),
    ]
    assert table.read_state() is None
    publish(table, 1, records)
    state = table.read_state()
    assert state is not None
    assert (state.pin, state.changed_by, state.partitions) == (pin(1), None, 4)
    assert content(table) == [
        {name: each.get(name) for name in EVERY_TYPE.names} for each in records
    ]
    assert list(table.missing(state)) == []
    assert open_dataset(Folder(tmp_path), "shop_orders").schema("table").names[:2] == [*KEYS]


def test_a_commit_replaces_the_named_partitions_and_leaves_the_files_of_others(
    tmp_path: Path,
) -> None:
    table = small_table(tmp_path)
    publish(table, 1, [small(n, "abc"[n % 3]) for n in range(9)])
    before = files(tmp_path / "shop_orders" / "table")
    publish(table, 2, [small(20, "a")], ("a",), ("b",))
    after = files(tmp_path / "shop_orders" / "table")
    assert [each["offset"] for each in content(table)] == [2, 5, 8, 20]
    assert len(after - before) == 1
    dataset = open_dataset(Folder(tmp_path), "shop_orders")
    assert [each.keys for each in dataset.plan([[("name", "==", "n20")]])] == [{"part": "a"}]
    assert dataset.plan([[("name", "==", "n1")]]) == []


def test_a_partition_is_divided_into_files_of_the_wanted_size(tmp_path: Path) -> None:
    table = small_table(tmp_path, target_file_size=1)
    batches = [pa.RecordBatch.from_pylist([small(n, "a")], SMALL) for n in range(5)]
    table.commit(None, pin(1), None, [Touched(("a",), batches)])
    state = table.read_state()
    assert state is not None
    assert (state.partitions, state.files) == (1, 5)
    assert len(content(table)) == 5


def test_notes_of_others_stay_in_the_metadata(tmp_path: Path) -> None:
    table = small_table(tmp_path)
    publish(table, 1, [small(1, "a")])
    file = tmp_path / "shop_orders.by-dataset-metadata.json"
    metadata = json.loads(file.read_text())
    metadata["metadata"]["owner"] = {"team": "shop"}
    file.write_text(json.dumps(metadata))
    state = table.read_state()
    assert state is not None
    assert state.changed_by is None
    publish(table, 2, [small(2, "a")], ("a",))
    assert json.loads(file.read_text())["metadata"]["owner"] == {"team": "shop"}


def test_a_table_that_another_program_changed_is_recognised(tmp_path: Path) -> None:
    table = small_table(tmp_path)
    publish(table, 1, [small(1, "a"), small(2, "b")])
    file = tmp_path / "shop_orders.by-dataset-metadata.json"
    metadata = json.loads(file.read_text())
    metadata["partitions"].popitem()
    file.write_text(json.dumps(metadata))
    state = table.read_state()
    assert state is not None
    assert state.changed_by == "another program changed its partitions"
    del metadata["metadata"]
    file.write_text(json.dumps(metadata))
    state = table.read_state()
    assert state is not None
    assert (state.pin, state.changed_by) == (None, "odfbuild did not write it")
    publish(table, 3, [small(1, "a"), small(2, "b")])
    assert len(content(table)) == 2


def test_of_two_writers_at_once_one_is_told_that_the_table_moved(tmp_path: Path) -> None:
    table, other = small_table(tmp_path), small_table(tmp_path)
    publish(table, 1, [small(1, "a"), small(2, "b")])
    state = table.read_state()

    def slow() -> Iterator[Touched]:
        yield from touched([small(3, "a")], ["part"], SMALL)
        publish(other, 2, [small(4, "b")], ("b",))

    with pytest.raises(TableMoved):
        table.commit(state, pin(3), [("a",)], slow())
    assert [each["offset"] for each in content(table)] == [1, 4]


def test_many_writers_lose_nothing_that_was_committed(tmp_path: Path) -> None:
    publish(small_table(tmp_path), 0, [small(0, "x")])
    committed: list[str] = []

    def write(part: str) -> None:
        table = small_table(tmp_path)
        for number in range(5):
            while True:
                state = table.read_state()
                records = touched([small(number, f"{part}{number}")], ["part"], SMALL)
                try:
                    table.commit(state, pin(number), [(f"{part}{number}",)], records)
                except TableMoved:
                    continue
                committed.append(f"{part}{number}")
                break

    threads = [threading.Thread(target=write, args=[part]) for part in "abc"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(committed) == 15
    assert {each["part"] for each in content(small_table(tmp_path))} == {"x", *committed}


class Killed(BaseException):
    """What stands for `kill -9`: no code of the writer catches it."""


class Mortal(Folder):
    """A folder whose user dies at a given call that writes."""

    def __init__(self, folder: Path, calls: int) -> None:
        super().__init__(folder)
        self.calls = calls

    def _live(self) -> None:
        self.calls -= 1
        if self.calls < 0:
            raise Killed

    def upload(self, file: Path, name: str, progress: Any = None) -> None:
        self._live()
        super().upload(file, name, progress)

    def write(self, name: str, data: bytes) -> None:
        self._live()
        super().write(name, data)

    def swap(self, name: str, expected: bytes | None, new: bytes) -> bool:
        self._live()
        return super().swap(name, expected, new)


def test_a_kill_at_any_step_leaves_the_old_state_and_a_rerun_gives_the_new_one(
    tmp_path: Path,
) -> None:
    publish(small_table(tmp_path), 1, [small(1, "a"), small(2, "b")])
    old = content(small_table(tmp_path))
    killed = 0
    for calls in range(99):
        table = small_table(tmp_path)
        table._place = Mortal(tmp_path, calls)
        try:
            publish(table, 2, [small(3, "a"), small(4, "c")], ("a",), ("c",))
            break
        except Killed:
            killed += 1
            assert content(small_table(tmp_path)) == old
    assert killed == 4  # two data files, an index, the metadata
    assert [each["offset"] for each in content(small_table(tmp_path))] == [2, 3, 4]
    collected = small_table(tmp_path).collect(NOW)
    # the old data and index, and what each killed writer left
    assert len(collected.files) == 2 + 0 + 1 + 2 + 3
    assert [each["offset"] for each in content(small_table(tmp_path))] == [2, 3, 4]


def test_a_reader_in_a_loop_sees_one_state_or_the_next_while_garbage_is_collected(
    tmp_path: Path,
) -> None:
    table = small_table(tmp_path)
    publish(table, 0, [small(0, "a"), small(0, "b")])
    done = threading.Event()
    seen: set[int] = set()
    faults: list[BaseException] = []

    def read() -> None:
        try:
            while not done.is_set():
                dataset = open_dataset(Folder(tmp_path), "shop_orders")
                rows = dataset.read().read_all().to_pylist()
                assert [row["part"] for row in rows].count("b") == 1
                (newest,) = {row["offset"] for row in rows}
                found = dataset.plan([[("name", "==", f"n{newest}")]])
                assert len(found) == 2
                seen.add(newest)
        except BaseException as error:
            faults.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(1, 200):
        publish(table, number, [small(number, "a"), small(number, "b")], ("a",), ("b",))
        table.collect(dt.timedelta(seconds=2))
    done.set()
    reader.join()
    assert faults == []
    assert len(seen) > 10


@pytest.mark.parametrize(
    ("written", "noted", "committed", "removed"),
    [
        (0, None, 50, True),  # since the last commit at the latest, it has no name
        (0, None, 95, False),  # a reader may have opened the state before
        (60, None, 50, False),  # a writer may be about to commit it
        (0, None, None, False),  # somebody else commits: since when is not known
        (0, 80, None, True),
        (0, 91, None, False),
        (91, 1, None, False),  # written anew since
    ],
)
def test_garbage_is_what_had_no_name_for_the_time_that_states_are_kept(
    written: float, noted: float | None, committed: float | None, *, removed: bool
) -> None:
    file = PlacedFile("u/table/x.parquet", 1, written if written else 0)
    since = {} if noted is None else {file.name: noted}
    found = unneeded([file], [], since, committed, now=100, keep=10 if written != 60 else 50)
    assert (found.remove == (file,)) == removed
    assert (file.name in found.noted) == (not removed)
    assert unneeded([file], [file.name], since, committed, 100, 0).remove == ()


def test_garbage_collection_leaves_other_files_alone_and_can_be_tried(tmp_path: Path) -> None:
    table = small_table(tmp_path)
    publish(table, 1, [small(1, "a")])
    publish(table, 2, [small(2, "a")], ("a",))
    note = tmp_path / "shop_orders" / "table" / "README.txt"
    note.write_text("ours")
    tried = table.collect(NOW, dry_run=True)
    assert table.collect(NEVER).files == ()
    assert table.collect(NOW) == tried
    assert len(tried.files) == 2
    assert note.exists()
    assert table.collect(NOW).files == ()


def test_several_tables_share_a_dataset_and_its_indices(tmp_path: Path) -> None:
    orders = small_table(tmp_path, group="shop", name="orders")
    items = small_table(tmp_path, group="shop", name="items", indices=())
    publish(orders, 1, [small(1, "a"), small(2, "b")])
    publish(items, 1, [small(1, "a"), small(7, "c")])
    publish(orders, 2, [small(3, "a")], ("a",))
    assert [each["offset"] for each in content(orders)] == [2, 3]
    assert [each["offset"] for each in content(items)] == [1, 7]
    for table in (orders, items):
        state = table.read_state()
        assert state is not None
        assert state.changed_by is None
        assert list(table.missing(state)) == []
    dataset = open_dataset(Folder(tmp_path), "shop")
    assert dataset.tables == ("items", "orders")
    found = dataset.read("items", predicates=[[("name", "==", "n7")]]).read_all()
    assert found.column("offset").to_pylist() == [7]
    assert len(dataset.plan([[("name", "==", "n1")]], "items")) == 1
    with pytest.raises(TableError) as caught:
        dataset.schema("nope")
    assert caught.value.code == "E1334"


def test_a_commit_of_one_table_goes_on_when_another_of_the_dataset_moves(tmp_path: Path) -> None:
    orders = small_table(tmp_path, group="shop", name="orders")
    items = small_table(tmp_path, group="shop", name="items")
    publish(orders, 1, [small(1, "a")])
    publish(items, 1, [small(1, "a")])
    state = orders.read_state()

    def slow() -> Iterator[Touched]:
        yield from touched([small(3, "a")], ["part"], SMALL)
        publish(items, 2, [small(4, "b")], ("b",))

    orders.commit(state, pin(3), [("a",)], slow())
    assert [each["offset"] for each in content(orders)] == [3]
    assert [each["offset"] for each in content(items)] == [1, 4]


def test_tables_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    publish(small_table(tmp_path, group="shop", name="orders"), 1, [small(1, "a")])
    other = SMALL.set(0, pa.field("offset", pa.string()))
    others = [
        small_table(tmp_path, group="shop", name="items", partition_by=(), indices=()),
        small_table(tmp_path, group="shop", name="items", schema=other),
    ]
    for each in others:
        with pytest.raises(TableError) as caught:
            each.commit(None, pin(1), None, [])
        assert caught.value.code == "E1344"
    assert len(content(small_table(tmp_path, group="shop", name="orders"))) == 1


def test_another_layout_is_written_anew(tmp_path: Path) -> None:
    publish(small_table(tmp_path), 1, [small(1, "a"), small(2, "b")])
    wider = SMALL.append(pa.field("more", pa.int32()))
    table = small_table(tmp_path, partition_by=(), indices=("offset",), schema=wider)
    publish(table, 2, [{**small(1, "a"), "more": 5}, small(2, "b")])
    dataset = open_dataset(Folder(tmp_path), "shop_orders")
    assert dataset.schema().names == ["more", "name", "offset", "part"]
    assert set(dataset.metadata.indices) == {"offset"}
    assert content(table)[0]["more"] == 5


def test_the_schema_of_a_state_is_that_of_its_metadata(tmp_path: Path) -> None:
    publish(small_table(tmp_path), 1, [small(1, "a")])
    wider = SMALL.append(pa.field("more", pa.int32()))
    table = small_table(tmp_path, schema=wider)
    table._place = Mortal(tmp_path, 3)  # dies between the schema and the metadata
    with pytest.raises(Killed):
        publish(table, 2, [{**small(1, "a"), "more": 5}])
    dataset = open_dataset(Folder(tmp_path), "shop_orders")
    assert dataset.schema().names == ["part", "name", "offset"]
    assert dataset.read().read_all().num_rows == 1


def test_a_store_without_conditions_is_written_after_a_comparison(tmp_path: Path) -> None:
    class Careless(Folder):
        def swap(self, name: str, expected: bytes | None, new: bytes) -> bool:
            raise Unconditional

    table = small_table(tmp_path)
    table._place = Careless(tmp_path)
    publish(table, 1, [small(1, "a")])
    publish(table, 2, [small(2, "a")], ("a",))
    assert [each["offset"] for each in content(table)] == [2]


@pytest.mark.parametrize(
    ("settings", "code", "place"),
    [
        ({"partition_by": ("flag",)}, "E1340", "tables[0].partitionBy[0]"),
        ({"partition_by": ("price",)}, "E1340", "tables[0].partitionBy[0]"),
        ({"indices": ("name", "place")}, "E1342", "tables[0].indices[1]"),
        ({"indices": ("price",)}, "E1342", "tables[0].indices[0]"),
        ({"indices": ("tags",)}, "E1342", "tables[0].indices[0]"),
        ({"partition_by": ("part",), "indices": ("part",)}, "E1342", "tables[0].indices[0]"),
        ({"name": "shop orders"}, "E1331", "tables[0].name"),
        ({"group": "a:b"}, "E1331", "tables[0].group"),
        ({"group": "g", "name": "indices"}, "E1331", "tables[0].group"),
        ({"schema": pa.schema({"d": pa.duration("s")})}, "E1341", None),
    ],
)
def test_what_kartothek_cannot_have_is_refused_at_its_place(
    tmp_path: Path, settings: dict[str, Any], code: str, place: str | None
) -> None:
    with pytest.raises(TableError) as caught:
        table_at(tmp_path, **settings)
    assert caught.value.code == code
    assert caught.value.help
    assert isinstance(caught.value.location, InSettings) == (place is not None)
    assert place is None or str(caught.value.location) == place


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_key_with_nulls_is_refused_and_the_table_stays_as_it_was(
    tmp_path: Path, missing: Any
) -> None:
    schema = pa.schema({"offset": pa.int64(), "part": pa.float64()})
    table = table_at(tmp_path, schema=schema, partition_by=("part",))
    publish(table, 1, [{"offset": 1, "part": 1.0}])
    with pytest.raises(TableError) as caught:
        publish(table, 2, [{"offset": 2, "part": missing}], (missing,))
    assert caught.value.code == "E1339"
    assert [each["offset"] for each in content(table)] == [1]


def test_foreign_files_in_the_folder_of_a_new_dataset_are_refused(tmp_path: Path) -> None:
    foreign = tmp_path / "shop_orders" / "table" / "notes.csv"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("mine")
    with pytest.raises(TableError) as caught:
        publish(small_table(tmp_path), 1, [small(1, "a")])
    assert caught.value.code == "E1345"
    assert files(tmp_path) == {"shop_orders/table/notes.csv"}


def test_files_that_a_foreign_garbage_collection_removes_stop_the_commit(tmp_path: Path) -> None:
    table = small_table(tmp_path)
    publish(table, 1, [small(1, "a")])

    def collected() -> Iterator[Touched]:
        before = files(tmp_path)
        yield from touched([small(2, "b")], ["part"], SMALL)
        for each in files(tmp_path) - before:
            (tmp_path / each).unlink()

    with pytest.raises(TableError) as caught:
        table.commit(table.read_state(), pin(2), [("b",)], collected())
    assert caught.value.code == "E1343"
    assert [each["offset"] for each in content(table)] == [1]

"""Damaged and unsupported datasets of kartothek: an error with a place and a way out."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from odfbuild.errors import TableError
from odfbuild.records.kartothek.dataset import Kartothek, open_dataset
from odfbuild.store.place import Folder
from tests.exchange.tables.kartothek.tables import content, pin, record, table_at, touched

KEYS = ("part",)
METADATA = "shop_orders.by-dataset-metadata.json"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    table = table_at(tmp_path, partition_by=KEYS, indices=("name", "count"))
    records = [record(n, "ab"[n % 2], 2020) for n in range(4)]
    table.commit(None, pin(1), None, touched(records, KEYS))
    return tmp_path


def opened(lake: Path) -> Kartothek:
    return open_dataset(Folder(lake), "shop_orders")


def change(lake: Path, **values: Any) -> None:
    file = lake / METADATA
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def cut(lake: Path, pattern: str) -> str:
    file = next(lake.glob(pattern))
    file.write_bytes(file.read_bytes()[:50])
    return str(file.relative_to(lake))


def remove(lake: Path, pattern: str) -> str:
    file = next(lake.glob(pattern))
    file.unlink()
    return str(file.relative_to(lake))


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda lake: change(lake, dataset_metadata_version=3), "E1333"),
        (lambda lake: change(lake, dataset_metadata_version=5), "E1333"),
        (lambda lake: change(lake, dataset_metadata_version="4"), "E1332"),
        (lambda lake: change(lake, dataset_uuid="a b"), "E1331"),
        (lambda lake: cut(lake, METADATA), "E1332"),
        (lambda lake: remove(lake, METADATA), "E1330"),
    ],
)
def test_a_dataset_with_wrong_metadata_is_not_opened(
    lake: Path, damage: Callable[[Path], Any], code: str
) -> None:
    damage(lake)
    with pytest.raises(TableError) as caught:
        opened(lake)
    assert caught.value.code == code
    assert caught.value.help


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda lake: remove(lake, "shop_orders/table/part=a/*"), "E1337"),
        (lambda lake: cut(lake, "shop_orders/table/part=a/*"), "E1338"),
        (lambda lake: remove(lake, "shop_orders/indices/name/*"), "E1337"),
        (lambda lake: cut(lake, "shop_orders/indices/name/*"), "E1338"),
        (lambda lake: remove(lake, "shop_orders/table/_common_metadata"), None),
    ],
)
def test_a_lost_or_damaged_file_is_named(
    lake: Path, damage: Callable[[Path], str], code: str | None
) -> None:
    file = damage(lake)
    if code is not None:  # the metadata of a published table has its schema, too
        with pytest.raises(TableError) as caught:
            opened(lake).read(predicates=[[("name", "==", "n0")]]).read_all()
        assert caught.value.code == code
        assert file in str(caught.value)
    table = table_at(lake, partition_by=KEYS, indices=("name", "count"))
    state = table.read_state()
    assert state is not None
    if code != "E1338":
        assert [f"shop_orders/{each}" for each in table.missing(state)] == [file]
    records = [record(n, "ab"[n % 2], 2020) for n in range(4)]
    table.commit(state, pin(1), None, touched(records, KEYS))
    assert len(content(table)) == 4
    again = table.read_state()
    assert again is not None
    assert list(table.missing(again)) == []


@pytest.mark.parametrize("keep", [True, False])
def test_a_published_table_whose_metadata_is_deleted_is_written_anew(
    lake: Path, *, keep: bool
) -> None:
    (lake / METADATA).unlink()
    table = table_at(lake, partition_by=KEYS, indices=("name", "count"))
    assert table.read_state() is None
    table.commit(None, pin(2), None, touched([record(7, "a", 2020)], KEYS))
    assert [row["offset"] for row in content(table)] == [7]
    collected = table.collect(dt.timedelta(days=1 if keep else 0))
    assert (len(collected.files) == 0) is keep


def test_files_of_columns_that_are_gone_read_as_nulls(lake: Path) -> None:
    dataset = opened(lake)
    wanted = pa.schema({"name": pa.string(), "later": pa.int64()})
    rows = dataset.rows(dataset.plan()[0], wanted)
    assert rows.column("later").null_count == rows.num_rows


@pytest.mark.parametrize(
    ("predicates", "code", "why"),
    [
        ([[("nmae", "==", "a")]], "E1335", "name"),
        ([[("name", "~", "a")]], "E1336", "~"),
        ([], "E1336", "empty"),
        ([[]], "E1336", "empty"),
        ("x", "E1336", "not a list"),
        ([["name", "==", "a"]], "E1336", "not a list"),
        ([[("name", "==")]], "E1336", "an operator"),
        ([[("name", "==", 1)]], "E1336", "string"),
        ([[("count", "==", True)]], "E1336", "int64"),
        ([[("count", "==", 1.5)]], "E1336", "int64"),
        ([[("count", "==", 2**70)]], "E1336", "int64"),
        ([[("flag", "==", 1)]], "E1336", "bool"),
        ([[("day", "==", "tomorrow")]], "E1336", "date32"),
        ([[("day", "==", dt.datetime(2020, 1, 1, 2))]], "E1336", "date32"),
        ([[("name", "in", "abc")]], "E1336", "`in`"),
        ([[("name", "<", None)]], "E1336", "no value"),
        ([[("place", "==", {})]], "E1336", "struct"),
    ],
)
def test_wrong_predicates_are_refused(lake: Path, predicates: Any, code: str, why: str) -> None:
    with pytest.raises(TableError) as caught:
        opened(lake).plan(predicates)
    assert caught.value.code == code
    assert why in " ".join([str(caught.value), *caught.value.notes, caught.value.help or ""])


def test_a_table_that_is_not_there_is_refused(lake: Path) -> None:
    with pytest.raises(TableError) as caught:
        opened(lake).read("orders")
    assert caught.value.code == "E1334"


@pytest.mark.parametrize("uuid", ["a b", "a.b", "", "../x"])
def test_a_name_that_no_dataset_can_have_is_refused(tmp_path: Path, uuid: str) -> None:
    with pytest.raises(TableError) as caught:
        open_dataset(Folder(tmp_path), uuid)
    assert caught.value.code == "E1331"


def test_a_label_that_only_an_index_knows_is_left_out(lake: Path) -> None:
    file = lake / METADATA
    metadata = json.loads(file.read_text())
    del metadata["partitions"][next(each for each in metadata["partitions"] if "part=a" in each)]
    file.write_text(json.dumps(metadata))
    found = opened(lake).plan([[("name", "in", ["n0", "n1", "n2", "n3"])]])
    assert [each.keys["part"] for each in found] == ["b"]


def test_a_partition_that_no_index_knows_is_opened_if_somebody_else_wrote_it(lake: Path) -> None:
    file = lake / METADATA
    metadata = json.loads(file.read_text())
    label, files = next(iter(metadata["partitions"].items()))
    metadata["partitions"][f"{label}x"] = files
    file.write_text(json.dumps(metadata))
    found = opened(lake).plan([[("name", "==", "none")]])
    assert [each.label for each in found] == [f"{label}x"]


def test_older_datasets_list_their_partitions_and_embed_indices(lake: Path) -> None:
    labels = list(json.loads((lake / METADATA).read_text())["partitions"])
    content = {
        "dataset_metadata_version": 4,
        "dataset_uuid": "shop_orders",
        "indices": {"count": {"1": [labels[1]], "0": [labels[0]]}},
        "metadata": None,
    }
    (lake / METADATA).write_text(json.dumps(content))
    dataset = opened(lake)
    assert sorted(dataset.partitions) == sorted(labels)
    assert dataset.read().read_all().num_rows == 4

"""Datasets that the real kartothek 5.3 wrote are read as they were meant, queries by index too.

`write_golden.py` wrote them, with what kartothek itself answers. Where that differs from SQL, it
drops or keeps nulls by accident; odfbuild then answers as SQL does, and opens what it has to.
"""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from odfbuild.records.kartothek.dataset import Kartothek, open_dataset
from odfbuild.store.place import Folder

GOLDEN = Path(__file__).parent / "golden"
EXPECTED: dict[str, Any] = json.loads((GOLDEN / "expected.json").read_text())
QUERIES = [
    pytest.param(uuid, query, id=f"{uuid} {query['predicates']}")
    for uuid, each in EXPECTED.items()
    for query in each["queries"]
]


def opened(uuid: str) -> Kartothek:
    return open_dataset(Folder(GOLDEN), uuid)


def value(plain: Any) -> Any:
    """A value of `expected.json`."""
    if isinstance(plain, list):
        return [value(each) for each in plain]
    if isinstance(plain, dict):
        ((kind, text),) = plain.items()
        if kind == "bytes":
            return bytes.fromhex(text)
        return dt.date.fromisoformat(text) if kind == "date" else dt.datetime.fromisoformat(text)
    return plain


@pytest.mark.parametrize("uuid", EXPECTED)
def test_all_records_of_a_golden_dataset_are_read(uuid: str) -> None:
    dataset = opened(uuid)
    assert dataset.tables == tuple(sorted(EXPECTED[uuid]["tables"]))
    for table, records in EXPECTED[uuid]["tables"].items():
        rows = dataset.read(table).read_all().to_pylist()
        found = sorted(rows, key=lambda row: row["id"])
        assert found == [{name: value(each) for name, each in row.items()} for row in records]


@pytest.mark.parametrize(("uuid", "query"), QUERIES)
def test_a_query_finds_what_sql_finds_and_opens_what_kartothek_opens(
    uuid: str, query: dict[str, Any]
) -> None:
    dataset, predicates = opened(uuid), value(query["predicates"])
    rows = dataset.read(query["table"], ["id"], predicates).read_all()
    assert sorted(rows.column("id").to_pylist()) == query["sql"]
    planned = {each.file for each in dataset.plan(predicates, query["table"])}
    if query.get("kartothek") == query["sql"]:
        assert planned - _in_no_index(dataset, predicates) <= set(query["opened"])


def _in_no_index(dataset: Kartothek, predicates: Any) -> set[str]:
    """Files of partitions that an index does not name: kartothek takes them for empty."""
    known = dataset.schema("table") if "table" in dataset.tables else dataset.schema("more")
    found: set[str] = set()
    for column in {column for part in predicates for column, _, _ in part}:
        index = dataset.index(column, known.field(column).type) if column in known.names else None
        if index is not None:
            labels = index.unlisted(dataset.partitions)
            found |= {file for each in labels for file in dataset.partitions[each].values()}
    return found


def test_what_is_selective_opens_few_files() -> None:
    dataset = opened("orders")
    assert len(dataset.plan()) == 5
    assert len(dataset.plan([[("ratio", "==", 0.25)]])) == 1
    assert dataset.plan([[("product", "==", 99)]]) == []


def test_notes_and_both_forms_of_metadata_are_read() -> None:
    assert opened("orders").metadata.user["owner"] == "golden"
    assert opened("orders").metadata.user["revision"] == "2"
    assert not (GOLDEN / "twotables.by-dataset-metadata.json").exists()
    assert opened("twotables").tables == ("core", "more")

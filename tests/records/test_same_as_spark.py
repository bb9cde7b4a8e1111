"""The current state without Spark is the one that Spark shows, on every history with operations."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from odfbuild.engine.contract import Engine
from odfbuild.inspect.ask import asked_of, understand
from odfbuild.report.records.answer import read_answer
from tests.conformance.vectors import DEFAULT, MORE
from tests.records.chains import Chain, workspace

pytestmark = pytest.mark.spark

OPS = {"+A": 0, "-R": 1, "-C": 2, "+C": 3}
SYSTEM = ("offset", "op", "system_time", "event_time")


def tables(value: Any) -> Iterator[dict[str, Any]]:
    """Every table of a case that has operations."""
    if isinstance(value, dict):
        if "op" in (value.get("columns") or ()) and value.get("rows"):
            yield value
        for each in value.values():
            yield from tables(each)
    elif isinstance(value, list):
        for each in value:
            yield from tables(each)


def histories() -> list[tuple[list[str], list[list[Any]]]]:
    """Columns and rows of all histories of the conformance cases, each once."""
    found = {}
    for folder in (DEFAULT, MORE):
        for file in sorted(folder.glob("*.json")):
            for table in tables(json.loads(file.read_text("utf-8"))["cases"]):
                key = json.dumps((table["columns"], table["rows"]))
                found[key] = (table["columns"], table["rows"])
    return list(found.values())


def test_every_history_of_the_conformance_cases_amounts_to_the_same(
    spark_engine: Engine, tmp_path: Path
) -> None:
    space = workspace(tmp_path)
    chains = {}
    for number, (columns, rows) in enumerate(histories()):
        data = [name for name in columns if name not in SYSTEM]
        values = {name: column_of([row[columns.index(name)] for row in rows]) for name in data}
        fields = [
            pa.field(name, pa.string() if pa.types.is_null(found.type) else found.type)
            for name, found in values.items()
        ]
        ops = [OPS.get(row[columns.index("op")], row[columns.index("op")]) for row in rows]
        chain = Chain(space, f"history-{number}", *fields)
        times = [0] * len(rows)
        records = list(zip(times, *(found.to_pylist() for found in values.values()), strict=True))
        half = len(rows) // 2
        for part in (slice(None, half), slice(half, None)):
            if records[part]:
                chain.add(records[part], ops[part])
        chains[chain.name] = chain
    assert len(chains) > 50
    with_operations = 0
    for name, chain in chains.items():
        question = understand(f"SELECT * FROM {name}", [name])
        with asked_of(lambda: spark_engine, space, question) as answer:
            expected = rows_of(read_answer(answer.parts, answer.schema))
        found = chain.records()
        assert rows_of(pa.Table.from_batches(found.batches(), found.schema)) == expected, name
        with duckdb.connect() as connection:
            found.duckdb_view(connection, "v")
            assert rows_of(connection.sql("FROM v").to_arrow_table()) == expected, name
        assert found.count() == expected.total()
        with_operations += found.retracted.count > 0
    assert with_operations > 20


def column_of(values: list[Any]) -> pa.Array:
    """Values as the case has them, or their text where they are of several types or too large."""
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if each is None else str(each) for each in values])


def rows_of(table: pa.Table) -> Counter[tuple[str, ...]]:
    return Counter(tuple(map(str, row.values())) for row in table.to_pylist())

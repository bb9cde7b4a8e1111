"""Rows that odfbuild wrote itself become the same slice without Spark as through it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine import own_rows
from odfbuild.engine.contract import Engine, EngineResult, IngestTask
from odfbuild.engine.own_rows import records_of_own_rows
from odfbuild.engine.slice import dataset_schema, write_slice
from odfbuild.errors import IngestError
from odfbuild.odf.model import (
    MergeStrategy,
    MergeStrategyAppend,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    MergeStrategyUpsertStream,
    ReadStepParquet,
    TransformSql,
)
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from tests.ingest.run_ingest import OneFile

NOW = Timestamp.parse("2026-03-01T12:00:00Z")
VOCAB = Vocabulary()
UTC_MICROS = pa.timestamp("us", "UTC")
FILE = pa.schema(
    [
        ("id", pa.int32()),
        ("event_time", UTC_MICROS),
        ("name", pa.string()),
        ("amount", pa.decimal128(10, 2)),
        ("at", UTC_MICROS),
        ("day", pa.date32()),
        ("is_open", pa.bool_()),
        ("ratio", pa.float64()),
        ("raw", pa.binary()),
        ("more", pa.string()),
    ]
)
DECLARED = (
    "name STRING",
    "id BIGINT NOT NULL",
    "event_time TIMESTAMP",
    "amount DECIMAL(12, 3)",
    "at TIMESTAMP(6)",
    "day DATE",
    "is_open BOOLEAN",
    "ratio DOUBLE",
    "raw BINARY",
)
BEGIN = datetime(1969, 12, 31, 23, 59, 58, tzinfo=UTC)


def row(number: int) -> dict[str, Any]:
    """Times that are equal in milliseconds only, and some before 1970; blanks here and there."""
    at = BEGIN + timedelta(microseconds=(number * 7919 % 4000) * 333)
    return {
        "id": number,
        "event_time": at,
        "name": None if number % 7 == 0 else f"näme {number * 31 % 50}",
        "amount": Decimal(number * 17 % 1000 - 500) / 100,
        "at": None if number % 5 == 0 else at,
        "day": date(2026, 1, 1) + timedelta(days=number % 40),
        "is_open": number % 2 == 0,
        "ratio": number / 7,
        "raw": bytes([number % 256]),
        "more": "left out",
    }


def shuffled(count: int) -> list[dict[str, Any]]:
    return [row(each * 7 % count) for each in range(count)]


def in_order(count: int) -> list[dict[str, Any]]:
    return sorted(map(row, range(count)), key=lambda each: (each["event_time"], each["id"]))


def task(
    folder: Path,
    rows: Sequence[dict[str, Any]],
    merge: MergeStrategy,
    declared: Sequence[str] = DECLARED,
    schema: pa.Schema = FILE,
    **options: Any,
) -> IngestTask:
    file = folder / "rows.parquet"
    with pq.ParquetWriter(file, schema) as writer:
        for start in range(0, max(1, len(rows)), 100):
            writer.write_batch(pa.RecordBatch.from_pylist(rows[start : start + 100], schema))
    scratch = folder / "scratch"
    scratch.mkdir()
    return IngestTask(
        **{
            "dataset": "tests",
            "file": file,
            "source_name": "shop",
            "read": ReadStepParquet(ddl_schema=tuple(declared)),
            "preprocess": None,
            "merge": merge,
            "vocab": VOCAB,
            "history": OneFile(None),
            "history_schema": None,
            "event_time": NOW,
            "scratch": scratch,
            **options,
        }
    )


def slice_of(result: EngineResult, target: Path) -> tuple[bytes, pa.Schema]:
    assert result.schema is not None
    written = write_slice(
        result,
        dataset="tests",
        schema=dataset_schema(result.schema, VOCAB),
        vocab=VOCAB,
        first_offset=5,
        system_time=NOW,
        target=target,
    )
    return b"" if written is None else target.read_bytes(), result.schema


MERGES: dict[str, MergeStrategy] = {
    "append": MergeStrategyAppend(),
    "ledger": MergeStrategyLedger(primary_key=("day", "name")),
    "snapshot": MergeStrategySnapshot(primary_key=("id",)),
    "snapshot by two columns": MergeStrategySnapshot(primary_key=("amount", "id")),
    "upserts": MergeStrategyUpsertStream(primary_key=("id",)),
}


@pytest.mark.spark
@pytest.mark.parametrize("rows", [shuffled(250), in_order(250), []], ids=["any", "sorted", "none"])
@pytest.mark.parametrize("merge", MERGES)
def test_a_slice_has_the_same_bytes_without_spark(
    spark_engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    merge: str,
    rows: list[dict[str, Any]],
) -> None:
    monkeypatch.setattr(own_rows, "_RUN_BYTES", 10_000)
    monkeypatch.setattr(own_rows, "_BATCH_ROWS", 60)
    given = task(tmp_path, rows, MERGES[merge])
    found = records_of_own_rows(given)
    assert found is not None
    without = slice_of(found, tmp_path / "without")
    other = replace(given, scratch=tmp_path)
    assert without == slice_of(spark_engine.run(other), tmp_path / "through")


@pytest.mark.spark
@pytest.mark.parametrize("merge", ["append", "snapshot"])
def test_the_time_of_the_source_is_that_of_rows_without_one(
    spark_engine: Engine, tmp_path: Path, merge: str
) -> None:
    declared = [each for each in DECLARED if not each.startswith("event_time")]
    schema = FILE.remove(FILE.get_field_index("event_time"))
    rows = [{k: v for k, v in each.items() if k != "event_time"} for each in shuffled(90)]
    given = task(tmp_path, rows, MERGES[merge], declared, schema)
    found = records_of_own_rows(given)
    assert found is not None
    without = slice_of(found, tmp_path / "without")
    assert without == slice_of(
        spark_engine.run(replace(given, scratch=tmp_path)), tmp_path / "through"
    )


@pytest.mark.spark
def test_rows_are_appended_to_earlier_ones_without_spark(
    spark_engine: Engine, tmp_path: Path
) -> None:
    given = task(tmp_path, shuffled(90), MergeStrategyAppend())
    first = records_of_own_rows(given)
    assert first is not None
    assert first.schema is not None
    (tmp_path / "later").mkdir()
    history = dataset_schema(first.schema, VOCAB)
    later = replace(given, history_schema=history, scratch=tmp_path / "later")
    found = records_of_own_rows(later)
    assert found is not None
    without = slice_of(found, tmp_path / "without")
    assert without == slice_of(
        spark_engine.run(replace(later, scratch=tmp_path)), tmp_path / "through"
    )


@pytest.mark.spark
def test_what_is_left_to_spark_is_told_by_it(spark_engine: Engine, tmp_path: Path) -> None:
    given = task(tmp_path, [*shuffled(30), row(3)], MERGES["snapshot"])
    assert records_of_own_rows(given) is None
    with pytest.raises(IngestError, match="id 3 "):
        spark_engine.run(given)


def with_row(number: int, **values: Any) -> list[dict[str, Any]]:
    rows = shuffled(30)
    rows[number] |= values
    return rows


BY_TIME = MergeStrategySnapshot(primary_key=("at",))
LEFT: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "a key twice": ([*shuffled(30), row(3)], {}),
    "a key twice in order": ([row(1), row(1)], {}),
    "a blank in a required column": (with_row(2, id=None), {}),
    "a blank event time": (with_row(2, event_time=None), {}),
    "another type": ([], {"declared": ("id STRING",)}),
    "a narrower type": ([], {"declared": ("id SMALLINT",)}),
    "fewer digits": ([], {"declared": ("id INT", "amount DECIMAL(10, 1)")}),
    "a column that is missing": ([], {"declared": ("id INT", "other STRING")}),
    "a system column": ([], {"declared": ("id INT", "system_time TIMESTAMP")}),
    "no columns that are declared": ([], {"declared": ()}),
    "a key that is no column": ([], {"merge": MergeStrategySnapshot(primary_key=("other",))}),
    "a key that is cut": (
        [],
        {
            "declared": ("id INT", "at TIMESTAMP"),
            "merge": MergeStrategySnapshot(primary_key=("at",)),
        },
    ),
    "a key of another order": ([], {"merge": MergeStrategySnapshot(primary_key=("ratio",))}),
    "the last of each key": ([], {"duplicate_keys": "last"}),
    "a query": ([], {"preprocess": TransformSql(engine="spark")}),
    "changes": ([], {"of_changes": True}),
    "earlier records": ([], {"history_schema": pa.schema([])}),
}


@pytest.mark.parametrize("what", LEFT)
def test_what_is_not_certain_is_left_to_spark(tmp_path: Path, what: str) -> None:
    rows, options = LEFT[what]
    given = task(tmp_path, rows, **{"merge": MERGES["snapshot"], **options})
    assert records_of_own_rows(given) is None

"""Rows of an answer: as a table, CSV, JSON, lines of JSON, or Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from odfbuild.odf.records import records_to_data
from odfbuild.records.slice_file import with_statistics
from odfbuild.report.records.table import render_records

OPERATION = "op"
"""Numbers in a column of this name are shown as operations, as everywhere."""


def engine_of_answer(schema: pa.Schema) -> str | None:
    """What answered, by the metadata that it left; `None`: Spark."""
    name: bytes | None = (schema.metadata or {}).get(b"odfbuild.engine")
    return name.decode() if name else None


def render_answer(parts: Sequence[Path], schema: pa.Schema, limit: int | None) -> str:
    """A table of at most `limit` rows, whether there are more, and what answered if not Spark."""
    table = read_answer(parts, schema)
    shown = table if limit is None else table.slice(0, limit)
    other = engine_of_answer(schema)
    by = f"\nAnswered by {other}." if other else ""
    if not shown.num_columns or not shown.num_rows:
        return f"No rows.{by}"
    text = render_records(shown, OPERATION)
    more = "" if shown.num_rows == table.num_rows else "\n… and more: see --limit"
    return f"{text}{more}{by}"


def write_answer(parts: Sequence[Path], schema: pa.Schema, format: str, to: IO[bytes]) -> None:
    """Write all rows as `text`, `csv`, `json`, `jsonl` or `parquet`; bytes as base64 in JSON.

    `ValueError` for a column that CSV cannot hold, such as a list.
    """
    match format:
        case "csv":
            _write_csv(parts, schema, to)
        case "parquet":
            told = with_statistics(schema)
            with pq.ParquetWriter(to, schema, write_statistics=told) as writer:
                for batch in _batches(parts, schema):
                    writer.write_batch(batch)
        case "json":
            rows = [row for batch in _batches(parts, schema) for row in _plain(batch)]
            to.write(json.dumps(rows, indent=2, ensure_ascii=False).encode() + b"\n")
        case "text":
            to.write(render_answer(parts, schema, None).encode() + b"\n")
        case "jsonl":
            for batch in _batches(parts, schema):
                for row in _plain(batch):
                    to.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def _write_csv(parts: Sequence[Path], schema: pa.Schema, to: IO[bytes]) -> None:
    for field in schema:
        if pa.types.is_nested(field.type):
            raise ValueError(
                f"column '{field.name}' is of type {field.type}, which CSV cannot hold"
            )
    with pa.csv.CSVWriter(to, schema) as writer:
        for batch in _batches(parts, schema):
            writer.write_batch(batch)


def read_answer(parts: Sequence[Path], schema: pa.Schema) -> pa.Table:
    """All rows."""
    return pa.Table.from_batches(list(_batches(parts, schema)), schema)


def _batches(parts: Sequence[Path], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for part in parts:
        with pq.ParquetFile(part) as file:
            for batch in file.iter_batches():
                found = batch.select(schema.names)
                if found.schema.types == schema.types:  # to cast, PyArrow imports a lot
                    yield pa.RecordBatch.from_arrays(found.columns, schema=schema)
                else:
                    yield found.cast(schema)


def _plain(batch: pa.RecordBatch) -> list[dict[str, object]]:
    return records_to_data(pa.Table.from_batches([batch]), OPERATION)

"""Tables of kartothek for tests: records of all types, and the table that they are published to."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from odfbuild.exchange.tables.contract import Key, TablePin, TableSpec, Touched
from odfbuild.exchange.tables.kartothek.format import KartothekTable, open_table
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.multihash import Multihash
from odfbuild.project.tables import Table

EVERY_TYPE = pa.schema(
    {
        "offset": pa.int64(),
        "part": pa.string(),
        "year": pa.int32(),
        "name": pa.string(),
        "count": pa.int32(),
        "big": pa.int64(),
        "small": pa.uint8(),
        "ratio": pa.float64(),
        "single": pa.float32(),
        "flag": pa.bool_(),
        "day": pa.date32(),
        "at": pa.timestamp("ms", "UTC"),
        "price": pa.decimal128(10, 2),
        "blob": pa.binary(),
        "tags": pa.list_(pa.string()),
        "place": pa.struct({"lat": pa.float64(), "name": pa.string()}),
        "Upper": pa.large_string(),
    }
)
INDEXABLE = ("name", "count", "big", "small", "ratio", "single", "flag", "day", "at", "blob")


def record(offset: int, part: str, year: int, *, bare: bool = False) -> dict[str, Any]:
    """A record whose values follow from its offset; a `bare` one has nulls."""
    if bare:
        return {"offset": offset, "part": part, "year": year}
    return {
        "offset": offset,
        "part": part,
        "year": year,
        "name": f"n{offset % 7}",
        "count": offset % 5,
        "big": 2**60 + offset,
        "small": offset % 200,
        "ratio": offset / 4,
        "single": offset / 2,
        "flag": offset % 2 == 0,
        "day": dt.date(1969, 12, 30) + dt.timedelta(days=offset),
        "at": dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC) + dt.timedelta(milliseconds=offset),
        "price": Decimal(offset) / 100,
        "blob": bytes([65 + offset % 26]),
        "tags": [f"t{offset}", "x"],
        "place": {"lat": 1.5, "name": "here"},
        "Upper": "U",
    }


def table_at(
    folder: Path,
    *,
    schema: pa.Schema = EVERY_TYPE,
    name: str = "shop.orders",
    location: str | None = None,
    **settings: Any,
) -> KartothekTable:
    """The table that an entry of odfbuild.yaml with these settings declares."""
    scratch = folder / ".scratch"
    scratch.mkdir(exist_ok=True, parents=True)
    table = Table(
        name=name, dataset=name, format="kartothek", location=location or str(folder), **settings
    )
    return open_table(TableSpec(table, schema, scratch))


def pin(number: int) -> TablePin:
    """A pin of a block with this number."""
    return TablePin(
        dataset_id=DatasetId.from_bytes(b"\xed\x01" + bytes(32)),
        block=Multihash.sha3_256(f"block {number}".encode()),
        last_offset=number,
        view="current",
        layout="x",
    )


def touched(
    records: Iterable[dict[str, Any]], keys: Sequence[str], schema: pa.Schema = EVERY_TYPE
) -> list[Touched]:
    """Records as the content of the partitions that they belong to."""
    by_key: dict[Key, list[dict[str, Any]]] = {}
    for each in records:
        by_key.setdefault(tuple(each[key] for key in keys), []).append(each)
    return [
        Touched(key, [pa.RecordBatch.from_pylist(rows, schema)]) for key, rows in by_key.items()
    ]


def content(table: KartothekTable) -> list[dict[str, Any]]:
    """All records of the present state, as the dataset has them."""
    state = table.read_state()
    assert state is not None
    batches = table.content_of(state, None)
    rows = [row for batch in batches for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: row["offset"])

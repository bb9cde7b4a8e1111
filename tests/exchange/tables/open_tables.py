"""A table of Delta or Iceberg without a dataset behind it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from odfbuild.exchange.tables.contract import TableFormat, TablePin, TableSpec, TableState, Touched
from odfbuild.exchange.tables.formats import open_table
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.multihash import Multihash
from odfbuild.project.tables import Table

COLUMNS = pa.schema([("k", pa.string()), ("n", pa.int32()), ("v", pa.int64())])


def table(
    format: Any,
    location: Path | str,
    columns: pa.Schema = COLUMNS,
    partition_by: tuple[str, ...] = ("k",),
    name: str = "t",
    **settings: Any,
) -> TableFormat:
    declared = Table(
        name=name,
        dataset="t",
        format=format,
        location=str(location),
        partition_by=partition_by,
        **settings,
    )
    return open_table(TableSpec(declared, columns, Path()))


def pin(block: int) -> TablePin:
    return TablePin(
        dataset_id=DatasetId(bytes(32)),
        block=Multihash.sha3_256(str(block).encode()),
        last_offset=block,
        view="current",
        layout="layout",
    )


def part(
    rows: Iterable[dict[str, Any]],
    columns: pa.Schema = COLUMNS,
    partition_by: tuple[str, ...] = ("k",),
) -> Touched:
    """One partition with these records."""
    rows = list(rows)
    key = tuple(rows[0].get(name) for name in partition_by)
    return Touched(key, [pa.RecordBatch.from_pylist(rows, columns)])


def parts(values: dict[Any, Iterable[int]]) -> list[Touched]:
    """Partitions by `k`, with these values of `v`."""
    return [part({"k": k, "n": 1, "v": v} for v in found) for k, found in values.items()]


def rows(opened: TableFormat, state: TableState | None, keys: Any = None) -> list[dict[str, Any]]:
    assert state is not None
    return [row for batch in opened.content_of(state, keys) for row in batch.to_pylist()]


def values(opened: TableFormat, keys: Any = None) -> dict[Any, list[int]]:
    """The values of `v` by `k`, as the table has them now."""
    found: dict[Any, list[int]] = {}
    for row in rows(opened, opened.read_state(), keys):
        found.setdefault(row["k"], []).append(row["v"])
    return {key: sorted(each) for key, each in found.items()}

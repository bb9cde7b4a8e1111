"""Chains whose slices hold any records at all, made without an engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.odf.digest import LogicalHasher
from odfbuild.odf.model import (
    AddData,
    AddPushSource,
    DatasetKind,
    DataSlice,
    MergeStrategyAppend,
    OffsetInterval,
    ReadStepNdJson,
    SetDataSchema,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.schema.arrow_schema import to_odf
from odfbuild.odf.timestamp import Timestamp
from odfbuild.records.records import Records, records_of
from odfbuild.store.workspace import Workspace

NOW = Timestamp.parse("2024-05-01T12:00:00Z")
MILLIS = pa.timestamp("ms", "UTC")
SYSTEM = [
    pa.field("offset", pa.int64(), nullable=False),
    pa.field("op", pa.int32(), nullable=False),
    pa.field("system_time", MILLIS, nullable=False),
    pa.field("event_time", MILLIS, nullable=False),
]
APPENDS = AddPushSource(
    source_name="default",
    read=ReadStepNdJson(ddl_schema=("event_time TIMESTAMP", "id BIGINT")),
    merge=MergeStrategyAppend(),
)
A, R, F, T = 0, 1, 2, 3


def workspace(root: Path) -> Workspace:
    return Workspace(root / "chains", root / "keys", root / ".odfbuild")


class Chain:
    """A dataset with these data columns, to which records are committed slice by slice."""

    def __init__(self, space: Workspace, name: str, *columns: pa.Field, appends: bool = False):
        self.space, self.name = space, name
        self.schema = pa.schema([*SYSTEM, *columns])
        self.next = 0
        kind = DatasetKind.Root
        events = (*((APPENDS,) if appends else ()), SetDataSchema(schema=to_odf(self.schema)))
        self.store = space.create(name, kind, events, NOW)

    def grow(self, *columns: pa.Field) -> None:
        """Set a schema with these data columns, of which there may be more than before."""
        self.schema = pa.schema([*SYSTEM, *columns])
        event = SetDataSchema(schema=to_odf(self.schema))
        self.store.append(self.store.head(), (event,), NOW)

    def add(self, rows: Sequence[tuple[Any, ...]], ops: Sequence[int] | None = None) -> None:
        """Commit rows of event time (milliseconds) and data columns."""
        columns = list(zip(*rows, strict=True))
        first, count = self.next, len(rows)
        values: list[Iterable[Any]] = [
            range(first, first + count),
            ops or [A] * count,
            [0] * count,
            *columns,
        ]
        arrays = [pa.array(list(v), f.type) for v, f in zip(values, self.schema, strict=True)]
        self.add_table(pa.table(arrays, schema=self.schema))

    def add_table(self, table: pa.Table, row_group_size: int | None = None) -> None:
        """Commit a table with all columns, in whatever types and layout it has."""
        staged = self.space.state / "staged.parquet"
        pq.write_table(table, staged, row_group_size=row_group_size)
        hasher = LogicalHasher(self.schema)
        data = DataSlice(
            logical_hash=hasher.finish(),
            physical_hash=Multihash.sha3_256(staged.read_bytes()),
            offset_interval=OffsetInterval(start=self.next, end=self.next + table.num_rows - 1),
            size=staged.stat().st_size,
        )
        self.store.put_object("data", staged, data.physical_hash)
        event = AddData(prev_offset=self.next - 1 if self.next else None, new_data=data)
        self.store.append(self.store.head(), (event,), NOW)
        self.next += table.num_rows

    def records(self, **how: Any) -> Records:
        return records_of(self.space, self.name, **how)


def rows(records: Records, *args: Any, **options: Any) -> list[tuple[Any, ...]]:
    """All rows of a stream of batches."""
    batches = records.batches(*args, **options)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]

"""Small real datasets for the tests of `store` and `verify`."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.odf.model import (
    AddData,
    DataField,
    DataSchema,
    DatasetKind,
    DataSlice,
    DataTypeInt32,
    DataTypeInt64,
    DataTypeTimestamp,
    MetadataEvent,
    OffsetInterval,
    SetDataSchema,
    SetInfo,
    TimeUnit,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.workspace import Workspace

NOW = Timestamp.parse("2024-05-01T12:00:00.123456789Z")

_MILLIS = pa.timestamp("ms", "UTC")
ARROW_SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("op", pa.int32(), nullable=False),
        pa.field("system_time", _MILLIS, nullable=False),
        pa.field("event_time", _MILLIS, nullable=False),
        pa.field("value", pa.int64(), nullable=False),
    ]
)
_TIME = DataTypeTimestamp(unit=TimeUnit.Millisecond, timezone="UTC")
SCHEMA = SetDataSchema(
    schema=DataSchema(
        fields=(
            DataField(name="offset", type=DataTypeInt64()),
            DataField(name="op", type=DataTypeInt32()),
            DataField(name="system_time", type=_TIME),
            DataField(name="event_time", type=_TIME),
            DataField(name="value", type=DataTypeInt64()),
        )
    )
)


def workspace(root: Path) -> Workspace:
    """A workspace in `root`, laid out as in a project."""
    return Workspace(root / "chains", root / ".odfbuild-keys", root / ".odfbuild")


def create(space: Workspace, alias: str, *events: MetadataEvent) -> DatasetStore:
    """A root dataset with the given events after its seed."""
    return space.create(alias, DatasetKind.Root, events, NOW)


def info(text: str) -> SetInfo:
    """An event that is valid anywhere in a chain."""
    return SetInfo(description=text)


def slice_file(file: Path, first: int, count: int, *, shift: int = 0) -> DataSlice:
    """A data file of `count` records from `first`; `shift` makes the offsets in it wrong."""
    from odfbuild.odf.digest import LogicalHasher

    moment = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    offsets = range(first + shift, first + shift + count)
    columns = [offsets, [0] * count, [moment] * count, [moment] * count, [i * i for i in offsets]]
    table = pa.table(
        [pa.array(list(c), f.type) for c, f in zip(columns, ARROW_SCHEMA, strict=True)],
        schema=ARROW_SCHEMA,
    )
    pq.write_table(table, file)
    hasher = LogicalHasher(ARROW_SCHEMA)
    for batch in table.to_batches():
        hasher.update(batch)
    data = file.read_bytes()
    return DataSlice(
        logical_hash=hasher.finish(),
        physical_hash=Multihash.sha3_256(data),
        offset_interval=OffsetInterval(start=first, end=first + count - 1),
        size=len(data),
    )


def add_slice(store: DatasetStore, staged: Path, first: int, count: int, *, shift: int = 0) -> None:
    """Commit one slice, with the schema before it when it is the first."""
    data = slice_file(staged, first, count, shift=shift)
    store.put_object("data", staged, data.physical_hash)
    event = AddData(prev_offset=first - 1 if first else None, new_data=data)
    store.append(store.head(), (event,) if first else (SCHEMA, event), NOW)

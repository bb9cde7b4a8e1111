"""What a source says of its columns beside their types reaches the schema of the dataset."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from odfbuild.engine.contract import Engine
from odfbuild.inspect.verify.check import verify
from odfbuild.odf.model import (
    AddPushSource,
    DataField,
    DataSchema,
    DatasetKind,
    DataTypeInt64,
    DataTypeList,
    DataTypeOption,
    DataTypeString,
    DataTypeStruct,
    DataTypeTimestamp,
    MergeStrategyAppend,
    ReadStepNdJson,
    TimeUnit,
)
from tests.apply.ingesting import NOW, create, ingest_into, workspace

pytestmark = pytest.mark.spark

ABOUT = "opendatafabric.org/description"
TEXT = DataTypeOption(inner=DataTypeString())
MEMBER = DataField(name="m", type=TEXT, extra={ABOUT: "a member"})
SCHEMA = DataSchema(
    fields=(
        DataField(
            name="event_time",
            type=DataTypeOption(inner=DataTypeTimestamp(unit=TimeUnit.Millisecond, timezone="UTC")),
            extra={ABOUT: "when"},
        ),
        DataField(
            name="id",
            type=DataTypeInt64(),
            extra={ABOUT: "number", "example.org/unit": {"of": ["x", 1]}},
        ),
        DataField(name="plain", type=TEXT),
        DataField(name="list", type=DataTypeOption(inner=DataTypeList(item_type=TEXT))),
        DataField(name="s", type=DataTypeOption(inner=DataTypeStruct(fields=(MEMBER,)))),
    ),
    extra={"example.org/about": "all of it"},
)
ROW = b'{"event_time": "2026-01-01T00:00:00Z", "id": %d, "plain": "x", "s": {"m": "y"}}\n'


def test_attributes_of_columns_members_and_the_whole_are_committed_and_stay(
    tmp_path: Path, spark_engine: Engine
) -> None:
    fields = (replace(SCHEMA.fields[0], extra=None), replace(SCHEMA.fields[1], extra={ABOUT: "?"}))
    other = DataSchema(fields=(*fields, *SCHEMA.fields[2:]))
    space = workspace(tmp_path)
    merge = MergeStrategyAppend()
    sources = [
        AddPushSource(source_name=name, read=ReadStepNdJson(schema=schema), merge=merge)
        for name, schema in (("first", SCHEMA), ("other", other))
    ]
    space.create("d", DatasetKind.Root, sources, NOW)
    outcome = ingest_into(space, spark_engine, ROW % 1, source="first")
    assert outcome.error is None
    state = space.projection("d")
    assert state is not None and state.schema is not None and state.schema.schema is not None
    committed = state.schema.schema
    assert committed.extra == SCHEMA.extra
    found = {field.name: field for field in committed.fields}
    for field in SCHEMA.fields:
        assert found[field.name].extra == field.extra, field.name
    struct = found["s"].type
    assert isinstance(struct, DataTypeOption)
    assert struct.inner == DataTypeStruct(fields=(MEMBER,))

    # In the data files they stand beside the columns, as peers write them.
    (file,) = space.committed("d", state).files()
    assert pq.read_schema(file).field("id").metadata[ABOUT.encode()] == b"number"

    # A source that says something else, or nothing, does not change the dataset.
    assert ingest_into(space, spark_engine, ROW % 2, source="other").blocks == 1
    after = space.projection("d")
    assert after is not None and after.schema == state.schema
    assert not verify(space, ["d"], logical=True).findings


def test_without_attributes_the_schema_is_in_the_form_that_all_peers_read(
    tmp_path: Path, spark_engine: Engine
) -> None:
    space = create(tmp_path, ReadStepNdJson(ddl_schema=("id BIGINT",)))
    assert ingest_into(space, spark_engine, b'{"id": 1}\n').error is None
    state = space.projection("d")
    assert state is not None and state.schema is not None
    assert state.schema.raw_arrow_schema

"""Family `transform_planning`, the kinds that need the engine: what a transformation gives."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.apply.derive import read_inputs, stage_transform
from odfbuild.apply.ingest import Arrival, stage_ingest
from odfbuild.apply.transaction import Transaction
from odfbuild.engine.contract import Engine, InputSlices
from odfbuild.engine.slice import StagedSlice, dataset_schema, write_slice
from odfbuild.errors import Errors, OdfbuildError
from odfbuild.odf.model import (
    AddPushSource,
    DatasetKind,
    ExecuteTransform,
    ReadStepCsv,
    SetTransform,
    SqlQueryStep,
    TransformInput,
    TransformSql,
)
from odfbuild.odf.schema.arrow_schema import schema_of
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.store.workspace import Workspace
from tests.conformance.arrow_values import type_of
from tests.conformance.test_writer_scenarios import merge_of
from tests.conformance.vectors import cases
from tests.engine.inputs import slices, task

pytestmark = pytest.mark.spark

VOCAB = Vocabulary()
TYPES = {"string": pa.string(), "date": pa.date32()}
DDL = {
    "bool": "BOOLEAN",
    "int32": "INT",
    "int64": "BIGINT",
    "float64": "DOUBLE",
    "string": "STRING",
    "date": "DATE",
    "timestamp[ms,UTC]": "TIMESTAMP",
}
DIFFERS = {
    # A function that only DataFusion has.
    "transform/engine/json-function": {"error": "InvalidQuery"},
}
CARRIED = {
    # A query that does not mention `op` must not turn what is taken back into what is added.
    "transform/engine/op-defaults-to-append": [0, 2, 3, 1],
}
"""Operations of the records where the reference forgets them.

Both stand in docs/compatibility.md.
"""


def field(text: str) -> pa.Field:
    name, kind, need = text.split()
    return pa.field(name, TYPES.get(kind) or type_of(kind), nullable=need != "required")


def ddl(text: str) -> str:
    name, kind = text.split()
    return f"{name} {DDL[kind]}"


def rows_of(table: pa.Table) -> list[list[Any]]:
    """Rows as the vectors spell them."""
    return [
        [
            v.isoformat().replace("+00:00", "Z")
            if hasattr(v, "isoformat")
            else str(v)
            if isinstance(v, Decimal)
            else v
            for v in row
        ]
        for row in zip(*table.to_pydict().values(), strict=True)
    ]


@pytest.mark.parametrize("case", cases("transform_planning", "engine"))
def test_a_query_gives_what_it_gives_in_the_reference(
    case: dict[str, Any], spark_engine: Engine, tmp_path: Path
) -> None:
    expected = DIFFERS.get(case["id"], case["expected"])
    if "error" in expected:
        with pytest.raises((OdfbuildError, Errors)):
            _run(case, spark_engine, tmp_path)
        return
    staged, schema = _run(case, spark_engine, tmp_path)
    if expected["data"] is None:
        assert staged is None
        return
    assert staged is not None
    interval = staged.data.offset_interval
    assert {"start": interval.start, "end": interval.end} == expected["new_offset_interval"]
    table = pq.read_table(staged.path)
    assert table.schema.names == expected["data"]["columns"]
    rows = expected["data"]["rows"]
    if case["id"] in CARRIED:
        ops = CARRIED[case["id"]]
        rows = [[row[0], op, *row[2:]] for row, op in zip(rows, ops, strict=True)]
    assert rows_of(table) == rows
    # What Spark computes may be absent, so that only names and types are compared.
    types = [(f.name, f.type) for f in map(field, expected.get("schema", ()))]
    assert not types or [(f.name, f.type) for f in schema] == types


def _run(
    case: dict[str, Any], engine: Engine, folder: Path
) -> tuple[StagedSlice | None, pa.Schema]:
    inputs = [_input(given, folder) for given in case["inputs"]]
    steps = [SqlQueryStep(alias=q.get("alias"), query=q["query"]) for q in case["queries"]]
    query = TransformSql(engine="spark", queries=tuple(steps))
    result = engine.run(task(folder, query, *inputs))
    committed = dataset_schema(result.schema, VOCAB)
    staged = write_slice(
        result,
        dataset="case",
        schema=committed,
        vocab=VOCAB,
        first_offset=case["next_offset"],
        system_time=Timestamp.parse(case["system_time"]),
        target=folder / "slice.parquet",
    )
    return staged, committed


def _input(given: dict[str, Any], folder: Path) -> InputSlices:
    schema = pa.schema([field(text) for text in given["schema"]])
    rows = given["data"]["rows"] if given.get("data") else []
    columns = [
        pa.array([_value(row[i], f.type) for row in rows], f.type) for i, f in enumerate(schema)
    ]
    if not rows:
        return InputSlices(alias=given["alias"], schema=schema, vocab=VOCAB)
    source = slices(folder, pa.table(columns, schema=schema), alias=given["alias"])
    interval = given["offset_interval"]
    if interval is None:
        return replace(source, schema=schema, slices=(), first=None, last=None)
    return replace(source, schema=schema, first=interval["start"], last=interval["end"])


def _value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(value)
    if pa.types.is_decimal(kind):
        return Decimal(value)
    return date.fromisoformat(value) if pa.types.is_date(kind) else value


class Pipeline:
    """A root that takes CSV and a derivative of it, worked by the functions of `apply`."""

    def __init__(self, case: dict[str, Any], engine: Engine, folder: Path) -> None:
        self.engine, self.folder = engine, folder
        self.workspace = Workspace(folder / "chains", folder / "keys", folder / "cache")
        merge, read = case["root"]["merge"], case["root"]["read"]
        assert read["kind"] == "Csv"
        self.source = AddPushSource(
            source_name="default",
            read=ReadStepCsv(ddl_schema=tuple(map(ddl, read["schema"])), header=read["header"]),
            merge=merge_of(merge),
        )
        start = Timestamp.parse("2050-01-01T00:00:00Z")
        self.workspace.create("root", DatasetKind.Root, [self.source], start)
        root = self.workspace.projection("root")
        assert root is not None
        transform = SetTransform(
            inputs=(TransformInput(dataset_ref=root.dataset_id, alias="root"),),
            transform=TransformSql(engine="spark", queries=(SqlQueryStep(query=case["query"]),)),
        )
        self.workspace.create("derived", DatasetKind.Derivative, [transform], start)

    def scratch(self, name: str) -> Path:
        made = self.folder / name
        made.mkdir()
        return made

    def transaction(self, name: str, kind: DatasetKind, time: str) -> Transaction:
        state = self.workspace.projection(name)
        return Transaction(self.workspace, name, kind, state, Timestamp.parse(time))

    def round(self, number: int, spec: dict[str, Any]) -> None:
        """Let a file enter the root, then bring the derivative up to it."""
        file = self.folder / f"{number}.csv"
        file.write_text(spec["csv"])
        ingest = self.transaction("root", DatasetKind.Root, spec["ingest_system_time"])
        arrival = Arrival(
            source=self.source,
            file=file,
            display_name=file.name,
            event_time=None,
            source_state=None,
        )
        stage_ingest(ingest, lambda: self.engine, arrival, self.scratch(f"ingest-{number}"))
        ingest.commit()
        step = self.transaction("derived", DatasetKind.Derivative, spec["transform_system_time"])
        inputs = read_inputs(self.workspace, "derived", step.state)
        assert inputs is not None
        stage_transform(step, lambda: self.engine, inputs, self.scratch(f"step-{number}"))
        step.commit()


@pytest.mark.parametrize("case", cases("transform_planning", "pipeline"))
def test_corrections_pass_through_a_pipeline_as_in_the_reference(
    case: dict[str, Any], spark_engine: Engine, tmp_path: Path
) -> None:
    pipeline = Pipeline(case, spark_engine, tmp_path)
    store = pipeline.workspace.dataset("derived")
    for number, spec in enumerate(case["rounds"]):
        pipeline.round(number, spec)
        now = pipeline.workspace.projection("derived")
        assert now is not None
        assert now.blocks == spec["expected"]["output_blocks"]
        event = store.read_block(now.head).event
        assert isinstance(event, ExecuteTransform)
        assert event.new_data is not None
        table = pq.read_table(store.object_path("data", event.new_data.physical_hash))
        assert table.schema.names == spec["expected"]["data"]["columns"]
        assert rows_of(table) == spec["expected"]["data"]["rows"]
    assert now.schema is not None
    types = [(f.name, f.type) for f in map(field, case["expected"]["schema"])]
    assert [(f.name, f.type) for f in schema_of(now.schema)] == types
    required = [f.name for f in schema_of(now.schema) if not f.nullable]
    assert required == ["offset", "op", "system_time", "event_time"]

"""A source that describes its columns otherwise changes the schema of its dataset, as planned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from odfbuild.engine.contract import Engine
from odfbuild.inspect.verify.check import verify
from odfbuild.odf.model import DataSchema, SetDataSchema
from odfbuild.odf.schema.compare import strip_encoding
from odfbuild.store.workspace import Workspace
from tests.apply.in_process import Program, share
from tests.apply.ingesting import workspace

pytestmark = pytest.mark.spark

ABOUT = "opendatafabric.org/description"
DDL = ["event_time TIMESTAMP", "id BIGINT", "s STRUCT<m: STRING>"]
ROW = '{"event_time": "2026-01-01T00:00:00Z", "id": %d, "s": {"m": "y"}}\n'


def column(name: str, kind: Any, about: str | None = None) -> dict[str, Any]:
    described = {"extra": {ABOUT: about}} if about else {}
    kind = kind if isinstance(kind, dict) else {"kind": kind}
    return {"name": name, "type": {"kind": "Option", "inner": kind}, **described}


def columns(
    about: str | None, member: str | None = None, *more: dict[str, Any]
) -> dict[str, list[dict[str, Any]]]:
    struct = {"kind": "Struct", "fields": [column("m", "String", member)]}
    return {
        "fields": [
            column("event_time", {"kind": "Timestamp", "unit": "Millisecond", "timezone": "UTC"}),
            column("id", "Int64", about),
            column("s", struct),
            *more,
        ]
    }


class Project:
    """A project with a root and a reader of it, and the program that works on it."""

    def __init__(self, root: Path, program: Program) -> None:
        self.program = program
        self._root = root
        (root / "datasets").mkdir()
        (root / "data").mkdir()
        config = {"kind": "Project", "version": 1, "content": {"name": "described"}}
        (root / "odfbuild.yaml").write_text(json.dumps(config), "utf-8")
        query = "SELECT event_time, id FROM root"
        self._write(
            "reader",
            "Derivative",
            {
                "kind": "SetTransform",
                "inputs": [{"datasetRef": "root"}],
                "transform": {"kind": "Sql", "engine": "spark", "query": query},
            },
        )

    def define(self, schema: Any, *more: dict[str, Any], **source: Any) -> None:
        """Give the root a source whose columns are `schema`."""
        fetch = {"kind": "FilesGlob", "path": "data/*"}
        read = {"kind": "NdJson", "schema": schema}
        polling = {"fetch": fetch, "read": read, "merge": {"kind": "Append"}, **source}
        self._write("root", "Root", {"kind": "SetPollingSource", **polling}, *more)

    def arrive(self, number: int) -> None:
        """A file with one record."""
        (self._root / f"data/{number}").write_text(ROW % number, "utf-8")

    def committed(self) -> SetDataSchema:
        """The schema of the root at its head."""
        state = self.space().projection("root")
        assert state is not None and state.schema is not None
        return state.schema

    def space(self) -> Workspace:
        """The chains, read anew."""
        return workspace(self._root)

    def planned(self) -> dict[str, Any]:
        """What the plan says of the root."""
        plan = self.program("plan", "--json").data
        found: dict[str, Any] = next(d for d in plan["datasets"] if d["name"] == "root")
        return found

    def _write(self, name: str, kind: str, *events: dict[str, Any]) -> None:
        content = {"name": name, "kind": kind, "metadata": events}
        snapshot = {"kind": "DatasetSnapshot", "version": 1, "content": content}
        (self._root / f"datasets/{name}.yaml").write_text(json.dumps(snapshot), "utf-8")


@pytest.fixture
def project(
    tmp_path: Path,
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Project:
    share(spark_engine, monkeypatch)
    return Project(tmp_path, Program(tmp_path, monkeypatch, capsys))


def described(schema: DataSchema | None) -> dict[str, Any]:
    assert schema is not None
    plain = strip_encoding(schema).fields
    return {field.name: dict(field.extra) for field in plain if field.extra}


def test_other_attributes_of_a_source_become_those_of_the_dataset(project: Project) -> None:
    # Without attributes the chain keeps the form that all peers read.
    project.define(DDL)
    project.arrive(1)
    project.program.apply()
    assert project.committed().raw_arrow_schema

    project.define(columns("number", "a member"))
    planned = project.planned()
    assert [change["kind"] for change in planned["events"]] == [
        "SetPollingSource",
        "SetDataSchema",
    ]
    assert planned["category"] == "metadata"
    text = project.program("plan").out
    assert "metadata: SetPollingSource, SetDataSchema" in text
    assert f"      +        {ABOUT}: number" in text
    assert "-rawArrowSchema" not in text
    project.program.apply()
    committed = project.committed().schema
    assert described(committed) == {"id": {ABOUT: "number"}}
    assert "a member" in str(committed)
    assert project.planned()["actions"] == []

    # Data goes on, of the root and of its reader; what a new column says comes with the column.
    project.define(columns("the number", "a member", column("new", "String", "added")))
    assert project.planned()["category"] == "additive"
    project.arrive(2)
    project.program.apply()
    committed = project.committed().schema
    assert described(committed) == {"id": {ABOUT: "the number"}, "new": {ABOUT: "added"}}
    assert "a member" in str(committed)
    reader = project.space().projection("reader")
    assert reader is not None and reader.records == 2

    # Gone from the source, gone from the dataset; what a source never said stays.
    project.define(columns(None, "a member", column("new", "String", "added")))
    project.program.apply()
    assert described(project.committed().schema) == {"new": {ABOUT: "added"}}
    assert not verify(project.space(), ["root", "reader"], logical=True).findings


def fixed(about: str, kind: str = "Int64") -> dict[str, Any]:
    time = {"kind": "Timestamp", "unit": "Millisecond", "timezone": "UTC"}
    system = [
        {"name": "offset", "type": {"kind": "Int64"}},
        {"name": "op", "type": {"kind": "Int32"}},
        {"name": "system_time", "type": time},
        {"name": "event_time", "type": time},
    ]
    fields = [*system, column("id", kind, about), columns(None)["fields"][2]]
    return {"kind": "SetDataSchema", "schema": {"fields": fields}}


def test_a_schema_in_the_definition_goes_before_the_source_and_changes_attributes_only(
    project: Project,
) -> None:
    project.define(columns("of the source"), fixed("fixed"))
    project.arrive(1)
    project.program.apply()
    assert described(project.committed().schema) == {"id": {ABOUT: "fixed"}}

    project.define(columns("other words of the source"), fixed("fixed"))
    changes = project.planned()["events"]
    assert [change["kind"] for change in changes] == ["SetPollingSource"]

    project.define(columns("other words of the source"), fixed("fixed anew"))
    assert project.planned()["category"] == "metadata"
    project.arrive(2)
    project.program.apply()
    assert described(project.committed().schema) == {"id": {ABOUT: "fixed anew"}}

    project.define(columns("other words of the source"), fixed("fixed anew", "Int32"))
    said = project.program("plan")
    assert said.code == 1
    assert "error[E0309]" in said.out
    assert "only descriptions and other attributes" in said.out
    assert not verify(project.space(), ["root", "reader"], logical=True).findings


def test_columns_of_a_query_are_described_by_none(project: Project) -> None:
    query = {"kind": "Sql", "engine": "spark", "query": "SELECT * FROM input"}
    project.define(columns(None), preprocess=query)
    project.arrive(1)
    project.program.apply()
    project.define(columns("number"), preprocess=query)
    changes = project.planned()["events"]
    assert [change["kind"] for change in changes] == ["SetPollingSource"]

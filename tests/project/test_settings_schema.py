"""One declaration of settings: the schema decides, and reading takes only what it lets through."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from odfbuild.declared_settings import Misfit, document_schema, read
from odfbuild.project.config import load_config
from odfbuild.project.generate import schemas
from odfbuild.project.machine import MachineFile
from odfbuild.project.settings.content import ProjectFile

ROOT = Path(__file__).parents[2]
FILES = {"Project": ProjectFile, "Machine": MachineFile}
VALIDATORS = {
    kind: Draft202012Validator(document_schema(kind, form)) for kind, form in FILES.items()
}
SCHEMA: Any = VALIDATORS["Project"].schema
CONTENT = SCHEMA["properties"]["content"]
USED = {
    *("type", "properties", "required", "additionalProperties", "items", "enum", "const"),
    *("minLength", "pattern", "minimum", "exclusiveMinimum", "if", "then", "else"),
}
SAID = {"$schema", "title", "description", "default", "examples"}

ALL = {
    "name": "small",
    "datasets": "datasets",
    "state": "chains",
    "storage": "s3://bucket/prefix",
    "vars": {"a": [1, None, {"b": 2}]},
    "ingest": {
        "connectSeconds": 1.5,
        "attempts": 2,
        "badRecords": {"a.*": "skip"},
        "onSchemaChange": {"*": "append_new_columns"},
        "shapefileEncoding": {"*": "latin1"},
        "targetRecordsPerSlice": 5,
        "container": {"runtime": ["podman"], "arguments": []},
        "pipes": ["zstd"],
        "mqtt": {"idleSeconds": 2},
        "ethereum": {"nodes": {"1": "https://node"}, "blockStride": 3, "confirmations": 0},
    },
    "engine": {"master": "local[2]", "memory": "2g", "stepSeconds": 1, "sandbox": "required"},
    "selectors": {"a": "b+"},
    "environments": {"dev": {"state": "x", "storage": "../data"}},
    "moved": {"a": "b"},
    "policies": [{"match": ["A*"], "forward-only": "refuse", "rebuild": "allow"}],
    "engines": {
        "flink": "spark",
        "risingwave": {"address": "unix:/run/engine", "version": "1.2"},
        "datafusion": {
            "image": f"ghcr.io/acme/engine@sha256:{'0' * 64}",
            "memory": "1g",
            "cpus": 1.5,
            "pids": 10,
            "timeout": 60,
            "startTimeout": 5,
            "network": "none",
            "writable": True,
        },
    },
    "checks": [
        {
            "match": ["*"],
            "notNull": ["a"],
            "unique": [["a", "b"]],
            "acceptedValues": {"a": [1, None, "x"]},
            "relationships": {"a": {"to": "b", "field": "c"}},
            "rowCount": {"min": 0, "max": 2},
            "sql": {"is right": "SELECT 1"},
            "severity": "warn",
        }
    ],
    "freshness": [{"match": ["a"], "maxAge": "36h"}],
    "tables": [
        {
            "match": ["a"],
            "format": "kartothek",
            "location": "../lake",
            "name": "{dataset}-x",
            "group": "g",
            "view": "history",
            "partitionBy": ["a"],
            "indices": ["b"],
            "sort": ["c"],
            "targetFileSize": "64MB",
            "keep": "1d",
        },
        {"match": ["*"], "format": "iceberg", "location": "s3://x", "catalogue": {"type": "sql"}},
    ],
    "watermarks": [{"match": ["a"], "delay": "1h", "maxAhead": "2d", "nowMinus": "30m"}],
    "owners": [{"match": ["a"], "owners": ["@data/rail"]}],
    "show": [{"match": ["a"], "samples": True, "columns": {"include": ["*"], "exclude": ["SSN"]}}],
    "lint": {"select-star": "error"},
}
OF_MACHINES = {
    "engine": {"conf": {"spark.a": "b"}},
    "ingest": {"container": {"runtime": ["docker"]}, "pipes": ["jq"]},
    "folders": ["/srv"],
}
RIGHT = {
    "Project": {"kind": "Project", "version": 1, "content": ALL},
    "Machine": {"kind": "Machine", "version": 1, "content": OF_MACHINES},
}
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 1.0, 0.5, float("nan"), float("inf"), "", "x", "fail", "2g"),
    *("36h", "36h\n", "a:b", "Project", [], [""], ["x"], [[]], {}, {"x": "y"}, {"match": []}),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    lists = enumerate(value) if isinstance(value, list) else ()
    for key, each in value.items() if isinstance(value, dict) else lists:
        yield from places(each, (*path, key))


def changed(data: Any, path: tuple[Any, ...], change: str, value: Any) -> Any:
    """Data with the value at `path` replaced, removed, or with another key or item."""
    if not path:
        return value
    data = copy.deepcopy(data)
    at = data
    for key in path[:-1]:
        at = at[key]
    if change == "remove":
        del at[path[-1]]
    elif change == "add" and isinstance(at[path[-1]], dict):
        at[path[-1]]["another"] = value
    elif change == "add" and isinstance(at[path[-1]], list):
        at[path[-1]].append(value)
    else:
        at[path[-1]] = value
    return data


def reads(kind: str, data: Any) -> bool:
    try:
        read(FILES[kind], data)
    except Misfit:
        return False
    return True


@pytest.mark.parametrize("kind", FILES)
def test_what_is_right_is_read_without_the_library_for_schemas(kind: str) -> None:
    assert reads(kind, RIGHT[kind])


@pytest.mark.parametrize("kind", FILES)
def test_reading_takes_nothing_that_the_schema_refuses_and_refuses_nothing_that_it_takes(
    kind: str,
) -> None:
    for path in places(RIGHT[kind]):
        for change, values in (("put", ODD), ("add", ODD[::4]), ("remove", (None,))):
            for value in values:
                data = changed(RIGHT[kind], path, change, value)
                assert reads(kind, data) == VALIDATORS[kind].is_valid(data), (path, change, value)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_reading_and_schema_agree_on_whatever_is_changed(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(FILES)))
    value = RIGHT[kind]
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(list(places(value))))
        change = data.draw(st.sampled_from(("put", "remove", "add")))
        value = changed(value, path, change, data.draw(st.sampled_from(ODD)))
    assert reads(kind, value) == VALIDATORS[kind].is_valid(value)


def test_reading_knows_every_keyword_that_the_schemas_use() -> None:
    def keywords(schema: Any) -> Iterator[str]:
        if isinstance(schema, dict):
            for key, value in schema.items():
                yield key
                if key == "properties":
                    for each in value.values():
                        yield from keywords(each)
                elif key in ("items", "additionalProperties", "then", "else"):
                    yield from keywords(value)

    for validator in VALIDATORS.values():
        assert set(keywords(validator.schema)) <= USED | SAID


def test_defaults_are_those_that_the_schema_says() -> None:
    def told(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
        for key, each in schema.get("properties", {}).items():
            if "default" in each:
                yield (*path, key), each["default"]
            yield from told(each, (*path, key))

    content = CONTENT
    empty = read(ProjectFile, {"kind": "Project", "version": 1, "content": {"name": "a"}})
    for path, value in told(content):
        data: Any = {"name": "a"}
        at = data
        for key in path[:-1]:
            at = at.setdefault(key, {})
        at[path[-1]] = value
        said = read(ProjectFile, {"kind": "Project", "version": 1, "content": data})
        assert said == empty, path


def test_the_schema_for_editors_is_as_generated() -> None:
    for name, text in schemas().items():
        assert (ROOT / name).read_text() == text, "run `python -m odfbuild.project.generate`"


def test_configuration_has_every_setting_of_the_file(tmp_path: Path) -> None:
    content = {**ALL, "ingest": {"attempts": 2}, "engine": {}, "storage": "../data"}
    file = {"kind": "Project", "version": 1, "content": content}
    (tmp_path / "odfbuild.yaml").write_text(json.dumps(file))
    config = load_config(tmp_path)
    assert (config.name, config.state, config.ingest.attempts) == ("small", tmp_path / "chains", 2)
    assert (config.moved, config.lint) == ({"a": "b"}, {"select-star": "error"})
    assert config.policies[0].match == ("a*",)
    assert next(path for _, path in config.checks[0].checks) == ("notNull", 0)


def test_documentation_names_every_setting() -> None:
    def keys(schema: Any) -> Iterator[str]:
        for key, each in schema.get("properties", {}).items():
            yield key
            yield from keys(each)
            yield from keys(each.get("items", {}))

    text = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    missing = [
        key
        for key in keys(CONTENT)
        if not any(form in text for form in (f"{key}`", f"`{key}", f"{key}:", f"{key}{{"))
    ]
    assert missing == []

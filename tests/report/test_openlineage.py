"""Events of OpenLineage have the shape that its schema asks for, and say what the chains say.

The shape is that of OpenLineage 2-0-2: what is required of a run event and of every facet.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from odfbuild.report.openlineage import _source
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny

_TEXT = {"type": "string"}
_URI = {"type": "string", "pattern": "^[a-z]+:"}
_FACETS = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "required": ["_producer", "_schemaURL"],
        "properties": {"_producer": _URI, "_schemaURL": _URI},
    },
}
_NAMED = {
    "type": "object",
    "required": ["namespace", "name"],
    "properties": {
        "namespace": _TEXT,
        "name": _TEXT,
        "facets": _FACETS,
        "outputFacets": _FACETS,
    },
}
SHAPE = Draft202012Validator(
    {
        "type": "object",
        "required": ["eventTime", "producer", "schemaURL", "run", "job"],
        "properties": {
            "eventType": {"enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
            "eventTime": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*Z$"},
            "producer": _URI,
            "schemaURL": _URI,
            "run": {
                "type": "object",
                "required": ["runId"],
                "properties": {"runId": {"type": "string", "format": "uuid"}, "facets": _FACETS},
            },
            "job": _NAMED,
            "inputs": {"type": "array", "items": _NAMED},
            "outputs": {"type": "array", "items": _NAMED},
        },
    },
    format_checker=FormatChecker(),
)


def events(odfbuild: Program, *selection: str) -> dict[str, Any]:
    lines = odfbuild.ok("graph", "--format", "openlineage", *selection).out.splitlines()
    found = [json.loads(line) for line in lines]
    for event in found:
        SHAPE.validate(event)
    return {event["job"]["name"]: event for event in found}


def test_events_say_what_the_newest_steps_read_and_gave(odfbuild: Program, tiny: Tiny) -> None:
    assert events(odfbuild) == {}
    odfbuild.apply()
    heads = {each["name"]: each["head"] for each in odfbuild.ok("ls", "--json").data}
    found = events(odfbuild)
    assert list(found) == ["derived", "root"]

    root, derived = found["root"], found["derived"]
    assert root["inputs"] == [{"namespace": "file", "name": "data/*.csv"}]
    assert root["job"]["facets"]["jobType"]["jobType"] == "INGEST"
    assert root["outputs"][0]["facets"]["version"]["datasetVersion"] == heads["root"]

    [read] = derived["inputs"]
    assert (read["namespace"], read["name"]) == ("tiny", "root")
    assert read["facets"]["version"]["datasetVersion"] == heads["root"]
    [given] = derived["outputs"]
    assert given["facets"]["version"]["datasetVersion"] == heads["derived"]
    assert given["outputFacets"]["outputStatistics"]["rowCount"] == 3
    names = [each["name"] for each in given["facets"]["schema"]["fields"]]
    assert names == ["offset", "op", "system_time", "event_time", "id", "value"]
    columns = given["facets"]["columnLineage"]["fields"]
    assert {
        name: [each["field"] for each in column["inputFields"]] for name, column in columns.items()
    } == {"event_time": ["event_time"], "id": ["id"], "value": ["value"]}
    assert "value * 10" in derived["job"]["facets"]["sql"]["query"]
    assert derived["run"]["facets"]["processing_engine"]["name"] == "spark"

    # The same step is the same run; the next one is another.
    assert events(odfbuild, "derived") == {"derived": derived}
    tiny.arrive(2)
    odfbuild.apply()
    later = events(odfbuild)["derived"]
    assert later["run"]["runId"] != derived["run"]["runId"]
    assert later["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 1


@pytest.mark.parametrize(
    ("source", "namespace", "name"),
    [
        (
            "https://user:key@example.org:8080/a/b.csv?token=1",
            "https://example.org:8080",
            "/a/b.csv",
        ),
        ("s3://bucket/2024/*.parquet", "s3://bucket", "/2024/*.parquet"),
        ("https://${{ env.HOST }}", "https://${{ env.HOST }}", "/"),
        ("data/*.csv", "file", "data/*.csv"),
    ],
)
def test_a_source_is_named_by_host_and_path_without_keys(
    source: str, namespace: str, name: str
) -> None:
    assert _source(source) == {"namespace": namespace, "name": name}

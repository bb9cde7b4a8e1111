"""`schemas/` says what the types say, and what the decoder accepts."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings

from odfbuild.odf.decode_errors import DecodeErrors
from odfbuild.odf.flatbuffers.form import encode_block
from odfbuild.odf.generate import DEFAULT_FOLDER, differences, generated_files, main
from odfbuild.odf.introspect import fields_of
from odfbuild.odf.json_schema import manifest_schema, schema_of
from odfbuild.odf.model import MetadataBlock
from odfbuild.odf.registry import enums, objects, unions
from odfbuild.odf.yaml_form import from_manifest, to_manifest
from tests.odf.values import objects as values

SNAPSHOT = jsonschema.Draft202012Validator(manifest_schema("DatasetSnapshot"))
BLOCK = jsonschema.Draft202012Validator(manifest_schema("MetadataBlock"))


def _snapshot(*metadata: Any, kind: str = "Root") -> dict[str, Any]:
    content = {"name": "a.b", "kind": kind, "metadata": list(metadata)}
    return {"kind": "DatasetSnapshot", "version": 1, "content": content}


def _source(read: Any, kind: str = "SetPollingSource", **more: Any) -> dict[str, Any]:
    fetch = {"kind": "Url", "url": "https://example.com/a", "cache": "forever", **more}
    return {"kind": kind, "fetch": fetch, "read": read, "merge": {"kind": "append"}}


GOOD = [
    _snapshot(),
    _snapshot(kind="root"),
    _snapshot(_source({"kind": "csv", "schema": ["a INT", "b STRING"]}, "setPollingSource")),
    _snapshot(_source({"kind": "Csv", "ddlSchema": ["a INT"]}, eventTime="fromSystemTime")),
    _snapshot(_source({"kind": "Csv", "schema": {"fields": [{"name": "a", "type": "int32"}]}})),
    _snapshot({"kind": "SetInfo", "description": None}),
]
BAD = [
    _snapshot(kind="ROOT"),
    _snapshot({"kind": "SetInfos"}),
    _snapshot({"kind": "SetInfo", "descripton": "x"}),
    _snapshot({"kind": "SetInfo", "keywords": "x"}),
    _snapshot(_source({"kind": "Csv", "schema": ["a INT"], "ddlSchema": ["a INT"]})),
    _snapshot(_source({"kind": "Csv"}, cache="always")),
    _snapshot(_source({"kind": "Csv", "header": "yes"})),
    {**_snapshot(), "version": 2},
    {**_snapshot(), "extra": 1},
]


def test_the_committed_files_are_as_generated() -> None:
    assert differences(DEFAULT_FOLDER) == []


def test_check_names_a_file_that_differs(tmp_path: Path, capsys: Any) -> None:
    assert main([str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0
    (tmp_path / "schemas" / "odf.fbs").write_text("// by hand\n")
    assert main(["--check", str(tmp_path)]) == 1
    assert "odf.fbs" in capsys.readouterr().out


@pytest.mark.parametrize("document", GOOD)
def test_schema_and_decoder_accept(document: Any) -> None:
    from_manifest("DatasetSnapshot", document)
    assert not list(SNAPSHOT.iter_errors(document))


@pytest.mark.parametrize("document", BAD)
def test_schema_and_decoder_refuse(document: Any) -> None:
    with pytest.raises(DecodeErrors):
        from_manifest("DatasetSnapshot", document)
    assert list(SNAPSHOT.iter_errors(document))


@settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(values(MetadataBlock))
def test_any_block_fits_the_schema(block: MetadataBlock) -> None:
    assert not list(BLOCK.iter_errors(to_manifest(block)))
    assert encode_block(block)


def test_the_json_schema_is_one() -> None:
    for kind in ("DatasetSnapshot", "MetadataBlock"):
        jsonschema.Draft202012Validator.check_schema(manifest_schema(kind))


def test_every_object_and_union_is_in_both_forms() -> None:
    names = {*objects(), *unions(), *enums()}
    for name in names:
        jsonschema.Draft202012Validator.check_schema(schema_of(name))
    declared = set(_declared(generated_files()["schemas/odf.fbs"]))
    assert names <= declared


def test_every_field_of_every_object_is_in_the_tables() -> None:
    sections = generated_files()["docs/reference/objects.md"].split("\n### ")
    by_name = {section.partition("\n")[0]: section for section in sections}
    for name, cls in objects().items():
        for field in fields_of(cls):
            assert f"| `{field.key}` |" in by_name[name]
    assert set(unions()) | set(enums()) <= set(by_name)
    assert "| `encoding` | text |  | `utf8` |" in by_name["ReadStepCsv"]
    assert "Used in [MetadataEvent](#metadataevent)." in by_name["SetInfo"]


def test_a_manifest_schema_holds_what_it_needs_and_no_more() -> None:
    schema = manifest_schema("DatasetSnapshot")
    used = set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(schema)))
    assert used == set(schema["$defs"])
    assert "TransformRequest" not in used


def _declared(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.startswith(("table ", "union ", "enum ", "struct ")):
            yield line.split()[1].rstrip(":")

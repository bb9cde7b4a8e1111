"""`decode` and `schema`, as programs that people run."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from odfbuild.odf.flatbuffers.form import block_hash, encode_block
from odfbuild.odf.model import MetadataBlock, MetadataEvent, SetDataSchema, SetInfo
from odfbuild.odf.schema.arrow_schema import to_raw
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.yaml_form import from_data, to_manifest
from tests.project.write_project import write_project

COMMAND = [sys.executable, "-c", "from odfbuild.cli.main import main; main()"]
BLOCK = MetadataBlock(
    system_time=Timestamp(1_600_000_000_123_000_000),
    sequence_number=7,
    event=SetInfo(description="on", keywords=("yes", "012")),
)
SCHEMA = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.float64())])
SNAPSHOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: a
  kind: root
  metadata:
  - kind: setinfo
    description: First
---
kind: DatasetSnapshot
version: 1
content: {name: b, kind: Derivative, metadata: []}
"""


def run(
    *arguments: str | Path, given: bytes = b"", cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=given,
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        timeout=200,
        check=False,
    )


def printed(*arguments: str | Path, given: bytes = b"", cwd: Path | None = None) -> str:
    done = run(*arguments, given=given, cwd=cwd)
    assert (done.returncode, done.stderr.decode()) == (0, "")
    return done.stdout.decode()


def refused(*arguments: str | Path, given: bytes = b"", cwd: Path | None = None) -> str:
    done = run(*arguments, given=given, cwd=cwd)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"Traceback" not in done.stderr
    return done.stderr.decode()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose dataset `a` has one block, in Manifest version 2."""
    write_project(tmp_path, {})
    data = encode_block(BLOCK, 2)
    folder = tmp_path / "chains" / "a"
    for name in ("blocks", "refs", "data"):
        (folder / name).mkdir(parents=True)
    (folder / "blocks" / str(block_hash(data))).write_bytes(data)
    (folder / "refs" / "head").write_text(str(block_hash(data)))
    return tmp_path


@pytest.mark.parametrize("version", [2, 3])
def test_a_block_is_printed_as_the_manifest_it_is(tmp_path: Path, version: int) -> None:
    file = tmp_path / "x"
    file.write_bytes(encode_block(BLOCK, version))
    text = printed("decode", file)
    expected = {**to_manifest(BLOCK), "version": version}
    assert text.startswith(f"# block {block_hash(file.read_bytes())}\n")
    assert yaml.safe_load(printed("decode", "-", given=text.encode()))["version"] == version
    assert json.loads(printed("decode", file, "--json")) == expected
    assert printed("decode", "-", "--format", "yaml", given=file.read_bytes()) == text


def test_a_block_of_the_project_is_found_by_its_hash_or_the_end_of_it(project: Path) -> None:
    name = (project / "chains" / "a" / "refs" / "head").read_text()
    whole = printed("decode", name, cwd=project)
    assert whole.startswith(f"# block {name}\n# Manifest version 2,")
    assert printed("decode", name[-8:].upper(), cwd=project) == whole
    assert printed("decode", "chains/a/refs/head", cwd=project) == whole
    assert "E0133" in refused("decode", name[-5:], cwd=project)
    assert "E0133" in refused("decode", "f1620" + "00" * 32, cwd=project)


def test_a_block_that_is_not_what_its_name_says_is_told(project: Path) -> None:
    (block,) = (project / "chains" / "a" / "blocks").iterdir()
    block.write_bytes(encode_block(BLOCK, 3))
    assert "# the name of the file is another hash" in printed("decode", block)


def test_every_document_of_a_manifest_is_printed_in_canonical_form(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(SNAPSHOT)
    text = printed("decode", file)
    first, second = yaml.safe_load_all(text)
    assert first["content"]["metadata"] == [{"kind": "SetInfo", "description": "First"}]
    assert second["content"] == {"name": "b", "kind": "Derivative", "metadata": []}
    assert printed("decode", "-", given=text.encode()) == text
    assert printed("decode", file, "--json").count('"kind": "DatasetSnapshot"') == 2


def test_arrow_schemas_are_printed_wherever_they_are(tmp_path: Path) -> None:
    table = SCHEMA.empty_table()
    pq.write_table(table, tmp_path / "a.parquet")
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as file:
        file.write_table(table)
    raw = to_raw(SCHEMA)
    (tmp_path / "raw").write_bytes(raw)
    expected = [
        {"name": "a", "type": {"kind": "Int64"}},
        {"name": "b", "type": {"kind": "Option", "inner": {"kind": "Float64"}}},
    ]
    for name in ("a.parquet", "a.arrow", "raw"):
        data = json.loads(printed("decode", tmp_path / name, "--json"))
        assert data["fields"] == expected
    event = MetadataBlock(
        system_time=Timestamp(0), sequence_number=1, event=SetDataSchema(raw_arrow_schema=raw)
    )
    text = printed("decode", "-", given=encode_block(event))
    assert "# columns of rawArrowSchema:\n#   a: int64 not null\n#   b: double\n" in text
    assert yaml.safe_load(text)["content"]["event"]["rawArrowSchema"] == (
        base64.b64encode(raw).decode()
    )
    assert json.loads(printed("decode", "-", "--json", given=json.dumps(data).encode())) == data


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        (b"", "E0130", "it is empty"),
        (b"a: 1", "E0130", "an object without `kind`"),
        (b"- 1", "E0130", "not an object"),
        (b"kind: Secrets\nversion: 1\ncontent: {}", "E0130", "kind Secrets"),
        (b"kind: DatasetSnapshot\nversion: 7\ncontent: {}", "E0107", "standard input:2:10"),
        (b"kind: SetInfo\ndescripton: x", "E0104", "did you mean 'description'?"),
        (b"kind: [", "E0101", "not YAML"),
        (b"\xff\xfe", "E0130", "UTF-8"),
        (encode_block(BLOCK)[:-9], "E0131", "not a metadata block"),
        (encode_block(BLOCK).replace(b"\x03\0\0\0", b"\x09\0\0\0", 1), "E0132", "version 9"),
        (b"\0" * 40, "E0131", "not a metadata block"),
        (b"PAR1 and so on", "E0130", "broken"),
        (b"ARROW1 and so on", "E0130", "broken"),
    ],
)
def test_what_cannot_be_decoded_is_refused_with_the_reason(
    given: bytes, code: str, words: str
) -> None:
    message = refused("decode", "-", given=given)
    assert f"error[{code}]" in message
    assert words in message


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in refused("decode", tmp_path)
    assert "No such file" in refused("decode", tmp_path / "none")


def test_schema_lists_everything_and_prints_each() -> None:
    listed = [line.split()[0] for line in printed("schema").splitlines()]
    assert listed[:2] == ["DatasetSnapshot", "MetadataBlock"]
    assert {each.__name__ for each in MetadataEvent.__args__} < set(listed)
    schema = json.loads(printed("schema", "datasetsnapshot"))
    assert schema == json.loads(Path("schemas/DatasetSnapshot.json").read_text())
    assert json.loads(printed("schema", "dataset")) == schema
    project = json.loads(printed("schema", "project"))
    jsonschema.Draft202012Validator.check_schema(project)
    example = yaml.safe_load(Path("example_project/odfbuild.yaml").read_text())
    jsonschema.validate(example, project)
    info = json.loads(printed("schema", "SetInfo"))
    jsonschema.validate({"kind": "SetInfo", "keywords": ["a"]}, info)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"kind": "SetInfo", "keyword": ["a"]}, info)
    assert json.loads(printed("schema", "plan"))["title"] == "odfbuild plan"
    assert "did you mean 'SetVocab'?" in refused("schema", "SetVocap")


def test_what_decode_prints_is_what_it_was_given() -> None:
    event: Any = {"kind": "SetInfo", "description": "no\n---\n# yes\n", "keywords": ["on", "1e3"]}
    text = printed("decode", "-", given=json.dumps(event).encode())
    assert json.loads(printed("decode", "-", "--json", given=text.encode())) == event
    assert from_data(SetInfo, event).keywords == ("on", "1e3")

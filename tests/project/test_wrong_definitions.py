"""What a wrong definition shows: where it is wrong, and the way out. Nothing is written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from odfbuild.cli.main import run
from tests.project.write_project import derived_yaml, listing, root_yaml, write_project
from tests.records.chains import Chain, workspace
from tests.report.golden import assert_golden

_GOOD = root_yaml("cities")


def _source(name: str, fetch: str) -> str:
    head, _, rest = root_yaml(name).partition("fetch:")
    return f"{head}{fetch}\n      read:{rest.partition('read:')[2]}"


WRONG = {
    "broken-yaml": {"cities.yaml": _GOOD.replace("kind: Root", "kind: [Root")},
    "unknown-key": {"cities.yaml": _GOOD.replace("header: true", "heder: true")},
    "unknown-input": {"a.yaml": _GOOD, "b.yaml": derived_yaml("names", "citys")},
    "cycle": {"a.yaml": derived_yaml("one", "two"), "b.yaml": derived_yaml("two", "one")},
    "own-input": {"a.yaml": derived_yaml("one", "one")},
    "duplicate-name": {"a.yaml": _GOOD, "b.yaml": _GOOD},
    "duplicate-but-for-case": {"a.yaml": root_yaml("Orders"), "b.yaml": root_yaml("orders")},
    "duplicate-key": {"a.yaml": _GOOD.replace("  kind: Root", "  kind: Root\n  kind: Root")},
    "wrong-type": {"cities.yaml": _GOOD.replace("header: true", "header: [1, 2]")},
    "yes-is-text": {"cities.yaml": _GOOD.replace("header: true", "header: yes")},
    "columns": {
        "a.yaml": root_yaml("unknown", "id BIGINT, city STRNG"),
        "b.yaml": root_yaml("precise", "id BIGINT, seen TIMESTAMP(4)"),
        "c.yaml": root_yaml("doubled", "id BIGINT, city STRING, city STRING"),
        "d.yaml": root_yaml("letters", "id BIGINT, Id STRING"),
        "e.yaml": root_yaml("members", "id STRUCT<a INT; a STRING>").replace(";", ","),
        "f.yaml": root_yaml("fields").replace(
            "schema:\n          - id BIGINT\n          - city STRING",
            "schema:\n          fields:\n"
            "            - {name: id, type: {kind: Int64}}\n"
            "            - {name: ID, type: {kind: Decimal, precision: 90, scale: 2}}",
        ),
    },
    "types-that-no-dataset-holds": {
        "a.yaml": root_yaml("maps", "id BIGINT, notes MAP<STRING; INT>").replace(";", ","),
        "b.yaml": root_yaml("digits", "id DECIMAL(40; 2), tags ARRAY<INT>").replace(";", ","),
        "c.yaml": root_yaml("structs", "places ARRAY<STRUCT<x INT>>").replace(
            "kind: Csv\n        header: true", "kind: NdJson"
        ),
        "d.yaml": root_yaml("inside", "place STRUCT<x MAP<STRING; INT>>").replace(";", ","),
        "e.yaml": root_yaml("fields").replace(
            "schema:\n          - id BIGINT\n          - city STRING",
            "schema:\n          fields:\n"
            "            - {name: id, type: {kind: Decimal, precision: 40, scale: 2}}\n"
            "            - {name: city, type: {kind: Map, keyType: {kind: String}, "
            "valueType: {kind: String}}}",
        ),
        "taken-apart.yaml": root_yaml("right", "places ARRAY<STRUCT<x INT>>")
        .replace("kind: Csv\n        header: true", "kind: NdJson")
        .replace(
            "      merge:",
            "      preprocess:\n        kind: Sql\n        engine: spark\n"
            "        query: SELECT explode(places.x) AS x FROM input\n      merge:",
        ),
    },
    "remote-references": {
        "a.yaml": derived_yaml("one", "kamu/me/flights"),
        "b.yaml": derived_yaml("two", "https://example.com/me/flights"),
        "c.yaml": derived_yaml("three", "kamu/did:odf:fed01234"),
    },
    "number-is-no-text": {
        "a.yaml": _GOOD,
        "b.yaml": derived_yaml("names", "cities").replace(
            "engine: spark", "engine: spark\n        version: 3.5"
        ),
    },
    "text-is-no-list": {
        "cities.yaml": _GOOD.replace("kind: Append", "kind: Ledger\n        primaryKey: id")
    },
    "second-document": {
        "all.yaml": f"# All of them.\n---\n{_GOOD}---\n"
        + root_yaml("towns").replace("path:", "pfad:")
    },
    "empty-documents-count-not": {
        "all.yaml": f"---\n---\n{_GOOD}---\n# Nothing.\n---\n"
        + root_yaml("towns").replace("kind: Root", "kind: Rot")
        + "---\n"
    },
    "no-name": {
        "a.yaml": root_yaml("my_cities"),
        "b.yaml": derived_yaml("names", "Große Städte").replace("name: names", "name: a/b_c"),
    },
    "not-a-definition": {"chart.yaml": "apiVersion: v2\nname: a chart\n"},
    "undefined-name": {
        "x.yaml.j2": "matrix:\n  city: [kyiv]\n---\n" + root_yaml("cities.{{ cty }}"),
    },
    "clock": {"x.yaml.j2": root_yaml("cities.{{ now() }}")},
    "random-filter": {"x.yaml.j2": root_yaml("cities.{{ [1, 2] | random }}")},
    "sources": {
        "web.yaml": _source(
            "web",
            """\
fetch:
        kind: Url
        url: gopher://example.org/x
        eventTime: {kind: FromPath, pattern: "(.*)"}
        headers:
          - name: X Token
            value: ${{ token }}
      prepare:
        - kind: Pipe
          command: []""",
        ),
        "files.yaml": _source(
            "files",
            """\
fetch:
        kind: FilesGlob
        path: data/*.csv
        order: ByEventTime
        eventTime:
          kind: FromPath
          pattern: report-[0-9
      prepare:
        - kind: Pipe
          command: [cat]""",
        ),
        "messages.yaml": _source(
            "messages",
            """\
fetch:
        kind: Mqtt
        host: broker.example.org
        port: 1883
        topics: [{path: "a/#/b"}]""",
        ),
        "logs.yaml": _source(
            "logs",
            """\
fetch:
        kind: EthereumLogs
        nodeUrl: https://node.example.org/${{ env.KEY
        filter: topic9 is null
        signature: Sent(uint7 x)""",
        ),
    },
    "tabs": {"cities.yaml": _GOOD.replace("    - kind: SetPollingSource", "\t- kind: SetInfo")},
    "merge-key": {
        "a.yaml": derived_yaml("a", "cities").replace(
            "      inputs:", "      <<: {}\n      inputs:"
        ),
        "cities.yaml": _GOOD,
    },
    "template-without-its-suffix": {
        "a.yaml": derived_yaml("a.{{ city }}", "cities"),
        "b.yaml": "matrix:\n  city: [a]\n---\n{% if x %}\n",
        "cities.yaml": _GOOD,
    },
    "several": {
        "b.yaml": _GOOD.replace("header: true", "heder: true"),
        "a.yaml": _GOOD.replace("kind: Root", "kind: [Root"),
        "c.yaml.j2": root_yaml("cities.{{ cty }}"),
    },
}
EVERYTHING = {
    "a.yaml": _GOOD.replace("kind: Root", "kind: [Root"),
    "b.yaml": root_yaml("towns"),
    "c.yaml": derived_yaml("named", "towns", "SELECT event_time, idd FROM src LIMIT 1"),
    "d.yaml": derived_yaml("unfounded", "nothing"),
    "e.yaml": derived_yaml("behind", "cities", "SELECT event_time, unknown FROM src"),
    "f.yaml.j2": "matrix: {n: [1]}\n---\n{{ n }}: [\n",
    "g.test.yaml": "kind: UnitTests\nversion: 1\ncontent: {dataset: towns, tests: [\n",
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_wrong_definition_shows_its_place_and_the_way_out(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = write_project(tmp_path / "project", WRONG[name])
    before = listing(root)
    monkeypatch.chdir(root)
    monkeypatch.setenv("NO_COLOR", "1")
    assert run(["validate"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert_golden(f"errors/{name}.txt", shown.err)
    assert run(["plan"]) == 1
    planned = capsys.readouterr()
    assert planned.err == ""
    for what in re.findall(r"error\[(E\d+)\]|--> (\S+)", shown.err):
        assert "".join(what) in planned.out
    after = {file: data for file, data in listing(root).items() if ".odfbuild" not in file}
    assert after == before


def test_a_project_may_keep_its_definitions_beside_odfbuild_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_project(tmp_path / "project", {"cities.yaml": _GOOD})
    config = root / "odfbuild.yaml"
    config.write_text(config.read_text().replace("datasets: datasets", "datasets: ."))
    for folder, name in (("vars", "dev.yaml"), ("macros", "x.yaml.j2"), ("templates", "y.yaml.j2")):
        (root / folder).mkdir()
        (root / folder / name).write_text("no: definition\n")
    monkeypatch.chdir(root)
    assert run(["validate"]) == 0
    assert run(["fmt", "--check", "."]) == 0
    assert run(["migrate"]) == 0
    assert "1 dataset defined" in capsys.readouterr().out


def test_settings_of_the_engine_that_are_refused_show_their_place_and_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_project(tmp_path / "project", {})
    with (root / "odfbuild.yaml").open("a") as file:
        file.write(
            """\
  engine:
    master: sc://connect.example.com:15002/;token=abc
    conf:
      spark.driver.memory: 2g
      spark.sql.ansi.enabled: "false"
      spark.sql.shuffle.partitions: "64"
      spark.executor.memory: 2g
      executor.memory: 2g
"""
        )
    monkeypatch.chdir(root)
    monkeypatch.setenv("NO_COLOR", "1")
    assert run(["plan"]) == 1
    assert_golden("errors/engine-settings.txt", capsys.readouterr().err)


def test_all_that_is_wrong_is_told_at_once_and_counted_wherever_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_project(tmp_path / "project", EVERYTHING)
    monkeypatch.chdir(root)
    monkeypatch.setenv("NO_COLOR", "1")
    assert run(["validate"]) == 1
    assert_golden("errors/everything-at-once.txt", capsys.readouterr().err)
    assert run(["validate", "--json"]) == 1
    validated = [each["code"] for each in json.loads(capsys.readouterr().out)["errors"]]
    assert run(["lint"]) == 1
    linted = capsys.readouterr()
    both = linted.out + linted.err
    assert sorted(re.findall(r"^error\[(E\d+)", both, re.MULTILINE)) == sorted(validated)
    assert f"\n{len(validated)} errors, " in linted.out


def test_columns_from_before_a_definition_was_edited_are_not_held_against_its_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    query = "SELECT event_time, id, worth FROM src"
    files = {
        "a.yaml": root_yaml("cities").replace("kind: Root", "kind: Rot"),
        "b.yaml": derived_yaml("behind", "cities", query),
    }
    root = write_project(tmp_path / "project", files)
    Chain(workspace(root), "cities", pa.field("id", pa.int64()))
    monkeypatch.chdir(root)
    assert run(["validate"]) == 1
    assert "E0501" not in capsys.readouterr().err
    (root / "datasets" / "a.yaml").unlink()  # now the chain says which columns there are
    assert run(["validate"]) == 1
    assert "E0501" in capsys.readouterr().err

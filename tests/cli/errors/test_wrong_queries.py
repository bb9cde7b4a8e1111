"""Wrong queries are refused when a project is validated, planned and linted, without an engine."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from odfbuild.odf.model import SetTransform
from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny
from tests.cli.real import NO_JVM, NO_QUESTIONS, in_pipe
from tests.cli.wrong.queries import WRONG
from tests.project.write_project import root_yaml, write_project

_FIRST = 18
"""The line of the file on which the query begins, and how far it is indented."""
_INDENT = 12

_DERIVED = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs:
        - datasetRef: cities
          alias: cities
        - datasetRef: people
          alias: people
      transform:
        kind: Sql
        engine: spark
        queries:
          - query: |
              -- a comment stands before it
              {query}
"""


def project(root: Path, queries: dict[str, str]) -> Path:
    """`cities`, `people`, and a derivative for each query."""
    files = {
        f"{name}.yaml": _DERIVED.format(name=name, query=query) for name, query in queries.items()
    }
    files["cities.yaml"] = root_yaml(
        "cities", "event_time TIMESTAMP, city STRING, population BIGINT, area DOUBLE", "c/*.csv"
    )
    files["people.yaml"] = root_yaml(
        "people", "event_time TIMESTAMP, id BIGINT, name STRING, city STRING", "p/*.csv"
    )
    for name, header in (
        ("c", "event_time,city,population,area"),
        ("p", "event_time,id,name,city"),
    ):
        (root / name).mkdir(parents=True)
        (root / name / "1.csv").write_text(f"{header}\n")
    return write_project(root, files)


@dataclass(frozen=True)
class _Told:
    """What three commands say of one project: exit codes, text, findings, plans of datasets."""

    codes: tuple[int, int, int]
    validated: str
    findings: list[dict[str, Any]]
    planned: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> _Told:
    queries = {
        f"w{n}": marked[0].replace("«", "").replace("»", "") for n, marked in enumerate(WRONG)
    }
    root = project(tmp_path_factory.mktemp("wrong") / "p", queries)
    validated, linted, planned = (
        in_pipe(root, command.split(), NO_JVM | NO_QUESTIONS)
        for command in ("validate", "lint --json", "plan --json")
    )
    plans = json.loads(planned.text)["datasets"]
    return _Told(
        (validated.code, linted.code, planned.code),
        validated.plain,
        [each for each in json.loads(linted.text)["findings"] if each["code"].startswith("E")],
        {each["name"]: each for each in plans},
    )


def test_a_project_with_wrong_queries_is_neither_valid_nor_can_it_be_applied(told: _Told) -> None:
    assert told.codes == (1, 1, 1)
    assert len(WRONG) >= 60
    assert "Traceback" not in told.validated


@pytest.mark.parametrize("number", range(len(WRONG)), ids=[each[0][:60] for each in WRONG])
def test_a_wrong_query_is_refused_with_its_place_and_a_way_out(told: _Told, number: int) -> None:
    query, code, message, help_ = WRONG[number]
    (found,) = (each for each in told.findings if each["dataset"] == f"w{number}")
    assert (found["code"], found["level"]) == (code, "error")
    assert message in found["message"]
    assert help_ in found["help"]
    assert (found["line"], found["column"]) == (_FIRST + 1, _INDENT + 2 + query.index("«") + 1)
    assert f"error[{code}]: {found['message']}" in told.validated
    assert f"{found['file']}:{found['line']}:{found['column']}" in told.validated
    refusal = told.planned[f"w{number}"]["refusal"]
    assert (refusal["code"], refusal["message"]) == (code, found["message"])


def test_what_is_right_goes_on_beside_it(told: _Told) -> None:
    assert told.planned["cities"]["refusal"] is None
    assert told.planned["people"]["refusal"] is None


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT event_time, id, value AS y, id AS y FROM source", "E0511"),
        ("SELECT event_time, id, value, ID FROM source", "E0511"),
        ("SELECT event_time, id, valeu AS value FROM source", "E0501"),
        ("SELECT event_time, id, value FROM source WHER id > 1", "E0501"),
    ],
)
def test_a_changed_query_that_is_wrong_stops_its_dataset_only(
    tiny: Tiny, odfbuild: Program, query: str, code: str
) -> None:
    tiny.derive("other", QUERY)
    odfbuild.apply()
    tiny.derive("derived", query)
    tiny.derive("other", QUERY.replace("10", "20"))
    said = {command: odfbuild(command) for command in ("plan", "ls", "status", "lint")}
    assert (said["plan"].code, said["ls"].code, said["lint"].code) == (1, 0, 1)
    assert f"error[{code}]" in said["plan"].out
    assert "~ other" in said["plan"].out
    done = odfbuild("apply", "-y")
    assert done.code == 4
    assert f"error[{code}]" in done.out + done.err
    assert isinstance(tiny.events("other")[-1], SetTransform)
    assert not any("E0999" in each.out + each.err for each in (*said.values(), done))

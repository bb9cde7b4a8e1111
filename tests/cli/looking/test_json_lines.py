"""`apply --json-lines`: what programs that schedule runs read, one event on each line."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from odfbuild.apply.run_events import LogEvent, check_results
from odfbuild.cli.main import run
from odfbuild.errors import CheckError
from odfbuild.survey.outcome import DatasetOutcome, Status
from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny
from tests.report.golden import assert_golden

SCHEMA = json.loads(
    (Path(__file__).parents[3] / "schemas" / "run-event.schema.json").read_text("utf-8")
)
CHECKS = """\
  checks:
    - match: [root]
      notNull: [id]
      severity: warn
    - match: [derived]
      notNull: [value]
      acceptedValues: {value: [10, 20, 30]}
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """A root, `derived`, and `further`, which derives from that; never applied."""
    tiny = Tiny.fresh(tmp_path / "p")
    tiny.derive("further", QUERY, source="derived")
    with (tiny.root / "odfbuild.yaml").open("a") as file:
        file.write(CHECKS)
    return tiny


def lines(text: str) -> list[dict[str, Any]]:
    """Events, each of them as the schema says."""
    events = [json.loads(line) for line in text.splitlines()]
    for each in events:
        jsonschema.validate(each, SCHEMA, format_checker=jsonschema.FormatChecker())
    return events


def of(events: list[dict[str, Any]], dataset: str) -> dict[str, Any]:
    """The event of the end of a dataset."""
    (found,) = [each for each in events if each["dataset"] == dataset and "status" in each]
    return found


def steady(text: str) -> str:
    """The lines without what differs from run to run, in a form for people."""
    shown = []
    for each in lines(text):
        if each["event"] == "engine.start":
            continue  # it starts in the background, at any moment
        for key in ("ts", "run_id", "plan_digest", "head"):
            if each.get(key) is not None:
                each[key] = "…"
        each.pop("seconds", None)
        shown.append(json.dumps(each, ensure_ascii=False))
    return re.sub(r"/[^ \"]*\.parquet", "….parquet", "\n".join(shown))


def test_events_come_one_a_line_and_the_last_one_has_the_exit_code(
    tiny: Tiny, odfbuild: Program
) -> None:
    said = odfbuild.ok("apply", "-y", "--json-lines", "--jobs", "1")
    assert_golden("apply-lines.jsonl", steady(said.out))
    events = lines(said.out)
    assert {each["run_id"] for each in events} == {events[0]["run_id"]}
    heads = {name: str(p.head) for name, p in tiny.workspace().projections().items()}
    assert {name: of(events, name)["head"] for name in heads} == heads


def test_a_failed_check_is_told_with_those_that_passed_and_what_it_stops(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    tiny.arrive(2)
    said = odfbuild("apply", "-y", "--json-lines", "--jobs", "1")
    events = lines(said.out)
    assert said.code == events[-1]["exit_code"] == 4
    derived = of(events, "derived")
    assert (derived["event"], derived["code"]) == ("check.fail", "E0540")
    assert derived["check_results"] == [
        {"check": "notNull: value", "status": "passed", "found": None},
        {
            "check": "acceptedValues: value",
            "status": "failed",
            "found": "1 record, such as offset 3, 40",
        },
    ]
    assert of(events, "further")["status"] == "skipped"
    assert events[-1]["summary"]["failed"] == 1


def test_without_anything_to_do_the_plan_and_the_end_are_told(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    ready, end = lines(odfbuild.ok("apply", "-y", "--json-lines").out)
    assert (ready["event"], ready["affected"], ready["total"]) == ("plan.ready", [], 3)
    assert (end["event"], end["exit_code"], end["run_id"]) == ("run.end", 0, None)


def test_an_error_before_the_run_is_the_end_and_its_reason(tiny: Tiny, odfbuild: Program) -> None:
    said = odfbuild("apply", "-y", "--json-lines", "-s", "nowhere")
    (end,) = lines(said.out)
    assert (end["event"], end["exit_code"]) == ("run.end", said.code)
    assert end["errors"][0]["code"] in said.err


def test_a_reader_that_ends_does_not_end_the_run(
    tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    monkeypatch.chdir(tiny.root)
    with os.fdopen(writer, "w") as nobody, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", nobody)
        assert run(["apply", "-y", "--json-lines"]) == 0
    assert tiny.workspace().projections()["further"].records == 3


def test_lines_and_one_document_exclude_each_other(tiny: Tiny, odfbuild: Program) -> None:
    said = odfbuild("apply", "-y", "--json-lines", "--json")
    assert said.code == 64
    assert "it excludes --json" in said.err


def test_the_schema_names_all_events() -> None:
    assert SCHEMA["properties"]["event"]["enum"] == [each.value for each in LogEvent]


def test_the_longest_name_is_the_check_that_is_meant() -> None:
    error = CheckError("no", code="E0540", notes=("sql: a: b: 1 record", "records: /x.parquet"))
    outcome = DatasetOutcome(name="d", status=Status.FAILED, error=error)
    assert check_results(outcome, ["sql: a", "sql: a: b"]) == [
        {"check": "sql: a", "status": "passed", "found": None},
        {"check": "sql: a: b", "status": "failed", "found": "1 record"},
    ]


def test_checks_that_did_not_run_have_no_result() -> None:
    nothing_new = DatasetOutcome(name="d", status=Status.NOOP)
    assert check_results(nothing_new, ["notNull: a"]) == []

"""What schedulers start is the real program, and what they show is read from definitions."""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from odfbuild.errors import EnvironmentProblem
from odfbuild.integrations.command import ApplyCommand, Event, failure, is_end_of_dataset, reasons
from odfbuild.integrations.datasets import datasets_of
from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny

SETTINGS = """\
  checks:
    - match: [root]
      notNull: [id]
      severity: warn
    - match: [derived]
      notNull: [value]
      sql: {no gap: SELECT 1 FROM slice WHERE false, no_gap: SELECT 1 FROM slice WHERE false}
    - match: [further]
      relationships: {id: {to: root, field: id}}
  freshness:
    - match: [root]
      maxAge: 1d
  owners:
    - match: [derived]
      owners: ["@data/rail", ann@example.org]
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """A root, `derived`, and `further`, which derives from that; never applied."""
    tiny = Tiny.fresh(tmp_path / "p")
    tiny.derive("further", QUERY, source="derived")
    tiny.describe("derived", "Ten times as much")
    with (tiny.root / "odfbuild.yaml").open("a") as file:
        file.write(SETTINGS)
    return tiny


def run(command: ApplyCommand) -> list[Event]:
    return list(command.start().events())


def test_definitions_tell_graph_checks_owners_and_ages(tiny: Tiny) -> None:
    root, derived, further = datasets_of(str(tiny.root), None, (), ())
    assert [each.name for each in (root, derived, further)] == ["root", "derived", "further"]
    assert (root.inputs, derived.inputs, further.inputs) == ((), ("root",), ("derived",))
    assert (root.max_age, derived.max_age) == (timedelta(days=1), None)
    assert (derived.description, derived.owners) == (
        "Ten times as much",
        ("@data/rail", "ann@example.org"),
    )
    assert [(each.check, each.name, each.warn) for each in root.checks] == [
        ("notNull: id", "notNull_id", True)
    ]
    # Schedulers take letters, digits and `_`; no two checks get the same name.
    assert [each.name for each in derived.checks] == [
        "notNull_value",
        "sql_no_gap",
        "sql_no_gap_2",
    ]
    assert further.checked_against == ("root",)


def test_selected_datasets_alone_are_shown(tiny: Tiny) -> None:
    found = datasets_of(str(tiny.root), None, ("derived+",), ("further",))
    assert [each.name for each in found] == ["derived"]


@pytest.mark.spark
def test_a_run_that_is_stopped_continues_with_the_same_result(tiny: Tiny) -> None:
    command = ApplyCommand(project=str(tiny.root))
    started = command.start()
    for event in started.events():
        if event["event"] == "node.start":
            break  # as a scheduler that cancels its task
    assert started._process.poll() is not None
    *events, end = run(command)
    assert {e["dataset"]: e["status"] for e in events if is_end_of_dataset(e)} == {
        "root": "committed",
        "derived": "committed",
        "further": "committed",
    }
    assert (end["exit_code"], end["records"], reasons(end)) == (0, 9, [])
    _, end = run(command)
    assert end["summary"]["committed"] == 0


def test_why_nothing_was_begun_is_told(tiny: Tiny) -> None:
    (end,) = run(ApplyCommand(project=str(tiny.root), select=("nowhere",)))
    (why,) = reasons(end)
    assert "nowhere" in why


@pytest.mark.spark
def test_checks_of_committed_records_are_run_alone(tiny: Tiny, odfbuild: Program) -> None:
    command = ApplyCommand(project=str(tiny.root), select=("root",))
    odfbuild.apply()
    assert command.violations() == {"root": []}
    with pytest.raises(EnvironmentProblem, match="there is no dataset 'nowhere' here") as raised:
        ApplyCommand(project=str(tiny.root), select=("nowhere",)).violations()
    assert raised.value.code == "E0913"


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (("/nonexistent/odfbuild",), "No such file or directory"),
        (("echo",), "this is no event: -C"),
        ((sys.executable, "-c", "'not the program'"), "it ended with 0 and did not say how"),
    ],
)
def test_a_program_that_is_not_odfbuild_is_an_error(program: tuple[str, ...], why: str) -> None:
    with pytest.raises(EnvironmentProblem) as raised:
        run(ApplyCommand(project="/tmp", program=program))
    assert raised.value.code == "E0913"
    assert why in raised.value.message


def test_a_program_that_is_killed_is_an_error() -> None:
    script = 'import os; print(\'{"event": "plan.ready"}\', flush=True); os.kill(os.getpid(), 9)'
    events = ApplyCommand(project="/tmp", program=(sys.executable, "-c", script)).start().events()
    assert next(events)["event"] == "plan.ready"
    with pytest.raises(EnvironmentProblem, match="it ended with -9"):
        next(events)


def test_a_program_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odfbuild.integrations.command._PATIENCE_SECONDS", 0.2)
    script = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        'print(\'{"event": "plan.ready"}\', flush=True); time.sleep(600)'
    )
    run = ApplyCommand(project="/tmp", program=(sys.executable, "-c", script)).start()
    begun = time.monotonic()
    for _ in run.events():
        break
    assert time.monotonic() - begun < 60


def test_a_failure_names_the_checks_that_records_violate() -> None:
    results = [
        {"check": "notNull: a", "status": "passed", "found": None},
        {"check": "notNull: b", "status": "failed", "found": "2 records"},
    ]
    event = {"dataset": "d", "msg": "no", "status": "failed"}
    assert failure(event) == "d: no"
    assert failure({**event, "check_results": results}) == "d: no (notNull: b: 2 records)"
    assert failure({**event, "status": "skipped"}) is None


def test_values_of_options_are_words_of_their_own() -> None:
    command = ApplyCommand(
        project="/srv/p",
        env="prod",
        branch="b",
        select=("a", "b+"),
        exclude=("c",),
        program=("odfbuild",),
        arguments=("--jobs", "2"),
    )
    assert command.words == [
        *("odfbuild", "-C", "/srv/p", "--env", "prod", "--branch", "b"),
        *("apply", "--auto-approve", "--json-lines", "--select", "a", "--select", "b+"),
        *("--exclude", "c", "--jobs", "2"),
    ]

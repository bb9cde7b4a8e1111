"""What each apply leaves behind for people and programs: log lines, results, explanations."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from odfbuild.apply.run_log import RunLog
from odfbuild.cli.console import Console
from odfbuild.cli.progress import LiveBars, Notes, headway, time_left
from odfbuild.engine.contract import StepProgress
from odfbuild.survey.outcome import DatasetOutcome, Status
from odfbuild.survey.runs import last_seconds
from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny

_RUN = re.compile(r"\d{8}T\d{12}Z-[0-9a-f]{4}")


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """A root, `derived`, and `further`, which derives from that; never applied."""
    tiny = Tiny.fresh(tmp_path / "p")
    tiny.derive("further", QUERY, source="derived")
    return tiny


def runs(tiny: Tiny) -> list[Path]:
    """Folders of all runs, oldest first."""
    folder = tiny.root / ".odfbuild" / "runs"
    return sorted(folder.iterdir()) if folder.is_dir() else []


def log(folder: Path) -> list[dict[str, Any]]:
    """Log records of a run."""
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def results(folder: Path) -> dict[str, Any]:
    """Results of a run."""
    return json.loads((folder / "run_results.json").read_text())


def break_source(tiny: Tiny) -> None:
    """Let the next ingestion fail."""
    (tiny.root / "data" / "2.csv").write_text("event_time,id,value\nno,time,here\n")


def test_a_run_leaves_its_log_and_results(tiny: Tiny, odfbuild: Program) -> None:
    digest = odfbuild.ok("plan", "--json").data["plan_digest"]
    odfbuild.apply()
    (folder,) = runs(tiny)
    assert _RUN.fullmatch(folder.name)
    records = log(folder)
    # It starts in the background, whatever goes on meanwhile.
    (engine,) = [r for r in records if r["event"] == "engine.start"]
    assert (engine["level"], engine["engine_version"], engine["not_fenced"]) == ("info", "0", [])
    assert engine["msg"] == "Spark runs on this process; sandbox: none"
    assert [(r["event"], r["dataset"]) for r in records if r is not engine] == [
        ("plan.ready", None),
        ("node.start", "root"),
        ("node.progress", "root"),
        ("node.commit", "root"),
        ("node.start", "derived"),
        ("node.progress", "derived"),
        ("node.commit", "derived"),
        ("node.start", "further"),
        ("node.progress", "further"),
        ("node.commit", "further"),
        ("summary", None),
    ]
    assert all({"ts", "level", "event", "run_id", "dataset", "msg"} <= set(r) for r in records)
    assert {r["run_id"] for r in records} == {folder.name}
    assert [r["ts"] for r in records] == sorted(r["ts"] for r in records)
    found = results(folder)
    assert (found["plan_digest"], found["exit_code"]) == (digest, 0)
    heads = {name: str(p.head) for name, p in tiny.workspace().projections().items()}
    assert {d["name"]: d["head_after"] for d in found["datasets"]} == heads
    assert [d["head_before"] for d in found["datasets"]] == [None, None, None]
    assert found["datasets"][1]["reasons"][-1]["children"][0]["code"] == "never_run"
    # Nothing to do is no run.
    odfbuild.apply()
    assert runs(tiny) == [folder]


def test_failures_are_logged_with_what_they_stop(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    break_source(tiny)
    assert odfbuild("apply", "-y").code == 1
    folder = runs(tiny)[-1]
    assert {r["dataset"]: (r["event"], r["level"]) for r in log(folder) if r["dataset"]} == {
        "root": ("node.fail", "error"),
        "derived": ("node.skip", "warning"),
        "further": ("node.skip", "warning"),
    }
    found = {d["name"]: (d["status"], d["because"]) for d in results(folder)["datasets"]}
    assert found["derived"] == ("skipped", "'root' did not complete")
    assert results(folder)["exit_code"] == 1
    # How the last run ended can be selected, and running it again is how it is resumed.
    assert [
        d["name"] for d in odfbuild("plan", "-s", "result:failed", "--json").data["datasets"]
    ] == ["root"]


def test_progress_as_json_is_the_log_line_by_line(tiny: Tiny, odfbuild: Program) -> None:
    said = odfbuild.ok("apply", "-y", "--log-format", "json")
    assert [json.loads(line) for line in said.err.splitlines()] == log(runs(tiny)[-1])


def test_only_the_newest_runs_are_kept(
    tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odfbuild.apply.run_log.KEPT", 2)
    names = []
    for number in (10, 20, 30):
        tiny.derive("derived", QUERY.replace("10", str(number)))
        odfbuild.apply()
        names.append(runs(tiny)[-1].name)
    assert [folder.name for folder in runs(tiny)] == sorted(names)[-2:]


def test_a_folder_that_cannot_take_logs_stops_nothing(tiny: Tiny, odfbuild: Program) -> None:
    (tiny.root / ".odfbuild").mkdir(exist_ok=True)
    (tiny.root / ".odfbuild" / "runs").touch()
    odfbuild.apply()


def test_explain_tells_what_happened_since_a_run(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    first = runs(tiny)[-1].name
    tiny.arrive(2)
    odfbuild.apply()
    second = runs(tiny)[-1].name
    said = odfbuild.ok("explain", "derived", "--since", first).out
    assert said == (
        "derived  up to date: nothing will happen\n\n"
        "Not because of:\n"
        + re.search(r"(  the definition: .*\n  root: .*\n)", said)[1]
        + f"\nSince run {first} (committed 3 records in 4 blocks):\n"
        f"  {second}  committed 1 record in 1 block\n"
        "    root will run\n"
        "      data/2.csv is new\n"
    )
    data = odfbuild.ok("explain", "derived", "--since", "last", "--json").data
    assert (data["since"]["run_id"], data["since"]["runs"]) == (second, [])
    assert data["status"] == "up_to_date"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "derved"], "error[E0301]: there is no dataset 'derved' here"),
        (["explain", "derived", "--since", "2000"], "error[E0364]: no run begins with '2000'"),
        (["explain", "derived", "--since", "last"], "error[E0364]: no run begins with 'last'"),
    ],
)
def test_what_cannot_be_explained_is_refused(
    odfbuild: Program, arguments: list[str], message: str
) -> None:
    said = odfbuild(*arguments)
    assert said.code == 1
    assert message in said.err


def test_error_codes_are_explained(odfbuild: Program) -> None:
    said = odfbuild.ok("explain", "e0364")
    assert said.out.startswith("E0364: No such run\n\nThe newest hundred runs are kept in")
    assert odfbuild.ok("explain", "E0364", "--json").data["title"] == "No such run"
    assert odfbuild("explain", "E9999").code == 64


def test_a_damaged_record_of_a_run_is_passed_over(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    tiny.arrive(2)
    odfbuild.apply()
    first, second = runs(tiny)
    (second / "run_results.json").write_text("{")
    assert (
        odfbuild.ok("why", "root", "--since", "last", "--json").data["since"]["run_id"]
        == first.name
    )


def test_the_next_run_knows_how_long_each_dataset_took(tiny: Tiny, odfbuild: Program) -> None:
    assert last_seconds(tiny.root / ".odfbuild") == {}
    odfbuild.apply()
    took = last_seconds(tiny.root / ".odfbuild")
    assert took.keys() == {"root", "derived", "further"}
    tiny.arrive(2)
    odfbuild.apply()
    assert last_seconds(tiny.root / ".odfbuild").keys() == took.keys()
    (runs(tiny)[-1] / "run_results.json").write_text("half a fi")
    assert last_seconds(tiny.root / ".odfbuild") == took


@pytest.mark.parametrize(
    ("last", "elapsed", "text"),
    [(None, 3.0, ""), (12.4, 0.2, "about 12 s left"), (12.4, 13.0, "longer than last time (12 s)")],
)
def test_the_time_left_is_that_of_last_time(last: float | None, elapsed: float, text: str) -> None:
    assert time_left(last, elapsed) == text


def test_bars_show_how_far_an_engine_is_and_the_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    bars = LiveBars(Console(), {"slow": 60.0})
    try:
        now = StepProgress(stages_done=1, stages=3, tasks_done=3, tasks=8, records_read=12_345)
        bars.begin(1, lambda name: now)
        bars.started("slow")
        said = ""
        while " s left" not in said:
            time.sleep(0.05)
            said += capsys.readouterr().err
        bars.finished(DatasetOutcome(name="slow", status=Status.NOOP, because="nothing new"))
    finally:
        bars.stop()
    assert re.search(r"12,345 records read, about (60|5\d) s left, stage 2 of 3", said)


@pytest.mark.parametrize(
    ("room", "text"),
    [
        (80, "1,500,000 records read, about 20 s left, stage 1 of 2"),
        (40, "1,500,000 records read, about 20 s left"),
        (28, "1,500,000 records read"),  # of a terminal of 80 columns
        (20, "about 20 s left"),
        (10, ""),
    ],
)
def test_what_does_not_fit_beside_a_bar_is_left_out_as_a_whole(room: int, text: str) -> None:
    now = StepProgress(stages_done=0, stages=2, tasks_done=0, tasks=2, records_read=1_500_000)
    assert headway(now, "about 20 s left", room) == text


def test_a_bar_in_80_columns_shows_its_counts_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    name = "shop.sales.with.a.name.that.is.long"
    bars = LiveBars(Console(), {name: 60.0})
    now = StepProgress(stages_done=0, stages=1, tasks_done=0, tasks=2, records_read=987_654_321)
    try:
        bars.begin(1, lambda name: now)
        bars.started(name)
        bars.progressed(name, 1234, 5)
        said = ""
        while "records read" not in said:
            time.sleep(0.05)
            said += capsys.readouterr().err
    finally:
        bars.stop()
    assert re.search(r"shop\.sales\S+…, 1,234 blocks .* 987,654,321 records read", said)


def test_the_log_says_how_far_the_engine_is_with_what_takes_long(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    log = RunLog(tmp_path, Notes(Console(verbosity=-1)), [heard.append])
    log._last = {"slow": 60.0}
    now = StepProgress(stages_done=1, stages=3, tasks_done=3, tasks=8, records_read=12_345)
    asked: list[str] = []

    def ask(name: str) -> StepProgress:
        asked.append(name)
        return now

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("odfbuild.apply.run_log.SECONDS", 0.1)
        log.begin(2, ask)
        log.started("slow")
        while len(asked) < 3:
            time.sleep(0.05)
        log.finished(DatasetOutcome(name="slow", status=Status.NOOP, because="nothing new"))
        told = len(asked)
        time.sleep(0.5)
    assert len(asked) <= told + 1  # the last question may have been asked before it was done
    (record,) = [each for each in heard if each["event"] == "node.progress"]
    assert record["msg"] == "stage 2 of 3, 12,345 records read"
    assert (record["stages"], record["tasks"], record["records_read"]) == ([1, 3], [3, 8], 12_345)
    assert 0 < record["seconds_left"] < 60

"""Times as arguments of the Python interface: text as on the command line, and values."""

from __future__ import annotations

import inspect
import io
import itertools
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from odfbuild import Dataset, Project
from odfbuild.errors import BranchError, OdfbuildError, PlanError
from odfbuild.odf.timestamp import Timestamp
from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import Tiny

Call = Callable[[Project, Any], Any]
_IDS = itertools.count(1)
_ROW = b"event_time,id,value\n2024-01-01 00:00:00,%d,1\n"

# How each argument that is a time is given, and what the command line says of a wrong one.
TIMES: dict[str, tuple[Call, tuple[str, ...]]] = {
    "freshness.at": (lambda p, t: p.freshness(at=t), ("freshness", "--at")),
    "sql.as_of": (
        lambda p, t: p.sql("SELECT id FROM root", as_of=t, engine="duckdb").num_rows,
        ("sql", "--engine", "duckdb", "SELECT id FROM root", "--as-of"),
    ),
    "sql.valid_at": (
        lambda p, t: p.sql("SELECT id FROM root", valid_at=t, engine="duckdb").num_rows,
        ("sql", "--engine", "duckdb", "SELECT id FROM root", "--valid-at"),
    ),
    "corrections.since": (
        lambda p, t: p.corrections("root", t).found,
        ("corrections", "root", "--since"),
    ),
    "plan.since": (lambda p, t: p.plan(since=t), ("plan", "-b", "try", "--since")),
    "diff_data.since": (
        lambda p, t: p.diff_data(["root"], since=t),
        ("diff", "--data", "root", "--from"),
    ),
    "diff_data.until": (
        lambda p, t: p.diff_data(["root"], since="2020-01-01", until=t),
        ("diff", "--data", "root", "--from", "2020-01-01", "--to"),
    ),
    "ingest.event_time": (
        lambda p, t: p.ingest("pushed", io.BytesIO(_ROW % next(_IDS)), event_time=t),
        ("ingest", "pushed", "data/1.csv", "--event-time"),
    ),
    "set_watermark.time": (lambda p, t: p.set_watermark("root", t), ("watermark", "set", "root")),
    # Texts that are no time may be revisions of Git here, so the error is another one.
    "at.moment": (lambda p, t: p["root"].at(t).count(), ()),
}
MOMENTS = {"sql.as_of", "corrections.since", "diff_data.since", "diff_data.until", "at.moment"}
"""System times, which may also be dates and blocks."""

LATER = "2030-01-01T00:00:00Z"
SAME = (
    LATER,
    "2030-01-01T02:00:00+02:00",
    datetime(2030, 1, 1, tzinfo=UTC),
    datetime(2030, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
    Timestamp.parse(LATER),
)
_PUSHED = """\
kind: DatasetSnapshot
version: 1
content:
  name: pushed
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: till
      read: {kind: Csv, header: true, schema: [event_time TIMESTAMP, id BIGINT, value BIGINT]}
      merge: {kind: Ledger, primaryKey: [id]}
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    share(PlainEngine(), monkeypatch)
    tiny = Tiny.fresh(tmp_path / "p")
    (tiny.root / "datasets" / "pushed.yaml").write_text(_PUSHED)
    return tiny


@pytest.fixture
def project(tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch) -> Project:
    odfbuild.apply()
    monkeypatch.chdir(tiny.root)
    return Project(tiny.root)


def _of(argument: str, tiny: Tiny) -> Project:
    return Project(tiny.root, branch="try" if argument == "plan.since" else None)


def test_every_argument_that_is_a_time_is_tested_here() -> None:
    found = set()
    for owner in (Project, Dataset):
        for name, method in inspect.getmembers(owner, inspect.isfunction):
            if name.startswith("_"):
                continue
            for parameter in inspect.signature(method).parameters.values():
                declared = str(parameter.annotation)
                assert "datetime" not in declared, f"{name}: use Time"
                assert not re.search(r"timedelta(?! \| str)", declared), f"{name}: take text, too"
                if re.search(r"\bTime\b", declared):
                    found.add(f"{name}.{parameter.name}")
    assert found == set(TIMES)


@pytest.mark.parametrize("argument", TIMES)
def test_text_and_values_mean_the_same(argument: str, project: Project, tiny: Tiny) -> None:
    call, _ = TIMES[argument]
    if argument == "ingest.event_time":
        assert [call(project, time).error for time in SAME] == [None] * len(SAME)
        return
    if argument == "set_watermark.time":
        assert [call(project, time) for time in SAME] == [True, *[False] * (len(SAME) - 1)]
        assert str(project.datasets()["root"].watermark) == LATER
        return
    answers = [_shown(call(_of(argument, tiny), time)) for time in SAME]
    assert answers == [answers[0]] * len(SAME)


def _shown(answer: object) -> str:
    return re.sub(r"digest.*", "", repr(answer))


@pytest.mark.parametrize("argument", sorted(MOMENTS))
def test_system_times_may_be_dates_and_blocks(argument: str, project: Project, tiny: Tiny) -> None:
    call, _ = TIMES[argument]
    block = str(project.datasets()["root"].head)
    for time in ("2030-01-01", block, block[-12:]):
        call(project, time)


@pytest.mark.parametrize("argument", TIMES)
def test_a_wrong_time_is_told_as_on_the_command_line(
    argument: str, project: Project, tiny: Tiny, odfbuild: Program
) -> None:
    call, command = TIMES[argument]
    wrong = "soon" if argument in MOMENTS else "2030-01-01"
    with pytest.raises(OdfbuildError) as raised:
        call(_of(argument, tiny), wrong)
    if not command:
        assert raised.value.code == "E0661"
        return
    said = odfbuild(*command, wrong)
    assert said.code == raised.value.exit_code
    assert f"error[{raised.value.code}]" in said.err
    assert f"'{wrong}'" in raised.value.message
    words = raised.value.message.rpartition(": ")[2]
    assert words in " ".join(said.err.split())
    assert isinstance(raised.value, BranchError if argument == "plan.since" else PlanError)


@pytest.mark.parametrize("argument", TIMES)
def test_a_time_without_time_zone_is_no_time(argument: str, project: Project, tiny: Tiny) -> None:
    call, _ = TIMES[argument]
    with pytest.raises(ValueError, match=r"2030-01-01 00:00:00 has no time zone; for UTC: "):
        call(_of(argument, tiny), datetime(2030, 1, 1))
    with pytest.raises(TypeError, match="a int is no time: 5"):
        call(_of(argument, tiny), 5)


def test_a_watermark_that_a_project_told_is_a_time_for_it(project: Project) -> None:
    watermark = project.datasets()["root"].watermark
    assert watermark is not None
    answer = project.sql("SELECT id FROM root", valid_at=watermark, engine="duckdb")
    assert answer.num_rows == 3


def test_ages_are_text_too(project: Project) -> None:
    assert project.collect(grace="36h", dry_run=True) == project.collect(
        grace=timedelta(hours=36), dry_run=True
    )
    assert project.delete_branches(older_than="14d") == ()
    with pytest.raises(PlanError, match="'long' is not a number and a unit"):
        project.collect(grace="long")
    with pytest.raises(PlanError, match="'9' is not a number and a unit"):
        project.delete_branches(older_than="9")

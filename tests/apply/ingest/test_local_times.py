"""A local time that never was, or was twice, is refused unless something says what it means."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.contract import Engine
from tests.apply.in_process import Program, share
from tests.apply.tiny import Tiny

pytestmark = pytest.mark.spark

ABSENT, TWICE = "2024-03-31 02:30:00 Europe/Paris", "2024-10-27 02:30:00 Europe/Paris"
RIGHT = {
    "2024-03-31 01:59:59 Europe/Paris": "2024-03-31T00:59:59",
    "2024-03-31T03:00:00Europe/Paris": "2024-03-31T01:00:00",
    "2024-10-27 01:59:59 Europe/Paris": "2024-10-26T23:59:59",
    "2024-10-27 03:00:00 Europe/Paris": "2024-10-27T02:00:00",
    "2024-03-31 02:30:00 UTC": "2024-03-31T02:30:00",
    "2024-03-31 02:30:00+01:00": "2024-03-31T01:30:00",
    "2024-03-31T02:30:00Z": "2024-03-31T02:30:00",
    "2024-03-31 02:30:00 Etc/GMT-3": "2024-03-30T23:30:00",
}
WRONG = [
    (ABSENT, "is not a time there: clocks were put forward over it"),
    (TWICE, "is not one time there: clocks were put back, and showed it twice"),
    ("2024-10-06 02:15:00 Australia/Lord_Howe", "clocks were put forward"),
    ("2024-04-07 01:45:00 Australia/Lord_Howe", "showed it twice"),
    ("2024-09-29 02:30:00 NZ", "clocks were put forward"),
    ("2011-12-30 12:00:00 Pacific/Apia", "clocks were put forward"),
]


@pytest.fixture
def program(
    tmp_path: Path,
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Program:
    share(spark_engine, monkeypatch)
    return Program(Tiny.fresh(tmp_path / "tiny").root, monkeypatch, capsys)


def bring(program: Program, *times: str) -> None:
    rows = [f"{each},{number},1" for number, each in enumerate(times)]
    text = "\n".join(["event_time,id,value", *rows, ""])
    (program.root / "data" / "1.csv").write_text(text)


def read(program: Program, kind: str) -> None:
    file = program.root / "datasets" / "root.yaml"
    text = file.read_text().replace("*.csv", f"*.{kind.lower()}")
    file.write_text(text.replace("kind: Csv\n        header: true", f"kind: {kind}"))


def times(program: Program) -> list[datetime]:
    found = sorted(Tiny(program.root).records("root"), key=lambda each: each["id"])
    return [each["event_time"] for each in found]


def test_times_that_a_zone_has_once_are_read(program: Program) -> None:
    bring(program, *RIGHT)
    program.apply()
    expected = [datetime.fromisoformat(each).replace(tzinfo=UTC) for each in RIGHT.values()]
    assert times(program) == expected


def test_others_are_bad_with_their_places(program: Program) -> None:
    with (program.root / "odfbuild.yaml").open("a") as file:
        file.write("  ingest:\n    badRecords: {root: skip}\n")
    bring(program, "2024-01-01 00:00:00", *(text for text, _ in WRONG[:2]))
    said = program.apply().out
    assert "2 bad records skipped" in said
    assert f"data/1.csv:3:1: '{ABSENT}' in column 'event_time' {WRONG[0][1]}" in said
    assert f"data/1.csv:4:1: '{TWICE}' in column 'event_time' {WRONG[1][1]}" in said


@pytest.mark.parametrize(("text", "why"), WRONG)
def test_the_first_is_an_error(program: Program, text: str, why: str) -> None:
    bring(program, "2024-01-01 00:00:00", text)
    said = program("apply", "-y").err
    assert f"error[E0421]: '{text}' in column 'event_time'" in said
    assert why in said
    assert "data/1.csv:3:1" in said


def test_a_project_can_accept_them(program: Program) -> None:
    with (program.root / "odfbuild.yaml").open("a") as file:
        file.write("  ingest:\n    localTimes: {'*': earlier}\n")
    bring(program, ABSENT, TWICE)
    program.apply()
    assert [each.isoformat() for each in times(program)] == [
        "2024-03-31T01:30:00+00:00",
        "2024-10-27T00:30:00+00:00",
    ]


@pytest.mark.parametrize("kind", ["NdJson", "Json", "Parquet"])
def test_other_formats_are_read_as_strictly(program: Program, kind: str) -> None:
    read(program, kind)
    file = program.root / "data" / f"1.{kind.lower()}"
    row = f'{{"event_time": "{TWICE}", "id": 1, "value": 1}}'
    if kind == "Parquet":
        pq.write_table(pa.table({"event_time": [TWICE], "id": [1], "value": [1]}), file)
    else:
        file.write_text(f"[{row}]" if kind == "Json" else row)
    assert f"'{TWICE}' in column 'event_time' is not" in program("apply", "-y").err

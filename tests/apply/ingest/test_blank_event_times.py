"""A record without an event time is refused unless something says which time it gets."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.contract import Engine
from odfbuild.odf.timestamp import Timestamp
from tests.apply.in_process import Program, share
from tests.apply.tiny import Tiny

pytestmark = pytest.mark.spark

LEDGER = "kind: Ledger\n        primaryKey: [id]"
MERGES = (
    LEDGER,
    "kind: Append",
    "kind: Snapshot\n        primaryKey: [id]",
    "kind: UpsertStream\n        primaryKey: [id]",
)
WINDOWS = (
    "SELECT window.start AS event_time, COUNT(*) AS n FROM source"
    " GROUP BY window(event_time, '1 day')"
)


@pytest.fixture
def program(
    tmp_path: Path,
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Program:
    share(spark_engine, monkeypatch)
    return Program(Tiny.fresh(tmp_path / "tiny").root, monkeypatch, capsys)


def define(program: Program, *, merge: str = LEDGER, old: str = "", new: str = "") -> None:
    file = program.root / "datasets" / "root.yaml"
    text = file.read_text().replace(LEDGER, merge)
    assert old in text
    file.write_text(text.replace(old, new) if old else text)


def bring(program: Program, name: str, *rows: str) -> None:
    (program.root / "data" / name).write_text("\n".join(["event_time,id,value", *rows, ""]))


def say(program: Program, text: str) -> None:
    with (program.root / "odfbuild.yaml").open("a") as file:
        file.write(text)


def watermark(program: Program) -> Timestamp | None:
    state = Tiny(program.root).workspace().projection("root")
    return state.watermark if state else None


@pytest.mark.parametrize("merge", MERGES)
def test_a_blank_event_time_is_refused_with_its_place(program: Program, merge: str) -> None:
    define(program, merge=merge)
    program.apply()
    before = watermark(program)
    bring(program, "2.csv", "2024-01-04 00:00:00,4,4", ",5,5")
    said = program("apply", "-y")
    assert said.code == 1
    assert "error[E0437]: there is no event time in column 'event_time'" in said.err
    assert "data/2.csv:3:1" in said.err
    assert "ingest.blankEventTimes: {root: fill}" in said.err
    assert watermark(program) == before


def test_files_that_are_read_together_are_not_let_in(program: Program) -> None:
    program.apply()
    bring(program, "2.csv", "2024-01-04 00:00:00,4,4")
    bring(program, "3.csv", ",5,5")
    said = program("apply", "-y")
    assert "data/3.csv:2:1" in said.err
    assert Tiny(program.root).ids("root") == [1, 2, 3, 4]


def test_a_blank_event_time_is_skipped_with_other_bad_records(program: Program) -> None:
    say(program, "  ingest:\n    badRecords: {root: skip}\n")
    bring(program, "1.csv", ",1,1", "2024-01-02 00:00:00,2,2")
    assert "1 bad record skipped" in program.apply().out
    assert Tiny(program.root).ids("root") == [2]
    assert watermark(program) == Timestamp.parse("2024-01-02T00:00:00Z")


def test_what_is_filled_is_counted(program: Program) -> None:
    say(program, "  ingest:\n    blankEventTimes: {'r*': fill}\n")
    bring(program, "1.csv", ",1,1", "2024-01-02 00:00:00,2,2")
    assert "1 record of 'data/1.csv' had no event time and got " in program.apply().out
    assert sorted(Tiny(program.root).ids("root")) == [1, 2]
    program.ok("verify")


def test_a_definition_that_names_the_time_of_files_says_enough(program: Program) -> None:
    define(
        program,
        old="order: ByName\n",
        new="order: ByName\n        eventTime: {kind: FromPath, "
        "pattern: '(\\d+-\\d+-\\d+)', timestampFormat: '%Y-%m-%d'}\n",
    )
    (program.root / "data" / "1.csv").unlink()
    bring(program, "2024-03-01.csv", ",1,1")
    program.apply()
    assert watermark(program) == Timestamp.parse("2024-03-01T00:00:00Z")


def test_a_source_without_the_column_takes_the_time_of_ingestion(program: Program) -> None:
    define(program, old="          - event_time TIMESTAMP\n", new="")
    (program.root / "data" / "1.csv").write_text("id,value\n1,1\n")
    program.apply()
    assert Tiny(program.root).ids("root") == [1]


def test_a_query_that_gives_no_time_is_refused(program: Program) -> None:
    define(
        program,
        old="      merge:\n",
        new="      preprocess:\n        kind: Sql\n        engine: spark\n        query: SELECT "
        "IF(id = 2, NULL, event_time) AS event_time, id, value FROM input\n      merge:\n",
    )
    said = program("apply", "-y")
    assert "error[E0437]: there is no event time" in said.err
    say(program, "  ingest:\n    badRecords: {root: skip}\n")
    assert "1 bad record skipped" in program.apply().out
    assert Tiny(program.root).ids("root") == [1, 3]


def test_a_row_of_parquet_is_named(program: Program) -> None:
    define(program, old="kind: Csv\n        header: true", new="kind: Parquet")
    define(program, old="*.csv", new="*.parquet")
    times = pa.array([0, None], pa.timestamp("ms", "UTC"))
    table = pa.table({"event_time": times, "id": [1, 2], "value": [1, 2]})
    pq.write_table(table, program.root / "data" / "1.parquet")
    assert "row 2" in program("apply", "-y").err


def test_records_of_windows_are_not_dropped_for_a_blank_one(program: Program) -> None:
    """As found: a count of 2 where 3 records are, because the watermark went to today."""
    Tiny(program.root).derive("derived", WINDOWS)
    say(program, "  ingest:\n    badRecords: {root: skip}\n")
    bring(program, "1.csv", "2024-01-01 01:00:00,1,1", ",2,2")
    program.apply()
    bring(program, "2.csv", "2024-01-01 02:00:00,3,3", "2024-01-03 00:00:00,4,4")
    program.apply()
    assert [each["n"] for each in Tiny(program.root).records("derived")] == [2]


def test_a_record_that_retracts_needs_its_key_only(program: Program) -> None:
    define(
        program,
        merge=MERGES[3],
        old="          - id BIGINT\n",
        new="          - op INT\n          - id BIGINT\n",
    )
    (program.root / "data" / "1.csv").write_text(
        "event_time,op,id,value\n2024-01-01 00:00:00,0,1,1\n2024-01-02 00:00:00,0,2,2\n"
    )
    program.apply()
    (program.root / "data" / "2.csv").write_text("event_time,op,id,value\n,1,1,\n")
    program.apply()
    assert [each["op"] for each in Tiny(program.root).records("root")] == [0, 0, 1]


def test_a_push_says_its_time(program: Program) -> None:
    define(
        program, old="kind: SetPollingSource", new="kind: AddPushSource\n      sourceName: default"
    )
    define(
        program,
        old="      fetch:\n        kind: FilesGlob\n        path: data/*.csv\n"
        "        order: ByName\n",
        new="",
    )
    program.apply()
    row = b"event_time,id,value\n,1,1\n"
    assert "E0437" in program("ingest", "root", "-", stdin=row).err
    program.ok("ingest", "root", "-", "--event-time", "2024-05-01T00:00:00Z", stdin=row)
    assert watermark(program) == Timestamp.parse("2024-05-01T00:00:00Z")

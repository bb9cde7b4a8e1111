"""Files that come late are counted, refused or read, and every clone finds the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from odfbuild.engine.contract import Engine
from odfbuild.odf.model import AddData
from tests.apply.in_process import Program, share
from tests.apply.tiny import Tiny

pytestmark = pytest.mark.spark

LEDGER = "kind: Ledger\n        primaryKey: [id]"


@pytest.fixture
def program(
    tmp_path: Path,
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Program:
    """A project that has read `5.csv`."""
    share(spark_engine, monkeypatch)
    program = Program(Tiny.fresh(tmp_path / "tiny").root, monkeypatch, capsys)
    (program.root / "data" / "1.csv").rename(program.root / "data" / "5.csv")
    program.apply()
    return program


def bring(program: Program, name: str, *ids: int) -> None:
    rows = [f"2024-01-0{each} 00:00:00,{each},1" for each in ids]
    text = "\n".join(["event_time,id,value", *rows, ""])
    (program.root / "data" / name).write_text(text)


def let(program: Program, policy: str) -> None:
    with (program.root / "odfbuild.yaml").open("a") as file:
        file.write(f"  ingest:\n    lateFiles: {{'r*': {policy}}}\n")


def clone(program: Program, folder: str) -> Program:
    """What another machine has: no cache."""
    root = program.root.parent / folder
    shutil.copytree(program.root, root, ignore=shutil.ignore_patterns(".odfbuild"))
    return Program(root, program.monkeypatch, program.capsys)


def states(program: Program) -> list[str | None]:
    events = [e for e in Tiny(program.root).events("root") if isinstance(e, AddData)]
    return [e.new_source_state.value if e.new_source_state else None for e in events]


def test_late_files_are_counted_everywhere_by_default(program: Program) -> None:
    bring(program, "3.csv", 4)
    bring(program, "4.csv", 5)
    told = "data/3.csv and 1 more arrived after 5.csv was read, and are never read"
    for each in (program, clone(program, "other")):
        assert told in each.ok("plan").out
        assert told in each.apply().out
        assert told in each.ok("drift").out
        assert "! root: 2 files came late and are never read" in each.ok("freshness").out
        (found,) = [d for d in each.ok("freshness", "--json").data if d["name"] == "root"]
        assert found["late_files"] == 2
    assert Tiny(program.root).ids("root") == [1, 2, 3]


def test_late_files_can_be_refused(program: Program) -> None:
    let(program, "fail")
    bring(program, "4.csv", 5)
    said = program("plan")
    assert said.code == 1
    assert "error[E0438]: data/4.csv came after '5.csv' was read" in said.out + said.err


def test_late_files_are_read_first_and_leave_the_state_as_it_was(program: Program) -> None:
    let(program, "read")
    bring(program, "4.csv", 5)
    bring(program, "3.csv", 4)
    bring(program, "6.csv", 6)
    assert "3 new records in 3 files" in program.ok("plan").out
    program.apply()
    assert Tiny(program.root).ids("root") == [1, 2, 3, 4, 5, 6]
    assert states(program) == ["5.csv", "5.csv", "5.csv", "6.csv"]
    for each in (program, clone(program, "other")):
        assert "No changes" in each.ok("plan").out
        assert "No changes" in each.apply().out
        program.ok("verify")
    assert "late" not in program.ok("freshness").out


def test_a_clone_reads_what_another_one_has_not(program: Program) -> None:
    let(program, "read")
    bring(program, "4.csv", 5)
    other = clone(program, "other")
    program.apply()
    other.apply()
    assert Tiny(program.root).records("root") == Tiny(other.root).records("root")
    bring(program, "2.csv", 7)
    again = clone(program, "third")
    again.apply()
    assert Tiny(again.root).ids("root") == [1, 2, 3, 5, 7]
    assert "No changes" in again.apply().out


def test_a_late_file_with_nothing_new_is_read_once(program: Program) -> None:
    let(program, "read")
    bring(program, "4.csv", 1, 2)
    program.apply()
    assert states(program) == ["5.csv"]
    assert "No changes" in program.ok("plan").out


def test_a_late_file_would_make_old_values_the_current_ones(program: Program) -> None:
    file = program.root / "datasets" / "root.yaml"
    file.write_text(file.read_text().replace(LEDGER, "kind: Snapshot\n        primaryKey: [id]"))
    shutil.rmtree(program.root / "chains")
    program.apply()
    let(program, "read")
    bring(program, "4.csv", 5)
    said = program("plan")
    assert said.code == 1
    assert "error[E0439]" in said.out + said.err

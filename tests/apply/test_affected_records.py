"""An apply behind a long history reads what is affected, says so, and every proof is in full."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from odfbuild.engine import affected_records
from odfbuild.engine.contract import Engine
from tests.apply.in_process import Program, share
from tests.apply.tiny import Tiny

pytestmark = pytest.mark.spark

RECORDS = 120_000
VALUES = 1_000


@pytest.fixture
def program(
    tmp_path: Path,
    spark_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Program:
    """A project with a long history, and a sum of each of a thousand values."""
    share(spark_engine, monkeypatch)
    tiny = Tiny.fresh(tmp_path / "tiny")
    sums = "SELECT max(event_time) AS event_time, value, SUM(id) AS total FROM source"
    tiny.derive("derived", f"{sums} GROUP BY value")
    program = Program(tiny.root, monkeypatch, capsys)
    bring(program, "1.csv", 0, RECORDS)
    program.apply()
    return program


def bring(program: Program, name: str, first: int, count: int) -> None:
    rows = (f"2024-01-01 00:00:00,{n},{n % VALUES}" for n in range(first, first + count))
    (program.root / "data" / name).write_text("\n".join(["event_time,id,value", *rows, ""]))


def test_apply_says_over_how_many_records_a_result_was_computed(program: Program) -> None:
    bring(program, "2.csv", RECORDS, 3)
    records = 3 * (RECORDS // VALUES + 1)
    said = program.apply().out
    assert f"computed over {records} of {RECORDS + 3:,} records of its inputs" in said
    assert "recomputed 2 steps" in program.ok("verify").out


def test_apply_says_why_all_records_were_needed(program: Program) -> None:
    Tiny(program.root).derive(
        "derived", "SELECT max(event_time) AS event_time, SUM(id) AS total FROM source"
    )
    program.ok("apply", "-y", "--allow", "rebuild:derived")
    bring(program, "2.csv", RECORDS, 3)
    said = program.apply().out
    assert f"computed over all {RECORDS + 3:,} records of its inputs: an aggregation is" in said


def test_a_changed_query_is_computed_over_all_records_once(program: Program) -> None:
    derived = program.root / "datasets" / "derived.yaml"
    derived.write_text(derived.read_text().replace("SUM(id)", "SUM(id + 1)"))
    bring(program, "2.csv", RECORDS, 3)
    assert "computed over" not in program.apply().out
    bring(program, "3.csv", RECORDS + 3, 3)
    assert "computed over 363 of" in program.apply().out
    program.ok("verify")


def test_verify_finds_a_step_that_left_affected_records_out(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(program, "2.csv", RECORDS, 3)
    with monkeypatch.context() as patch:
        patch.setattr(
            affected_records, "_is_one_of", lambda hashes, wanted: np.zeros(len(hashes), bool)
        )
        program.apply()
    said = program("verify")
    assert said.code == 3
    assert "derived" in said.out + said.err

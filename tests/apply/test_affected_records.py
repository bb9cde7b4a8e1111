"""An apply behind a long history reads what is affected, says so, and every proof is in full."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from odfbuild.engine import affected_records
from odfbuild.engine.spark.queries import changes_of_parts, totals, transform
from odfbuild.inspect.verify import reproduce
from odfbuild.sql.increments import one_by_one, parts
from tests.apply.tiny import Tiny

pytestmark = pytest.mark.spark

COUNTS = "SELECT max(event_time) AS event_time, value, COUNT(DISTINCT id) AS total FROM source"
RECORDS = 120_000
VALUES = 1_000


@pytest.fixture
def program(near: Callable[[Path], Tiny], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    """A project with a long history, and a count for each of a thousand values."""
    monkeypatch.setattr(parts, "FEWEST", RECORDS)
    tiny = near(tmp_path / "tiny")
    tiny.derive("derived", f"{COUNTS} GROUP BY value")
    bring(tiny, "1.csv", 0, RECORDS)
    applied(tiny)
    return tiny


def applied(program: Tiny, *more: str) -> str:
    """What an apply says, which must succeed."""
    said = program.run("apply", "-y", *more)
    assert said.returncode == 0, said.stdout + said.stderr
    return said.stdout


def bring(program: Tiny, name: str, first: int, count: int) -> None:
    rows = (f"2024-01-01 00:00:00,{n},{n % VALUES}" for n in range(first, first + count))
    (program.root / "data" / name).write_text("\n".join(["event_time,id,value", *rows, ""]))


def test_apply_says_over_how_many_records_a_result_was_computed(program: Tiny) -> None:
    bring(program, "2.csv", RECORDS, 3)
    records = 3 * (RECORDS // VALUES + 1)
    said = applied(program)
    assert f"computed over {records} of {RECORDS + 3:,} records of its inputs" in said
    assert "recomputed 2 steps" in program.run("verify").stdout


def test_records_are_found_by_key_once_a_step_has_shown_the_need(program: Tiny) -> None:
    side_cars = program.root / ".odfbuild" / "side-cars"
    [keys] = side_cars.rglob("by-*")
    bring(program, "2.csv", RECORDS, 3)
    applied(program)

    def by_value() -> list[Path]:
        return [each for each in side_cars.rglob("by-*/*.arrow") if each.parent != keys]

    [kept] = by_value()
    bring(program, "3.csv", RECORDS + 3, 3)
    records = 3 * (RECORDS // VALUES + 1)
    assert f"computed over {records} of {RECORDS + 6:,} records" in applied(program)
    assert [kept] == by_value()
    assert "are records by key" in program.run("doctor").stdout
    kept.write_bytes(kept.read_bytes()[:-1])
    bring(program, "4.csv", RECORDS + 6, 3)
    assert f"computed over {records} of {RECORDS + 9:,} records" in applied(program)
    assert kept not in by_value()
    assert program.run("verify").returncode == 0


def test_apply_says_why_all_records_were_needed(program: Tiny) -> None:
    program.derive("derived", COUNTS.replace("value, ", ""))
    applied(program, "--allow", "rebuild:derived")
    bring(program, "2.csv", RECORDS, 3)
    said = applied(program)
    assert f"computed over all {RECORDS + 3:,} records of its inputs: an aggregation is" in said


def test_a_changed_query_is_computed_over_all_records_once(program: Tiny) -> None:
    derived = program.root / "datasets" / "derived.yaml"
    derived.write_text(derived.read_text().replace("DISTINCT id)", "DISTINCT id + 1)"))
    bring(program, "2.csv", RECORDS, 3)
    assert "records of its inputs" not in applied(program)
    bring(program, "3.csv", RECORDS + 3, 3)
    assert "computed over 363 of" in applied(program)
    assert program.run("verify").returncode == 0


def leave_affected_records_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        affected_records, "_is_one_of", lambda hashes, wanted: np.zeros(len(hashes), bool)
    )


def test_verify_finds_a_step_that_left_affected_records_out(
    program: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(program, "2.csv", RECORDS, 3)
    with monkeypatch.context() as patch:
        leave_affected_records_out(patch)
        applied(program)
    bring(program, "3.csv", RECORDS + 3, 3)
    applied(program)
    said = program.run("verify")
    assert said.returncode == 3
    assert "derived" in said.stdout + said.stderr


def test_verify_finds_a_wrong_way_by_the_last_step_even_if_it_goes_the_same_way(
    program: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_affected_records_out(monkeypatch)
    for number in range(2):
        bring(program, f"{number + 2}.csv", RECORDS + 3 * number, 3)
        applied(program)
    last, all_ = program.run("verify", "--json"), program.run("verify", "--full", "--json")
    assert [last.returncode, all_.returncode] == [3, 3]
    findings = [len(json.loads(each.stdout)["findings"]) for each in (last, all_)]
    assert findings == [1, 2]


def test_verify_computes_steps_from_their_change_but_for_the_last_one(
    program: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        bring(program, f"{number + 2}.csv", RECORDS + 3 * number, 3)
        applied(program)
    extents = []
    way = changes_of_parts.changes_of_parts
    monkeypatch.setattr(
        transform, "changes_of_parts", lambda *given: extents.append(way(*given)) or extents[-1]
    )
    assert "recomputed 4 steps" in program.run("verify").stdout
    assert sorted(extent.records for _, extent, _ in extents) == [363, 363]
    assert "recomputed 4 steps" in program.run("verify", "--full").stdout
    assert len(extents) == 2


def test_verify_finds_records_by_key_in_what_it_made_of_slices_itself(
    program: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        bring(program, f"{number + 2}.csv", RECORDS + 3 * number, 3)
        applied(program)
    kept = {*(program.root / ".odfbuild").rglob("by-*/*")}
    looked_at = []
    make = affected_records._Copies.make

    def counted(self: affected_records._Copies, conditions: Any) -> bool:
        found = make(self, conditions)
        looked_at.append(self._looked_at)
        return found

    monkeypatch.setattr(affected_records._Copies, "make", counted)
    monkeypatch.setattr(reproduce, "MANY_STEPS", 3)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert "recomputed 5 steps" in program.run("verify").stdout
    first, *others = looked_at
    assert first > RECORDS
    assert max(others) < 10
    assert {*(program.root / ".odfbuild").rglob("by-*/*")} == kept


def test_totals_are_added_up_from_new_records_alone_and_verified_in_full(
    program: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.derive("derived", f"{COUNTS} GROUP BY value".replace("COUNT(DISTINCT id)", "SUM(id)"))
    applied(program, "--allow", "rebuild:derived")
    bring(program, "2.csv", RECORDS, 3)
    assert f"computed over 3 of {RECORDS + 3:,} records of its inputs" in applied(program)
    assert "recomputed 2 steps" in program.run("verify").stdout
    bring(program, "3.csv", RECORDS + 3, 3)
    with monkeypatch.context() as patch:
        patch.setitem(one_by_one._ADD_UP, "sum", "max")
        applied(program)
    assert program.run("verify").returncode == 3


def test_an_average_of_all_follows_from_totals_that_a_step_over_all_records_kept(
    program: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    mean = COUNTS.replace("value, COUNT(DISTINCT id)", "AVG(CAST(id AS DECIMAL(9, 2)))")
    program.derive("derived", f"{mean} HAVING COUNT(*) > 1")
    applied(program, "--allow", "rebuild:derived")
    for number, over in ((2, f"all {RECORDS + 3:,}"), (3, f"3 of {RECORDS + 6:,}")):
        bring(program, f"{number}.csv", RECORDS + 3 * (number - 2), 3)
        assert "the totals that are kept of all groups" in program.run("plan").stdout
        assert f"computed over {over} records of its inputs" in applied(program)
    assert program.run("verify").returncode == 0
    bring(program, "4.csv", RECORDS + 6, 3)
    way = totals._sum
    with monkeypatch.context() as patch:
        patch.setattr(totals, "_sum", lambda total: way(total).replace("SUM", "MAX"))
        applied(program)
    assert program.run("verify").returncode == 3

"""Results that no record decides alone, applied batch by batch, with their records by hand."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from odfbuild.engine.contract import Engine
from odfbuild.odf.model import ExecuteTransform
from odfbuild.store.dataset import DatasetStore
from tests.apply.in_process import Program, share

pytestmark = pytest.mark.spark

MODES = Path(__file__).parent / "modes"

# For each batch what is appended: operation, time on 1 May 2024, and the columns.
EXPECTED: dict[str, list[list[tuple[Any, ...]]]] = {
    "leaders": [
        [(0, "00:01", 1, "Alice", 100), (0, "00:01", 2, "Bob", 80)],
        [(2, "00:01", 2, "Bob", 80), (3, "00:02", 2, "Charlie", 90)],
        [
            (2, "00:01", 1, "Alice", 100),
            (3, "00:03", 1, "Charlie", 110),
            (2, "00:02", 2, "Charlie", 90),
            (3, "00:01", 2, "Alice", 100),
        ],
    ],
    # 10:30 comes behind the watermark while its window is open, 10:40 when it is closed.
    "visits.hourly": [
        [],
        [(0, "10:00", "Paris", 3), (0, "10:00", "Rome", 1)],
        [(0, "11:00", "Rome", 1)],
    ],
    # The shipment at 15:30 is too late for the order of 9:00, that at 16:59 too early for 17:00.
    "shipped": [
        [(0, "10:00", 1, "ink", "08:00")],
        [(0, "14:30", 2, "pen", "09:00")],
        [(0, "16:00", 3, "ink", "11:00")],
    ],
    # There is no price at 9:59, the price of 10:35 comes late, that of B before its trade.
    "valued": [
        [(0, "10:00", "A", 50), (0, "10:40", "A", 60)],
        [(1, "10:40", "A", 60), (0, "10:40", "A", 70), (0, "10:50", "A", 14)],
        [(0, "10:51", "B", 6)],
    ],
    "totals": [
        [(0, "08:00", "ink", 1), (0, "09:00", "pen", 1)],
        [(2, "08:00", "ink", 1), (3, "11:00", "ink", 2)],
        [(0, "17:00", "cap", 1)],
    ],
    "goods": [
        [
            (0, "08:00", "ink", 5),
            (0, "08:00", "pen", 7),
            (0, "08:00", "ink", 1),
            (0, "09:00", "pen", 1),
        ],
        [
            (0, "09:00", "cap", 1),
            (2, "08:00", "pen", 7),
            (3, "09:00", "pen", 9),
            (0, "11:00", "ink", 1),
        ],
        [(1, "08:00", "ink", 5), (0, "17:00", "cap", 1)],
    ],
    "goods.total": [
        [(0, "09:00", 14)],
        [(2, "09:00", 14), (3, "11:00", 18)],
        [(2, "11:00", 18), (3, "17:00", 14)],
    ],
}
HOW = {
    "goods": "map: every record is handled alone",
    "leaders": "changelog: a window function (OVER) at line 5, column 18",
    "visits.hourly": "stream: a window is final when the watermark passes its end",
    "shipped": "stream: new records only make further pairs",
    "valued": "changelog: a join at line 2, column 15",
    "totals": "changelog: aggregation (GROUP BY, COUNT, SUM …) at line 1, column 8",
    "goods.total": "changelog: aggregation (GROUP BY, COUNT, SUM …) at line 1, column 8",
}


def fresh(folder: Path) -> Path:
    """A copy of the project before any file has arrived."""
    root = folder / "project"
    shutil.copytree(MODES, root, ignore=shutil.ignore_patterns("batches"))
    return root


def arrive(root: Path, *batches: int) -> None:
    for number in batches:
        shutil.copytree(MODES / "batches" / str(number), root / "data", dirs_exist_ok=True)


def steps(root: Path, name: str) -> list[list[tuple[Any, ...]]]:
    """The records of each step that a derivative made, oldest first."""
    store = DatasetStore(root / "chains" / name)
    head = store.head()
    assert head is not None
    events = [block.event for _, block in store.walk(head)]
    slices = [event.new_data for event in events if isinstance(event, ExecuteTransform)]
    slices.reverse()
    return [rows(store.object_path("data", s.physical_hash)) if s else [] for s in slices]


def rows(file: Path) -> list[tuple[Any, ...]]:
    table = pq.ParquetFile(file).read().drop_columns(["offset", "system_time"])
    return [tuple(shown(value) for value in row.values()) for row in table.to_pylist()]


def shown(value: Any) -> Any:
    return value.strftime("%H:%M") if hasattr(value, "strftime") else value


def amounts_to(found: list[list[tuple[Any, ...]]]) -> Counter[tuple[Any, ...]]:
    """The records that are left when all operations are carried out."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for step in found:
        for operation, *values in step:
            counts[tuple(values)] += 1 if operation in (0, 3) else -1
    return +counts


def test_each_batch_appends_what_it_changes_and_all_of_it_is_reproduced(
    spark_engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    share(spark_engine, monkeypatch)
    root = fresh(tmp_path)
    program = Program(root, monkeypatch, capsys)
    for batch in (1, 2, 3):
        arrive(root, batch)
        planned = program.ok("plan", "--format", "json").data["datasets"]
        told = {dataset["name"]: dataset["mode"] for dataset in planned if dataset["inputs"]}
        assert {name: f"{how['mode']}: {how['reason']}" for name, how in told.items()} == HOW
        done = program.ok("apply", "-y", "--format", "json").data["datasets"]
        assert {dataset["because"] for dataset in done} == {None}  # the engine decided as planned
    assert {name: steps(root, name) for name in EXPECTED} == EXPECTED
    elsewhere = subprocess.run(
        [Path(sys.executable).with_name("odfbuild"), "verify"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert elsewhere.returncode == 0, elsewhere.stdout + elsewhere.stderr
    count = f"{3 * len(EXPECTED)} steps of {len(EXPECTED)} derivatives"
    assert f"recomputed {count}, all records are identical" in elsewhere.stdout


def test_all_batches_at_once_amount_to_the_same(
    spark_engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    share(spark_engine, monkeypatch)
    root = fresh(tmp_path)
    arrive(root, 1, 2, 3)
    Program(root, monkeypatch, capsys).apply()
    for name, expected in EXPECTED.items():
        assert amounts_to(steps(root, name)) == amounts_to(expected), name
        if HOW.get(name, "").startswith("stream"):
            assert [r for step in steps(root, name) for r in step] == [
                r for s in expected for r in s
            ]

"""Queries in the shapes of public collections, in SQL of other engines, with records by hand."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from odfbuild.engine.contract import Engine
from odfbuild.odf.model import SetTransform
from odfbuild.store.dataset import DatasetStore
from tests.apply.in_process import Program, share
from tests.projects.test_modes import steps

pytestmark = pytest.mark.spark

COLLECTIONS = Path(__file__).parent / "collections"

EXPECTED: dict[str, list[list[tuple[Any, ...]]]] = {
    "covid19.case-details": [
        [
            (0, "08:00", 1, "ON", "00:00", 0.5),
            (0, "20:00", 2, "ON", "12:00", 1.0),
            (0, "09:00", 3, "BC", "00:00", 1.5),
        ],
        [(0, "10:00", 4, "ON", "00:00", 2.0), (0, "01:00", 5, "BC", "00:00", 2.5)],
    ],
    # The first of March is over at 9:00 on the second, the second at 1:00 on the third.
    "covid19.daily-cases": [
        [(0, "00:00", "23:59", "ON", 2)],
        [(0, "00:00", "23:59", "BC", 1), (0, "00:00", "23:59", "ON", 1)],
    ],
    # 29 February to 1 March; 1 to 2 March.
    "covid19.two-days": [[(0, "00:00", "00:00", 2)], [(0, "00:00", "00:00", 4)]],
    # A case 14 hours after the last one belongs to the same outbreak, one 16 hours after does not.
    "covid19.outbreaks": [
        [(0, "08:00", "10:00", "ON", 2), (0, "09:00", "23:00", "BC", 1)],
        [
            (2, "08:00", "10:00", "ON", 2),
            (3, "08:00", "00:00", "ON", 3),
            (0, "01:00", "15:00", "BC", 1),
        ],
    ],
    # At noon and at midnight of the first, of the second, and then of the third of March.
    "covid19.so-far-today": [
        [
            (0, "12:00", "00:00", 1),
            (0, "00:00", "00:00", 2),
            (0, "12:00", "00:00", 1),
            (0, "00:00", "00:00", 1),
        ],
        [
            (2, "12:00", "00:00", 1),
            (3, "12:00", "00:00", 2),
            (2, "00:00", "00:00", 1),
            (3, "00:00", "00:00", 2),
            (0, "12:00", "00:00", 1),
            (0, "00:00", "00:00", 1),
        ],
    ],
    "my.trading.holdings": [
        [(0, "10:00", "A", 10, 10), (0, "11:00", "A", 5, 15), (0, "11:00", "B", 1, 1)],
        [(0, "10:00", "A", -3, 12)],
    ],
    "my.trading.market-value": [
        [(0, "21:00", "A", 15, 105), (0, "21:00", "B", 1, 2)],
        [(0, "21:00", "A", 12, 96)],
    ],
}


def arrive(root: Path, batch: int) -> None:
    shutil.copytree(COLLECTIONS / "batches" / str(batch), root / "data", dirs_exist_ok=True)


def transform_of(root: Path, name: str) -> SetTransform:
    store = DatasetStore(root / "chains" / name)
    head = store.head()
    assert head is not None
    found = [b.event for _, b in store.walk(head) if isinstance(b.event, SetTransform)]
    assert len(found) == 1
    return found[0]


def test_queries_of_other_engines_give_the_records_that_they_mean(
    spark_engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    share(spark_engine, monkeypatch)
    root = tmp_path / "project"
    shutil.copytree(COLLECTIONS, root, ignore=shutil.ignore_patterns("batches"))
    program = Program(root, monkeypatch, capsys)
    arrive(root, 1)
    planned = {d["name"]: d for d in program.ok("plan", "--format", "json").data["datasets"]}
    program.apply()
    arrive(root, 2)
    program.apply()
    assert {name: steps(root, name) for name in EXPECTED} == EXPECTED

    # The chain keeps what the definition says, and what computed it.
    written = transform_of(root, "covid19.daily-cases").transform
    assert written.engine == "flink"
    assert written.queries is not None
    assert "TUMBLE_ROWTIME(event_time, INTERVAL '1' DAY)" in written.queries[0].query
    assert (written.version or "").startswith("spark-4.")
    (step,) = planned["covid19.daily-cases"]["translation"]
    assert "window(event_time, '1 day')" in step["query"]
    assert planned["covid19.daily-cases"]["mode"]["mode"] == "stream"
    assert planned["covid19.outbreaks"]["mode"]["mode"] == "changelog"
    assert planned["covid19.so-far-today"]["mode"]["mode"] == "changelog"
    assert planned["tickers.daily"]["translation"] is None

    # Nothing is left to do, and all of it can be done again.
    assert "No changes" in program.ok("plan").out
    assert "all records are identical" in program.ok("verify").out
    rendered = program.ok("render", "my.trading.holdings").out
    assert "engine: risingwave" in rendered
    assert "#   SELECT" in rendered
    assert "#     symbol," in rendered

    # What cannot be said in Spark stands in the plan with its place.
    file = root / "datasets" / "covid19.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("COUNT(*) AS n", "AVG(id) AS n"), encoding="utf-8")
    refused = program("plan")
    assert refused.code == 1
    assert "error[E0519]" in refused.out
    assert "AVG() of flink has no translation that is known to mean the same" in refused.out
    line = next(n for n, each in enumerate(file.read_text().splitlines(), 1) if "AVG" in each)
    assert f"datasets/covid19.yaml:{line}:" in refused.out
    assert "E0519" in program("validate").err

    # Without the policy nothing of another engine is touched.
    file.write_text(text, encoding="utf-8")
    config = root / "odfbuild.yaml"
    config.write_text(config.read_text().replace("    flink: spark\n", ""), encoding="utf-8")
    refused = program("plan")
    assert refused.code == 1
    assert "engine 'flink' is not available here" in refused.out
    assert "`engines: {flink: spark}` in odfbuild.yaml" in refused.out

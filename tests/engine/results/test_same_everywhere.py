"""What a query gives depends on its inputs alone: not on steps, cores, partitions or memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.sql.mode import Mode
from tests.engine.everywhere import Varied, by_increments, cuts
from tests.engine.queries import ALL, FEW, MAP, STREAM

ROOT = Path(__file__).parents[3]
ANSWER = {**dict.fromkeys(MAP, Mode.MAP), **dict.fromkeys(STREAM, Mode.STREAM)}


def check(engine: SparkEngine, queries: list[str], folder: Path) -> None:
    """Several steps equal one, on 1 and on 7 partitions."""

    def differs(numbered: tuple[int, str]) -> str | None:
        number, query = numbered
        where = folder / str(number)
        where.mkdir()
        steps = cuts(query, seed=1)
        stepwise = by_increments(Varied(engine, 7), query, where / "stepwise", steps)
        once = by_increments(Varied(engine, 1), query, where / "once", [])
        if stepwise.mode is not ANSWER.get(query, Mode.CHANGELOG):
            return f"{query}: {stepwise.mode}"
        if stepwise.amounts_to() != once.amounts_to():
            return f"{query}: {steps} steps gave something else than one"
        if stepwise.mode is Mode.MAP and "UNION" not in query:
            return None if stepwise.all() == once.all() else f"{query}: other order"
        return None if once.records else f"{query}: nothing came out"

    with ThreadPoolExecutor(4) as pool:
        assert [each for each in pool.map(differs, enumerate(queries)) if each] == []


@pytest.mark.spark
def test_several_steps_equal_one_on_any_number_of_partitions(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    check(spark_engine, FEW, tmp_path)


@pytest.mark.spark
@pytest.mark.slow
def test_several_steps_equal_one_for_many_queries(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    check(spark_engine, [query for query in ALL if query not in FEW], tmp_path)


CONFIGURATIONS = {
    "one core, 1 GB, 1 partition": ("local[1]", "1g", 1),
    "four cores, 4 GB, 7 partitions": ("local[4]", "4g", 7),
    "two cores, 2 GB, 3 partitions": ("local[2]", "2g", 3),
}


@pytest.mark.slow
def test_hashes_are_the_same_on_any_machine() -> None:
    found = {}
    for name, (master, memory, partitions) in CONFIGURATIONS.items():
        done = subprocess.run(
            [sys.executable, "-m", "tests.engine.everywhere", str(partitions), "2", "all"],
            cwd=ROOT,
            env={**os.environ, "ODFBUILD_SPARK_MASTER": master, "ODFBUILD_SPARK_MEMORY": memory},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{name}: {done.stderr[-3000:]}"
        found[name] = json.loads(done.stdout.splitlines()[-1])
    reference, *others = found.values()
    assert len(reference) == len(ALL)
    differing = {
        query
        for other in others
        for query, ours, theirs in zip(ALL, reference, other, strict=True)
        if ours != theirs
    }
    assert differing == set()

"""A changelog made in memory is the one that Spark makes."""

import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.queries.modes import corrections
from odfbuild.engine.spark.queries.modes.changelog import MORE, write_changes
from odfbuild.engine.spark.results import sorted_parts
from tests.engine.inputs import MILLIS, read, rows, slices, sql, task

WORDS = [None, "a", "B", "\u65e5", "\U0001f600"]


def _written(seed: int, size: int, folder: Path) -> Path:
    """Distinct records of time, word and number, and how many more there are of each."""
    choice = random.Random(seed)
    records = {
        (choice.randrange(4), choice.choice(WORDS), choice.choice([None, *range(6)]))
        for _ in range(size)
    }
    counts = [-2, -1, -1, -1, 1, 1, 1, 3]
    found = [(*each, choice.choice(counts)) for each in sorted(records, key=str)]
    schema = pa.schema(
        {"event_time": MILLIS, "w": pa.string(), "n": pa.int32(), MORE: pa.int64()}.items()
    )
    file = folder / "difference.parquet"
    columns = list(zip(*found, strict=True)) or [()] * len(schema)
    pq.write_table(pa.table(list(map(list, columns)), schema=schema), file)
    return file


@pytest.mark.spark
@pytest.mark.parametrize("size", [0, 1, 60])
def test_both_ways_give_the_same_records_in_the_same_order(
    spark_engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    step = task(tmp_path, sql("SELECT 1"), slices(tmp_path, rows(0, 1)))
    for number, key in enumerate([None, (), ("w",), ("n", "w"), ("event_time", "w")]):
        found = []
        for way, limit in (("memory", 1 << 30), ("spark", -1)):
            monkeypatch.setattr(sorted_parts, "IN_MEMORY", limit)
            scratch = step.scratch / f"{number}-{way}"
            scratch.mkdir()
            with spark_engine.request("tests") as spark:
                frame = spark.read.parquet(str(_written(number, size, scratch)))
                parts = write_changes(frame.repartition(3), replace(step, scratch=scratch), key)
            found.append(read(parts).to_pylist())
        assert found[0] == found[1]
        assert bool(found[0]) is bool(size)


def test_a_correction_stands_where_its_old_record_belongs() -> None:
    difference = pa.table(
        {
            "time": [5, 1, 3, 2],
            "key": ["a", "a", "b", None],
            "more": [-1, 1, 1, -2],
        }
    )
    made = corrections.changes(difference, "more", ["key"], ["time", "key"], "op")
    assert made.to_pylist() == [
        {"op": 1, "time": 2, "key": None},
        {"op": 1, "time": 2, "key": None},
        {"op": 0, "time": 3, "key": "b"},
        {"op": 2, "time": 5, "key": "a"},
        {"op": 3, "time": 1, "key": "a"},
    ]

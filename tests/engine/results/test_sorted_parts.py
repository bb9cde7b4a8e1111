"""Results stand in their order, whichever way that was reached."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.spark.results import sorted_parts as module
from odfbuild.engine.spark.results.sorted_parts import sorted_parts

pytestmark = pytest.mark.spark

WORDS = ["", "a", "B", "ä", "\u65e5", "\U0001f600", "\uffff", None]


def _rows(count):
    chance = random.Random(3)
    return [(chance.choice(WORDS), chance.choice([1, 2, None]), row) for row in range(count)]


def _key(row):
    # Null first, then text by its bytes in UTF-8, as Spark compares it.
    word, number, last = row
    return (
        (word is not None, (word or "").encode()),
        (number is not None, number or 0),
        last,
    )


@pytest.mark.parametrize("way", ["memory", "spark"])
@pytest.mark.parametrize("rows", [_rows(0), _rows(1), _rows(500), sorted(_rows(500), key=_key)])
def test_rows_come_in_order_with_nulls_first(spark_engine, tmp_path, monkeypatch, way, rows):
    if way == "spark":
        monkeypatch.setattr(module, "IN_MEMORY", -1)
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    kinds = {"w": pa.string(), "n": pa.int32(), "r": pa.int32()}
    pq.write_table(pa.table(columns, schema=pa.schema(kinds.items())), tmp_path / "rows.parquet")
    with spark_engine.request("tests") as spark:
        frame = spark.read.parquet(str(tmp_path / "rows.parquet")).repartition(3)
        parts = sorted_parts(spark, frame, ["w", "n", "r"], tmp_path / "x")
    found = pa.concat_tables([pq.read_table(part) for part in parts]).to_pylist()
    assert [tuple(row.values()) for row in found] == sorted(rows, key=_key)


def test_rows_that_are_in_order_are_written_once(spark_engine, tmp_path):
    with spark_engine.request("tests") as spark:
        frame = spark.range(0, 1000, 1, 4).selectExpr("id DIV 10 AS n", "id AS r")
        parts = sorted_parts(spark, frame, ["n", "r"], tmp_path / "x")
        again = sorted_parts(spark, frame, ["r", "n"], tmp_path / "y")
        back = sorted_parts(spark, frame.selectExpr("-n AS n", "r"), ["n", "r"], tmp_path / "z")
    assert {part.parent.name for part in (*parts, *again)} == {"rows"}
    assert len(parts) == 4
    assert [part.name for part in back] == ["sorted.parquet"]

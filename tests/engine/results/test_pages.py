"""Pages of memory: small for short work, and no limit for what a query does with them."""

from __future__ import annotations

import pytest

from odfbuild.engine.settings import LONG_WORK_BYTES, EngineSettings, bytes_of
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.session.session import small_pages

SIZE = "spark.buffer.pageSize"


@pytest.mark.parametrize(
    ("memory", "page"), [("512m", 1 << 20), ("4g", 1 << 20), ("8G", 1 << 20), ("64g", 8 << 20)]
)
def test_the_pages_of_a_task_can_fill_every_heap(memory: str, page: int) -> None:
    assert small_pages(EngineSettings(), memory) == {SIZE: f"{page}b"}
    assert page * 8192 >= bytes_of(memory)


def test_long_work_has_the_pages_that_spark_gives_it() -> None:
    assert small_pages(EngineSettings(expected_bytes=LONG_WORK_BYTES + 1), "4g") == {}


@pytest.mark.parametrize(("size", "bytes"), [("7", 7), ("2k", 2048), ("3M", 3 << 20)])
def test_sizes_are_read_as_the_jvm_reads_them(size: str, bytes: int) -> None:
    assert bytes_of(size) == bytes


@pytest.mark.spark
def test_records_larger_than_a_page_are_sorted_grouped_and_joined(
    spark_engine: SparkEngine,
) -> None:
    with spark_engine.request("pages") as spark:
        assert spark.sparkContext.getConf().get(SIZE) == f"{1 << 20}b"
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
        wide = "SELECT id, repeat(chr(97 + id), 3 << 20) AS text FROM range(6)"
        query = f"""
            SELECT a.id, length(a.text) AS size, b.n
            FROM (SELECT * FROM ({wide}) ORDER BY text DESC) a
            JOIN (SELECT text, count(*) AS n FROM ({wide}) GROUP BY text) b ON a.text = b.text
            ORDER BY id"""
        found = spark.sql(query.replace("3 << 20", str(3 << 20))).collect()
    assert [tuple(row) for row in found] == [(n, 3 << 20, 1) for n in range(6)]


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["MERGE", "SHUFFLE_HASH"])
def test_a_join_of_many_pages_finds_all_pairs(spark_engine: SparkEngine, kind: str) -> None:
    with spark_engine.request("pages") as spark:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
        prefers_merge = str(kind == "MERGE").lower()
        spark.conf.set("spark.sql.join.preferSortMergeJoin", prefers_merge)
        left = spark.range(400_000).selectExpr("id", "concat('left', id) AS text")
        right = spark.range(0, 800_000, 2).selectExpr("id", "concat('right', id) AS other")
        found = left.join(right, "id").selectExpr("count(*)", "sum(id)", "max(text)").collect()
    assert tuple(found[0]) == (200_000, sum(range(0, 400_000, 2)), "left99998")

"""Few records and many take different ways to the same result."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.spark import few
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.frames import write_parts
from odfbuild.engine.spark.inputs import new_records
from tests.engine.inputs import read, rows, slices, sql, task

pytestmark = pytest.mark.spark


def test_a_result_of_few_records_comes_in_one_file_without_a_folder_of_spark(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    given = slices(tmp_path, rows(0, 5))
    step = task(tmp_path, sql("SELECT event_time, population FROM cities"), given)
    [part] = spark_engine.transform(step).parts
    assert list(part.parent.iterdir()) == [part]
    assert read([part])["population"].to_pylist() == list(range(5))


def test_a_result_that_few_records_grow_to_is_written_by_spark(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    given = slices(tmp_path, rows(0, 2))
    query = sql("SELECT event_time, explode(sequence(1, 60000)) AS n FROM cities")
    parts = spark_engine.transform(task(tmp_path, query, given)).parts
    assert (parts[0].parent / "_SUCCESS").exists()
    assert read(parts)["n"].to_pylist() == [*range(1, 60_001)] * 2


def test_types_are_the_same_on_both_ways(spark_engine: SparkEngine, tmp_path: Path) -> None:
    given = slices(tmp_path, rows(0, 1))
    query = (
        "SELECT event_time, 1BD AS d, 1.5F AS f, X'00ff' AS b, DATE'2024-01-02' AS day, city,"
        " array(1, NULL) AS list, named_struct('x', 'y', 'z', array(named_struct('w', 1S))) AS s,"
        " TIMESTAMP'0001-01-01 00:00:00.123456' AS first,"
        " TIMESTAMP_NTZ'1969-12-31 23:59:59' AS ntz, TIME'12:34:56.123456' AS time,"
        " CAST(NULL AS TINYINT) AS nothing FROM cities"
    )
    found = []
    for number, files in enumerate((given.files, ())):
        with spark_engine.request("few") as spark:
            if files:
                few.tune(spark, files)
            spark.read.parquet(*map(str, given.files)).createOrReplaceTempView("cities")
            found.append(read(write_parts(spark.sql(query), tmp_path / f"written-{number}")))
    collected, written = found
    assert collected.cast(written.schema).to_pylist() == written.to_pylist()


def test_the_order_of_a_file_that_several_tasks_read_is_kept(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    count = 400_000
    noise = np.random.default_rng(1).integers(0, 1 << 62, count)
    table = rows(0, 1).take(pa.array(np.zeros(count, dtype="int64")))
    table = table.set_column(0, table.schema.field("offset"), pa.array(np.arange(count)))
    table = table.set_column(5, table.schema.field("population"), pa.array(noise))
    given = slices(tmp_path, table)
    pq.write_table(table, given.files[0], row_group_size=20_000, use_dictionary=["city"])
    with spark_engine.request("few") as spark:
        spark.conf.set("spark.sql.files.maxPartitionBytes", "1m")
        spark.conf.set("spark.sql.files.openCostInBytes", "0")
        frame = new_records(spark, given)
        assert frame.rdd.getNumPartitions() > 4
        found = read(write_parts(frame, tmp_path / "written"))
    assert np.array_equal(found["population"].to_numpy(), noise)


@pytest.mark.parametrize("files", [3, 20])
def test_many_files_stay_in_order(spark_engine: SparkEngine, tmp_path: Path, files: int) -> None:
    given = slices(tmp_path, *(rows(10 * n, 10) for n in range(files)))
    step = task(tmp_path, sql("SELECT event_time, population FROM cities"), given)
    found = read(spark_engine.transform(step).parts)
    assert found["population"].to_pylist() == list(range(10 * files))

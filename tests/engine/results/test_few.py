"""Few records and many take different ways to the same result."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from odfbuild.engine.contract import QueryTask
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.queries.checked import checked
from odfbuild.engine.spark.queries.inputs import new_records
from odfbuild.engine.spark.queries.modes.map import increment_view
from odfbuild.engine.spark.results import small_jobs as few
from odfbuild.engine.spark.results.executor import write_parts
from odfbuild.engine.spark.results.frames import read_slices
from odfbuild.engine.spark.results.local_rows import computed, given_back, handed_over
from odfbuild.errors import QueryError
from tests.engine.inputs import read, rows, slices, sql, task

pytestmark = pytest.mark.spark


def test_a_result_of_few_records_comes_in_one_file_without_a_folder_of_spark(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    given = slices(tmp_path, rows(0, 5))
    step = task(tmp_path, sql("SELECT event_time, population FROM cities"), given)
    [part] = spark_engine.run(step).parts
    assert list(part.parent.iterdir()) == [part]
    assert read([part])["population"].to_pylist() == list(range(5))


def test_a_result_that_few_records_grow_to_is_written_by_spark(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    given = slices(tmp_path, rows(0, 2))
    query = sql("SELECT event_time, explode(sequence(1, 60000)) AS n FROM cities")
    parts = spark_engine.run(task(tmp_path, query, given)).parts
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
    found = read(spark_engine.run(step).parts)
    assert found["population"].to_pylist() == list(range(10 * files))


_EACH_TYPE = pa.table(
    {
        "offset": pa.array([0, 1, 2], pa.int64()),
        "op": pa.array([0, 0, 0], pa.int32()),
        "system_time": pa.array([0, 0, 0], pa.timestamp("ms", "UTC")),
        "event_time": pa.array(
            [-62_135_596_800_000, -1, 253_402_300_799_999], pa.timestamp("ms", "UTC")
        ),
        "flag": pa.array([True, None, False]),
        "tiny": pa.array([-128, None, 127], pa.int8()),
        "short": pa.array([-(1 << 15), None, 1], pa.int16()),
        "big": pa.array([-(1 << 63), None, (1 << 63) - 1], pa.int64()),
        "single": pa.array([float("nan"), None, -0.0], pa.float32()),
        "double": pa.array([float("-inf"), None, 5e-324]),
        "text": pa.array(["", None, "Лев\u0000🦁"]),
        "bytes": pa.array([b"", None, b"\xff\x00"]),
        "day": pa.array([-719_162, None, 2_932_896], pa.date32()),
        "wide": pa.array(
            [Decimal("-1e-3"), None, Decimal("12345678901234567890.123")], pa.decimal128(38, 3)
        ),
        "slim": pa.array([Decimal("0.5"), None, Decimal("-9.9")], pa.decimal128(3, 1)),
    }
)


def test_records_handed_over_are_the_records_of_the_file(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    given = replace(slices(tmp_path, _EACH_TYPE), schema=_EACH_TYPE.schema)
    names = [name for name in _EACH_TYPE.column_names if name != "offset"]
    query = f"SELECT {', '.join(names)} FROM cities"
    with spark_engine.request("few") as spark:
        frame = read_slices(spark, given.files, given.schema, given.vocab, tmp_path)
        assert not frame.inputFiles()
        Catalyst(spark).show(frame, "cities")
        by_job = spark.sql(query).toArrow()
        few.compute_in_place(spark)
        in_place = computed(spark.sql(query), tmp_path)
        read_by_spark = read_slices(spark, given.files, given.schema, given.vocab)
        assert read_by_spark.inputFiles()
        expected = read_by_spark.select(*names).toArrow()
    assert in_place is not None
    for found in (by_job, in_place):
        assert found.schema == expected.schema
        # Not as values: 0.0 equals -0.0, and NaN nothing.
        assert repr(found.to_pylist()) == repr(expected.to_pylist())


_PART = "SELECT event_time, city, population FROM {} WHERE population >= {}"


@pytest.mark.parametrize(
    "parts",
    [
        [("cities", 2), ("towns", 1)],
        [("towns", 0), ("cities", 3), ("towns", 2)],
        [("cities", 99), ("towns", 99)],
        [("cities", 0), ("cities", 0)],
    ],
    ids=str,
)
def test_records_of_several_inputs_are_put_together_without_a_job_in_the_order_of_one(
    spark_engine: SparkEngine, tmp_path: Path, parts: list[tuple[str, int]]
) -> None:
    (tmp_path / "towns").mkdir()
    cities = slices(tmp_path, rows(0, 5), rows(5, 3))
    towns = replace(slices(tmp_path / "towns", rows(0, 4)), alias="towns")
    query = sql(" UNION ALL ".join(_PART.format(*each) for each in parts))
    found = []
    for number, computes in enumerate((few.collect_computed, lambda *_: False)):
        folder = tmp_path / str(number)
        folder.mkdir()
        name = f"put together {number}"
        step = replace(task(folder, query, cities, towns), dataset=name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(few, "collect_computed", computes)
            found.append(read(spark_engine.run(step).parts))
        with spark_engine.request("few") as spark:
            jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(name)
        assert bool(jobs) is (number == 1)
    in_place, by_job = found
    assert in_place.equals(by_job)


def test_few_records_and_what_a_query_makes_of_them_are_computed_without_compiling(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    jvm = spark_engine._session.spark._jvm
    compiled = jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME
    columns = {f"n{number}": pa.array([1], pa.int32()) for number in range(37)}  # used nowhere else
    table = rows(0, 1)
    for name, values in columns.items():
        table = table.append_column(name, values)
    given = replace(slices(tmp_path, table), schema=table.schema)
    query = sql("SELECT event_time, n36 FROM cities WHERE n36 < 20261123")
    before = compiled().getCount()
    # In a thread of its own, as those of an apply: PySpark gives each another one of the JVM.
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(spark_engine.run, task(tmp_path, query, given)).result()
    assert compiled().getCount() == before
    assert read(found.parts)["n36"].to_pylist() == [1]


@pytest.mark.parametrize(
    "unlike",
    [
        pa.array([[1]], pa.list_(pa.int32())),
        pa.array([1], pa.uint32()),
        pa.array([1], pa.timestamp("ns", "UTC")),
        pa.array([(1 << 62)], pa.timestamp("ms", "UTC")),
        pa.array(["x" * (3 << 20)]),
    ],
    ids=str,
)
def test_what_arrow_and_spark_hold_differently_or_is_large_is_not_handed_over(
    spark_engine: SparkEngine, tmp_path: Path, unlike: pa.Array
) -> None:
    file = tmp_path / "unlike.parquet"
    pq.write_table(pa.table({"unlike": unlike}), file)
    kind = StructType([StructField("unlike", StringType())])
    with spark_engine.request("few") as spark:
        assert handed_over(spark, [file], kind, tmp_path) is None
    assert list(tmp_path.iterdir()) == [file]


def test_only_quick_expressions_are_computed_where_nothing_can_cancel_them(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    given = slices(tmp_path, rows(0, 3))
    step = task(tmp_path, sql("SELECT 1"), given)
    quick = {
        "SELECT event_time, upper(city) AS city, population * 2 + 1 AS n FROM cities": True,
        "SELECT event_time, CASE WHEN city LIKE 'a%' THEN 1 END AS n FROM cities": False,
        "SELECT event_time, aggregate(sequence(1, population), 0L, (a, b) -> a + b) AS n"
        " FROM cities": False,
        "SELECT event_time, repeat(city, 1000) AS n FROM cities": False,
        "SELECT event_time, regexp_replace(city, '(a+)+$', '') AS n FROM cities": False,
        "SELECT event_time, explode(array(1, 2)) AS n FROM cities": False,
    }
    view = partial(increment_view, tmp_path)
    for query, expected in quick.items():
        with spark_engine.request("few") as spark:
            report = checked(spark, "few", sql(query), step.inputs, step.vocab, view=view)
            assert report.quick is expected, (query, report.expressions)
            assert computed(report.result, tmp_path) is None
            if expected:
                few.compute_in_place(spark)
                report = checked(spark, "few", sql(query), step.inputs, step.vocab, view=view)
                assert computed(report.result, tmp_path) is not None


def test_an_error_in_a_record_is_told_alike_however_it_was_computed(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    query = sql("SELECT event_time, 1 / (population - 1) AS n FROM cities")
    told = []
    for number, count in enumerate((3, 30_000)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(QueryError) as caught:
            spark_engine.run(task(folder, query, slices(folder, rows(0, count))))
        told.append((caught.value.code, caught.value.message))
    assert told[0] == told[1]
    assert told[0][0] == "E0517"


@pytest.mark.parametrize(
    ("columns", "alike"),
    [
        ("1Y AS a, 2S AS b, id AS c, CAST(id AS DOUBLE) AS d, CAST(NULL AS STRING) AS e", True),
        ("12.34BD AS a, DATE'0001-01-01' AS b, id % 2 = 0 AS c, X'00ff' AS d", True),
        ("TIMESTAMP'1969-12-31 23:59:59.999999' AS a, concat('ä', id) AS b", True),
        ("TIMESTAMP_NTZ'2024-01-01 00:00:00' AS a", False),
        ("array(id) AS a, named_struct('b', id) AS c", False),
    ],
)
def test_records_that_were_read_are_given_back_as_they_were(
    spark_engine: SparkEngine, tmp_path: Path, columns: str, alike: bool
) -> None:
    with spark_engine.request("few") as spark:
        frame = spark.sql(f"SELECT id, {columns} FROM range(5)")
        assert few.few_records(frame, tmp_path) is None
        few.tune(spark, [])
        table = few.few_records(frame, tmp_path)
        assert table is not None
        back = given_back(frame, table, tmp_path)
        assert (back is not None) is alike
        if back is not None:
            assert back.schema == frame.schema
            assert back.collect() == frame.collect()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM cities",
        "SELECT city, sum(population) AS n, min(event_time) AS t FROM cities GROUP BY city",
        "SELECT upper(city) AS city FROM cities WHERE population > 2",
        "SELECT a.city, b.population FROM cities a JOIN cities b USING (population)",
    ],
)
def test_an_answer_does_not_depend_on_how_few_records_are_read(
    spark_engine: SparkEngine,
    tmp_path: Path,
    query: str,
    history: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = slices(tmp_path, rows(0, 5), rows(5, 5).set_column(1, "op", pa.array([1] * 5)))
    answers = []
    for most in (few._FEW_BYTES, -1):
        monkeypatch.setattr(few, "_FEW_BYTES", most)
        scratch = tmp_path / f"scratch-{most}"
        scratch.mkdir()
        found = spark_engine.run(QueryTask(query, (given,), scratch, history))
        assert (scratch / "answer" / "_SUCCESS").exists() is (most < 0)
        assert found.schema is not None
        answers.append((found.schema, sorted(map(repr, read(found.parts).to_pylist()))))
    assert answers[0] == answers[1]
    assert answers[0][1]

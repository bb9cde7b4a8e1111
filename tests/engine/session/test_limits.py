"""What a step may take and touch, when the check of the query has let it through."""

import time
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from odfbuild.engine.contract import Engine
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.session.limits import files_read
from odfbuild.errors import EnvironmentProblem, QueryError
from tests.engine.inputs import rows, slices, sql, task

pytestmark = pytest.mark.spark

ENDLESS = sql(
    "SELECT event_time, sum(a * b) AS s FROM cities LATERAL VIEW explode(sequence(1, 4000)) AS a"
    " LATERAL VIEW explode(sequence(1, 4000)) AS b GROUP BY event_time"
)
"""Takes minutes. Spark's task goes on for as long after it is cancelled, as it looks between rows
only: one that takes years would take a core from all tests after it."""


def test_a_step_that_takes_too_long_is_cancelled_and_the_engine_goes_on(
    spark_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = slices(tmp_path, rows(0, 5))
    monkeypatch.setenv("ODFBUILD_STEP_SECONDS", "3")
    begun = time.monotonic()
    with pytest.raises(QueryError) as caught:
        spark_engine.run(task(tmp_path, ENDLESS, given))
    assert caught.value.code == "E0545"
    assert "took longer than 3 seconds" in caught.value.message
    assert time.monotonic() - begun < 300
    monkeypatch.delenv("ODFBUILD_STEP_SECONDS")
    query = sql("SELECT event_time FROM cities")
    again = replace(task(tmp_path, query, given), scratch=tmp_path / "again")
    again.scratch.mkdir()
    assert sum(pq.read_metadata(p).num_rows for p in spark_engine.run(again).parts) == 5


@pytest.mark.parametrize("text", ["soon", "0", "-1"])
def test_a_limit_is_a_number_of_seconds(
    spark_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("ODFBUILD_STEP_SECONDS", text)
    with pytest.raises(EnvironmentProblem) as caught:
        spark_engine.run(task(tmp_path, ENDLESS, slices(tmp_path, rows(0, 1))))
    assert caught.value.code == "E0544"


def test_a_plan_that_reads_another_file_is_not_run(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    given = slices(tmp_path, rows(0, 5))
    step = task(tmp_path, sql("SELECT event_time FROM cities"), given)
    stranger = tmp_path / "stranger.parquet"
    pq.write_table(rows(0, 1), stranger)
    with spark_engine.request("limits") as spark:
        ours = spark.read.parquet(*map(str, given.files))
        assert files_read(ours, step) == set(step.inputs[0].files)
        with pytest.raises(QueryError) as caught:
            files_read(ours.unionAll(spark.read.parquet(str(stranger))), step)
    assert caught.value.code == "E0504"
    assert str(stranger) in caught.value.message

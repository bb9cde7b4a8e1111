"""On a cluster of two workers odfbuild gives what it gives in one JVM."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from odfbuild.engine.settings import EngineSettings
from odfbuild.engine.spark.connect import cluster
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.start import start_engine
from odfbuild.errors import EnvironmentProblem
from tests.engine.everywhere import hashes
from tests.engine.queries import ALL, ONE_OF_EACH
from tests.example.odfbuild_project import ExampleProject
from tests.servers.cluster import spark_cluster

ROOT = Path(__file__).parents[3]
CONF = {"spark.driver.host": "127.0.0.1", "spark.executor.memory": "512m"}

pytestmark = pytest.mark.spark


def on_cluster(folder: Path, queries: str) -> Any:
    with spark_cluster(folder) as master:
        settings = json.dumps({"master": master, "memory": "1g", "conf": CONF})
        done = subprocess.run(
            [sys.executable, "-m", "tests.engine.everywhere", "5", "2", queries, settings],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    executors = [*folder.glob("worker-*/app-*/*/stderr")]
    assert len(executors) == 2, "each worker has run an executor"
    return json.loads(done.stdout.splitlines()[-1])


def test_two_workers_give_the_hashes_of_one_jvm(spark_engine: SparkEngine, tmp_path: Path) -> None:
    found = on_cluster(tmp_path, "one of each")
    assert found == hashes(spark_engine, ONE_OF_EACH, 3, 2)


@pytest.mark.slow
def test_two_workers_give_the_hashes_of_one_jvm_for_every_query(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    found = on_cluster(tmp_path, "all")
    expected = hashes(spark_engine, ALL, 3, 2)
    assert [q for q, a, b in zip(ALL, found, expected, strict=True) if a != b] == []


@pytest.mark.slow
def test_what_a_cluster_has_built_is_verified_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = ExampleProject.fresh(tmp_path / "project")
    settings = tmp_path / "machine.yaml"
    with spark_cluster(tmp_path) as master:
        engine = {"master": master, "memory": "1g", "conf": CONF}
        machine = {"kind": "Machine", "version": 1, "content": {"engine": engine}}
        settings.write_text(json.dumps(machine))
        monkeypatch.setenv("ODFBUILD_CONFIG", str(settings))
        assert "18 committed, 0 unchanged" in project.ok("apply", "-y").out
        (log,) = (project.root / ".odfbuild" / "runs").glob("*/log.jsonl")
        (started,) = [line for line in log.read_text().splitlines() if "engine.start" in line]
    assert json.loads(started)["msg"] == f"Spark runs on {master}; sandbox: files"
    monkeypatch.delenv("ODFBUILD_CONFIG")
    assert "all records are identical" in project.ok("verify").out


HEAVY_STEP = """
import json, sys
from pathlib import Path
from odfbuild import declared_settings
from odfbuild.engine.settings import EngineSettings
from odfbuild.engine.spark.start import start_engine
from odfbuild.errors import QueryError
from tests.engine.heavy_program import HEAVY, LIGHT
from tests.engine.inputs import read, rows, slices, sql, task
folder = Path(sys.argv[1])
engine = start_engine(declared_settings.read(EngineSettings, json.loads(sys.argv[2])))
given = slices(folder, rows(0, 5))
try:
    engine.run(task(folder, sql(HEAVY), given))
except QueryError as error:
    print(error.code, error.help)
print(read(engine.run(task(folder, sql(LIGHT), given)).parts).num_rows)
engine.stop()
"""


@pytest.mark.slow
def test_a_worker_without_memory_is_an_error_that_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with spark_cluster(tmp_path) as master:
        settings = json.dumps({"master": master, "memory": "1g", "conf": CONF})
        done = subprocess.run(
            [sys.executable, "-c", HEAVY_STEP, str(tmp_path / "work"), settings],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    error, count = done.stdout.splitlines()
    assert error.startswith("E0546")
    assert "spark.executor.memory" in error
    assert count == "5", "the next step is done all the same"


def test_a_master_that_nobody_answers_for_is_told_at_once() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{closed.getsockname()[1]},localhost"
        with pytest.raises(EnvironmentProblem) as caught:
            start_engine(EngineSettings(master=master))
    assert caught.value.code == "E0907"
    assert master in caught.value.message
    assert caught.value.notes == ("'localhost' is not of the form host:port",)


def test_workers_that_take_no_work_are_not_waited_for_forever(
    spark_engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_WORKER_SECONDS", 0.2)
    alone = spark_engine._session.spark.sparkContext
    with pytest.raises(EnvironmentProblem) as caught:
        cluster.await_workers(alone, "spark://somewhere:7077")
    assert caught.value.code == "E0908"
    assert "spark.executor.memory" in (caught.value.help or "")
    conf = alone._jsc.sc().conf()
    conf.set(cluster._WAITING, "1100ms")
    try:
        with pytest.raises(EnvironmentProblem) as caught:
            cluster.await_workers(alone, "spark://somewhere:7077")
    finally:
        conf.remove(cluster._WAITING)
    assert caught.value.notes == ("none has started an executor in 1 seconds",)

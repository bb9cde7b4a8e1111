"""Workers that do not see our files are refused, and whatever they lose is noticed.

The workers are in mount namespaces of their own, in which folders of a project are hidden.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfbuild.engine.spark.connect.workers import Workers
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.results import executor
from odfbuild.engine.spark.results.counted import check_read, write_counted
from odfbuild.errors import EngineProblem
from tests.servers.cluster import spark_cluster, why_nothing_can_be_hidden
from tests.servers.connect import connect_server

ROOT = Path(__file__).parents[3]
CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
    # No task begins before both workers have come.
    "spark.cores.max": "4",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
}
ROWS = 200_000
ODFBUILD = "import sys; from odfbuild.__main__ import main; sys.exit(main())"
WITHOUT_QUESTIONS = (
    "from odfbuild.engine.spark.session.session import Session;"
    "Session.check_workers = lambda *_: None;"
    "from odfbuild.engine.spark.connect import remote;"
    "remote.check_sees = lambda *_: None;"
)
"""As where a worker comes, or loses its folder, after it was asked."""
DEFINITIONS = """
kind: DatasetSnapshot
version: 1
content:
  name: fact
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: data/*.{ending}, order: ByName}
      read:
        kind: {kind}
        schema: ['event_time TIMESTAMP', 'id BIGINT']
      merge: {kind: Append}
---
kind: DatasetSnapshot
version: 1
content:
  name: twice
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: fact}]
      transform:
        kind: Sql
        engine: spark
        query: SELECT event_time, id, id * 2 AS twice FROM fact
"""

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Bench:
    """Projects on a cluster whose workers do not see some folders."""

    master: str
    folder: Path

    def project(self, name: str) -> Path:
        return self.folder / name

    def run(self, name: str, *words: str, before: str = "", master: str | None = None) -> str:
        """What `odfbuild` says in the project `name`; its exit code is the last line."""
        machine = self.folder / f"{name}-machine.yaml"
        engine = {"master": master or self.master, "memory": "1g", "conf": CONF}
        machine.write_text(
            json.dumps({"kind": "Machine", "version": 1, "content": {"engine": engine}})
        )
        done = subprocess.run(
            [sys.executable, "-c", before + ODFBUILD, *words],
            cwd=self.project(name),
            env={**os.environ, "ODFBUILD_CONFIG": str(machine), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        return f"{done.stdout}{done.stderr}\n{done.returncode}"

    def heads(self, name: str) -> list[Path]:
        return [*self.project(name).glob("chains/*/refs/head")]


def made(root: Path, ending: str) -> Path:
    """A project with one file of so many records."""
    (root / "datasets").mkdir(parents=True)
    (root / ".odfbuild").mkdir()
    (root / "data").mkdir()
    (root / "odfbuild.yaml").write_text("kind: Project\nversion: 1\ncontent: {name: bench}\n")
    kind = {"parquet": "Parquet", "ndjson": "NdJson"}[ending]
    text = DEFINITIONS.replace("{ending}", ending).replace("kind: {kind}", f"kind: {kind}")
    (root / "datasets" / "all.yaml").write_text(text)
    if ending == "parquet":
        pq.write_table(records(ROWS), root / "data" / "1.parquet", row_group_size=ROWS // 8)
    else:
        (root / "data" / "1.ndjson").write_bytes(lines(ROWS))
    return root


def records(count: int) -> pa.Table:
    times = pa.array(range(count), pa.timestamp("ms", "UTC"))
    return pa.table({"event_time": times, "id": pa.array(range(count), pa.int64())})


def lines(count: int) -> bytes:
    line = b'{"event_time":"2024-01-01T00:00:00Z","id":%d}\n'
    return b"".join(line % number for number in range(count))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    why = why_nothing_can_be_hidden()
    if why:
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("bench")
    partly = [made(folder / "asked", "parquet") / ".odfbuild"]
    partly += [made(folder / "absent", "ndjson") / "data"]
    hidden = [made(folder / name, "parquet") / ".odfbuild" for name in ("lost", "there")]
    joined = [made(folder / "other", "ndjson") / "data"]
    with spark_cluster(
        folder / "cluster", hidden=hidden, hidden_from_last=partly, joined=joined
    ) as master:
        yield Bench(master, folder)


def test_a_worker_that_does_not_share_the_folder_of_results_is_refused(bench: Bench) -> None:
    said = bench.run("asked", "apply", "-y")
    assert "E0548" in said
    assert "do not share" in said
    assert said.endswith("\n1")
    assert bench.heads("asked") == []


def test_records_that_a_worker_wrote_elsewhere_are_noticed(bench: Bench) -> None:
    said = bench.run("lost", "apply", "-y", before=WITHOUT_QUESTIONS)
    assert "error[E0549]: tasks wrote 200,000 records, and 0 of them lie in " in said
    assert said.endswith("\n1")
    assert bench.heads("lost") == []


def test_another_file_of_the_same_size_at_a_worker_is_noticed(bench: Bench) -> None:
    said = bench.run("other", "apply", "-y")
    assert "error[E0549]: tasks read " in said
    assert "records of 'data/1.ndjson', which has 200,000" in said
    assert said.endswith("\n1")
    assert bench.heads("other") == []


@pytest.mark.slow
def test_a_worker_that_does_not_see_the_source_is_refused(bench: Bench) -> None:
    said = bench.run("absent", "apply", "-y")
    assert "E0548" in said
    assert "do not see the files of this step" in said
    assert bench.heads("absent") == []


def test_a_server_is_refused_for_its_workers(bench: Bench) -> None:
    with a_server_over(bench) as master:
        said = bench.run("there", "apply", "-y", master=master)
        assert "E0547" in said
        assert said.endswith("\n1")
        assert bench.heads("there") == []
        said = bench.run("there", "apply", "-y", before=WITHOUT_QUESTIONS, master=master)
        assert "error[E0549]: tasks wrote 200,000 records, and 0 of them lie in " in said
        assert bench.heads("there") == []


@contextmanager
def a_server_over(bench: Bench) -> Iterator[str]:
    conf = {"spark.master": bench.master, **CONF}
    with connect_server(bench.folder / "server", conf) as (master, _):
        yield master


def test_what_was_written_is_counted_without_a_cluster_too(
    spark_engine: SparkEngine, tmp_path: Path
) -> None:
    frame = spark_engine._session.request().range(1000)
    write_counted(frame, tmp_path / "whole", str(tmp_path / "whole"), executor.THROWN_AWAY)

    class Losing:
        """Writes, and loses what it wrote."""

        def __init__(self, frame: object) -> None:
            self.frame = frame

        def observe(self, *words: object) -> Losing:
            return Losing(self.frame.observe(*words))  # type: ignore[attr-defined]

        @property
        def write(self) -> Losing:
            return self

        _jdf = None

        def options(self, **_: object) -> Losing:
            return self

        def parquet(self, target: str) -> None:
            self.frame.write.parquet(target)  # type: ignore[attr-defined]
            next(Path(target).glob("part-*")).unlink()

    with pytest.raises(EngineProblem) as caught:
        folder = tmp_path / "lost"
        write_counted(Losing(frame.repartition(4)), folder, str(folder), {})
    assert caught.value.code == "E0549"
    assert caught.value.message.startswith("tasks wrote 1,000 records, and 750 of them lie in")


def test_workers_find_files_of_any_name(spark_engine: SparkEngine, tmp_path: Path) -> None:
    """Those of one JVM, which see what we see."""
    session = spark_engine._session.request()
    files = [tmp_path / name for name in ("a b.csv", "a%20b.csv", "ä,=#.csv", "[a]*.csv")]
    for file in files:
        file.write_text("id\n1\n")
    link = tmp_path / "link"
    link.symlink_to(files[0])
    workers = Workers(session, "here")
    workers.check_shared(tmp_path)
    workers.check_files([*files, link])
    workers.check_files(files)


def test_a_file_that_changes_while_it_is_read_is_noticed() -> None:
    check_read("fact", "a.csv", 10, 10)
    with pytest.raises(EngineProblem) as caught:
        check_read("fact", "a.csv", 9, 10)
    assert caught.value.code == "E0549"

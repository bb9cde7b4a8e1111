"""Executors that share nothing with us but an endpoint of S3 read slices and write them.

The workers are in mount namespaces of their own, in which the project is hidden.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from odfbuild import Project
from odfbuild.engine.contract import Engine
from odfbuild.odf.model import AddData, DataSlice, ExecuteTransform, MetadataBlock
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.storage import Storage
from tests.apply.served import serving
from tests.apply.side_by_side import SideBySide
from tests.example.odfbuild_project import ExampleProject
from tests.inspect.verify.test_reproduce import tamper_slice
from tests.servers.cluster import spark_cluster, why_nothing_can_be_hidden
from tests.servers.objects import BUCKET, Objects, s3_endpoint, s3_program

ROOT = Path(__file__).parents[2]
CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "10min",  # machines of tests are busy
}
FILES, ROWS = 5, 20_000
NOW = "2026-01-01T00:00:00Z"
ODFBUILD = (
    "import sys; from odfbuild.odf.timestamp import Timestamp; from odfbuild.__main__ import main;"
    f"Timestamp.now = lambda: Timestamp.parse('{NOW}'); sys.exit(main())"
)
"""The program with a clock that stands still, so that equal work gives equal blocks."""
DEFINITIONS = """
kind: DatasetSnapshot
version: 1
content:
  name: fact
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: data/*.parquet, order: ByName}
      read:
        kind: Parquet
        schema: ['event_time TIMESTAMP', 'id BIGINT', 'name STRING', 'price DECIMAL(12,2)']
      merge: {kind: Append}
---
kind: DatasetSnapshot
version: 1
content:
  name: even
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: fact}]
      transform:
        kind: Sql
        engine: spark
        query: >-
          SELECT event_time, id * 2 AS twice, upper(name) AS name, price FROM fact
          WHERE id % 2 = 0 AND (id < 20000 OR id >= 40000)
---
kind: DatasetSnapshot
version: 1
content:
  name: all
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: fact}]
      transform: {kind: Sql, engine: spark, query: 'SELECT event_time, id + 1 AS next FROM fact'}
"""
WHOLE = """
kind: DatasetSnapshot
version: 1
content:
  name: label
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: data/*.csv, order: ByName}
      read:
        kind: Csv
        header: true
        schema: ['event_time TIMESTAMP', 'name STRING', 'label STRING']
      merge: {kind: Append}
---
kind: DatasetSnapshot
version: 1
content:
  name: labelled
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: fact}, {datasetRef: label}]
      transform:
        kind: Sql
        engine: spark
        query: >-
          SELECT f.event_time, f.id, f.price / 3.0D AS third, l.label
          FROM fact AS f JOIN label AS l ON f.name = l.name
---
kind: DatasetSnapshot
version: 1
content:
  name: totals
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: fact}]
      transform:
        kind: Sql
        engine: spark
        query: >-
          SELECT min(event_time) AS event_time, name, count(*) AS number, sum(price) AS price
          FROM fact GROUP BY name
---
kind: DatasetSnapshot
version: 1
content:
  name: largest
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: totals}]
      transform:
        kind: Sql
        engine: spark
        query: >-
          SELECT max(event_time) AS event_time, number, max(price) AS price
          FROM totals GROUP BY number
---
kind: DatasetSnapshot
version: 1
content:
  name: windows
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: fact}]
      transform:
        kind: Sql
        engine: spark
        query: >-
          SELECT window.start AS event_time, count(*) AS number, max(id) AS last
          FROM fact GROUP BY window(event_time, '7 seconds')
---
kind: DatasetSnapshot
version: 1
content:
  name: both
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: label}, {datasetRef: fact}]
      transform:
        kind: Sql
        engine: spark
        query: >-
          SELECT event_time, name, price FROM fact WHERE id % 3 > 0
          UNION ALL SELECT event_time, label, NULL FROM label
          UNION ALL SELECT event_time, name, -price FROM fact
"""
LAKE = "---".join(
    f"""
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{{fetch}}}
      read:
        kind: {kind}
        schema: ['event_time TIMESTAMP', 'id BIGINT', 'name STRING', 'price DECIMAL(12,2)']
      merge: {{kind: Append}}
"""
    for name, fetch, kind in (
        ("csv", f"kind: FilesGlob, path: 's3://{BUCKET}/raw/*.csv', order: ByName", "Csv"),
        ("parquet", f"kind: Url, url: 's3://{BUCKET}/raw/0.parquet'", "Parquet"),
    )
)
NOWHERE = "http://127.0.0.1:9"
BARE_PYTHON = str(Path(sys.base_prefix, "bin", "python3"))
OTHER_ARROW = 'import pyarrow; pyarrow.__version__ = "18.0.0"'
OTHER_SPARK = 'import pyspark; pyspark.__version__ = "4.0.0"'
OTHER_PYTHON = "import pyspark.worker; sys.version_info = (3, 9, 0)"
LATE = (
    DEFINITIONS.rpartition("---")[2]
    .replace("name: all", "name: late")
    .replace("id + 1 AS next", "id - 1 AS previous")
)
DERIVED = ("even", "all")
IN_THE_LAKE = ("csv", "parquet")
STEPS_AS_A_WHOLE = ("labelled", "totals", "largest", "windows", "both")
LABELS = "event_time,name,label\n" + "".join(
    f"2026-01-01T00:00:00Z,name {number},label {number % 3}\n" for number in range(0, 97, 2)
)
pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Bench:
    """A project whose root was computed here, and copies of it that go on elsewhere."""

    master: str
    folder: Path
    objects: Objects
    engine: Engine
    """The one JVM that all tests of this process share."""

    def copy(self, name: str, conf: dict[str, str] | None = None, **engine: Any) -> Path:
        """A clone with the chains of the root, and nothing of its data."""
        root = self.folder / "hidden" / name
        shutil.copytree(
            self.folder / "hidden" / "made", root, ignore=shutil.ignore_patterns("data")
        )
        (root / "data").mkdir()
        self.configure(root, conf, **engine)
        return root

    def machine(self, root: Path) -> Path:
        return self.folder / f"{root.name}-machine.yaml"

    def configure(
        self,
        root: Path,
        conf: dict[str, str] | None = None,
        storage: str = f"s3://{BUCKET}/objects",
        **engine: Any,
    ) -> None:
        content = {"name": "bench", "storage": storage}
        project = {"kind": "Project", "version": 1, "content": content}
        (root / "odfbuild.yaml").write_text(json.dumps(project))
        settings = {
            "master": self.master,
            "memory": "1g",
            **engine,
            "conf": {**CONF, **(conf or {})},
        }
        machine = {"kind": "Machine", "version": 1, "content": {"engine": settings}}
        self.machine(root).write_text(json.dumps(machine))

    def start(self, root: Path, *words: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", ODFBUILD, *words],
            cwd=root,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "PYSPARK_PYTHON": sys.executable,
                "ODFBUILD_CONFIG": str(self.machine(root)),
                **variables,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, root: Path, *words: str, **variables: str) -> str:
        """What `odfbuild` says; its exit code is the last line."""
        process = self.start(root, *words, **variables)
        said, _ = process.communicate()
        return f"{said}\n{process.returncode}"

    def here(self, root: Path, *words: str) -> str:
        """The same by the one JVM."""
        now = Timestamp.parse(NOW)
        # A client that libraries keep may know the endpoint of a walk.
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ODFBUILD_CONFIG", str(self.machine(root)))
            patch.setattr(Timestamp, "now", lambda: now)
            return ExampleProject(root, self.engine).ok(*words).text

    def stored(self) -> set[str]:
        """Names of all objects of data."""
        client = self.objects.client
        found = client.list_objects_v2(Bucket=BUCKET, Prefix="objects/data/").get("Contents", [])
        return {each["Key"].rpartition("/")[2] for each in found}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, spark_engine: Engine) -> Iterator[Bench]:
    why = why_nothing_can_be_hidden()
    if why:
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("executors")
    hidden = folder / "hidden"
    root = hidden / "made"
    (root / "datasets").mkdir(parents=True)
    (root / "data").mkdir()
    (root / "datasets" / "all.yaml").write_text(DEFINITIONS)
    (root / "datasets" / "whole.yaml").write_text(WHOLE)
    (root / "data" / "labels.csv").write_text(LABELS)
    with s3_endpoint() as objects, spark_cluster(folder / "cluster", hidden=[hidden]) as master:
        bench = Bench(master, folder, objects, spark_engine)
        for number in range(2):
            text = io.BytesIO()
            options = pcsv.WriteOptions(include_header=False, quoting_style="all_valid")
            pcsv.write_csv(in_text(records(number * ROWS)), text, options)
            objects.put(f"raw/{number}.csv", text.getvalue())
        file = io.BytesIO()
        pq.write_table(records(0), file, row_group_size=ROWS // 4)
        objects.put("raw/0.parquet", file.getvalue())
        bench.configure(root, master="local[2]")
        for numbers, names in (([0], ()), (range(1, FILES), ("fact",))):
            for number in numbers:
                pq.write_table(records(number * ROWS), root / "data" / f"{number}.parquet")
            bench.here(root, "apply", "-y", *names)
        yield bench


def records(first: int) -> pa.Table:
    numbers = range(first, first + ROWS)
    return pa.table(
        {
            # Not in the order of time, which a step keeps.
            "event_time": pa.array([n ^ 5 for n in numbers], pa.timestamp("ms", "UTC")),
            "id": pa.array(numbers, pa.int64()),
            "name": [f"name {number % 97}" for number in numbers],
            "price": pa.array(numbers, pa.int64())
            .cast(pa.decimal128(21, 2))
            .cast(pa.decimal128(12, 2)),
        }
    )


def in_text(table: pa.Table) -> pa.Table:
    times = pc.strftime(table["event_time"], format="%Y-%m-%dT%H:%M:%SZ")
    return table.set_column(0, "event_time", times)


def head(root: Path, name: str) -> Multihash:
    found = DatasetStore(root / "chains" / name, name).head()
    assert found is not None, "it was committed"
    return found


def newest(root: Path, name: str) -> AddData:
    block = DatasetStore(root / "chains" / name, name).read_block(head(root, name))
    assert isinstance(block.event, AddData)
    return block.event


def slices(root: Path, name: str) -> list[DataSlice | None]:
    """What each step of a dataset gave."""
    store = DatasetStore(root / "chains" / name, name)
    events = [block.event for _, block in store.walk(head(root, name))]
    return [e.new_data for e in reversed(events) if isinstance(e, AddData | ExecuteTransform)]


def used(root: Path) -> set[str]:
    """Names of all objects of data to which the heads of a project lead."""
    names = [each.parent.name for each in (root / "chains").glob("*/refs")]
    found = [each for name in names for each in slices(root, name)]
    return {str(each.physical_hash) for each in found if each is not None}


def records_of(root: Path, name: str) -> pa.Table:
    """All records of a dataset, from the storage."""
    storage = Storage(f"s3://{BUCKET}/objects", root)
    tables = []
    for data in slices(root, name):
        if data is not None:
            file = root / "read" / str(data.physical_hash)
            assert storage.get("data", data.physical_hash, file)
            tables.append(pq.read_table(file))
    return pa.concat_tables(tables).drop_columns(["system_time"])


@pytest.fixture
def process(bench: Bench) -> Iterator[subprocess.Popen[str]]:
    """The program with one session on the cluster, of which it holds all cores until it ends."""
    root = bench.folder / "hidden" / "walks"
    root.mkdir(exist_ok=True)
    bench.configure(root, slices="executors", sliceSize="1g")
    with serving(root, bench.machine(root), bench.folder / "walks.log") as process:
        yield process


@pytest.mark.parametrize(
    ("seed", "steps"),
    [(1, 2), *[pytest.param(n, 8, marks=pytest.mark.slow) for n in range(2, 12)]],
)
def test_whatever_a_team_does_executors_give_the_heads_of_one_jvm(
    seed: int,
    steps: int,
    bench: Bench,
    process: subprocess.Popen[str],
    spark_engine: Engine,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    there = bench.folder / "hidden" / "walks" / f"walk-{seed}"
    # What is patched within the endpoint's environment is put back before that is.
    with s3_program(tmp_path / "s3") as own, pytest.MonkeyPatch.context() as patch:
        roots, objects = (tmp_path / there.name, there), (own, bench.objects)
        computing = spark_engine, process
        both = SideBySide(roots, objects, seed, computing, patch, capsys)
        both.go(steps)
    assert "executors wrote" in "".join(both.said)


@pytest.fixture(scope="module")
def by_coordinator(bench: Bench) -> Path:
    """What one JVM here makes of it."""
    root = bench.copy("here", master="local[2]")
    (root / "datasets" / "lake.yaml").write_text(LAKE)
    bench.here(root, "apply", "-y", *DERIVED, *STEPS_AS_A_WHOLE, *IN_THE_LAKE)
    return root


@pytest.fixture(scope="module")
def by_executors(bench: Bench) -> Path:
    """What executors make of it, one slice of the root a step."""
    root = bench.copy("there", sliceSize="64k", slices="executors")
    (root / "datasets" / "lake.yaml").write_text(LAKE)
    said = bench.run(root, "apply", "-y", *DERIVED, *STEPS_AS_A_WHOLE, *IN_THE_LAKE)
    assert said.endswith("\n0"), said
    return root


def test_workers_that_share_nothing_make_the_same_records(
    by_coordinator: Path, by_executors: Path
) -> None:
    for name in DERIVED:
        assert records_of(by_executors, name).equals(records_of(by_coordinator, name))


def test_joins_aggregations_and_windows_have_the_heads_of_one_jvm(
    by_coordinator: Path, by_executors: Path
) -> None:
    for name in STEPS_AS_A_WHOLE:
        assert head(by_executors, name) == head(by_coordinator, name), name


def test_roots_in_a_lake_have_the_records_of_one_jvm_in_slices_of_each_object(
    by_coordinator: Path, by_executors: Path
) -> None:
    for name in IN_THE_LAKE:
        one, other = (
            records_of(root, name).drop_columns(["offset"]).sort_by("id")
            for root in (by_coordinator, by_executors)
        )
        assert one.equals(other)
        before, after = (newest(root, name) for root in (by_coordinator, by_executors))
        assert after.new_watermark == before.new_watermark
        assert after.new_source_state == before.new_source_state
        assert len(slices(by_executors, name)) > 3


def test_each_slice_of_the_input_becomes_a_block(by_coordinator: Path, by_executors: Path) -> None:
    assert len(slices(by_coordinator, "even")) == 2
    _, second, *others = slices(by_executors, "even")
    assert second is None, "nothing of that slice is in the result"
    assert [each.records for each in others if each] == [ROWS // 2] * (FILES - 2)


def test_no_data_lies_where_odfbuild_runs(by_executors: Path) -> None:
    shutil.rmtree(by_executors / "read", ignore_errors=True)
    files = [each for each in by_executors.rglob("*") if each.is_file()]
    assert not [each for each in files if each.parent.name == "data"]
    assert max(each.stat().st_size for each in files) < 100_000


def test_a_step_of_one_piece_gives_the_head_of_one_jvm(bench: Bench, by_coordinator: Path) -> None:
    root = bench.copy("whole", slices="executors", sliceSize="1g")
    said = bench.run(root, "apply", "-y", *DERIVED)
    assert said.endswith("\n0"), said
    for name in DERIVED:
        assert head(root, name) == head(by_coordinator, name)


def test_each_block_is_verified_by_one_jvm(bench: Bench, by_executors: Path) -> None:
    bench.configure(by_executors, master="local[2]")
    said = bench.here(by_executors, "verify", "-r", "--logical", "even", "all")
    assert "recomputed 10 steps of 2 derivatives, all records are identical" in said


def test_executors_verify_what_they_made(bench: Bench, by_executors: Path) -> None:
    bench.configure(by_executors, sliceSize="64k", slices="executors")
    shutil.rmtree(by_executors / "read", ignore_errors=True)
    leave_to_storage(by_executors)
    said = bench.run(by_executors, "verify", "-r", "--logical")
    assert said.endswith("\n0"), said
    found = re.search(
        r"executors checked (\d+) of (\d+) data objects, and recomputed (\d+) of (\d+) steps$",
        said,
        re.MULTILINE,
    )
    assert found is not None, said
    assert found[1] == found[2], said
    assert found[3] == found[4], said
    assert "all records are identical" in said
    files = [each for each in by_executors.rglob("*") if each.is_file()]
    assert not [each for each in files if each.parent.name == "data"]


def test_executors_find_what_one_jvm_finds(bench: Bench, by_executors: Path) -> None:
    root = bench.folder / "hidden" / "tampered"
    shutil.copytree(by_executors, root, ignore=shutil.ignore_patterns("read", "data"))
    (root / "data").mkdir()
    bench.configure(root, sliceSize="64k", slices="executors")
    workspace = Project(root).workspace()
    for name, column in (("even", "twice"), ("totals", "number"), ("all", "next")):
        *_, block = [b for _, b in workspace.dataset(name).walk(head(root, name)) if has_data(b)]
        tamper_slice(workspace, name, block.sequence_number, column, -1, bench.folder)
    damaged = next(data for data in slices(root, "all") if data is not None)
    bench.objects.put(f"objects/data/{damaged.physical_hash}", b"X" * damaged.size)
    told = []
    ways: list[dict[str, Any]]
    ways = [{"sliceSize": "64k", "slices": "executors"}, {"master": "local[2]"}]
    for settings in ways:
        leave_to_storage(root)
        bench.configure(root, **settings)
        said = bench.run(root, "verify", "--logical", "even", "totals", "all")
        assert said.endswith("\n3"), said
        told.append([line for line in said.splitlines() if "executors checked" not in line])
        assert ("executors checked" in said) == ("slices" in settings)
    assert told[0] == told[1]
    found = "\n".join(told[0])
    assert found.count("error[E0820]") == 3, "the second step of totals goes by the first"
    assert found.count("error[E0813]") == 1
    assert "twice: committed -1, recomputed 8" in found


def leave_to_storage(root: Path) -> None:
    for folder in (root / "chains").glob("*/data"):
        shutil.rmtree(folder)


def has_data(block: MetadataBlock) -> bool:
    event = block.event
    return isinstance(event, ExecuteTransform) and event.new_data is not None


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def executors(bench: Bench) -> dict[int, int]:
    """The processes of Spark that do the work, by their folders, and of which worker each is."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes()
            folder = (process / "cwd").readlink()
            if b"CoarseGrainedExecutorBackend" in words and folder.is_relative_to(bench.folder):
                parent = (process / "status").read_text().partition("PPid:")[2].split()[0]
                if b"deploy.worker.Worker" in Path("/proc", parent, "cmdline").read_bytes():
                    found[int(process.name)] = int(parent)
    return found


def kill(*processes: int) -> None:
    for each in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


@pytest.mark.slow  # a session on the cluster, and executors that start again
def test_a_step_goes_on_when_an_executor_is_killed(bench: Bench, by_executors: Path) -> None:
    root = bench.copy("killed", sliceSize="64k", slices="executors")
    process = bench.start(root, "apply", "-y", *DERIVED)
    until(lambda: bool([*bench.folder.glob("cluster/local/**/odfbuild-*")]))  # a task is at work
    kill(next(iter(executors(bench))))
    said, _ = process.communicate()
    assert process.returncode == 0, said
    for name in DERIVED:
        assert head(root, name) == head(by_executors, name)


@pytest.mark.slow  # each run has several sessions on the cluster
@pytest.mark.parametrize("seed", range(30))
def test_nothing_is_lost_or_doubled_whatever_is_killed(
    seed: int, bench: Bench, by_executors: Path
) -> None:
    """Two of them build the same; what is killed at any moment is one of them, an executor, or a
    worker with its executors.
    """
    chance = random.Random(seed)
    speculation = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.1",
    }
    root = bench.copy(f"killed-{seed}", conf=speculation, sliceSize="64k", slices="executors")
    (root / "datasets" / "lake.yaml").write_text(LAKE)
    names = ("even", "labelled", "totals", "csv")
    before = {*executors(bench)}
    both = [bench.start(root, "apply", "-y", *names) for _ in range(2)]
    until(lambda: bool({*executors(bench)} - before) or None not in [p.poll() for p in both])
    time.sleep(chance.uniform(0, 20))
    at_work = {each: its for each, its in executors(bench).items() if each not in before}
    match chance.choice(["executor", "worker", "odfbuild"]) if at_work else "odfbuild":
        case "executor":
            kill(chance.choice(sorted(at_work)))
        case "worker":
            worker = chance.choice(sorted(at_work.values()))
            kill(worker, *(each for each, its in at_work.items() if its == worker))
        case _:
            chance.choice(both).kill()
    for process in both:
        process.communicate()
    said = bench.run(root, "apply", "-y", *names)
    assert said.endswith("\n0"), said
    for name in names[:-1]:
        assert head(root, name) == head(by_executors, name), name
    # A new root has an identity of its own.
    assert records_of(root, "csv").equals(records_of(by_executors, "csv"))
    until(lambda: not {*executors(bench)} - before)
    said = bench.run(root, "gc", "--storage", "--grace", "0", "-y")
    assert said.endswith("\n0"), said
    assert bench.stored() == used(root)


def python_that_says(folder: Path, code: str) -> str:
    """The Python of this process, in which a module of Spark runs after `code`."""
    file = folder / f"python-{len([*folder.glob('python-*')])}"
    run = 'runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)'
    command = f"import runpy, sys; {code}; {run}"
    file.write_text(f"#!/bin/sh\nshift\nexec {sys.executable} -c '{command}' \"$@\"\n")
    file.chmod(0o755)
    return str(file)


@pytest.mark.slow  # a session on the cluster for each
@pytest.mark.parametrize(
    ("conf", "python", "code", "named"),
    [
        pytest.param({}, "/nonexistent/python", "E1680", "/nonexistent", id="no Python"),
        pytest.param({}, OTHER_PYTHON, "E1680", "3.9", id="another Python"),
        pytest.param({}, BARE_PYTHON, "E1681", "lack a library", id="no PyArrow"),
        pytest.param({}, OTHER_ARROW, "E1681", "PyArrow 18.0.0", id="another PyArrow"),
        pytest.param({}, OTHER_SPARK, "E1675", "Spark 4.0.0", id="another Spark"),
        pytest.param({"AWS_ENDPOINT_URL": NOWHERE}, "", "E1682", NOWHERE, id="no storage"),
        pytest.param({"AWS_ACCESS_KEY_ID": ""}, "", "E1682", "credentials", id="no credentials"),
    ],
)
def test_a_worker_that_cannot_do_it_is_told_before_anything_is_committed(
    bench: Bench, conf: dict[str, str], python: str, code: str, named: str
) -> None:
    conf = {f"spark.executorEnv.{name}": value for name, value in conf.items()}
    root = bench.copy(f"lacking-{len([*bench.folder.glob('hidden/*')])}", conf, sliceSize="64k")
    if python and not python.startswith("/"):
        python = python_that_says(bench.folder, python)
    before = head(root, "all")
    said = bench.run(root, "apply", "-y", "all", PYSPARK_PYTHON=python or sys.executable)
    assert f"error[{code}]" in said
    assert named in said
    assert "nothing was committed" in said
    assert said.endswith("\n1")
    assert head(root, "all") == before


@pytest.mark.slow  # a session on the cluster
def test_a_worker_that_cannot_read_a_source_is_told_before_anything_is_committed(
    bench: Bench,
) -> None:
    conf = {"spark.executorEnv.AWS_ENDPOINT_URL": NOWHERE}
    root = bench.copy("lacking-source", conf, sliceSize="64k", slices="executors")
    shared = bench.folder / "shared"  # a storage that all of them see
    bench.configure(root, conf, storage=str(shared), sliceSize="64k", slices="executors")
    (root / "datasets" / "lake.yaml").write_text(LAKE)
    said = bench.run(root, "apply", "-y", "csv")
    assert "error[E1685]" in said
    assert "nothing was committed" in said
    assert said.endswith("\n1")
    assert not (root / "chains" / "csv" / "refs" / "head").exists()


@pytest.mark.slow  # two sessions on the cluster
def test_what_a_killed_run_leaves_is_garbage(bench: Bench) -> None:
    root = bench.copy("cut", sliceSize="64k")
    (root / "datasets" / "late.yaml").write_text(LATE)
    before = bench.stored()
    process = bench.start(root, "apply", "-y", "late")
    until(lambda: bench.stored() > before)
    process.kill()
    process.communicate()
    assert not (root / "chains" / "late" / "refs" / "head").exists()
    said = bench.run(root, "apply", "-y", "late")
    assert said.endswith("\n0"), said
    ids = records_of(root, "fact")["id"].to_pylist()
    assert records_of(root, "late")["previous"].to_pylist() == [each - 1 for each in ids]
    bench.run(root, "gc", "--storage", "--grace", "0", "-y")
    assert bench.stored() == used(root)

"""Build and verify a root, a map, a join and a GROUP BY by executors that share nothing but S3.

python benchmarks/cluster.py [--rows 3000000] [--cores 2] [--slice 64m] [--folder 100m]

With `--rows 36000000` the source has 2 GB.

The source is CSV in a server of S3 on loopback, the workers are two of a standalone cluster in
mount namespaces of their own, and the project's folder is a file system of that size in memory.
Printed are wall time, processor time of odfbuild, Spark and workers, the largest memory of odfbuild
with its JVM, and the bytes that both exchange with the server of S3. For comparison, PySpark
without odfbuild does the same on the same cluster, from a folder that all workers see, and writes
as many unsorted Parquet files. Needs the libraries of the tests, and the right to mount.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from odfbuild.odf.model import AddData, ExecuteTransform  # noqa: E402  # the checkout's
from odfbuild.store.dataset import DatasetStore  # noqa: E402
from tests.servers.cluster import spark_cluster  # noqa: E402
from tests.servers.objects import BUCKET, Objects, s3_program  # noqa: E402

OBJECT_ROWS = 1_500_000
LABELS = 1_000
COLUMNS = "event_time TIMESTAMP, id BIGINT, name STRING, price DECIMAL(12,2), score DOUBLE"
QUERIES = {
    "even": "SELECT event_time, id * 2 AS twice, upper(name) AS name, price FROM fact "
    "WHERE id % 2 = 0",
    "labelled": "SELECT f.event_time, f.id, f.price, l.label FROM fact AS f "
    "JOIN label AS l ON f.name = l.name",
    "totals": "SELECT min(event_time) AS event_time, name, count(*) AS number, "
    "sum(price) AS price FROM fact GROUP BY name",
}
PLAIN = """
import sys
from pyspark.sql import SparkSession
master, folder, cores, files = sys.argv[1:5]
conf = {"spark.cores.max": cores, "spark.executor.cores": "1", "spark.executor.memory": "512m",
        "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC"}
builder = SparkSession.builder.master(master)
for name, value in conf.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
fact = spark.read.schema(%r).csv(f"file:{folder}/fact")
fact.repartition(int(files)).write.parquet(f"file:{folder}/out/fact")
spark.read.parquet(f"file:{folder}/out/fact").createOrReplaceTempView("fact")
label = spark.read.schema("event_time TIMESTAMP, name STRING, label STRING")
label.csv(f"file:{folder}/label").createOrReplaceTempView("label")
for name, query in %r.items():
    frame = spark.sql(query)
    number = int(files) if name == "even" else 1
    frame.coalesce(number).write.parquet(f"file:{folder}/out/{name}")
spark.stop()
""" % (COLUMNS, QUERIES)  # noqa: UP031  # braces of its own


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=3_000_000)
    parser.add_argument("--cores", type=int, default=2, help="of executors, one each")
    parser.add_argument("--slice", default="64m", help="`sliceSize`")
    parser.add_argument("--folder", default="100m", help="the size of the project's file system")
    parser.add_argument("--no-plain", action="store_true", help="leave PySpark alone out")
    options = parser.parse_args()
    if "ODFBUILD_BENCH_MOUNTS" not in os.environ:
        os.environ["ODFBUILD_BENCH_MOUNTS"] = "own"
        os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])
    with tempfile.TemporaryDirectory(prefix="odfbuild-bench-") as name:
        folder = Path(name)
        project = folder / "hidden" / "project"
        project.mkdir(parents=True)
        size = f"size={options.folder}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", project], check=True)
        try:
            _compare(folder, project, options)
        finally:
            subprocess.run(["umount", "-l", project], check=True)


def _compare(folder: Path, project: Path, options: argparse.Namespace) -> None:
    with (
        s3_program(folder / "s3") as objects,
        spark_cluster(folder / "cluster", hidden=[folder / "hidden"]) as master,
        _counted(objects) as counted,
    ):
        rows = int(options.rows)
        bytes = _sources(objects, folder / "plain", rows)
        machine = _configure(project, master, objects, options)
        where = f"{options.cores} cores of executors, a folder of {options.folder}"
        print(f"{rows:,} rows, {bytes / 2**20:,.0f} MiB of CSV, {where}\n")
        print("| command | wall s | CPU s | peak MiB | MiB through it | of the CSV |")
        print("| --- | ---: | ---: | ---: | ---: | ---: |", flush=True)
        environment = {
            **os.environ,
            "ODFBUILD_CONFIG": str(machine),
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": sys.executable,
            "AWS_ENDPOINT_URL": counted.endpoint,
        }
        for words in (
            ("apply", "-y", "fact", "label"),
            ("apply", "-y", *QUERIES),
            ("verify", "-r", "--logical"),
        ):
            command = [sys.executable, "-m", "odfbuild", *words]
            before = counted.bytes
            figures = _measured(command, project, environment, " ".join(words))
            passed = counted.bytes - before
            print(f"{figures} {passed / 2**20:.2f} | {passed / bytes:.2%} |", flush=True)
        found = {name: _records(project, name) for name in ("fact", *QUERIES)}
        print(f"\nrecords and slices: {found}")
        assert found["fact"][0] == rows
        assert found["even"][0] == (rows + 1) // 2
        if not options.no_plain:
            words = [master, str(folder / "plain"), str(options.cores), str(found["fact"][1])]
            command = [sys.executable, "-c", PLAIN, *words]
            print(_measured(command, folder, environment, "PySpark alone") + " | |", flush=True)


def _sources(objects: Objects, plain: Path, rows: int) -> int:
    """Put the source into the store, and into a folder; how many bytes it has."""
    total = 0
    for name in ("fact", "label"):
        (plain / name).mkdir(parents=True)
    chance = np.random.default_rng(1)
    options = pcsv.WriteOptions(include_header=False, quoting_style="none")
    for number, first in enumerate(range(0, rows, OBJECT_ROWS)):
        ids = np.arange(first, min(first + OBJECT_ROWS, rows))
        times = 1_700_000_000_000 + ids * 250 + chance.integers(0, 10_000, len(ids))
        moments = pa.array(times, pa.timestamp("ms")).cast(pa.string())
        cents = pa.array(chance.integers(1, 10**6, len(ids)), pa.int64())
        table = pa.table(
            {
                "event_time": moments,
                "id": ids,
                "name": [f"name {n}" for n in chance.integers(0, LABELS, len(ids))],
                "price": cents.cast(pa.decimal128(21, 2)).cast(pa.decimal128(12, 2)),
                "score": chance.integers(0, 10**6, len(ids)) / 1_000,
            }
        )
        text = io.BytesIO()
        pcsv.write_csv(table, text, options)
        body = text.getvalue()
        objects.put(f"raw/fact/{number:04}.csv", body)
        (plain / "fact" / f"{number:04}.csv").write_bytes(body)
        total += len(body)
    labels = "".join(
        f"2023-01-01T00:00:00Z,name {number},label {number % 7}\n" for number in range(LABELS)
    ).encode()
    objects.put("raw/label/0.csv", labels)
    (plain / "label" / "0.csv").write_bytes(labels)
    return total + len(labels)


def _configure(project: Path, master: str, objects: Objects, options: argparse.Namespace) -> Path:
    """Write definitions and settings; the path of those of the machine."""
    (project / "datasets").mkdir()
    columns = {"fact": COLUMNS, "label": "event_time TIMESTAMP, name STRING, label STRING"}
    documents: list[object] = [
        _snapshot(
            name,
            "Root",
            {
                "kind": "SetPollingSource",
                "fetch": {
                    "kind": "FilesGlob",
                    "path": f"s3://{BUCKET}/raw/{name}/*.csv",
                    "order": "ByName",
                },
                "read": {"kind": "Csv", "schema": ddl.replace("(12,2)", "(12;2)").split(", ")},
                "merge": {"kind": "Append"},
            },
        )
        for name, ddl in columns.items()
    ]
    for name, query in QUERIES.items():
        inputs = [{"datasetRef": "fact"}, *([{"datasetRef": "label"}] * (name == "labelled"))]
        transform = {"kind": "Sql", "engine": "spark", "query": query}
        event = {"kind": "SetTransform", "inputs": inputs, "transform": transform}
        documents.append(_snapshot(name, "Derivative", event))
    text = "\n---\n".join(json.dumps(each) for each in documents).replace("(12;2)", "(12,2)")
    (project / "datasets" / "all.yaml").write_text(text)
    content = {"name": "bench", "storage": f"s3://{BUCKET}/objects"}
    document = {"kind": "Project", "version": 1, "content": content}
    (project / "odfbuild.yaml").write_text(json.dumps(document))
    engine = {
        "master": master,
        "memory": "512m",
        "slices": "executors",
        "sliceSize": options.slice,
        "conf": {
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.cores.max": str(options.cores),
            "spark.executorEnv.AWS_ENDPOINT_URL": objects.endpoint,
        },
    }
    machine = project.parent / "machine.yaml"
    document = {"kind": "Machine", "version": 1, "content": {"engine": engine}}
    machine.write_text(json.dumps(document))
    return machine


def _snapshot(name: str, kind: str, event: object) -> object:
    content = {"name": name, "kind": kind, "metadata": [event]}
    return {"kind": "DatasetSnapshot", "version": 1, "content": content}


def _records(project: Path, name: str) -> tuple[int, int]:
    """How many records and slices a dataset has."""
    store = DatasetStore(project / "chains" / name, name)
    head = store.head()
    assert head is not None
    events = [block.event for _, block in store.walk(head)]
    found = [each for each in events if isinstance(each, AddData | ExecuteTransform)]
    slices = [each.new_data for each in found if each.new_data is not None]
    return sum(each.records for each in slices), len(slices)


# --- What it takes ---


def _measured(command: list[str], folder: Path, environment: dict[str, str], name: str) -> str:
    """Run a command; the first columns of its line."""
    before, start = _cpu(), time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    peak, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.25):
            peak[0] = max(peak[0], sum(map(_memory, _tree(process.pid))))

    watcher = threading.Thread(target=watch)
    watcher.start()
    said, _ = process.communicate()
    ended.set()
    watcher.join()
    if process.returncode:
        raise SystemExit(said[-4_000:])
    wall = time.monotonic() - start
    time.sleep(3)  # executors end
    cpu = _cpu() - before
    return f"| {name} | {wall:.0f} | {cpu:.0f} | {peak[0] / 2**20:.0f} |"


def _cpu() -> float:
    """Seconds of processor time of all that was started here, but for the server of S3."""
    total = 0
    for number in _tree(os.getpid()):
        try:
            if b"moto.server" in Path(f"/proc/{number}/cmdline").read_bytes():
                continue
            # User and system time, of the process and of children for which it waited.
            fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))
        except OSError:
            continue
    return total / os.sysconf("SC_CLK_TCK")


def _tree(top: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for each in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(each.name))
    found = [top]
    for each in found:
        found += children.get(each, [])
    return found


def _memory(process: int) -> int:
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


class _Counted:
    """A way to a server, on which bytes are counted."""

    def __init__(self, listener: socket.socket, host: str, port: int) -> None:
        self.bytes = 0
        self._listener, self._to = listener, (host, port)
        self.endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"

    def serve(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            there = socket.create_connection(self._to)
            for pair in ((here, there), (there, here)):
                threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                self.bytes += len(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return


@contextmanager
def _counted(objects: Objects) -> Iterator[_Counted]:
    host, _, port = objects.endpoint.partition("://")[2].partition(":")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        counted = _Counted(listener, host, int(port))
        threading.Thread(target=counted.serve, daemon=True).start()
        yield counted


if __name__ == "__main__":
    main()

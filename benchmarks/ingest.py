"""Time ingestion beside plain PySpark and DuckDB, which do the like job in the same run.

python benchmarks/ingest.py [--rows 1000000] [--duckdb PYTHON]

Two jobs: a CSV file becomes a committed slice of a ledger; a snapshot of which 1 % changed becomes
the changes. odfbuild and PySpark share one running session, so the start of the JVM counts for
neither. DuckDB runs in a process of its own, whose start does not count either.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv

from odfbuild.apply.ingest import Arrival, stage_ingest
from odfbuild.apply.transaction import Transaction
from odfbuild.engine.contract import Engine
from odfbuild.engine.settings import EngineSettings
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.start import start_engine
from odfbuild.odf.model import (
    DatasetKind,
    FetchStepUrl,
    MergeStrategy,
    MergeStrategyLedger,
    MergeStrategySnapshot,
    ReadStepCsv,
    SetPollingSource,
)
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (
    "id BIGINT",
    "event_time TIMESTAMP",
    "name STRING",
    "city STRING",
    "amount DOUBLE",
    "quantity INT",
)
VALUES = ("name", "city", "amount", "quantity")
CHANGED = 0.01
_CITIES = np.array(["Lviv", "Kyiv", "Odesa", "Vancouver", "Seattle", "Porto", "Lima", "Accra"])


class Figure(NamedTuple):
    """Medians of wall time, and of user and system time of all processes."""

    seconds: float
    cpu: float


def main() -> None:
    """Measure and print a table; with `--json` also write the figures."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="odfbuild-bench-") as folder:
        root = Path(folder)
        print(f"{options.rows:,} rows, {len(COLUMNS)} columns, {os.cpu_count()} cores", flush=True)
        # In a process of its own, so that the memory it takes is not counted.
        with ProcessPoolExecutor(1, get_context("spawn")) as other:
            first, second = other.submit(_generate, root, options.rows).result()
        # As `apply` starts it for that much input.
        engine = start_engine(EngineSettings(expected_bytes=first.stat().st_size))
        try:
            figures = _measure(engine, root, first, second, options.runs)
        finally:
            engine.stop()
        if options.duckdb:
            figures |= _duckdb(options.duckdb, root, first, second, options.runs)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    _print(figures)
    print(f"\nPeak memory of this process, without the JVM: {peak:,} MiB")
    if options.json:
        options.json.write_text(
            json.dumps({name: each._asdict() for name, each in figures.items()}, indent=2) + "\n",
            "utf-8",
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3, help="medians of so many")
    parser.add_argument("--duckdb", help="a Python that has DuckDB (default: left out)")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    return parser.parse_args()


def _generate(root: Path, rows: int) -> tuple[Path, Path]:
    """The same file in each run, and the same with some amounts changed."""
    chance = np.random.default_rng(1)
    ids = chance.permutation(rows).astype("int64")
    # Nearly in order of time, as logs are.
    seconds = np.arange(rows, dtype="int64") + chance.integers(-600, 600, rows)
    times = (np.datetime64("2024-01-01") + seconds.astype("timedelta64[s]")).astype(str)
    amount = np.round(chance.random(rows) * 1000, 2)
    columns = {
        "id": ids,
        "event_time": np.char.add(times, "Z"),
        "name": np.char.add("customer ", (ids % 50_000).astype(str)),
        "city": _CITIES[chance.integers(0, len(_CITIES), rows)],
        "amount": amount,
        "quantity": chance.integers(1, 100, rows).astype("int32"),
    }
    first, second = root / "first.csv", root / "second.csv"
    _write(first, columns)
    some = chance.random(rows) < CHANGED
    _write(second, {**columns, "amount": np.where(some, amount + 1, amount)})
    return first, second


def _write(file: Path, columns: dict[str, np.ndarray]) -> None:
    options = pyarrow.csv.WriteOptions(quoting_style="none")
    pyarrow.csv.write_csv(pa.table(columns), file, options)


# --- odfbuild and PySpark ---


def _measure(
    engine: SparkEngine, root: Path, first: Path, second: Path, runs: int
) -> dict[str, Figure]:
    with engine.request("bench") as spark:
        return _figures(engine, spark, root, first, second, runs)


def _figures(
    engine: SparkEngine, spark: SparkSession, root: Path, first: Path, second: Path, runs: int
) -> dict[str, Figure]:
    ledger = MergeStrategyLedger(primary_key=("id",))
    snapshot = MergeStrategySnapshot(primary_key=("id",))
    jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    figures = _timed(
        {
            "CSV to slice, odfbuild": lambda folder: _commit(engine, folder, ledger, first),
            "CSV to slice, PySpark": lambda folder: _copy(spark, first, folder),
            "CSV to slice, PySpark, one file in order of time": (
                lambda folder: _sorted(spark, first, folder)
            ),
        },
        root,
        runs,
        jvm,
    )
    before = root / "before"
    before.mkdir()
    workspace = _commit(engine, before, snapshot, first)
    _copy(spark, first, before)
    return figures | _timed(
        {
            "Snapshot diff, odfbuild": (
                lambda folder: _grow(engine, folder, workspace, second, commit=False)
            ),
            "Snapshot diff, PySpark": lambda folder: _difference(spark, before, second, folder),
        },
        root,
        runs,
        jvm,
    )


def _timed(
    jobs: dict[str, Callable[[Path], object]], root: Path, runs: int, jvm: int
) -> dict[str, Figure]:
    """Medians of each job, behind a run that warms the JVM (a process) up.

    Jobs take turns, so that what else the machine does falls on all of them.
    """
    found: dict[str, list[Figure]] = {name: [] for name in jobs}
    for _ in range(runs + 1):
        for name, job in jobs.items():
            folder = Path(tempfile.mkdtemp(dir=root))
            started, used = time.monotonic(), _cpu(jvm)
            job(folder)
            figure = Figure(time.monotonic() - started, _cpu(jvm) - used)
            found[name].append(figure)
            print(f"  {name}: {figure.seconds:.2f} s, CPU {figure.cpu:.2f} s", flush=True)
            shutil.rmtree(folder)
    return {name: _median(figures[1:]) for name, figures in found.items()}


def _median(figures: list[Figure]) -> Figure:
    return Figure(*(statistics.median(column) for column in zip(*figures, strict=True)))


def _cpu(jvm: int) -> float:
    """Seconds of user and system time that this process and the JVM have taken."""
    fields = Path(f"/proc/{jvm}/stat").read_text().rsplit(")", 1)[1].split()
    own = os.times()
    return own.user + own.system + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _commit(engine: Engine, folder: Path, merge: MergeStrategy, file: Path) -> Workspace:
    """A new dataset with the records of `file`."""
    workspace = Workspace(folder / "chains", folder / "keys", folder / "cache")
    read = ReadStepCsv(header=True, ddl_schema=COLUMNS)
    source = SetPollingSource(fetch=FetchStepUrl(url=file.as_uri()), read=read, merge=merge)
    transaction = Transaction(workspace, "bench", DatasetKind.Root, None, Timestamp.now())
    transaction.add(source)
    transaction.commit()
    _grow(engine, folder, workspace, file, commit=True)
    return workspace


def _grow(
    engine: Engine,
    folder: Path,
    workspace: Workspace,
    file: Path,
    *,
    commit: bool,
) -> None:
    base = workspace.projection("bench")
    if base is None or base.polling_source is None:
        raise AssertionError("the dataset was just made")
    transaction = Transaction(workspace, "bench", DatasetKind.Root, base, Timestamp.now())
    arrival = Arrival(
        source=base.polling_source,
        file=file,
        display_name=file.name,
        event_time=None,
        source_state=None,
    )
    scratch = Path(tempfile.mkdtemp(dir=folder))
    stage_ingest(transaction, lambda: engine, arrival, scratch)
    if commit:
        transaction.commit()


def _read(spark: SparkSession, file: Path):  # type: ignore[no-untyped-def]
    return spark.read.schema(", ".join(COLUMNS)).option("header", True).csv(str(file))


def _copy(spark: SparkSession, file: Path, folder: Path) -> None:
    _read(spark, file).write.parquet(str(folder / "plain"))


def _sorted(spark: SparkSession, file: Path, folder: Path) -> None:
    frame = _read(spark, file).orderBy("event_time")
    frame.coalesce(1).write.parquet(str(folder / "plain"))


def _difference(spark: SparkSession, before: Path, file: Path, folder: Path) -> None:
    old = spark.read.parquet(str(before / "plain")).alias("o")
    new = _read(spark, file).alias("n")
    changed = " OR ".join(f"NOT (o.{name} <=> n.{name})" for name in ("id", *VALUES))
    both = old.join(new, on=[old["id"] == new["id"]], how="full_outer").where(changed)
    names = [column.split()[0] for column in COLUMNS]
    kept = [f"{side}.{name} AS {side}_{name}" for side in "on" for name in names]
    both.selectExpr(*kept).write.parquet(str(folder / "plain"))


# --- DuckDB ---

_DUCKDB = """
import json, statistics, sys, time
import duckdb
duckdb.sql("SET enable_progress_bar = false")
first, second, folder, runs, columns, values = json.loads(sys.argv[1])
kinds = {c.split()[0]: c.split()[1].replace("TIMESTAMP", "TIMESTAMPTZ") for c in columns}
def read(file):
    return f"read_csv('{file}', header=true, columns={kinds})"
def timed(query):
    found = []
    for _ in range(runs + 1):
        started, used = time.monotonic(), time.process_time()
        duckdb.sql(query)
        found.append((time.monotonic() - started, time.process_time() - used))
    return [statistics.median(column) for column in zip(*found[1:])]
out = f"TO '{folder}/duck.parquet' (FORMAT parquet)"
slice = timed(f"COPY (FROM {read(first)} ORDER BY event_time) {out}")
duckdb.sql(f"COPY (FROM {read(first)}) TO '{folder}/old.parquet' (FORMAT parquet)")
changed = " OR ".join(f"o.{v} IS DISTINCT FROM n.{v}" for v in ("id", *values))
diff = timed(
    f"COPY (SELECT o.* , n.* FROM '{folder}/old.parquet' o FULL JOIN {read(second)} n "
    f"ON o.id = n.id WHERE {changed}) {out}"
)
print(json.dumps({"CSV to slice, DuckDB": slice, "Snapshot diff, DuckDB": diff}))
"""


def _duckdb(python: str, root: Path, first: Path, second: Path, runs: int) -> dict[str, Figure]:
    asked = json.dumps([str(first), str(second), str(root), runs, COLUMNS, VALUES])
    done = subprocess.run(
        [python, "-c", _DUCKDB, asked], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"DuckDB failed:\n{done.stderr}")
    found = json.loads(done.stdout.splitlines()[-1])
    return {name: Figure(*figure) for name, figure in found.items()}


def _print(figures: dict[str, Figure]) -> None:
    print(f"\n{'':<52}{'seconds':>9}{'CPU s':>9}{'odfbuild is':>14}{'in CPU':>9}")
    for name, figure in sorted(figures.items(), key=lambda item: item[0].split(",")[0]):
        ours = figures[f"{name.split(',')[0]}, odfbuild"]
        times = (
            f"{ours.seconds / figure.seconds:>14.2f}{ours.cpu / figure.cpu:>9.2f}"
            if ours != figure
            else ""
        )
        print(f"{name:<52}{figure.seconds:>9.2f}{figure.cpu:>9.2f}{times}")


if __name__ == "__main__":
    main()

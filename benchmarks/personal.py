"""Time what personal columns cost: the same file with and without, and reading without keys.

python benchmarks/personal.py [--rows 1000000] [--large]

A CSV file with one personal column becomes a slice of a dataset that appends: its subjects have
one value each, or all values differ. All share one running session, so the start of the JVM counts
for none.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.csv

from odfbuild.apply.ingest import Arrival, stage_ingest
from odfbuild.apply.transaction import Transaction
from odfbuild.engine.contract import Engine
from odfbuild.engine.settings import EngineSettings
from odfbuild.engine.spark.start import start_engine
from odfbuild.odf.model import (
    DatasetKind,
    FetchStepUrl,
    MergeStrategyAppend,
    ReadStepCsv,
    SetPollingSource,
)
from odfbuild.odf.timestamp import Timestamp
from odfbuild.records.records import records_of
from odfbuild.store.personal import Personal
from odfbuild.store.subject_keys import KeyStore
from odfbuild.store.workspace import Workspace
from odfbuild.store.wrapping_keys import wrapping_key

T = TypeVar("T")
COLUMNS = ("event_time TIMESTAMP", "id BIGINT", "customer BIGINT", "email STRING", "amount DOUBLE")
SUBJECTS = 100_000
AIMS = {"one value a subject": 1.4, "all values differ": 2.2}


class Figure(NamedTuple):
    """Wall time, and user and system time of all processes."""

    seconds: float
    cpu: float


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3, help="medians of so many")
    parser.add_argument("--large", action="store_true", help="ten million rows, one run")
    options = parser.parse_args()
    rows, runs = (10_000_000, 1) if options.large else (options.rows, options.runs)
    with tempfile.TemporaryDirectory(prefix="odfbuild-bench-") as folder:
        root = Path(folder)
        print(f"{rows:,} rows, {SUBJECTS:,} subjects, {os.cpu_count()} cores", flush=True)
        files = {aim: _generate(root, rows, aim) for aim in AIMS}
        size = max(file.stat().st_size for file in files.values())
        engine = start_engine(EngineSettings(expected_bytes=size))
        try:
            for aim, file in files.items():
                _compare(engine, root, file, aim, runs)
        finally:
            engine.stop()


def _generate(root: Path, rows: int, aim: str) -> Path:
    chance = np.random.default_rng(1)
    who = chance.integers(0, SUBJECTS, rows)
    mail = who if aim.startswith("one") else np.arange(rows)
    times = np.datetime64("2024-01-01") + np.arange(rows).astype("timedelta64[s]")
    columns = {
        "event_time": np.char.add(times.astype(str), "Z"),
        "id": np.arange(rows),
        "customer": who,
        "email": np.char.add(np.char.mod("user%09d", mail), "@example.org"),
        "amount": np.round(chance.random(rows) * 1000, 2),
    }
    file = root / f"{aim.replace(' ', '-')}.csv"
    pyarrow.csv.write_csv(pa.table(columns), file)
    return file


def _compare(engine: Engine, root: Path, file: Path, aim: str, runs: int) -> None:
    jobs: dict[str, Callable[[Path], Workspace]] = {
        "without": lambda folder: _ingest(engine, folder, file, None),
        "personal": lambda folder: _ingest(engine, folder, file, folder / "subject-keys"),
    }
    found: dict[str, list[Figure]] = {}
    for _ in range(runs + 1):
        for name, job in jobs.items():
            folder = Path(tempfile.mkdtemp(dir=root))
            figure, workspace = _timed(lambda job=job, folder=folder: job(folder))
            found.setdefault(f"ingest, {name}", []).append(figure)
            figure, _rows = _timed(lambda workspace=workspace: _read(workspace))
            found.setdefault(f"read without keys, {name}", []).append(figure)
            shutil.rmtree(folder)
    medians = {
        name: Figure(*map(statistics.median, zip(*each[1:], strict=True)))
        for name, each in found.items()
    }
    print(f"\n{aim} (aim: {AIMS[aim]} times)")
    for name, each in medians.items():
        plain = medians[name.rpartition(",")[0] + ", without"]
        times = f"{each.seconds / plain.seconds:6.2f} times, CPU {each.cpu / plain.cpu:.2f} times"
        print(f"  {name:<28}{each.seconds:>8.2f} s, CPU {each.cpu:>7.2f} s  {times}", flush=True)


def _timed(work: Callable[[], T]) -> tuple[Figure, T]:
    started, used = time.monotonic(), _cpu()
    done = work()
    return Figure(time.monotonic() - started, _cpu() - used), done


def _cpu() -> float:
    """Seconds of user and system time that this process and the JVM, its child, have taken."""
    total = sum(os.times()[:2])
    children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    waiting = [int(each) for file in children for each in file.read_text().split()]
    while waiting:
        child = waiting.pop()
        try:
            fields = Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()
            deeper = Path(f"/proc/{child}/task").glob("*/children")
            waiting += [int(each) for file in deeper for each in file.read_text().split()]
        except OSError:
            continue
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def _ingest(engine: Engine, folder: Path, file: Path, keys: Path | None) -> Workspace:
    """A new dataset with the records of `file`, whose emails are personal where there are keys."""
    personal = None
    if keys is not None:
        store = KeyStore(str(keys), wrapping_key("wrapping-key", folder), folder)
        personal = Personal(lambda _: {"email": "customer"}, lambda: store)
    workspace = Workspace(folder / "chains", folder / "keys", folder / "cache", personal=personal)
    read = ReadStepCsv(header=True, ddl_schema=COLUMNS)
    source = SetPollingSource(
        fetch=FetchStepUrl(url=file.as_uri()), read=read, merge=MergeStrategyAppend()
    )
    transaction = Transaction(workspace, "bench", DatasetKind.Root, None, Timestamp.now())
    transaction.add(source)
    arrival = Arrival(
        source=source, file=file, display_name=file.name, event_time=None, source_state=None
    )
    stage_ingest(transaction, lambda: engine, arrival, Path(tempfile.mkdtemp(dir=folder)))
    transaction.commit()
    return workspace


def _read(workspace: Workspace) -> int:
    """All records as DuckDB shows them to who has no right to see personal values."""
    from odfbuild.records.duckdb_views import connect

    with connect() as connection:
        records_of(workspace, "bench").duckdb_view(connection, "bench")
        query = "SELECT count(*), sum(amount), count(DISTINCT customer) FROM bench"
        return int(connection.sql(query).fetchall()[0][0])


if __name__ == "__main__":
    main()

"""Time transformations beside plain PySpark, which does the like job in the same run.

python benchmarks/engine.py [--rows 1000000] [--histories 100000 1000000 10000000] [--json FILE]

Everything but the first figure runs in one warm session. odfbuild reads the inputs' chains, runs
the query, orders, numbers and hashes the records, and commits a block.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.apply.derive import read_inputs, stage_transform
from odfbuild.apply.ingest import Arrival, stage_ingest
from odfbuild.apply.transaction import Transaction
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.start import start_engine
from odfbuild.odf.model import (
    DatasetKind,
    FetchStepUrl,
    MergeStrategyAppend,
    ReadStepParquet,
    SetPollingSource,
    SetTransform,
    SqlQueryStep,
    TransformInput,
    TransformSql,
)
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.workspace import Workspace

SMALL = 5_000
INCREMENT = 10_000
QUERIES = {
    "map": "SELECT event_time, id, upper(city) AS city, amount * 2 AS amount FROM {input} "
    "WHERE amount > 100",
    "window": "SELECT window.start AS event_time, city, COUNT(*) AS n, SUM(amount) AS total "
    "FROM {input} GROUP BY window(event_time, '1 hour'), city",
    "changelog": "SELECT MAX(event_time) AS event_time, id % 100000 AS account, COUNT(*) AS n, "
    "SUM(amount) AS total FROM {input} GROUP BY id % 100000",
}
_CITIES = np.array(["Lviv", "Kyiv", "Odesa", "Vancouver", "Seattle", "Porto", "Lima", "Accra"])
_SECTIONS = ("start", "small", "large", "increments")
_START = np.datetime64("2024-01-01", "ms")

Figures = Iterator[tuple[str, float]]
"""Names and seconds, or what the name says."""


@dataclass
class Bench:
    """Chains in a folder, and the engine that all jobs share."""

    engine: SparkEngine
    root: Path
    numbers: itertools.count[int]

    def workspace(self) -> Workspace:
        return Workspace(self.root / "chains", self.root / "keys", self.root / "cache")

    def source(self, alias: str, rows: int, begin: int = 0) -> None:
        """Append `rows` records, one second apart from second `begin` on, to a root."""
        file = self.root / f"{alias}-{next(self.numbers)}.parquet"
        pq.write_table(records(rows, begin), file)
        workspace = self.workspace()
        base = workspace.projection(alias)
        source = SetPollingSource(
            fetch=FetchStepUrl(url=file.as_uri()),
            read=ReadStepParquet(),
            merge=MergeStrategyAppend(),
        )
        if base is None:
            creation = Transaction(workspace, alias, DatasetKind.Root, None, Timestamp.now())
            creation.add(source)
            creation.commit()
            base = workspace.projection(alias)
        transaction = Transaction(workspace, alias, DatasetKind.Root, base, Timestamp.now())
        arrival = Arrival(
            source=source, file=file, display_name=alias, event_time=None, source_state=None
        )
        stage_ingest(transaction, lambda: self.engine, arrival, self.scratch())
        transaction.commit()

    def derive(self, alias: str, input: str, query: str) -> int:
        """Bring a derivative up to date, made if it is not there; returns the new records."""
        workspace = self.workspace()
        base = workspace.projection(alias)
        transaction = Transaction(workspace, alias, DatasetKind.Derivative, base, Timestamp.now())
        if base is None:
            upstream = workspace.projection(input)
            assert upstream is not None
            step = SqlQueryStep(query=query.format(input=f"`{input}`"))
            transaction.add(
                SetTransform(
                    inputs=(TransformInput(dataset_ref=upstream.dataset_id, alias=input),),
                    transform=TransformSql(engine="spark", queries=(step,)),
                )
            )
        inputs = read_inputs(workspace, alias, transaction.state)
        assert inputs is not None
        done = stage_transform(transaction, lambda: self.engine, inputs, self.scratch())
        transaction.commit()
        return done.records

    def plain(self, input: str, query: str) -> None:
        """The like in PySpark: the query over the slices' files, written in order of time."""
        files = [str(file) for file in (self.root / "chains" / input / "data").iterdir()]
        with self.engine.request("plain") as spark:
            spark.read.parquet(*files).createOrReplaceTempView(input)
            result = spark.sql(query.format(input=f"`{input}`"))
            result.orderBy("event_time").coalesce(1).write.parquet(str(self.scratch() / "plain"))

    def scratch(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self.root))


def records(rows: int, begin: int) -> pa.Table:
    """The same for the same numbers."""
    chance = np.random.default_rng(begin)
    seconds = np.arange(begin, begin + rows, dtype="int64")
    return pa.table(
        {
            "event_time": pa.array(_START + seconds * 1000, pa.timestamp("ms", "UTC")),
            "id": pa.array(chance.permutation(rows) + begin, pa.int64()),
            "city": pa.array(_CITIES[chance.integers(0, len(_CITIES), rows)]),
            "amount": pa.array(chance.integers(0, 1000, rows), pa.int64()),
        }
    )


def main() -> None:
    """Measure and print a table; with `--json` also write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument(
        "--histories", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000]
    )
    parser.add_argument("--runs", type=int, default=3, help="medians of so many")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--only", choices=_SECTIONS, nargs="+", default=_SECTIONS)
    parser.add_argument(
        "--modes", choices=QUERIES, nargs="+", default=list(QUERIES), help="of large"
    )
    options = parser.parse_args()
    print(f"{options.rows:,} rows, {os.cpu_count()} cores", flush=True)
    figures = {}
    for name, value in _figures(options):
        print(f"{name:<48} {value:>9.3f}", flush=True)
        figures[name] = value
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")


def _figures(options: argparse.Namespace) -> Figures:
    if "start" in options.only:
        yield from _session_start(options.runs)
    engine = start_engine()
    try:
        with tempfile.TemporaryDirectory(prefix="odfbuild-bench-") as folder:
            bench = Bench(engine, Path(folder), itertools.count())
            if "small" in options.only:
                yield from _small_jobs(bench)
            if "large" in options.only:
                yield from _beside_pyspark(bench, options.rows, options.runs, options.modes)
            if "increments" in options.only:
                yield from _growing(bench, options.histories, options.runs)
    finally:
        engine.stop()


def _session_start(runs: int) -> Figures:
    """Until an engine can be asked, in a process of its own, the class archive being there."""
    code = "from odfbuild.engine.spark.start import start_engine; start_engine().stop()"
    seconds = []
    for _ in range(runs + 1):
        started = time.monotonic()
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        seconds.append(time.monotonic() - started)
    yield "session start, s", statistics.median(seconds[1:])


def _small_jobs(bench: Bench) -> Figures:
    """Each job has a query of its own, as datasets have: nothing compiled for one serves the next.

    The first ones are not counted.
    """
    bench.source("small", SMALL)
    numbers = itertools.count(2)

    def query() -> tuple[int, str]:
        number = next(numbers)
        return number, QUERIES["map"].replace("* 2", f"* {number}")

    def ours(_: int) -> None:
        number, text = query()
        bench.derive(f"small-{number}", "small", text)

    jobs: dict[str, Callable[[int], None]] = {
        "odfbuild": ours,
        "PySpark": lambda _: bench.plain("small", query()[1]),
    }
    for name, job in jobs.items():
        alone = [_seconds(partial(job, number)) for number in range(35)]
        yield f"small job, {name}, s", statistics.median(alone[15:])
    for name, job in jobs.items():
        with ThreadPoolExecutor(4) as pool:
            took = _seconds(partial(list, pool.map(job, range(40))))
        yield f"small jobs per second, 4 threads, {name}", 40 / took


def _beside_pyspark(bench: Bench, rows: int, runs: int, modes: list[str]) -> Figures:
    bench.source("large", rows)
    for mode in modes:
        query = QUERIES[mode]
        ours, plain = [], []
        for run in range(runs + 1):
            ours.append(_seconds(partial(bench.derive, f"{mode}-{run}", "large", query)))
            plain.append(_seconds(partial(bench.plain, "large", query)))
        yield f"{mode}, odfbuild, s", statistics.median(ours[1:])
        yield f"{mode}, PySpark, s", statistics.median(plain[1:])
        yield f"{mode}, ratio", statistics.median(ours[1:]) / statistics.median(plain[1:])


def _growing(bench: Bench, histories: list[int], runs: int) -> Figures:
    """An increment of 10 000 rows behind histories of different lengths, in slices of a tenth."""
    increments: dict[str, list[float]] = {mode: [] for mode in QUERIES}
    for history in histories:
        input = f"history-{history}"
        for part in range(10):
            bench.source(input, history // 10, part * history // 10)
        for mode, query in QUERIES.items():
            bench.derive(f"{mode}-of-{history}", input, query)
        took: dict[str, list[float]] = {mode: [] for mode in QUERIES}
        for run in range(runs + 1):
            bench.source(input, INCREMENT, history + run * INCREMENT)
            for mode, query in QUERIES.items():
                alias = f"{mode}-of-{history}"
                took[mode].append(_seconds(partial(bench.derive, alias, input, query)))
        for mode, seconds in took.items():
            increments[mode].append(statistics.median(seconds[1:]))
            yield f"{mode}, increment behind {history:,}, s", increments[mode][-1]
    for mode, medians in increments.items():
        yield f"{mode}, increment, largest history to smallest", medians[-1] / medians[0]


def _seconds(job: Callable[[], object]) -> float:
    started = time.monotonic()
    job()
    return time.monotonic() - started


if __name__ == "__main__":
    main()

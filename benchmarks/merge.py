"""Time ledger merges against histories of growing size, beside plain PySpark and DuckDB.

    python benchmarks/merge.py [--rows 100000 1000000 10000000] [--duckdb PYTHON]

Two batches for each history: a small one of 10 000 rows, and one of 1 % of the history; 1 % of the
rows of each were seen before, anywhere in the history. odfbuild ingests and commits; the others
read the same batch and the same slices, find the new rows, and write them in order of time.
odfbuild and PySpark share one running session, so the start of the JVM counts for neither; that of
DuckDB's process does not count either. README.md in this folder says how to read it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.apply.ingest_request import IngestRequest, ingest
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.start import start_engine
from odfbuild.odf.model import AddPushSource, DatasetKind, MergeStrategyLedger, ReadStepParquet
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.workspace import Workspace
from odfbuild.survey.outcome import DatasetOutcome, Status

COLUMNS = ("event_time TIMESTAMP", "id STRING", "customer BIGINT", "amount DOUBLE")
SMALL = 10_000
OVERLAP = 0.01
PUSHED_AT_ONCE = 1_000_000
COLD = "odfbuild, without side-cars"
WARM = "odfbuild"
_DUCK = """\
import duckdb, sys, time
history, batch, out = sys.argv[1:]
con = duckdb.connect()
con.execute("SELECT 1")
start = time.perf_counter()
con.execute(f"COPY (SELECT * FROM '{batch}' b WHERE NOT EXISTS "
            f"(SELECT 1 FROM read_parquet('{history}') h WHERE h.id = b.id) ORDER BY event_time) "
            f"TO '{out}' (FORMAT parquet)")
print(time.perf_counter() - start)
"""


@dataclass(frozen=True)
class Figure:
    """Median seconds of wall time in which `who` merged `batch` rows into `history` rows."""

    who: str
    history: int
    batch: int
    seconds: float


class Told:
    """Hears how a batch ended."""

    outcome: DatasetOutcome

    def begin(self, total: int, tasks: Callable[[str], tuple[int, int] | None]) -> None:
        """Nothing is shown."""

    def started(self, name: str) -> None:
        """Nothing is shown."""

    def progressed(self, name: str, blocks: int, records: int) -> None:
        """Nothing is shown."""

    def finished(self, outcome: DatasetOutcome) -> None:
        """Keep it."""
        self.outcome = outcome


class Running:
    """An engine that outlives a batch."""

    def __init__(self, engine: SparkEngine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def stop(self) -> None:
        """Leave it running for the next batch."""


class Ledger:
    """A dataset whose rows are numbered from 0; `rows` of them are committed."""

    def __init__(self, root: Path, engine: SparkEngine) -> None:
        self.root = root
        self.rows = 0
        self._engine = engine
        self._workspace = Workspace(root / "chains", root / "keys", root / ".odfbuild")
        source = AddPushSource(
            source_name="bench",
            read=ReadStepParquet(ddl_schema=COLUMNS),
            merge=MergeStrategyLedger(primary_key=("id",)),
        )
        self._workspace.create("ledger", DatasetKind.Root, [source], Timestamp.now())

    @property
    def slices(self) -> Path:
        """The folder of the data files."""
        return self._workspace.dataset("ledger").path / "data"

    def batch(self, size: int) -> Path:
        """A file of `size` rows, of which `OVERLAP` are committed already."""
        seen = int(size * OVERLAP) if self.rows else 0
        chance = np.random.default_rng(self.rows)
        old = chance.choice(self.rows, seen, replace=False) if seen else np.empty(0, np.int64)
        numbers = np.concatenate([old, np.arange(self.rows, self.rows + size - seen)])
        file = self.root / "batch.parquet"
        pq.write_table(_rows(chance.permutation(numbers)), file)
        return file

    def ingest(self, file: Path) -> float:
        """Ingest a batch; returns the seconds."""
        told = Told()
        started = time.perf_counter()
        ingest(
            IngestRequest(dataset="ledger", source=None, data=file),
            self._workspace,
            factory=lambda: Running(self._engine),
            listener=told,
            locate=lambda _, error: error,
        )
        seconds = time.perf_counter() - started
        if told.outcome.status is not Status.COMMITTED:
            raise SystemExit(f"ingest failed: {told.outcome.error}")
        self.rows += told.outcome.records
        return seconds

    def forget_side_cars(self) -> None:
        """Delete what can be made again."""
        shutil.rmtree(self.root / ".odfbuild" / "side-cars", ignore_errors=True)


def main() -> int:
    """Measure, print a table and the ratios, write JSON if asked to."""
    options = _options()
    figures: list[Figure] = []
    print(
        f"{os.cpu_count()} cores, medians of {options.runs} runs, seconds of wall time", flush=True
    )
    with tempfile.TemporaryDirectory(prefix="odfbuild-bench-") as folder:
        engine = start_engine()
        try:
            for rows in options.rows:
                found = _measure(engine, Path(folder) / str(rows), rows, options)
                for figure in found:
                    print(_line(figure), flush=True)
                figures += found
        finally:
            engine.stop()
    print(_summary(figures, options.rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(f) for f in figures], indent=2) + "\n", "utf-8")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--runs", type=int, default=3, help="medians of so many")
    parser.add_argument("--duckdb", help="a Python that has DuckDB (default: left out)")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    return parser.parse_args()


def _measure(
    engine: SparkEngine, root: Path, rows: int, options: argparse.Namespace
) -> list[Figure]:
    ledger = Ledger(root, engine)
    while ledger.rows < rows:
        ledger.ingest(ledger.batch(min(PUSHED_AT_ONCE, rows - ledger.rows)))
    ledger.ingest(ledger.batch(SMALL))  # the first of a kind pays for compiling its plan
    figures = []
    for size in sorted({SMALL, rows // 100}):
        times: dict[str, list[float]] = {}
        for _ in range(options.runs):
            batch = ledger.batch(size)
            times.setdefault("PySpark", []).append(_spark(engine, ledger.slices, batch, root))
            if options.duckdb:
                found = _duckdb(options.duckdb, ledger.slices, batch, root)
                times.setdefault("DuckDB", []).append(found)
            times.setdefault(WARM, []).append(ledger.ingest(batch))
        figures += [Figure(who, rows, size, statistics.median(t)) for who, t in times.items()]
    batch = ledger.batch(SMALL)
    ledger.forget_side_cars()
    figures.append(Figure(COLD, rows, SMALL, ledger.ingest(batch)))
    return figures


def _spark(engine: SparkEngine, history: Path, batch: Path, root: Path) -> float:
    """The same with plain PySpark: all keys of the history, an anti join, one sorted file."""
    target = root / "plain"
    shutil.rmtree(target, ignore_errors=True)
    with engine.request("bench") as spark:
        started = time.perf_counter()
        seen = spark.read.parquet(str(history)).select("id")
        new = spark.read.parquet(str(batch)).join(seen, "id", "left_anti")
        new.coalesce(1).sortWithinPartitions("event_time").write.parquet(str(target))
        return time.perf_counter() - started


def _duckdb(python: str, history: Path, batch: Path, root: Path) -> float:
    target = root / "duck.parquet"
    command = [python, "-c", _DUCK, f"{history}/*", str(batch), str(target)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _rows(numbers: np.ndarray[Any, Any]) -> pa.Table:
    """Rows by their number: keys in no order, times nearly in order, as orders of a shop are."""
    spread = (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(0x5BD1E995)
    times = numbers * 100 + (spread % np.uint64(60_000)).astype(np.int64) + 1_700_000_000_000
    return pa.table(
        {
            "event_time": pa.array(times, pa.timestamp("ms", "UTC")),
            "id": pa.array([f"{key:016x}" for key in spread.tolist()]),
            "customer": (spread % np.uint64(50_000)).astype(np.int64),
            "amount": (spread % np.uint64(100_000)).astype(np.float64) / 100,
        }
    )


# --- Report ---


def _line(figure: Figure) -> str:
    return (
        f"{figure.history:>12,} rows, batch of {figure.batch:>8,}  "
        f"{figure.who:<28} {figure.seconds:>8.2f}"
    )


def _summary(figures: Sequence[Figure], rows: Sequence[int]) -> str:
    seconds = {(f.who, f.history, f.batch): f.seconds for f in figures}
    lines = [""]
    for history in rows:
        for size in sorted({SMALL, history // 100}):
            mine = seconds[WARM, history, size]
            ratios = [
                f"{mine / seconds[who, history, size]:.2f} of {who}"
                for who in ("PySpark", "DuckDB")
                if (who, history, size) in seconds
            ]
            lines.append(f"{size:,} into {history:,}: odfbuild takes {', '.join(ratios)}")
    growth = seconds[WARM, max(rows), SMALL] / seconds[WARM, min(rows), SMALL]
    lines.append(
        f"{SMALL:,} rows cost {growth:.2f} times as much against {max(rows):,} rows "
        f"as against {min(rows):,} (target: at most 1.5)"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

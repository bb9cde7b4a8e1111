"""What a step costs whose query needs more than the new records, against the history behind it.

python benchmarks/incremental.py [--histories 10000 100000 1000000] [--seed 1]
                                 [--shapes count top ...] [--peers] [--without-full]

In one warm session. Each history is one of `facts` (ten slices, a tenth as many keys `g`, 1 000
products) and of `dim` (a record for each key); a step has 1 000 new facts, or 100 corrections of
`dim`, or 100 retractions of facts. The first step of each kind finds out that records are worth
keeping by key, and is told apart. CPU seconds are those of Python and the JVM together. "full" is
the same step computed over all records, and every slice is compared with it byte by byte, unless it
is left out; with `--peers` the query also runs in full in plain PySpark and in DuckDB. "disk" is
what is kept by key, as a share of the slices.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.contract import Extent, InputSlices, SliceFile, TransformTask
from odfbuild.engine.slice import dataset_schema, write_slice
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.engine.spark.start import start_engine
from odfbuild.odf.model import SqlQueryStep, TransformSql
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.store.merged_copies import MergedCopies

VOCAB = Vocabulary()
_MILLIS = pa.timestamp("ms", "UTC")


def _schema(**columns: pa.DataType) -> pa.Schema:
    return dataset_schema(pa.schema({"event_time": _MILLIS, **columns}), VOCAB)


FACTS = _schema(id=pa.int64(), g=pa.int64(), product=pa.string(), v=pa.int64())
DIM = _schema(g=pa.int64(), region=pa.string())
SHAPES = {
    "total": "SELECT MAX(event_time) AS event_time, COUNT(*) AS n, SUM(v) AS s FROM facts",
    "star": "SELECT MAX(f.event_time) AS event_time, d.region, COUNT(*) AS n, SUM(f.v) AS s"
    " FROM facts f JOIN dim d ON f.g = d.g GROUP BY d.region",
    "count": "SELECT MAX(event_time) AS event_time, g, COUNT(*) AS n, SUM(v) AS s FROM facts"
    " GROUP BY g",
    "avg": "SELECT MAX(event_time) AS event_time, g, AVG(CAST(v AS DECIMAL(18, 2))) AS mean"
    " FROM facts GROUP BY g",
    "mean of all": "SELECT MAX(event_time) AS event_time, COUNT(*) AS n, AVG(CAST(v AS"
    " DECIMAL(18, 2))) AS mean FROM facts",
    "having": "SELECT MAX(event_time) AS event_time, product, AVG(CAST(v AS DECIMAL(18, 2))) AS"
    " mean FROM facts GROUP BY product HAVING COUNT(*) % 2 = 0",
    "extremes": "SELECT MAX(event_time) AS event_time, g, MIN(v) AS low, MAX(v) AS high FROM facts"
    " GROUP BY g",
    "distinct count": "SELECT MAX(event_time) AS event_time, g, COUNT(DISTINCT product) AS n"
    " FROM facts GROUP BY g",
    "hour": "SELECT date_trunc('HOUR', event_time) AS event_time, product, SUM(v) AS s FROM facts"
    " GROUP BY date_trunc('HOUR', event_time), product",
    "day": "SELECT date_trunc('DAY', event_time) AS event_time, COUNT(*) AS n FROM facts"
    " GROUP BY date_trunc('DAY', event_time)",
    "left join": "SELECT f.event_time, f.id, f.g, d.region FROM facts f LEFT JOIN dim d"
    " ON f.g = d.g",
    "full join": "SELECT COALESCE(f.event_time, d.event_time) AS event_time, f.id, d.g, d.region"
    " FROM facts f FULL JOIN dim d ON f.g = d.g",
    "join, group": "SELECT MAX(f.event_time) AS event_time, f.g, d.region, COUNT(*) AS n FROM facts"
    " f JOIN dim d ON f.g = d.g GROUP BY f.g, d.region",
    "top": "SELECT * FROM (SELECT event_time, id, g, v, ROW_NUMBER() OVER (PARTITION BY g"
    " ORDER BY v DESC, event_time, id) AS place FROM facts) WHERE place <= 3",
    "distinct": "SELECT DISTINCT date_trunc('DAY', event_time) AS event_time, g FROM facts",
    "except": "SELECT event_time, g FROM facts EXCEPT SELECT event_time, g FROM dim",
    "not exists": "SELECT f.event_time, f.id FROM facts f WHERE NOT EXISTS"
    " (SELECT 1 FROM dim d WHERE d.g = f.g AND d.region = 'r1')",
    "distinct of all": "SELECT TIMESTAMP '2024-01-01 00:00:00' AS event_time,"
    " COUNT(DISTINCT g) AS n FROM facts",
    "first groups": "SELECT TIMESTAMP '2024-01-01 00:00:00' AS event_time, product, SUM(v) AS s"
    " FROM facts GROUP BY product ORDER BY s DESC, product LIMIT 10",
    "groups of groups": "SELECT TIMESTAMP '2024-01-01 00:00:00' AS event_time, n, COUNT(*) AS keys"
    " FROM (SELECT g, COUNT(*) AS n FROM facts GROUP BY g) GROUP BY n",
    "star of keys": "SELECT TIMESTAMP '2024-01-01 00:00:00' AS event_time, d.region, COUNT(*) AS n,"
    " SUM(f.v) AS s FROM facts f JOIN dim d ON f.g = d.g GROUP BY d.region",
    "nested": "SELECT MAX(event_time) AS event_time, g, MAX(n) AS most FROM (SELECT"
    " MAX(event_time) AS event_time, g, product, COUNT(*) AS n FROM facts GROUP BY g, product)"
    " GROUP BY g",
}


@dataclass
class Input:
    """A chain of slices in memory of the benchmark."""

    folder: Path
    alias: str
    schema: pa.Schema
    files: list[SliceFile] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def add(self, columns: Sequence[object], ops: Sequence[int] | None = None) -> None:
        """A slice of these values, event times first."""
        rows = len(columns[0])  # type: ignore[arg-type]
        first = self.ends[-1] if self.ends else 0
        system = [
            pa.array(np.arange(first, first + rows)),
            pa.array(np.zeros(rows, np.int32) if ops is None else ops, pa.int32()),
            pa.array(np.zeros(rows, np.int64), _MILLIS),
        ]
        values = [pa.array(c, f.type) for c, f in zip(columns, [*self.schema][3:], strict=True)]
        file = self.folder / f"{self.alias}-{len(self.files)}.parquet"
        pq.write_table(pa.table([*system, *values], schema=self.schema), file)
        self.files.append(SliceFile(file))
        self.ends.append(first + rows)

    def since(self, done: int) -> InputSlices:
        """What a step reads that has read so many slices."""
        new = tuple(self.files[done:])
        return InputSlices(
            alias=self.alias,
            schema=self.schema,
            vocab=VOCAB,
            slices=new,
            first=(self.ends[done - 1] if done else 0) if new else None,
            last=self.ends[-1] - 1 if new else None,
            earlier=lambda: tuple(self.files[:done]),
            copies=MergedCopies(self.folder, side_cars=self.folder / "side-cars" / self.alias),
        )


class History:
    """Facts and their dimension: `rows` facts before the first step."""

    def __init__(self, folder: Path, rows: int, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._rows = rows
        self._made = 0
        self.facts, self.dim = Input(folder, "facts", FACTS), Input(folder, "dim", DIM)
        for _ in range(10):
            self.more_facts(rows // 10)
        keys = np.arange(rows // 10)
        self._regions = self._chance.integers(0, 50, len(keys))
        self._keys = keys
        self.dim.add([keys * 1000, keys, [f"r{n}" for n in self._regions]])

    def more_facts(self, rows: int) -> None:
        ids = np.arange(self._made, self._made + rows)
        self._made += rows
        self._last = [
            ids * 5000,
            ids,
            self._chance.integers(0, max(1, self._rows // 10), rows),
            [f"product {n}" for n in self._chance.integers(0, 1000, rows)],
            self._chance.integers(0, 1_000_000, rows),
        ]
        self.facts.add(self._last)

    def corrected_dim(self, rows: int) -> None:
        at = self._chance.choice(len(self._keys), rows, replace=False)
        keys = np.repeat(at, 2)
        regions = [f"r{n + each}" for n in self._regions[at] for each in (0, 1)]
        self._regions[at] += 1
        self.dim.add([keys * 1000, keys, regions], [2, 3] * rows)

    def fewer_facts(self, rows: int) -> None:
        self.facts.add([column[:rows] for column in self._last], [1] * rows)
        self._last = [column[rows:] for column in self._last]


@dataclass
class Result:
    """A derivative, step by step."""

    engine: SparkEngine
    folder: Path
    query: str
    continued: bool
    files: list[Path] = field(default_factory=list)
    done: dict[str, int] = field(default_factory=dict)
    records: int = 0
    schema: pa.Schema | None = None
    extent: Extent | None = None

    def step(self, inputs: Sequence[Input]) -> None:
        scratch = Path(tempfile.mkdtemp(dir=self.folder))
        previous = tuple(self.files)
        task = TransformTask(
            dataset="result",
            transform=TransformSql(engine="spark", queries=(SqlQueryStep(query=self.query),)),
            inputs=tuple(each.since(self.done.get(each.alias, 0)) for each in inputs),
            vocab=VOCAB,
            scratch=scratch,
            previous=lambda: previous,
            copies=MergedCopies(self.folder, side_cars=self.folder / "side-cars"),
            continued=self.continued and bool(self.done),
        )
        result = self.engine.run(task)
        self.extent = result.extent
        self.schema = self.schema or dataset_schema(result.schema, VOCAB)
        self.done = {each.alias: len(each.files) for each in inputs}
        staged = write_slice(
            result,
            dataset="result",
            schema=self.schema,
            vocab=VOCAB,
            first_offset=self.records,
            system_time=Timestamp.from_millis(0),
            target=scratch / f"slice-{len(self.files)}.parquet",
        )
        if staged is not None:
            self.files.append(staged.path)
            self.records += staged.records


@contextmanager
def cpu() -> Iterator[Callable[[], float]]:
    """CPU seconds of this process and its children, told at the end of the block."""

    def used() -> float:
        me = psutil.Process()
        every = [me, *me.children(recursive=True)]
        return sum(sum(each.cpu_times()[:2]) for each in every)

    start = used()
    taken = [0.0]
    yield lambda: taken[0]
    taken[0] = used() - start


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--histories", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    options.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--peers", action="store_true")
    options.add_argument("--without-full", action="store_true")
    given = options.parse_args()
    engine = start_engine()
    assert isinstance(engine, SparkEngine)
    print(
        "| shape | history | change | first, CPU s | CPU s | full, CPU s | ratio | records read |"
        " disk |" + _more(given)
    )
    print("| --- | ---: | --- |" + " ---: |" * (6 + 2 * given.peers))
    costs: dict[tuple[str, int], float] = {}
    for name in given.shapes:
        for rows in given.histories:
            with tempfile.TemporaryDirectory() as folder:
                measure(engine, Path(folder), name, rows, given, costs)
    for name in given.shapes:
        ends = [(n, costs[name, n]) for n in given.histories if (name, n) in costs]
        if len(ends) > 1:
            (few, cheap), (many, dear) = ends[0], ends[-1]
            print(
                f"{name}: CPU grows with the history to the power of "
                f"{math.log(dear / cheap) / math.log(many / few):.2f}"
            )
    engine.stop()


def _more(given: argparse.Namespace) -> str:
    return " PySpark, CPU s | DuckDB, CPU s |" if given.peers else ""


def measure(
    engine: SparkEngine,
    folder: Path,
    name: str,
    rows: int,
    given: argparse.Namespace,
    costs: dict[tuple[str, int], float],
) -> None:
    history = History(folder, rows, given.seed)
    inputs = [each for each in (history.facts, history.dim) if each.alias in SHAPES[name]]
    results = []
    for continued in (True,) if given.without_full else (True, False):
        made = folder / str(continued)
        made.mkdir()
        results.append(Result(engine, made, SHAPES[name], continued))
    ours, full = results[0], results[-1]
    for each in results:
        each.step(inputs)
    history.more_facts(1000)
    for each in results:
        each.step(inputs)
    changes: dict[str, Callable[[], None]] = {
        "1 000 new": lambda: history.more_facts(1000),
        "100 corrections": lambda: history.corrected_dim(100),
        "100 retractions": lambda: history.fewer_facts(100),
    }
    for change, make in changes.items():
        if change == "100 corrections" and len(inputs) == 1:
            continue
        make()
        with cpu() as first:
            ours.step(inputs)
        if full is not ours:
            full.step(inputs)
        make()
        with cpu() as taken:
            ours.step(inputs)
        with cpu() as in_full:
            if full is not ours:
                full.step(inputs)
        same = [file.read_bytes() for file in ours.files] == [f.read_bytes() for f in full.files]
        assert same, f"{name}: another slice than in full"
        if change == "1 000 new":
            costs[name, rows] = taken()
        read = f"{ours.extent.records:,}" if ours.extent else "all"
        ratio = in_full() / taken()
        print(
            f"| {name} | {rows:,} | {change} | {first():.2f} | {taken():.2f} | {in_full():.2f} |"
            f" {ratio:.1f} | {read} | {disk(folder):.2f} |"
            + (peers(engine, folder, SHAPES[name], inputs) if given.peers else ""),
            flush=True,
        )


def disk(folder: Path) -> float:
    """Bytes of what is kept by key, as a share of those of the slices of inputs."""
    kept = sum(file.stat().st_size for file in folder.rglob("by-*/*"))
    return kept / sum(file.stat().st_size for file in folder.glob("*.parquet"))


def peers(engine: SparkEngine, folder: Path, query: str, inputs: Sequence[Input]) -> str:
    """The query in full, over the appended records, in plain PySpark and in DuckDB."""
    import duckdb

    target = tempfile.mkdtemp(dir=folder)
    with cpu() as spark_taken, engine.request("plain") as spark:
        for each in inputs:
            files = [str(file.path) for file in each.files]
            spark.read.parquet(*files).where("op IN (0, 3)").createOrReplaceTempView(each.alias)
        spark.sql(query).write.parquet(f"{target}/spark")
    with cpu() as duck_taken, duckdb.connect() as connection:
        for each in inputs:
            files = [str(file.path) for file in each.files]
            connection.execute(
                f"CREATE VIEW {each.alias} AS FROM read_parquet({files}) WHERE op IN (0, 3)"
            )
        connection.execute(f"COPY ({query}) TO '{target}/duck.parquet'")
    return f" {spark_taken():.2f} | {duck_taken():.2f} |"


if __name__ == "__main__":
    sys.exit(main())

"""TPC-H's 22 queries as derivatives: what an increment costs, and which of them are incremental.

python benchmarks/tpch.py [--scale 0.1] [--increments 10] [--share 0.001] [--seed 1]
                          [--queries q01 q05 ...] [--every 10]

Eight roots take in a first state and then increments: new orders, deleted ones, corrected prices,
phones and accounts (`tpch_data.py`). After each, every query runs, one after the other in one warm
session, and its result is compared with what DuckDB gives on the same state. CPU seconds are those
of Python and the JVM together, for the whole of `plan` and `apply` of the query. Each `--every`
increments DuckDB's and plain PySpark's CPU seconds for the query in full are taken, too. The last
table says what each step read, and where it read everything, why and what helps, as the plan does.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from incremental import cpu
from tpch_data import KEYS, Tables, queries

import odfbuild
from odfbuild.engine.spark import start
from odfbuild.engine.spark.engine import SparkEngine
from odfbuild.plan.ways import Computation

_TIME = pa.timestamp("ms", "UTC")
_TYPES = {pa.int64(): "BIGINT", pa.string(): "STRING", pa.date32(): "DATE"}


Said = tuple[Computation | None, str]
"""How a plan says that a step is computed, and what the run said."""


class Shared:
    """An engine that outlives the runs that start and stop it."""

    def __init__(self, engine: SparkEngine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def stop(self) -> None:
        """Leave it running."""


class Case:
    """The project in a folder, and the same tables in DuckDB."""

    def __init__(self, root: Path, given: argparse.Namespace) -> None:
        self.root = root
        self.tables = Tables(given.scale, given.seed)
        chosen = queries(given.scale)
        self.queries = {name: chosen[name] for name in given.queries or chosen}
        (root / "datasets").mkdir()
        _write(root / "odfbuild.yaml", "Project", {"name": "tpch", "datasets": "datasets"})
        for name, key in KEYS.items():
            (root / "data" / name).mkdir(parents=True)
            self._define(name, "Root", _source(name, key, self.tables.now[name].schema))
            self.arrive(name, self.tables.now[name], None)
        for name, (tables, text) in self.queries.items():
            self._define(name, "Derivative", _derivative(tables.split(), text))
        self.project = odfbuild.Project(root)
        self.duck = duckdb.connect()

    def _define(self, name: str, kind: str, event: Mapping[str, Any]) -> None:
        content = {"name": name, "kind": kind, "metadata": [event]}
        _write(self.root / "datasets" / f"{name}.yaml", "DatasetSnapshot", content)

    def arrive(self, name: str, new: pa.Table, gone: pa.Table | None) -> None:
        """A file with new and changed rows, and with keys that are deleted."""
        folder = self.root / "data" / name
        parts = [_with_system(new, 0), *([_with_system(gone, 1)] if gone is not None else [])]
        pq.write_table(pa.concat_tables(parts), folder / f"{len([*folder.iterdir()]):04}.parquet")

    def change(self, number: int, share: float) -> None:
        """An increment, taken in."""
        for name, (new, gone) in self.tables.increment(number, share).items():
            self.arrive(name, new, gone)

    def apply(self, *select: str) -> Said:
        """Run what is selected; what the plan says of the first one, and what came of it."""
        plan = self.project.plan(select=select)
        outcome = self.project.apply(plan)
        failed = [each for each in outcome.datasets if each.error is not None]
        if failed:
            raise SystemExit(f"{failed[0].name}: {failed[0].error}")
        pending = {each.name: each.pending for each in plan.datasets}.get(select[0])
        because = {each.name: each.because for each in outcome.datasets}.get(select[0], "")
        return (pending.computation if pending is not None else None), because

    def load(self) -> None:
        """Let DuckDB have the present state."""
        for name, table in self.tables.now.items():
            self.duck.register("now", table)
            self.duck.execute(f"CREATE OR REPLACE TABLE {name} AS FROM now")
            self.duck.unregister("now")

    def compare(self, name: str) -> None:
        """The result that is committed with DuckDB's, numbers to a millionth."""
        expected = _rows(self.duck.sql(self.queries[name][1]).arrow())
        files = [str(each) for each in (self.root / "chains" / name / "data").glob("*")]
        if not files:
            assert not expected, f"{name}: DuckDB gives {len(expected)} rows"
            return
        sign = "sum(CASE WHEN op IN (0, 3) THEN 1 ELSE -1 END)"
        found = self.duck.sql(
            f'SELECT * EXCLUDE ("offset", op, system_time), {sign} AS more FROM'
            f" read_parquet({files}) GROUP BY ALL HAVING {sign} > 0"
        ).arrow()
        rows = _rows(found)
        assert all(row[-1] == 1 for row in rows), name
        same = len(rows) == len(expected) and all(
            _alike(row[:-1], other) for row, other in zip(rows, expected, strict=True)
        )
        if not same:
            raise SystemExit(f"{name}: not what DuckDB gives: {rows[:3]} and {expected[:3]}")


def _write(file: Path, kind: str, content: Mapping[str, Any]) -> None:
    # JSON is YAML.
    file.write_text(json.dumps({"kind": kind, "version": 1, "content": content}))


def _source(name: str, key: Sequence[str], schema: pa.Schema) -> Mapping[str, Any]:
    columns = [f"{each.name} {_TYPES.get(each.type, 'DECIMAL(15, 2)')}" for each in schema]
    return {
        "kind": "SetPollingSource",
        "fetch": {"kind": "FilesGlob", "path": f"data/{name}/*.parquet", "order": "ByName"},
        "read": {"kind": "Parquet", "schema": ["op INT", "event_time TIMESTAMP", *columns]},
        "merge": {"kind": "UpsertStream", "primaryKey": list(key)},
    }


def _derivative(inputs: Sequence[str], text: str) -> Mapping[str, Any]:
    transform = {"kind": "Sql", "engine": "spark", "query": text}
    named = [{"datasetRef": each} for each in inputs]
    return {"kind": "SetTransform", "inputs": named, "transform": transform}


def _with_system(table: pa.Table, op: int) -> pa.Table:
    rows = len(table)
    ops = pa.array([op] * rows, pa.int32())
    times = pa.array([1_704_067_200_000] * rows, _TIME)
    return table.add_column(0, "op", ops).add_column(1, "event_time", times)


def _rows(table: Any) -> list[tuple[Any, ...]]:
    """Sorted rows without the event time; decimals are floating point numbers."""
    found = table.read_all() if hasattr(table, "read_all") else table
    found = found.drop_columns(["event_time"])
    columns = [
        each.cast(pa.float64()) if pa.types.is_decimal(each.type) else each
        for each in found.columns
    ]
    rows = zip(*(each.to_pylist() for each in columns), strict=True)
    return sorted(rows, key=lambda row: [str(_rounded(each)) for each in row])


def _rounded(value: Any) -> Any:
    return f"{value:.3f}" if isinstance(value, float) else value


def _alike(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Engines round means and ratios of decimals at different digits."""
    return all(
        abs(a - b) <= 1e-6 * max(1, abs(a)) if isinstance(a, float) else a == b
        for a, b in zip(one, other, strict=True)
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scale", type=float, default=0.1)
    options.add_argument("--increments", type=int, default=10)
    options.add_argument("--share", type=float, default=0.001)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--every", type=int, default=10)
    options.add_argument("--queries", nargs="+", default=())
    given = options.parse_args()
    logging.disable(logging.WARNING)
    engine = start.start_engine()
    assert isinstance(engine, SparkEngine)
    start.start_engine = lambda *_: Shared(engine)  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        measure(engine, Case(Path(folder), given), given)
    engine.stop()


def measure(engine: SparkEngine, case: Case, given: argparse.Namespace) -> None:
    case.apply(*KEYS)
    case.load()
    firsts: dict[str, float] = {}
    for name in case.queries:
        with cpu() as taken:
            case.apply(name)
        firsts[name] = taken()
        case.compare(name)
    print("first run of all queries:", f"{sum(firsts.values()):.1f} CPU s", flush=True)
    ours: defaultdict[str, list[float]] = defaultdict(list)
    peers: dict[str, tuple[float, float]] = {}
    said: dict[str, Said] = {}
    for number in range(1, given.increments + 1):
        case.change(number, given.share)
        with cpu() as taken:
            case.apply(*KEYS)
        case.load()
        roots = taken()
        for name in case.queries:
            with cpu() as taken:
                found = case.apply(name)
            ours[name].append(taken())
            case.compare(name)
            if number % 3 or name not in said:
                said[name] = found
        if number % given.every == 0 or number == given.increments:
            peers = {name: in_full(engine, case, name) for name in case.queries}
        total = sum(each[-1] for each in ours.values())
        print(f"increment {number}: roots {roots:.1f}, queries {total:.1f} CPU s", flush=True)
    show(ours, firsts, peers, said)


def in_full(engine: SparkEngine, case: Case, name: str) -> tuple[float, float]:
    """CPU seconds of plain PySpark and of DuckDB for a query over the present state, in files."""
    tables, text = case.queries[name]
    with tempfile.TemporaryDirectory() as folder:
        for table in tables.split():
            pq.write_table(case.tables.now[table], f"{folder}/{table}.parquet")
        with cpu() as spark_taken, engine.request("plain") as spark:
            for table in tables.split():
                file = f"{folder}/{table}.parquet"
                spark.read.parquet(file).createOrReplaceTempView(table)
            spark.sql(text).write.parquet(f"{folder}/spark")
        with cpu() as duck_taken, duckdb.connect() as connection:
            for table in tables.split():
                connection.execute(
                    f"CREATE VIEW {table} AS FROM read_parquet('{folder}/{table}.parquet')"
                )
            connection.execute(f"COPY ({text}) TO '{folder}/duck.parquet'")
    return spark_taken(), duck_taken()


def show(
    ours: Mapping[str, Sequence[float]],
    firsts: Mapping[str, float],
    peers: Mapping[str, tuple[float, float]],
    said: Mapping[str, Said],
) -> None:
    """Two tables in Markdown: CPU seconds, and how each query is kept."""
    print("\n| query | first | increment, mean | most | least | PySpark | DuckDB |")
    print("| --- |" + " ---: |" * 6)
    for name, costs in ours.items():
        spark, duck = peers[name]
        print(
            f"| {name} | {firsts[name]:.2f} | {mean(costs):.2f} | {max(costs):.2f} |"
            f" {min(costs):.2f} | {spark:.2f} | {duck:.2f} |"
        )
    sums = [sum(map(mean, ours.values())), *map(sum, zip(*peers.values(), strict=True))]
    print(f"| all | {sum(firsts.values()):.1f} | {sums[0]:.1f} | | | {sums[1]:.1f} |", end="")
    print(f" {sums[2]:.2f} |\n\n| query | planned | what the run said |\n| --- | --- | --- |")
    for name, (planned, because) in said.items():
        way = "all of few records"
        if planned is not None:
            keys = f" ({' or '.join(planned.keys)})" if planned.keys else ""
            way = planned.way.value + keys + (f": {planned.why}" if planned.why else "")
        print(f"| {name} | {way} | {because} |")


if __name__ == "__main__":
    sys.exit(main())

"""Many rows in a small heap: one CSV file becomes a slice, beside plain PySpark and DuckDB.

    python benchmarks/bulk.py --rows 10000000 --plot benchmarks/bulk.svg

prints CPU, wall time and memory of the whole tree of processes, each started for this alone, and
draws the memory over time. README.md in this folder says what is meant to come of it.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from small import APPLY, Cost, measure, show

COLUMNS = ("event_time TIMESTAMP", "id BIGINT", "name STRING", "amount DOUBLE", "quantity INT")
PROJECT = """\
kind: Project
version: 1
content: {{name: bulk, engine: {{memory: {memory}}}}}
"""
ROOT = f"""\
kind: DatasetSnapshot
version: 1
content:
  name: sales
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: FilesGlob, path: data/*.csv, order: ByName}}
      read: {{kind: Csv, header: true, schema: [{", ".join(COLUMNS)}]}}
      merge: {{kind: Append}}
"""
SPARK = """
import sys
from pyspark.sql import SparkSession
memory, columns, source, target, order = sys.argv[1:]
builder = SparkSession.builder.config("spark.driver.memory", memory)
spark = builder.config("spark.ui.enabled", "false").getOrCreate()
frame = spark.read.schema(columns).option("header", True).csv(source)
if order:
    frame = frame.orderBy(order).coalesce(1)
frame.write.parquet(target)
spark.stop()
"""
DUCKDB = """
import sys
import duckdb
memory, source, target = sys.argv[1:]
duckdb.sql(f"SET memory_limit = '{memory.upper()}iB'")
kinds = "{'event_time': 'TIMESTAMP', 'id': 'BIGINT', 'name': 'TEXT', 'amount': 'DOUBLE', " \\
    "'quantity': 'INT'}"
read = f"read_csv('{source}', header=true, columns={kinds})"
duckdb.sql(f"COPY (FROM {read} ORDER BY event_time) TO '{target}' (FORMAT parquet)")
"""
CHUNK = 1_000_000
COLOURS = ("#1f6feb", "#d1242f", "#bf8700", "#1a7f37")


def write_csv(file: Path, rows: int) -> None:
    """Rows nearly in order of time, as logs are; always the same ones."""
    chance = np.random.default_rng(1)
    options = pyarrow.csv.WriteOptions(quoting_style="none")
    writer: pyarrow.csv.CSVWriter | None = None
    for first in range(0, rows, CHUNK):
        number = min(CHUNK, rows - first)
        ids = np.arange(first, first + number)
        seconds = ids + chance.integers(-600, 600, number)
        times = (np.datetime64("2024-01-01") + seconds.astype("timedelta64[s]")).astype(str)
        table = pa.table(
            {
                "event_time": np.char.add(times, "Z"),
                "id": chance.permutation(ids),
                "name": np.char.add("customer ", chance.integers(0, 50_000, number).astype(str)),
                "amount": np.round(chance.random(number) * 1000, 2),
                "quantity": chance.integers(1, 100, number),
            }
        )
        writer = writer or pyarrow.csv.CSVWriter(file, table.schema, write_options=options)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def growth(cost: Cost) -> float:
    """Memory in the last third of a run, as a multiple of that in the third before."""
    parts: list[list[float]] = [[], [], []]
    for at, memory in cost.samples:
        parts[min(2, int(3 * at / cost.wall))].append(memory)
    return float(np.median(parts[2]) / np.median(parts[1]))


def plot(costs: Mapping[str, Cost], title: str) -> str:
    """An SVG of memory over time, a line for each command."""
    width, height, left, top = 900, 420, 70, 40
    longest = max(cost.wall for cost in costs.values())
    highest = max(cost.memory for cost in costs.values())
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 100} {height + 100}" '
        'font-family="sans-serif" font-size="13">',
        f"<title>{title}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{left}" y="24" font-size="16">{title}</text>',
        f'<path d="M{left} {top}V{top + height}H{left + width}" fill="none" stroke="#57606a"/>',
    ]
    for step in range(5):
        y, x = top + height - height * step / 4, left + width * step / 4
        lines += [
            f'<text x="{left - 8}" y="{y + 4:.0f}" text-anchor="end">{highest * step / 4:.0f}'
            f"{' MiB' if step == 4 else ''}</text>",
            f'<text x="{x:.0f}" y="{top + height + 20}" text-anchor="middle">'
            f"{longest * step / 4:.0f}{' s' if step == 4 else ''}</text>",
        ]
    for number, (name, cost) in enumerate(costs.items()):
        points = " ".join(
            f"{left + width * at / longest:.1f},{top + height - height * memory / highest:.1f}"
            for at, memory in cost.samples
        )
        colour, x = COLOURS[number % len(COLOURS)], left + 220 * number
        lines += [
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>',
            f'<text x="{x}" y="{top + height + 46}" fill="{colour}">{name}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    """Run everything, print the table as it grows, write the plot."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--memory", default="2g", help="heap of Spark, and memory of DuckDB")
    parser.add_argument("--plot", type=Path, help="draw memory over time to this SVG file")
    parser.add_argument("--alone", action="store_true", help="without PySpark and DuckDB")
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="odfbuild-bulk-"))
    project, source = work / "project", work / "project/data/sales.csv"
    costs: dict[str, Cost] = {}
    try:
        for name in ("datasets", "data"):
            (project / name).mkdir(parents=True)
        (project / "odfbuild.yaml").write_text(PROJECT.format(memory=options.memory))
        (project / "datasets/sales.yaml").write_text(ROOT)
        write_csv(source, options.rows)
        size = source.stat().st_size / 1e9
        title = f"{options.rows:,} rows of CSV ({size:.1f} GB), heap of {options.memory}"
        print(f"{title}\n\n| command | CPU s | wall s | MiB | targets |")
        print("| --- | ---: | ---: | ---: | --- |", flush=True)
        if not options.alone:
            spark = (sys.executable, "-c", SPARK, options.memory, ", ".join(COLUMNS), str(source))
            for name, order in (("PySpark", ""), ("PySpark, one sorted file", "event_time")):
                costs[name] = measure((*spark, str(work / f"spark{order}"), order), work)
                show(name, costs[name])
                shutil.rmtree(work / f"spark{order}")
            if importlib.util.find_spec("duckdb"):
                duckdb = (sys.executable, "-c", DUCKDB, options.memory, str(source))
                costs["DuckDB, one sorted file"] = measure((*duckdb, str(work / "duck")), work)
                show("DuckDB, one sorted file", costs["DuckDB, one sorted file"])
        mine = measure(APPLY, project)
        verdicts = [("memory, last third times the one before", growth(mine), 1.15)]
        if not options.alone:
            one, other = (costs[name] for name in ("PySpark", "PySpark, one sorted file"))
            verdicts.append(("CPU, times PySpark", mine.cpu / one.cpu, 1.15))
            verdicts.append(("CPU, times PySpark sorted", mine.cpu / other.cpu, 1.15))
        show("odfbuild apply", mine, *verdicts)
        costs["odfbuild apply"] = mine
        if options.plot:
            options.plot.write_text(plot(costs, title), "utf-8")
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()

"""What a plan says of changelogs behind a long history, and what the run reads then.

python benchmarks/plan_of_changelogs.py [--records 10000000] [--new 1240]

Makes a project with an append-only root and four derivatives, brings the history and then the new
records, and prints the plan and what `apply` says. Docs show its output.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: orders
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: data/*.parquet, order: ByName}
      read: {kind: Parquet}
      merge: {kind: Append}
"""
_DERIVATIVE = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{{datasetRef: orders}}]
      transform:
        kind: Sql
        engine: spark
        query: |
          {query}
"""
QUERIES = {
    "by.country": "SELECT MAX(event_time) AS event_time, country, COUNT(*) AS orders,"
    " SUM(amount) AS amount\n          FROM orders GROUP BY country",
    "by.customer": "SELECT MAX(event_time) AS event_time, customer,"
    " COUNT(DISTINCT country) AS countries\n          FROM orders GROUP BY customer",
    "customers": "SELECT MAX(event_time) AS event_time,"
    " COUNT(DISTINCT upper(customer)) AS customers\n          FROM orders",
}


def _write(file: Path, first: int, count: int) -> None:
    numbers = np.arange(first, first + count)
    chance = np.random.default_rng(first)
    table = pa.table(
        {
            "event_time": pa.array(numbers * 1_000, pa.timestamp("ms", "UTC")),
            "id": numbers,
            "customer": chance.integers(0, 1_000_000, count),
            "country": np.array(["NO", "FR", "IT", "DE"])[chance.integers(0, 4, count)],
            "amount": chance.integers(1, 1_000, count),
        }
    )
    pq.write_table(table, file)


def main() -> None:
    """Print what a plan and a run say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--new", type=int, default=1_240)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="odfbuild-changelogs-") as folder:
        root = Path(folder)
        (root / "datasets").mkdir()
        (root / "data").mkdir()
        project = "kind: Project\nversion: 1\ncontent: {name: shop}\n"
        (root / "odfbuild.yaml").write_text(project)
        (root / "datasets" / "orders.yaml").write_text(_ROOT)
        for name, query in QUERIES.items():
            text = _DERIVATIVE.format(name=name, query=query)
            (root / "datasets" / f"{name}.yaml").write_text(text)

        def run(*words: str) -> str:
            program = [sys.executable, "-m", "odfbuild", *words]
            done = subprocess.run(program, cwd=root, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(done.stdout + done.stderr)
            return done.stdout

        old = options.records - options.new
        _write(root / "data" / "1.parquet", 0, old)
        run("apply", "-y")
        _write(root / "data" / "2.parquet", old, options.new)
        run("apply", "-y", "--select", "orders")
        print(run("plan"))
        print(run("apply", "-y"))


if __name__ == "__main__":
    main()

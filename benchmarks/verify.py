"""What `verify` takes after many steps of one derivative: from what changed, and all in full.

    python benchmarks/verify.py --history 1000000 --steps 10

makes a root of so many records and a count of distinct values for each of many groups, then so many
steps of 1 000 new records. README.md in this folder says how to read it.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measure import run

PROGRAM = (sys.executable, "-m", "odfbuild")
NEW = 1_000
_ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: visits
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: "data/*.parquet", order: ByName}
      read: {kind: Parquet, schema: [event_time TIMESTAMP, id BIGINT, shop BIGINT]}
      merge: {kind: Append}
"""
_COUNT = """\
kind: DatasetSnapshot
version: 1
content:
  name: shops
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: visits, alias: visits}]
      transform:
        kind: Sql
        engine: spark
        query: >
          SELECT max(event_time) AS event_time, shop, COUNT(DISTINCT id) AS visitors
          FROM visits GROUP BY shop
"""


def main() -> None:
    """Print a table of the two."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--history", type=int, default=1_000_000)
    options.add_argument("--steps", type=int, default=10)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    random = np.random.default_rng(given.seed)
    root = Path(tempfile.mkdtemp(prefix="odfbuild-bench-"))
    try:
        (root / "datasets").mkdir()
        (root / "data").mkdir()
        (root / "odfbuild.yaml").write_text("kind: Project\nversion: 1\ncontent: {name: bench}\n")
        (root / "datasets" / "visits.yaml").write_text(_ROOT)
        (root / "datasets" / "shops.yaml").write_text(_COUNT)
        for step in range(given.steps + 1):
            rows = NEW if step else given.history
            write(root / "data" / f"{step:03}.parquet", rows, given.history // 100, step, random)
            run((*PROGRAM, "apply", "-y"), root)
        print(f"{given.steps} steps of {NEW:,} records behind {given.history:,}")
        for words in (("verify",), ("verify", "--full")):
            cost = run((*PROGRAM, *words), root)
            print(f"{' '.join(words):<15}{cost.cpu:7.1f} CPU s{cost.wall:8.1f} s", flush=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def write(file: Path, rows: int, shops: int, step: int, random: np.random.Generator) -> None:
    """Visits of random people to random shops."""
    times = np.full(rows, step * 3_600_000_000).astype("datetime64[us]")
    table = pa.table(
        {
            "event_time": pa.array(times, pa.timestamp("us", "UTC")),
            "id": random.integers(0, 1_000_000, rows),
            "shop": random.integers(0, shops, rows),
        }
    )
    pq.write_table(table, file)


if __name__ == "__main__":
    main()

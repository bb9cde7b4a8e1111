"""Cost of published tables, beside PySpark, pyarrow.dataset and Delta on the same records.

    python benchmarks/tables.py
    python benchmarks/tables.py --records 10000000 --many 10000 --spark

prints three tables: publishing all records, publishing an increment that touches one partition of
few and of many, and a query for a value that few of many partitions hold. Runs take turns, and
ratios are of one run. Medians count, for increments the lowest CPU. README.md in this folder says
how to read it.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from measure import run

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

FORMATS = ("kartothek", "parquet", "delta", "iceberg")
PARTS = ("publications", "increments", "queries")
PUBLISH_AT_MOST = 1.3
INCREMENT_AT_MOST = 1.5
RARE = -42
HOLDERS = 3
SPARK = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.read.parquet(*sys.argv[2:]).drop("offset", "op", "system_time")
rows.write.partitionBy("k").parquet(sys.argv[1])
"""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=1_000_000, help="of the full publication")
    parser.add_argument("--partitions", type=int, default=100, help="of the full publication")
    parser.add_argument("--many", type=int, default=1_000, help="partitions of the other tables")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--formats", nargs="+", default=FORMATS, choices=FORMATS)
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--spark", action="store_true", help="compare with PySpark, too")
    parser.add_argument("--publish", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.publish:
        publish(options.publish)
        return 0
    work = Path(tempfile.mkdtemp(prefix="odfbuild-bench-"))
    try:
        for part in (publications, increments, queries):
            if part.__name__ in options.parts:
                part(work, options)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0


# --- All records ---


def publications(work: Path, options: argparse.Namespace) -> None:
    """All records of a dataset, by each format in a process of its own."""
    root = project(work / "all", "parquet")
    add(root, options.records, options.partitions)
    slices = sorted(map(str, (root / "chains" / "d" / "data").iterdir()))
    print(f"\n{options.records:,} records in {options.partitions} partitions\n")
    print("| written by | CPU s | wall s | peak MiB | wall, of PySpark | meant |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    commands = {
        each: [sys.executable, __file__, "--publish", str(root), "--formats", each]
        for each in options.formats
    }
    if options.spark:
        commands["PySpark"] = [sys.executable, "-c", SPARK, str(work / "spark"), *slices]
    costs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in commands}
    for _ in range(options.repeat):
        for name, command in commands.items():
            shutil.rmtree(root / "lake", ignore_errors=True)
            shutil.rmtree(work / "spark", ignore_errors=True)
            declare(root, name if name in FORMATS else "parquet")
            cost = run(command, root)
            costs[name].append((cost.cpu, cost.wall, cost.memory))
    medians = {
        name: list(map(statistics.median, zip(*each, strict=True))) for name, each in costs.items()
    }
    peer = medians.get("PySpark")
    for name, (cpu, wall, memory) in medians.items():
        told = f"{wall / peer[1]:.2f} | {verdict(wall / peer[1], PUBLISH_AT_MOST)}" if peer else "|"
        told = "1.00 |" if name == "PySpark" else told
        print(f"| {name} | {cpu:.2f} | {wall:.2f} | {memory:.0f} | {told} |")


# --- Increments ---


def increments(work: Path, options: argparse.Namespace) -> None:
    """Ten new records of one partition, each time of another one, into small and large tables."""
    few = 10
    print(f"\nAn increment of one partition, in tables of {few} and of {options.many} partitions\n")
    print("| format | ms CPU, few | ms CPU, many | ratio | meant |")
    print("| --- | ---: | ---: | ---: | --- |")
    for name in options.formats:
        roots = {}
        for partitions in (few, options.many):
            roots[partitions] = project(work / f"{name}-{partitions}", name)
            add(roots[partitions], partitions * 10, partitions)
            publish(roots[partitions])
        spent: dict[int, list[float]] = {each: [] for each in roots}
        for number in range(max(7, options.repeat)):
            for partitions, root in roots.items():
                add(root, 10, 1, first=number % few)
                began = time.process_time()
                publish(root)
                spent[partitions].append((time.process_time() - began) * 1000)
        small, large = (min(spent[each]) for each in roots)
        told = verdict(large / small, INCREMENT_AT_MOST)
        print(f"| {name} | {small:.0f} | {large:.0f} | {large / small:.2f} | {told} |", flush=True)


# --- Queries ---


def queries(work: Path, options: argparse.Namespace) -> None:
    """A value that three partitions hold, anywhere between the least and the greatest of each."""
    import deltalake
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    from odfbuild.records.kartothek.dataset import open_dataset
    from odfbuild.store.place import Folder

    roots = {name: project(work / f"query-{name}", name) for name in ("kartothek", "delta")}
    for root in roots.values():
        add(root, options.many * 20, options.many, rare=True)
        publish(root)
    lake = roots["kartothek"] / "lake"
    table = str(roots["delta"] / "lake" / "d")

    def kartothek() -> tuple[int, int]:
        dataset = open_dataset(Folder(lake), "d")
        asked = [[("id", "==", RARE)]]
        return len(dataset.plan(asked)), dataset.read(predicates=asked).read_all().num_rows

    def delta() -> tuple[int, int]:
        found = deltalake.DeltaTable(table)
        chosen = f"id = {RARE}"
        files = found.file_uris(file_pruning_predicate=chosen)
        rows = found.to_pyarrow_dataset(file_pruning_predicate=chosen)
        return len(files), rows.to_table(filter=pc.field("id") == RARE).num_rows

    def arrow() -> tuple[int, int]:
        found = ds.dataset(lake / "d" / "table", partitioning="hive", exclude_invalid_files=True)
        condition = pc.field("id") == RARE
        opened = len(list(found.get_fragments(condition)))
        return opened, found.to_table(filter=condition).num_rows

    ways = {"odfbuild, kartothek": kartothek, "deltalake": delta, "pyarrow.dataset": arrow}
    spent: dict[str, list[float]] = {name: [] for name in ways}
    found: dict[str, tuple[int, int]] = {}
    for _ in range(options.repeat):
        for name, ask in ways.items():
            began = time.perf_counter()
            found[name] = ask()
            spent[name].append((time.perf_counter() - began) * 1000)
    print(f"\nOne value among {options.many} partitions, of which {HOLDERS} hold it\n")
    print("| query by | files opened | rows | ms | meant |")
    print("| --- | ---: | ---: | ---: | --- |")
    assert len({rows for _, rows in found.values()}) == 1
    for name, (files, rows) in found.items():
        told = verdict(files, HOLDERS) if name.startswith("odfbuild") else ""
        print(f"| {name} | {files} | {rows} | {statistics.median(spent[name]):.0f} | {told} |")


# --- Datasets ---


def project(root: Path, format: str) -> Path:
    """A project with one dataset, and a table of it."""
    root.mkdir(parents=True)
    declare(root, format)
    return root


def declare(root: Path, format: str) -> None:
    """Let the table of a project be of this format."""
    indices = ", indices: [id]" if format == "kartothek" else ""
    entry = f"{{match: [d], format: {format}, location: lake, partitionBy: [k]{indices}}}"
    text = f"kind: Project\nversion: 1\ncontent:\n  name: bench\n  tables:\n    - {entry}\n"
    (root / "odfbuild.yaml").write_text(text)


def add(root: Path, records: int, partitions: int, *, first: int = 0, rare: bool = False) -> None:
    """Commit records, as many in each partition, `first` being the first of these."""
    import pyarrow as pa

    from tests.records.chains import Chain, workspace

    space = workspace(root)
    known = space.projection("d") if (root / "chains" / "d").is_dir() else None
    chain = Chain.__new__(Chain)
    if known is None:
        columns = [
            ("k", pa.int64()),
            ("id", pa.int64()),
            ("name", pa.string()),
            ("v", pa.float64()),
        ]
        chain = Chain(space, "d", *(pa.field(*each) for each in columns))
    else:
        from odfbuild.odf.schema.arrow_schema import schema_of

        chain.space, chain.name = space, "d"
        chain.schema, chain.store = schema_of(known.schema), space.dataset("d")
        chain.next = (known.last_offset or 0) + 1
    values = random.Random(records)
    ids = [values.randrange(-(10**9), 10**9) * 2 + 1 for _ in range(records)]
    if rare:
        for partition in values.sample(range(partitions), HOLDERS):
            ids[partition + partitions * 5] = RARE
    for piece in _pieces(records):
        count = len(piece)
        table = pa.table(
            {
                "offset": pa.array(range(chain.next, chain.next + count), pa.int64()),
                "op": pa.array([0] * count, pa.int32()),
                "system_time": pa.array([0] * count, chain.schema.field("system_time").type),
                "event_time": pa.array(list(piece), chain.schema.field("event_time").type),
                "k": [first + each % partitions for each in piece],
                "id": [ids[each] for each in piece],
                "name": [f"name {each % 1000}" for each in piece],
                "v": [each / 7 for each in piece],
            }
        )
        chain.add_table(table.cast(chain.schema))


def _pieces(records: int) -> Iterator[range]:
    """A slice for each million records."""
    size = 1_000_000
    for first in range(0, records, size):
        yield range(first, min(records, first + size))


def publish(root: Path) -> None:
    """Bring the table of a project up to date."""
    from odfbuild.exchange.tables.publish import publish as bring_up_to_date
    from odfbuild.project.config import load_config
    from odfbuild.project.tables import declared_tables
    from tests.records.chains import workspace

    config = load_config(root)
    (table,) = declared_tables(config, ["d"])
    bring_up_to_date(config, workspace(root), table)


def verdict(value: float, most: float) -> str:
    """Whether a value is as it is meant to be."""
    return f"at most {most:g}: {'yes' if value <= most else 'NO'}"


if __name__ == "__main__":
    sys.exit(main())

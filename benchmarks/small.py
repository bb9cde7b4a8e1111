"""Many small things: datasets, files of a root, slices of a chain.

    python benchmarks/small.py --dbt benchmarks/.venv/bin/dbt

prints CPU, wall time and memory of the whole tree of processes for each command, and whether it
keeps to its target. Compare CPU and ratios: wall time says little on a machine with other work.
README.md in this folder says what the targets are.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import varied
from generate import WRITERS, make_graph

HERE = Path(__file__).parent
ODFBUILD = (sys.executable, "-m", "odfbuild")
APPLY = (*ODFBUILD, "apply", "-y")
ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: hourly
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: data/*, order: ByName}
      read: {kind: %s, schema: [event_time TIMESTAMP, id BIGINT, amount INT]}
      merge: {kind: %s}
"""
CSV = "Csv, header: true"
KINDS = [(CSV, merge) for merge in ("Ledger", "UpsertStream", "Snapshot")]
KINDS += [(read, "Append") for read in ("NdJson", "Json", "Parquet")]
"""What else a root may be, besides CSV that is appended."""
TOTALS = """\
kind: DatasetSnapshot
version: 1
content:
  name: totals
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: hourly}]
      transform:
        kind: Sql
        engine: spark
        query: >-
          SELECT max(event_time) AS event_time, amount, count(*) AS n FROM hourly GROUP BY amount
"""


@dataclass(frozen=True)
class Cost:
    """Seconds of CPU and of wall time, and MiB of all processes together at their peak.

    `samples` are seconds since the start, and the MiB then.
    """

    cpu: float
    wall: float
    memory: float
    samples: Sequence[tuple[float, float]] = ()


def measure(command: Sequence[str], folder: Path) -> Cost:
    """Run a command; its output is shown when it fails."""
    with tempfile.TemporaryFile() as output:
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        done, seconds = threading.Event(), dict[int, float]()
        samples = [(0.0, 0.0)]

        def watch() -> None:
            while not done.wait(0.3):
                members = _tree(process.pid)
                samples.append((time.monotonic() - began, sum(map(_memory, members))))
                seconds.update({pid: _seconds(pid) or seconds.get(pid, 0) for pid in members})

        watcher = threading.Thread(target=watch)
        watcher.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - began
        done.set()
        watcher.join()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            raise SystemExit(
                f"{command} ended with {process.returncode}:\n{output.read()[-4000:]!r}"
            )
    # PySpark leaves its JVM to the system, which no command waits for: that is seen from outside.
    cpu = max(usage.ru_utime + usage.ru_stime, sum(seconds.values()))
    return Cost(cpu, wall, max(memory for _, memory in samples), samples)


def _tree(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for each in found:
        for children in Path(f"/proc/{each}/task").glob("*/children"):
            try:
                found += map(int, children.read_text().split())
            except OSError:
                continue
    return found


def _seconds(pid: int) -> float:
    """CPU of a process, without that of those below it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> float:
    """MiB of a process; what several share counts in parts."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def show(name: str, cost: Cost, *verdicts: tuple[str, float, float]) -> None:
    """Print a line; each of `verdicts` is what was measured, its value and the most it may be."""
    told = ", ".join(
        f"{what} {value:.4g} of {most:g}: {'kept' if value <= most else 'MISSED'}"
        for what, value, most in verdicts
    )
    print(f"| {name} | {cost.cpu:.1f} | {cost.wall:.1f} | {cost.memory:.0f} | {told} |", flush=True)


def datasets(work: Path, size: int, dbt: str | None) -> None:
    """First apply of `size` small datasets, beside other tools on the same graph."""
    folder = work / "datasets"
    nodes = make_graph(size)
    WRITERS["odf"](nodes, folder)
    WRITERS["dbt"](nodes, work / "dbt")
    plain = (sys.executable, str(HERE / "plain_spark.py"), str(size), str(folder))
    spark = measure(plain, HERE)
    show(f"plain PySpark, {size} datasets", spark)
    mine = measure(APPLY, folder)
    verdicts = [("CPU, times plain PySpark", mine.cpu / spark.cpu, 1.0), ("MiB", mine.memory, 1024)]
    if dbt is not None:
        other = measure((dbt, "build", "--profiles-dir", ".", "--quiet"), work / "dbt")
        show(f"dbt build, DuckDB, {size} datasets", other)
        verdicts.append(("wall, times dbt", mine.wall / other.wall, 1.5))
    show(f"odfbuild apply, {size} datasets", mine, *verdicts)


def different(
    work: Path, made: Sequence[varied.Dataset], seed: int, dbt: str | None, pipelines: str | None
) -> float:
    """First apply of datasets that all differ, beside other tools; its CPU."""
    folder, size = work / f"different{seed}", len(made)
    for kind, write in varied.WRITERS.items():
        write(made, folder / kind)
    verdicts = []
    if dbt is not None:
        build = (dbt, "build", "--profiles-dir", ".", "--quiet")
        other = measure(build, folder / "dbt")
        show(f"dbt build, DuckDB, {size} different datasets, seed {seed}", other)
    mine = measure(APPLY, folder / "odf")
    if dbt is not None:
        verdicts.append(("wall, times dbt", mine.wall / other.wall, 1.0))
    if pipelines is not None:
        path = f"PATH={Path(pipelines).parent}:{os.environ['PATH']}"  # its script looks for Python
        spark = measure(("env", path, pipelines, "run"), folder / "pipelines")
        show(f"spark-pipelines run, {size} different datasets, seed {seed}", spark)
        verdicts.append(("CPU, times spark-pipelines", mine.cpu / spark.cpu, 1.0))
    show(f"odfbuild apply, {size} different datasets, seed {seed}", mine, *verdicts)
    return mine.cpu


def files(work: Path, number: int) -> None:
    """First apply of a root of `number` files of ten rows, and what each further file costs."""
    few = measure(APPLY, _root(work / "few", number // 10, 10))
    show(f"odfbuild apply, root of {number // 10} files", few)
    many = measure(APPLY, _root(work / "many", number, 10))
    further = 1000 * (many.cpu - few.cpu) / (number - number // 10)
    verdicts = [
        ("CPU ms a further file", further, 10.0),
        ("wall s", many.wall, max(15.0, 0.015 * number)),
    ]
    show(f"odfbuild apply, root of {number} files", many, *verdicts)


def kinds(work: Path, number: int) -> None:
    """What a further file of ten rows costs, by how files are read and merged."""
    for read, merge in KINDS:
        costs = []
        for count in (2, number):
            folder = work / f"{read[:3]}{merge}{count}"
            costs.append(measure(APPLY, _root(folder, count, 10, read, merge)))
        further = 1000 * (costs[1].cpu - costs[0].cpu) / (number - 2)
        name = f"odfbuild apply, root of {number} files, {read.split(',')[0]}, {merge}"
        show(name, costs[1], ("CPU ms a further file", further, 10.0))


def slices(work: Path, number: int, times: int) -> None:
    """Work on `number` slices of ten rows, beside the same records in five slices."""
    few = _root(work / "five", 5, number * 2)
    many = _root(work / "slices", number, 10)
    for folder in (few, many):
        measure(APPLY, folder)
    count = (*ODFBUILD, "sql", "SELECT count(*) AS n, sum(amount) AS s FROM hourly")
    for name, command in (("sql", count), ("tail", (*ODFBUILD, "tail", "hourly"))):
        one, other = (_median(measure(command, each) for _ in range(times)) for each in (few, many))
        _compare(name, number, one, other)
    increments: dict[Path, list[Cost]] = {few: [], many: []}
    steps: dict[Path, list[Cost]] = {few: [], many: []}
    for folder in (few, many):
        (folder / "datasets/totals.yaml").write_text(TOTALS)
        measure((*APPLY, "totals"), folder)
        for turn in range(times):
            _file(folder, number + turn, 10)
            increments[folder].append(measure((*APPLY, "hourly"), folder))
            steps[folder].append(measure((*APPLY, "totals"), folder))
    for name, found in (("one more increment", increments), ("step of a changelog", steps)):
        _compare(name, number, _median(found[few]), _median(found[many]))


def _compare(name: str, number: int, one: Cost, other: Cost) -> None:
    show(f"odfbuild {name}, 5 slices", one)
    show(f"odfbuild {name}, {number} slices", other, ("CPU, times", other.cpu / one.cpu, 1.5))


def _median(costs: Iterable[Cost]) -> Cost:
    each = [(cost.cpu, cost.wall, cost.memory) for cost in costs]
    return Cost(*map(median, zip(*each, strict=True)))


def _root(folder: Path, number: int, rows: int, read: str = CSV, merge: str = "Append") -> Path:
    """A project with one root over `number` files of `rows` rows."""
    for name in ("datasets", "data"):
        (folder / name).mkdir(parents=True)
    (folder / "odfbuild.yaml").write_text("kind: Project\nversion: 1\ncontent: {name: small}\n")
    keyed = merge if merge == "Append" else f"{merge}, primaryKey: [id]"
    (folder / "datasets/hourly.yaml").write_text(ROOT % (read, keyed))
    for file in range(number):
        _file(folder, file, rows, read)
    return folder


def _file(folder: Path, number: int, rows: int, read: str = CSV) -> None:
    ids = range(number * rows, (number + 1) * rows)
    time = "2026-01-01 00:00:00"
    found = [{"event_time": time, "id": id, "amount": row % 97} for row, id in enumerate(ids)]
    target = folder / f"data/{number:06}"
    if read == "Parquet":
        from pyarrow import Table, parquet

        parquet.write_table(Table.from_pylist(found), target)
    elif read == "Json":
        target.write_text(json.dumps(found))
    elif read == "NdJson":
        target.write_text("".join(f"{json.dumps(row)}\n" for row in found))
    else:
        lines = [f"{time},{row['id']},{row['amount']}" for row in found]
        target.write_text("\n".join(("event_time,id,amount", *lines)) + "\n")


def main() -> None:
    """Run everything, print the table as it grows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--datasets", type=int, default=1000, help="0: leave that out")
    parser.add_argument("--different", type=int, default=400, help="that all differ; 0: leave out")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2], help="of what differs")
    parser.add_argument("--shapes", nargs="+", choices=list(varied.SHAPES), default=[])
    parser.add_argument("--merges", nargs="+", choices=varied.MERGES, default=[])
    parser.add_argument(
        "--pipelines", type=os.path.abspath, help="program of Spark's declarative pipelines"
    )
    parser.add_argument("--files", type=int, default=600, help="0: leave that out")
    parser.add_argument("--kinds", type=int, default=300, help="files of each kind; 0: leave out")
    parser.add_argument("--slices", type=int, default=5000, help="0: leave that out")
    parser.add_argument("--times", type=int, default=5, help="runs of each question")
    parser.add_argument(
        "--dbt", type=os.path.abspath, help="program of dbt with its DuckDB adapter"
    )
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="odfbuild-small-"))
    print("| command | CPU s | wall s | MiB | targets |\n| --- | ---: | ---: | ---: | --- |")
    try:
        if options.datasets:
            datasets(work, options.datasets, options.dbt)
        if options.different:
            costs = []
            for seed in options.seeds:
                made = varied.make_datasets(options.different, seed, options.shapes, options.merges)
                costs.append(different(work, made, seed, options.dbt, options.pipelines))
            print(f"from seed to seed: CPU differs by {max(costs) / min(costs) - 1:.0%} of 20%")
        if options.files:
            files(work, options.files)
        if options.kinds:
            kinds(work, options.kinds)
        if options.slices:
            slices(work, options.slices, options.times)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()

"""Cost of small commands with a resident engine and without it.

    python benchmarks/resident.py [--repeat 5] [--example example_project]

One record comes to a root with one derivative: `apply`, then `sql` over it, with and without the
engine in turns; medians. `verify` is that of the example project, whose five months of flights come
in seven parts: about 85 steps. CPU is that of the command
and, with the engine, of its two processes; without it, the JVM that the command starts counts.
Each line has its target. A machine that is busy makes wall time longer: the load is printed, and a
Python that imports PyArrow stands beside the commands, as a measure of the machine.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from measure import Cost, run

ODFBUILD = (sys.executable, "-m", "odfbuild")
QUESTION = ("sql", "SELECT count(*) FROM root")
ALONE = {"apply": 4.5}
WITH = {"apply": 1.0, "sql": 0.4}
VERIFY_CPU = 8.0
ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: root
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: data/*.csv, order: ByName}
      read: {kind: Csv, header: true, schema: [event_time TIMESTAMP, id BIGINT, value BIGINT]}
      merge: {kind: Ledger, primaryKey: [id]}
---
kind: DatasetSnapshot
version: 1
content:
  name: derived
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: root}]
      transform:
        {kind: Sql, engine: spark, query: "SELECT event_time, id, value * 10 AS value FROM root"}
"""


def main() -> int:
    """Measure, print a table, and fail if a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--example", type=Path, help="the example project")
    options = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    print("| command | engine | CPU s | wall s | target | |")
    print("| --- | --- | ---: | ---: | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        met = _small(Path(folder), options.repeat)
    if options.example:
        with tempfile.TemporaryDirectory() as folder:
            project = Path(folder).resolve() / "example"
            shutil.copytree(options.example, project)
            met = _verify(project, options.repeat) and met
    return 0 if met else 1


def _small(folder: Path, repeat: int) -> bool:
    commands = {"apply": [*ODFBUILD, "apply", "-y"], "sql": [*ODFBUILD, *QUESTION]}
    projects = {engine: _project(folder / engine) for engine in ("resident", "none")}
    run([*ODFBUILD, "engine", "start"], projects["resident"])
    found: dict[tuple[str, str], list[Cost]] = {}
    peer = []
    for number in range(repeat + 2):
        peer.append(run([sys.executable, "-c", "import pyarrow"], folder))
        for engine, project in projects.items():
            lines = f"event_time,id,value\n2024-01-01 00:00:00,{number},1\n"
            (project / "data" / f"{number:04}.csv").write_text(lines)
            for name, command in commands.items():
                cost = _with_engine(command, project)
                if number >= 2:  # the first ones make caches and an archive of classes
                    found.setdefault((name, engine), []).append(cost)
    run([*ODFBUILD, "engine", "stop"], projects["resident"])
    met = True
    for (name, engine), costs in sorted(found.items()):
        target = (WITH if engine == "resident" else ALONE).get(name)
        wall = median(cost.wall for cost in costs)
        met &= target is None or wall <= target
        said = f"wall {target} s" if target else ""
        _show(f"`{name}`", engine, costs, said, target is None or wall <= target)
    _show("import pyarrow", "", peer, "", True)
    return met


def _project(folder: Path) -> Path:
    (folder / "data").mkdir(parents=True)
    (folder / "datasets").mkdir()
    (folder / "odfbuild.yaml").write_text(
        "kind: Project\nversion: 1\ncontent: {name: small, datasets: datasets, state: chains}\n"
    )
    (folder / "datasets" / "all.yaml").write_text(ROOT)
    return folder


def _verify(project: Path, repeat: int) -> bool:
    run([*ODFBUILD, "engine", "start"], project)
    _build(project)
    run([*ODFBUILD, "engine", "stop"], project)
    run([*ODFBUILD, "engine", "start"], project)
    costs = [_with_engine([*ODFBUILD, "verify"], project) for _ in range(repeat)]
    run([*ODFBUILD, "engine", "stop"], project)
    first, later = costs[:1], costs[1:]
    met = median(cost.cpu for cost in later or first) <= VERIFY_CPU
    _show("`verify` of the example, the first", "resident", first, "", True)
    if later:
        _show("`verify` of the example, later", "resident", later, f"CPU {VERIFY_CPU} s", met)
    return met


def _build(project: Path) -> None:
    """Let the flights come month by month, the waiting ones by half months, and apply each time."""
    flights = project / "data" / "flights"
    arrived, waiting = (sorted(f.glob("*.csv.gz")) for f in (flights, project / "incoming"))
    parts: list[tuple[str, bytes]] = []
    for file in (*arrived, *waiting):
        head, *rows = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
        cut = len(rows) if file in arrived else len(rows) // 2
        for number, some in enumerate(filter(None, (rows[:cut], rows[cut:]))):
            parts.append((f"{file.name[:7]}-{number}.csv", head + b"".join(some)))
        file.unlink()
    for name, text in parts:
        (flights / f"{name}.gz").write_bytes(gzip.compress(text))
        run([*ODFBUILD, "apply", "-y"], project)


def _with_engine(command: Sequence[str], project: Path) -> Cost:
    """What a command takes, with what the engine of the project takes meanwhile."""
    said = subprocess.run(
        [*ODFBUILD, "engine", "status", "--json"],
        cwd=project,
        check=True,
        capture_output=True,
        text=True,
    )
    engines = json.loads(said.stdout)
    processes = [p for e in engines if e["project"] == str(project) for p in e["processes"]]
    before = sum(map(_cpu, processes))
    cost = run(command, project)
    return Cost(cost.cpu + sum(map(_cpu, processes)) - before, cost.wall, cost.memory)


def _cpu(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _show(name: str, engine: str, costs: Sequence[Cost], target: str, met: bool) -> None:
    middle: Callable[[Callable[[Cost], float]], float] = lambda of: median(map(of, costs))  # noqa: E731
    verdict = ("met" if met else "missed") if target else ""
    cpu, wall = middle(lambda each: each.cpu), middle(lambda each: each.wall)
    print(f"| {name} | {engine} | {cpu:.2f} | {wall:.2f} | {target} | {verdict} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())

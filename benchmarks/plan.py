"""Time and memory of `odfbuild plan`, beside dbt on the same graph in the same run.

    python benchmarks/plan.py --dbt benchmarks/.venv/bin/dbt

prints seconds of CPU (user and system, children included), wall time and peak memory of each
command, and how many times more than `odfbuild plan` the like command of dbt takes. README.md in
this folder says how to read it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
COLD = "odfbuild plan, no chains, cold"
WARM = "odfbuild plan, no chains, warm"
COLD_CHAINS = "odfbuild plan, all chains, cold"
WARM_CHAINS = "odfbuild plan, all chains, warm"
FOREIGN_NAME = re.compile(r"\b(?:src|der_l\d+)_\d{6}\b")


@dataclass(frozen=True)
class Cost:
    """What one command took. `memory` is the peak of its largest process, in MiB."""

    cpu: float
    wall: float
    memory: float


@dataclass(frozen=True)
class Row:
    """A line of the table; `against` names the line of odfbuild that does the like job."""

    size: int
    name: str
    cost: Cost
    against: str | None = None


def main() -> int:
    """Run everything, print the table, write JSON if asked to."""
    options = parse()
    work = Path(tempfile.mkdtemp(prefix="odfbuild-bench-"))
    try:
        rows = []
        for size in options.sizes:
            make_projects(size, work / str(size), options.generator)
            rows += odfbuild_rows(size, work / str(size) / "odf", options)
            if options.dbt:
                rows += dbt_rows(size, work / str(size) / "dbt", options)
            shutil.rmtree(work / str(size))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    return 0


def parse() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--repeat", type=int, default=3, help="runs of odfbuild; medians count")
    parser.add_argument("--odfbuild", default=str(Path(sys.executable).with_name("odfbuild")))
    # Commands run in the folders of projects, where a relative path leads nowhere.
    parser.add_argument(
        "--dbt",
        type=lambda text: str(Path(text).absolute()),
        help="the dbt program; without it only odfbuild is measured",
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument(
        "--generator",
        type=Path,
        default=os.environ.get("ODFBUILD_BENCH_GENERATOR") or HERE / "generate.py",
        help="another generator: a script that takes --kind odf|dbt --n N --out FOLDER",
    )
    return parser.parse_args()


def make_projects(size: int, root: Path, generator: Path) -> None:
    """The same graph twice: `root/odf` and `root/dbt`."""
    for kind in ("odf", "dbt"):
        command = [sys.executable, str(generator), "--kind", kind, "--n", str(size), "--out"]
        subprocess.run([*command, str(root / kind)], check=True, stdout=subprocess.DEVNULL)
    rename(root / "odf")


def rename(project: Path) -> None:
    """Names of datasets have no underscores in Open Data Fabric: write hyphens instead."""

    def hyphens(text: str) -> str:
        return FOREIGN_NAME.sub(lambda match: match.group().replace("_", "-"), text)

    for path in (project / "datasets").rglob("*.yaml"):
        path.write_text(hyphens(path.read_text()))
    for path in (project / "data").iterdir():
        path.rename(path.with_name(hyphens(path.name)))


def odfbuild_rows(size: int, project: Path, options: argparse.Namespace) -> list[Row]:
    """Plan without any cache and with it, before there are chains and after."""
    command = [options.odfbuild, "plan"]
    run([options.odfbuild, "--help"], project)

    def forget() -> None:
        shutil.rmtree(project / ".odfbuild", ignore_errors=True)

    rows = [Row(size, COLD, repeated(command, project, options.repeat, before=forget))]
    # Files that were written a moment before the cache are read once more, to be sure of them.
    run(command, project)
    rows.append(Row(size, WARM, repeated(command, project, options.repeat)))
    # Not in this process: the peak memory of a child is never less than that of its parent.
    subprocess.run([sys.executable, str(HERE / "commit.py"), str(project)], check=True)
    rows.append(Row(size, COLD_CHAINS, repeated(command, project, options.repeat, before=forget)))
    rows.append(Row(size, WARM_CHAINS, repeated(command, project, options.repeat)))
    return rows


def dbt_rows(size: int, project: Path, options: argparse.Namespace) -> list[Row]:
    """Parse without and with the partial-parse cache, then select what changed since."""
    common = ["--profiles-dir", ".", "--quiet"]
    cold = run([options.dbt, "parse", *common], project)
    warm = run([options.dbt, "parse", *common], project)
    state = project / "state"
    state.mkdir()
    shutil.copy(project / "target" / "manifest.json", state)
    listed = run([options.dbt, "ls", "-s", "state:modified+", "--state", "state", *common], project)
    return [
        Row(size, "dbt parse, cold", cold, COLD),
        Row(size, "dbt parse, warm", warm, WARM),
        Row(size, "dbt ls -s state:modified+, warm", listed, WARM_CHAINS),
    ]


def repeated(
    command: Sequence[str], folder: Path, times: int, before: Callable[[], None] = lambda: None
) -> Cost:
    """The median of several runs, figure by figure."""
    costs = []
    for _ in range(times):
        before()
        costs.append(run(command, folder))
    return Cost(
        cpu=median(cost.cpu for cost in costs),
        wall=median(cost.wall for cost in costs),
        memory=median(cost.memory for cost in costs),
    )


def run(command: Sequence[str], folder: Path) -> Cost:
    """Run one command; its output is shown when it fails."""
    environment = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "NO_COLOR": "1"}
    with tempfile.TemporaryFile() as output:
        start = time.monotonic()
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        # wait4 gives the figures of this one child, and of the children for which it waited.
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            output.seek(0)
            text = output.read()[-4_000:].decode(errors="replace")
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{text}")
    # ru_maxrss is in KiB on Linux and in bytes on macOS.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / unit)


def table(rows: Sequence[Row]) -> str:
    """Figures and ratios, as Markdown."""
    own = {(row.size, row.name): row.cost for row in rows}
    lines = [
        "| datasets | command | CPU s | wall s | peak MiB | CPU, times odfbuild |",
        "| ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        cost = row.cost
        base = own[row.size, row.against] if row.against else None
        ratio = f"{cost.cpu / base.cpu:.1f}" if base else ""
        figures = f"{cost.cpu:.2f} | {cost.wall:.2f} | {cost.memory:.0f} | {ratio}"
        lines.append(f"| {row.size} | {row.name} | {figures} |")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())

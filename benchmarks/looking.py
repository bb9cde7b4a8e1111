"""Cost of a first look at records: Python and SQL without Java, beside the libraries below them.

    python benchmarks/looking.py example_project
    python benchmarks/looking.py example_project --sites 10000

The project has to be built (`make example`). Runs of all lines take turns; the lowest of each
counts. `--sites` builds the site of that many generated datasets as well, beside their plan.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from measure import Cost, run
from plan import make_project, rename

HERE = Path(__file__).parent
DATASET = "us.bts.flights"
PEERS = {
    "start Python": "pass",
    "import pyarrow.parquet": "import pyarrow.parquet",
    "import odfbuild": "import odfbuild",
    "pyarrow: five records of a slice": """
import sys, pyarrow.parquet as parquet
next(parquet.ParquetFile(sys.argv[1]).iter_batches(batch_size=5))""",
    "odfbuild: Project()[…].head()": f"""
from odfbuild import Project
Project()["{DATASET}"].head()""",
    "duckdb: count the records of a slice": """
import sys, duckdb
duckdb.sql(f"SELECT count(*) FROM read_parquet('{sys.argv[1]}')").fetchall()""",
}
QUESTION = f"SELECT count(*) AS records FROM `{DATASET}`"


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("project", type=Path, help="the example project, built")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--sites", type=int, metavar="DATASETS")
    options = parser.parse_args()
    print("| command | CPU s | wall s | peak MiB |")
    print("| --- | ---: | ---: | ---: |")
    look(options.project.resolve(), options.repeat)
    if options.sites:
        sites(options.sites)
    return 0


def look(project: Path, repeat: int) -> None:
    """The first records of a dataset, and a count of them."""
    slices = (project / "chains" / DATASET / "data").iterdir()
    slice = max(slices, key=lambda each: each.stat().st_size)
    lines = {name: [sys.executable, "-c", code, str(slice)] for name, code in PEERS.items()}
    for engine in ("duckdb", "spark"):
        command = [sys.executable, "-m", "odfbuild", "sql", "--engine", engine]
        question = QUESTION if engine == "spark" else QUESTION.replace("`", '"')
        lines[f"odfbuild sql --engine {engine}"] = [*command, question]
    costs: dict[str, list[Cost]] = {name: [] for name in lines}
    for _ in range(repeat):
        for name, command in lines.items():
            costs[name].append(run(command, project))
    for name, measured in costs.items():
        show(name, min(measured, key=lambda each: each.cpu))


def sites(size: int) -> None:
    """A site of generated datasets, and their plan; without any cache."""
    work = Path(tempfile.mkdtemp(prefix="odfbuild-bench-"))
    try:
        make_project("odf", size, work, HERE / "generate.py")
        rename(work / "odf")
        for name in (("plan",), ("docs", "build")):
            shutil.rmtree(work / "odf" / ".odfbuild", ignore_errors=True)
            command = [sys.executable, "-m", "odfbuild", *name]
            show(f"odfbuild {' '.join(name)}, {size} datasets", run(command, work / "odf"))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def show(name: str, cost: Cost) -> None:
    """Print a line of the table."""
    print(f"| {name} | {cost.cpu:.2f} | {cost.wall:.2f} | {cost.memory:.0f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""Cost of `odfbuild plan` here and at an earlier commit, and of reading the same files as YAML.

    python benchmarks/since.py 434c8c7

Runs of both take turns on the same 10 000 new datasets, so that whatever else the machine does
falls on both; the lowest of each counts. Both are run by this Python with its packages.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measure import run
from plan import make_project, rename

HERE = Path(__file__).parent
READ = """
import pathlib, yaml
for file in pathlib.Path("datasets").rglob("*.yaml"):
    list(yaml.load_all(file.read_bytes(), yaml.CSafeLoader))
"""
PLAN = "import sys; sys.path.insert(0, sys.argv.pop()); from odfbuild.__main__ import main; main()"


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("revision", help="the commit to compare with")
    parser.add_argument("--size", type=int, default=10_000, help="datasets")
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="odfbuild-bench-"))
    earlier = work / "earlier"
    git = ["git", "-C", str(HERE.parent), "worktree"]
    subprocess.run([*git, "add", "-q", "--detach", str(earlier), options.revision], check=True)
    try:
        compare(work, {options.revision: earlier, "here": HERE.parent}, options)
    finally:
        subprocess.run([*git, "remove", "--force", str(earlier)], check=True)
        shutil.rmtree(work, ignore_errors=True)
    return 0


def compare(work: Path, trees: dict[str, Path], options: argparse.Namespace) -> None:
    """Print the costs of both trees, in CPU seconds and as ratios."""
    make_project("odf", options.size, work, HERE / "generate.py")
    rename(work / "odf")
    projects = {}
    for name, tree in trees.items():
        projects[name] = work / f"project-{len(projects)}"
        shutil.copytree(work / "odf", projects[name])
        subprocess.run(
            [sys.executable, "-m", "compileall", "-q", str(tree / "odfbuild")], check=True
        )

    def cold(name: str) -> float:
        shutil.rmtree(projects[name] / ".odfbuild", ignore_errors=True)
        return warm(name)

    def warm(name: str) -> float:
        # -I: not the package of the folder that this is started in.
        command = [sys.executable, "-I", "-c", PLAN, "plan", str(trees[name])]
        return run(command, projects[name]).cpu

    def read(_: str) -> float:
        return run([sys.executable, "-I", "-c", READ], work / "odf").cpu

    print("| command | CPU s | times the earlier | times reading YAML |")
    print("| --- | ---: | ---: | ---: |")
    bare = lowest(read, ["yaml"], options.repeat)["yaml"]
    print(f"| all files with CSafeLoader | {bare:.2f} | | |", flush=True)
    for how in (cold, warm):
        if how is warm:
            time.sleep(3)  # files that are as new as the cache are read once more
            lowest(how, [*trees], 1)
        costs = lowest(how, [*trees], options.repeat)
        for name, cost in costs.items():
            ratios = f"{cost / costs[options.revision]:.2f} | {cost / bare:.2f}"
            print(f"| odfbuild plan, {how.__name__}, {name} | {cost:.2f} | {ratios} |", flush=True)


def lowest(measured: Callable[[str], float], names: list[str], times: int) -> dict[str, float]:
    """The lowest of several measurements, taken in turns."""
    costs = dict.fromkeys(names, float("inf"))
    for _ in range(times):
        for name in names:
            costs[name] = min(costs[name], measured(name))
    return costs


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    raise SystemExit(main())

"""Time and memory of `odfbuild plan`, beside other tools on the same graph in the same run.

    python benchmarks/plan.py --dbt benchmarks/.venv/bin/dbt

prints seconds of CPU (user and system, children included), wall time and peak memory of each
command, and how many times more than `odfbuild plan` the like command of another tool takes.
README.md in this folder says how to read it.
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
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from measure import Row, Table, repeated, run
from peers import CHANGED, COLD, PEERS, WARM, WARM_CHAINS, change_one, peer_rows

HERE = Path(__file__).parent
START = "python -c pass"
COLD_CHAINS = "odfbuild plan, all chains, cold"
CHANGED_CHAINS = "odfbuild plan, all chains, one changed file"
CHANGED_LEAF = "odfbuild plan, all chains, one changed leaf"
IN_BRANCH = "odfbuild plan -b, all chains, one changed leaf"
FOREIGN_NAME = re.compile(r"\b(?:src|der_l\d+)_\d{6}\b")


def main() -> int:
    """Run everything, print the table as it grows, write JSON if asked to."""
    options = parse()
    peers = {kind: getattr(options, kind) for kind in PEERS if getattr(options, kind)}
    work = Path(tempfile.mkdtemp(prefix="odfbuild-bench-"))
    try:
        table = Table(options.timeout)
        for size in options.sizes:
            root = work / str(size)
            make_project("odf", size, root, options.generator)
            rename(root / "odf")
            table.add(odfbuild_rows(size, root / "odf", options))
            for kind, program in peers.items():
                make_project(kind, size, root, options.generator)
                table.add(peer_rows(kind, program, size, root / kind, options.timeout))
            shutil.rmtree(root)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in table.rows], indent=2) + "\n")
    return 0


def parse() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--repeat", type=int, default=3, help="runs of odfbuild; medians count")
    parser.add_argument("--odfbuild", default=str(Path(sys.executable).with_name("odfbuild")))
    for kind in PEERS:
        # Commands run in the folders of projects, where a relative path leads nowhere.
        parser.add_argument(
            f"--{kind}",
            type=lambda text: str(Path(text).absolute()),
            help=f"the program {kind}; without it, it is left out",
        )
    parser.add_argument(
        "--timeout", type=float, default=900, help="seconds for each command of another tool"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument(
        "--generator",
        type=Path,
        default=os.environ.get("ODFBUILD_BENCH_GENERATOR") or HERE / "generate.py",
        help="another generator: a script that takes --kind KIND --n N --out FOLDER",
    )
    return parser.parse_args()


def make_project(kind: str, size: int, root: Path, generator: Path) -> None:
    """The graph of that size in the words of one tool, in `root/kind`."""
    command = [sys.executable, str(generator), "--kind", kind, "--n", str(size), "--out"]
    subprocess.run([*command, str(root / kind)], check=True, stdout=subprocess.DEVNULL)


def rename(project: Path) -> None:
    """Names of datasets have no underscores in Open Data Fabric: write hyphens instead."""

    def hyphens(text: str) -> str:
        return FOREIGN_NAME.sub(lambda match: match.group().replace("_", "-"), text)

    for path in (project / "datasets").rglob("*.yaml"):
        path.write_text(hyphens(path.read_text()))
    for path in (project / "data").iterdir():
        path.rename(path.with_name(hyphens(path.name)))


def odfbuild_rows(size: int, project: Path, options: argparse.Namespace) -> Iterator[Row]:
    """Plan without any cache, with it, and after an edit; before there are chains and after."""
    command = [options.odfbuild, "plan"]
    run([options.odfbuild, "--help"], project)
    start = [str(Path(options.odfbuild).with_name("python")), "-c", "pass"]
    yield Row(size, START, repeated(start, project, options.repeat))

    def forget() -> None:
        shutil.rmtree(project / ".odfbuild", ignore_errors=True)

    def edit() -> None:
        change_one(project / "datasets", "*.yaml")

    yield Row(size, COLD, repeated(command, project, options.repeat, before=forget))
    # Files that were written a moment before the cache are read once more, to be sure of them.
    run(command, project)
    yield Row(size, WARM, repeated(command, project, options.repeat))
    yield Row(size, CHANGED, repeated(command, project, options.repeat, before=edit))
    # Not in this process: the peak memory of a child is never less than that of its parent.
    subprocess.run([sys.executable, str(HERE / "commit.py"), str(project)], check=True)
    yield Row(size, COLD_CHAINS, repeated(command, project, options.repeat, before=forget))
    yield Row(size, WARM_CHAINS, repeated(command, project, options.repeat))
    yield Row(size, CHANGED_CHAINS, repeated(command, project, options.repeat, before=edit))

    leaf = leaf_of(project)
    begin = [sys.executable, str(HERE / "begin_branch.py"), str(project), leaf.stem]
    subprocess.run(begin, check=True)

    def edit_leaf() -> None:
        change_one(leaf.parent, leaf.name)

    run(command, project)
    in_branch = [*command, "-b", "pr-1"]
    run(in_branch, project)
    yield Row(size, CHANGED_LEAF, repeated(command, project, options.repeat, before=edit_leaf))
    yield Row(size, IN_BRANCH, repeated(in_branch, project, options.repeat, before=edit_leaf))


def leaf_of(project: Path) -> Path:
    """The definition of a dataset that no other one reads, and whose query compares something."""
    texts = {path: path.read_text() for path in (project / "datasets").rglob("*.yaml")}
    read = {name for text in texts.values() for name in re.findall(r"datasetRef: (\S+)", text)}
    return min(path for path, text in texts.items() if path.stem not in read and ">=" in text)


if __name__ == "__main__":
    raise SystemExit(main())

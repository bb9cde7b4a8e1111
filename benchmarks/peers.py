"""The like jobs of other tools on the same graph.

Each job is a name, the line of odfbuild that does the like, and what to run before and as it. A
tool whose command does not end in time is not asked for more at that size.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from measure import NotFinished, Row, run

COLD = "odfbuild plan, no chains, cold"
WARM = "odfbuild plan, no chains, warm"
CHANGED = "odfbuild plan, no chains, one changed file"
WARM_CHAINS = "odfbuild plan, all chains, warm"


@dataclass(frozen=True)
class Job:
    """A command of another tool; `prepare` comes first and is not measured."""

    name: str
    against: str
    command: tuple[str, ...]
    prepare: Callable[[], None] = lambda: None


def peer_rows(kind: str, program: str, size: int, project: Path, timeout: float) -> Iterator[Row]:
    """Run the jobs of one tool in its project."""
    for job in _JOBS[kind](program, project):
        job.prepare()
        try:
            cost = run(job.command, project, timeout)
        except NotFinished:
            yield Row(size, job.name, None, job.against)
            return
        yield Row(size, job.name, cost, job.against)


def change_one(folder: Path, pattern: str) -> None:
    """Change what one definition computes: the first whose query compares something."""
    file = next(file for file in sorted(folder.rglob(pattern)) if ">=" in file.read_text())
    file.write_text(file.read_text().replace(">=", "+ 1 >=", 1))


def _dbt(program: str, project: Path) -> Iterator[Job]:
    common = ("--profiles-dir", ".", "--quiet")
    parse = (program, "parse", *common)
    state = project / "state"

    def keep_state() -> None:
        state.mkdir()
        shutil.copy(project / "target" / "manifest.json", state)

    yield Job("dbt parse, cold", COLD, parse)
    yield Job("dbt parse, warm", WARM, parse)
    select = ("ls", "-s", "state:modified+", "--state", "state")
    yield Job(
        "dbt ls -s state:modified+, warm", WARM_CHAINS, (program, *select, *common), keep_state
    )
    yield Job(
        "dbt parse, one changed file",
        CHANGED,
        parse,
        lambda: change_one(project / "models", "*.sql"),
    )


def _sqlmesh(program: str, project: Path) -> Iterator[Job]:
    plan = (program, "plan", "--explain", "--no-prompts", "--skip-tests", "--skip-linter")
    yield Job("sqlmesh plan --explain, cold", COLD, plan)
    yield Job("sqlmesh plan --explain, warm", WARM, plan)
    yield Job(
        "sqlmesh plan --explain, one changed file",
        CHANGED,
        plan,
        lambda: change_one(project / "models", "*.sql"),
    )


def _snakemake(program: str, project: Path) -> Iterator[Job]:
    yield Job("snakemake --dry-run", WARM, (program, "--dry-run", "--quiet", "all"))


_JOBS: dict[str, Callable[[str, Path], Iterator[Job]]] = {
    "dbt": _dbt,
    "sqlmesh": _sqlmesh,
    "snakemake": _snakemake,
}
PEERS = tuple(_JOBS)

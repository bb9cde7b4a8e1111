"""What a command takes: processor time, wall time and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median


@dataclass(frozen=True)
class Cost:
    """What one command took. `memory` is the peak of its largest process, in MiB."""

    cpu: float
    wall: float
    memory: float


@dataclass(frozen=True)
class Row:
    """A line of a table; `against` names the line of odfbuild that does the like job.

    Without `cost` the command did not end in the time that it was given.
    """

    size: int
    name: str
    cost: Cost | None
    against: str | None = None


class NotFinished(Exception):
    """A command was stopped because it took longer than it was given."""


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


def run(command: Sequence[str], folder: Path, timeout: float | None = None) -> Cost:
    """Run one command; its output is shown when it fails. `NotFinished` after `timeout` seconds."""
    environment = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "NO_COLOR": "1"}
    # What pip installs is compiled; what is installed from a checkout is where Python may do it.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryFile() as output:
        start = time.monotonic()
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        stopped = threading.Event()

        def stop() -> None:
            stopped.set()
            process.kill()

        timer = threading.Timer(timeout or threading.TIMEOUT_MAX, stop)
        timer.start()
        # wait4 gives the figures of this one child, and of the children for which it waited.
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        if stopped.is_set():
            raise NotFinished
        if process.returncode != 0:
            output.seek(0)
            text = output.read()[-4_000:].decode(errors="replace")
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{text}")
    # ru_maxrss is in KiB on Linux and in bytes on macOS.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / unit)


class Table:
    """Figures and ratios as Markdown, printed line by line."""

    def __init__(self, timeout: float) -> None:
        self.rows: list[Row] = []
        self._timeout = timeout
        print("| datasets | command | CPU s | wall s | peak MiB | CPU, times odfbuild |")
        print("| ---: | --- | ---: | ---: | ---: | ---: |", flush=True)

    def add(self, rows: Iterable[Row]) -> None:
        """Print rows as they are measured; the line that one is compared with comes before it."""
        for row in rows:
            self.rows.append(row)
            print(f"| {row.size} | {row.name} | {self._figures(row)} |", flush=True)

    def _figures(self, row: Row) -> str:
        cost = row.cost
        if cost is None:
            return f"not finished in {self._timeout:.0f} s | | |"
        costs = {(each.size, each.name): each.cost for each in self.rows}
        base = costs.get((row.size, row.against or ""))
        ratio = f"{cost.cpu / base.cpu:.1f}" if base else ""
        return f"{cost.cpu:.2f} | {cost.wall:.2f} | {cost.memory:.0f} | {ratio}"

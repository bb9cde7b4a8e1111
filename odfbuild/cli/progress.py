"""Progress of an apply: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock, Thread

from odfbuild.apply.run import Listener
from odfbuild.apply.run_log import headway_text
from odfbuild.cli.console import Console
from odfbuild.engine.contract import StepProgress
from odfbuild.survey.outcome import DatasetOutcome, Status
from odfbuild.survey.runs import last_seconds
from odfbuild.wording import count

_TICK_SECONDS = 0.2


@contextmanager
def listener_for(
    console: Console, *, silent: bool = False, cache: Path | None = None
) -> Iterator[Listener]:
    """The listener that suits where stderr goes; a `silent` one says nothing there.

    In the folder `cache` is kept how long each dataset took last time.
    """
    if silent:
        yield PlainProgress(replace(console, verbosity=-1))
        return
    if not console.live:
        yield PlainProgress(console)
        return
    with BarProgress(console, last_seconds(cache) if cache else {}) as bars:
        yield bars


def describe(outcome: DatasetOutcome) -> str:
    """One line on how a dataset ended."""
    if outcome.status is Status.COMMITTED and outcome.blocks:
        what = count(outcome.records, "record") if outcome.records else "no new records"
        return f"committed {what} in {count(outcome.blocks, 'block')}"
    return f"{outcome.status.value}: {outcome.because}" if outcome.because else outcome.status.value


def time_left(last: float | None, elapsed: float) -> str:
    """How much longer a dataset may take, if it is as it was last time."""
    if last is None:
        return ""
    if elapsed > last:
        return f"longer than last time ({last:.0f} s)"
    return f"about {last - elapsed:.0f} s left"


class PlainProgress:
    """A line when a dataset starts and one when it ends."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = Lock()
        self._done = 0
        self._total = 0

    def begin(self, total: int, step_progress: Callable[[str], StepProgress | None]) -> None:
        """See `Listener`."""
        self._total = total

    def started(self, name: str) -> None:
        """See `Listener`."""
        if self._console.verbosity > 0:
            with self._lock:
                self._console.note(f"{name}: started")

    def progressed(self, name: str, blocks: int, records: int) -> None:
        """See `Listener`."""
        if self._console.verbosity > 0:
            done = f"{count(records, 'record')} in {count(blocks, 'block')}"
            with self._lock:
                self._console.note(f"{name}: {done} so far")

    def finished(self, outcome: DatasetOutcome) -> None:
        """See `Listener`."""
        with self._lock:
            self._done += 1
            place = f"[{self._done}/{self._total}]"
            seconds = f"({outcome.seconds:.1f} s)"
            self._console.note(f"{place} {outcome.name}: {describe(outcome)} {seconds}")


class BarProgress:
    """A bar for the whole apply and one for each dataset that is being worked on."""

    def __init__(self, console: Console, last: Mapping[str, float]) -> None:
        import rich.console
        import rich.progress

        self._progress = rich.progress.Progress(
            rich.progress.SpinnerColumn(),
            rich.progress.TextColumn("{task.description}"),
            rich.progress.BarColumn(bar_width=24),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TimeElapsedColumn(),
            rich.progress.TextColumn("{task.fields[left]}"),
            console=rich.console.Console(stderr=True, no_color=console.no_color),
            transient=True,
        )
        self._last = last
        self._since: dict[str, float] = {}
        self._rows: dict[str, rich.progress.TaskID] = {}
        self._step_progress: Callable[[str], StepProgress | None] = lambda name: None
        self._ended = Event()
        self._overall: rich.progress.TaskID | None = None

    def __enter__(self) -> BarProgress:
        self._progress.start()
        Thread(target=self._poll, name="progress", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._progress.stop()

    def begin(self, total: int, step_progress: Callable[[str], StepProgress | None]) -> None:
        """See `Listener`."""
        self._step_progress = step_progress
        self._overall = self._progress.add_task("datasets", total=total, left="")

    def started(self, name: str) -> None:
        """See `Listener`."""
        self._since[name] = time.monotonic()
        self._rows[name] = self._progress.add_task(name, total=None, left="")

    def progressed(self, name: str, blocks: int, records: int) -> None:
        """See `Listener`."""
        row = self._rows.get(name)
        if row is not None:
            self._progress.update(row, description=f"{name}, {count(blocks, 'block')}")

    def finished(self, outcome: DatasetOutcome) -> None:
        """See `Listener`."""
        row = self._rows.pop(outcome.name, None)
        if row is not None:
            self._progress.remove_task(row)
        self._progress.console.print(f"{outcome.name}: {describe(outcome)}", highlight=False)
        if self._overall is not None:
            self._progress.advance(self._overall)

    def _poll(self) -> None:
        while not self._ended.wait(_TICK_SECONDS):
            for name, row in list(self._rows.items()):
                left = time_left(self._last.get(name), time.monotonic() - self._since[name])
                now = self._step_progress(name)
                with contextlib.suppress(KeyError):  # it may end at any time
                    if now is None:
                        self._progress.update(row, left=left)
                        continue
                    said = ", ".join(filter(None, (headway_text(now), left)))
                    self._progress.update(row, left=said, completed=now.tasks_done, total=now.tasks)

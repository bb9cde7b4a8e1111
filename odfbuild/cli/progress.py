"""Progress of an apply: bars on a terminal, and each dataset once, when it has ended."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Protocol

from odfbuild.apply.options import Listener
from odfbuild.cli.console import SCREEN, Console
from odfbuild.engine.contract import StepProgress
from odfbuild.report.forms.visible import visible
from odfbuild.report.outcome import LISTED, render_dataset_outcome
from odfbuild.survey.outcome import DatasetOutcome, Status
from odfbuild.survey.runs import last_seconds
from odfbuild.wording import count, named

if TYPE_CHECKING:
    from rich.progress import TaskID

_TICK_SECONDS = 0.2
_NAME_WIDTH = 32
_BAR_WIDTH = 12


class Bars(Listener, Protocol):
    """What is drawn while datasets are worked on."""

    def stop(self) -> None:
        """Draw no more, and leave the terminal as it was."""


@contextmanager
def listener_for(
    console: Console, names: Sequence[str], *, cache: Path | None = None, as_json: bool = False
) -> Iterator[Results]:
    """The listener that suits where output goes, for datasets in the order of the plan.

    Where the result is JSON, lines about datasets go to stderr. In the folder `cache` is kept how
    long each dataset took last time.
    """
    bars: Bars = Notes(console)
    if console.live:
        bars = LiveBars(console, last_seconds(cache) if cache else {})
    results = Results(bars, names, console, as_json=as_json)
    try:
        yield results
    finally:
        bars.stop()


def time_left(last: float | None, elapsed: float) -> str:
    """How much longer a dataset may take, if it is as it was last time."""
    if last is None:
        return ""
    if elapsed > last:
        return f"longer than last time ({last:.0f} s)"
    return f"about {last - elapsed:.0f} s left"


def headway(now: StepProgress | None, left: str, room: int) -> str:
    """What fits of how far a step is: records first, then the time left, then stages of several.

    What does not fit is left out as a whole: half a number is another number.
    """
    said = [left]
    if now is not None:
        records = f"{now.records_read:,} records read" if now.records_read else ""
        stage = f"stage {min(now.stages_done + 1, now.stages)} of {now.stages}"
        said = [records, left, stage if now.stages > 1 else ""]
    fitting = ""
    for each in filter(None, said):
        longer = f"{fitting}, {each}" if fitting else each
        fitting = longer if len(longer) <= room else fitting
    return fitting


class Results:
    """A `Listener` that prints the line of a dataset once it, and all before it, have ended."""

    def __init__(
        self, bars: Bars, names: Sequence[str], console: Console, *, as_json: bool
    ) -> None:
        self._bars = bars
        self._left = list(reversed(names))
        self._console = console
        self._tell = console.note if as_json else console.result
        self._ended: dict[str, DatasetOutcome] = {}
        self._width = min(40, max(map(len, names), default=0))
        self._is_long = len(names) > LISTED
        self._total = len(names)
        self._lock = Lock()
        self.begin, self.started, self.progressed = bars.begin, bars.started, bars.progressed

    def finished(self, outcome: DatasetOutcome) -> None:
        """See `Listener`."""
        self._bars.finished(outcome)
        with self._lock:
            self._ended[outcome.name] = outcome
            while self._left and self._left[-1] in self._ended:
                self._show(self._ended[self._left.pop()])

    def abort(self) -> None:
        """Say what did not end, because the program does."""
        self._bars.stop()
        unfinished = [name for name in reversed(self._left) if name not in self._ended]
        if unfinished:
            verb = "was" if len(unfinished) == 1 else "were"
            self._console.note(
                f"Stopped: {len(unfinished)} of {count(self._total, 'dataset')} {verb} not "
                f"finished: {named(unfinished)}. Committed datasets stay; run apply again to "
                "continue."
            )

    def _show(self, outcome: DatasetOutcome) -> None:
        well = outcome.status in (Status.COMMITTED, Status.NOOP)
        if not (self._is_long and well):
            self._tell(
                render_dataset_outcome(outcome, width=self._width, color=self._console.color)
            )


class Notes:
    """Where nothing is drawn: lines on the side for those who want more detail."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def begin(self, total: int, step_progress: Callable[[str], StepProgress | None]) -> None:
        """See `Listener`."""

    def started(self, name: str) -> None:
        """See `Listener`."""
        if self._console.verbosity > 0:
            self._console.note(f"{name}: started")

    def progressed(self, name: str, blocks: int, records: int) -> None:
        """See `Listener`."""
        if self._console.verbosity > 0:
            done = f"{count(records, 'record')} in {count(blocks, 'block')}"
            self._console.note(f"{name}: {done} so far")

    def finished(self, outcome: DatasetOutcome) -> None:
        """See `Listener`."""

    def stop(self) -> None:
        """See `Bars`."""


class LiveBars:
    """A bar for the whole apply and one for each dataset that is being worked on.

    Each fits into one row of the terminal: names are shortened, numbers are not.
    """

    def __init__(self, console: Console, last: Mapping[str, float]) -> None:
        from rich.console import Console as Screen
        from rich.progress import (
            BarColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )
        from rich.table import Column

        def whole() -> Column:
            return Column(no_wrap=True)

        # Rows end before the last column: a terminal shows Ctrl-C as ^C behind them.
        columns = get_terminal_size().columns
        self._name_width = max(1, min(_NAME_WIDTH, columns // 3))
        self._room = room = max(1, columns - self._name_width - _BAR_WIDTH - 14)
        self._progress = Progress(
            SpinnerColumn(table_column=whole()),
            TextColumn(
                "{task.description}",
                table_column=Column(no_wrap=True, overflow="ellipsis", max_width=self._name_width),
            ),
            BarColumn(bar_width=_BAR_WIDTH, table_column=whole()),
            TimeElapsedColumn(table_column=whole()),
            TextColumn(
                "{task.fields[left]}",
                table_column=Column(no_wrap=True, overflow="ellipsis", max_width=room),
            ),
            console=Screen(stderr=True, no_color=console.no_color),
            transient=True,
            # Results go to a file or a pipe untouched; on a terminal above the bars.
            redirect_stdout=console.shows_results,
        )
        self._last = last
        self._since: dict[str, float] = {}
        self._rows: dict[str, TaskID] = {}
        self._step_progress: Callable[[str], StepProgress | None] = lambda name: None
        self._ended = Event()
        self._done, self._total = 0, 0
        self._overall = self._progress.add_task("datasets", total=None, left="")
        with SCREEN:
            self._progress.start()
        Thread(target=self._poll, name="progress", daemon=True).start()

    def stop(self) -> None:
        """See `Bars`."""
        self._ended.set()
        with SCREEN:
            self._progress.stop()

    def begin(self, total: int, step_progress: Callable[[str], StepProgress | None]) -> None:
        """See `Listener`."""
        self._step_progress = step_progress
        self._total = total
        self._count(0)

    def started(self, name: str) -> None:
        """See `Listener`."""
        self._since[name] = time.monotonic()
        self._rows[name] = self._progress.add_task(visible(name), total=None, left="")

    def progressed(self, name: str, blocks: int, records: int) -> None:
        """See `Listener`."""
        row = self._rows.get(name)
        if row is not None:
            done = f", {count(blocks, 'block')}"
            most = self._name_width - len(done)
            name = visible(name)
            shown = name if len(name) <= most else f"{name[: most - 1]}…"
            self._progress.update(row, description=f"{shown}{done}")

    def finished(self, outcome: DatasetOutcome) -> None:
        """See `Listener`."""
        row = self._rows.pop(outcome.name, None)
        if row is not None:
            self._progress.remove_task(row)
        self._count(self._done + 1)

    def _count(self, done: int) -> None:
        self._done = done
        said = f"{done} of {count(self._total, 'dataset')}"
        self._progress.update(self._overall, description=said, completed=done, total=self._total)

    def _poll(self) -> None:
        while not self._ended.wait(_TICK_SECONDS):
            for name, row in list(self._rows.items()):
                left = time_left(self._last.get(name), time.monotonic() - self._since[name])
                now = self._step_progress(name)
                with contextlib.suppress(KeyError):  # it may end at any time
                    said = visible(headway(now, left, self._room))
                    if now is None:
                        self._progress.update(row, left=said)
                    else:
                        self._progress.update(
                            row, left=said, completed=now.tasks_done, total=now.tasks
                        )

"""What `pull` and `push` have in common: options, progress, and how they end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Annotated

import typer

from odfbuild.cli import complete
from odfbuild.cli.console import Console
from odfbuild.cli.context import Context
from odfbuild.cli.git import note_heads
from odfbuild.exchange.repositories.outcome import (
    Silent,
    Transfer,
    TransferStatus,
    Watcher,
    exit_code,
)

if TYPE_CHECKING:
    from rich.progress import TaskID

AllowResetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="reset:NAME",
        autocompletion=complete.consents("reset"),
        help="Replace the history of this dataset where the two histories differ.",
    ),
]
AllowOfPullOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="reset:NAME|unsigned:NAME",
        autocompletion=complete.consents("reset", "unsigned"),
        help="Replace the history of this dataset where the two histories differ (reset), or take "
        "a head that nobody signed though the owner signed before (unsigned).",
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", "-n", help="Show what would be transferred; change nothing.")
]
_NAME_WIDTH = 32
_BAR_WIDTH = 12


def allowed_of(given: Sequence[str] | None, *kinds: str) -> Mapping[str, tuple[str, ...]]:
    """The names that are given as `KIND:NAME`, by kind; wrong usage for anything else."""
    names: dict[str, list[str]] = {kind: [] for kind in kinds}
    for text in given or ():
        kind, _, name = text.partition(":")
        if kind not in names or not name:
            forms = " or ".join(f"'{each}:NAME'" for each in kinds)
            raise typer.BadParameter(f"'{text}' is not {forms}", param_hint="--allow")
        names[kind].append(name)
    return {kind: tuple(found) for kind, found in names.items()}


def report(
    state: Context, transfers: Sequence[Transfer], verb: str, *, dry_run: bool, as_json: bool
) -> int:
    """Print what became of each dataset; the exit code. `verb` is `Pull` or `Push`."""
    from odfbuild.report.transfers import render_transfers, transfers_to_data

    console = state.console
    if as_json:
        console.data(transfers_to_data(transfers))
    else:
        console.result(render_transfers(transfers, verb, dry_run=dry_run, color=console.color))
    console.error(*(each.error for each in transfers if each.error is not None))
    return exit_code(transfers)


def note_moved(state: Context, transfers: Sequence[Transfer]) -> None:
    """Note the heads that a pull moved; see `note_heads`."""
    still = (TransferStatus.FAILED, TransferStatus.UP_TO_DATE)
    moved = [each.name for each in transfers if each.status not in still]
    if moved:
        note_heads(state, moved)


@contextmanager
def watching(console: Console) -> Iterator[Watcher]:
    """Bars while datasets are transferred, where somebody looks."""
    if not console.live:
        yield Silent()
        return
    bars = _Bars(console)
    try:
        yield bars
    finally:
        bars.stop()


class _Bars:
    """A `Watcher` that draws a bar for each dataset whose objects are being transferred."""

    def __init__(self, console: Console) -> None:
        from rich.console import Console as Screen
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
        from rich.table import Column

        self._progress = Progress(
            TextColumn(
                "{task.description}",
                table_column=Column(no_wrap=True, overflow="ellipsis", max_width=_NAME_WIDTH),
            ),
            BarColumn(bar_width=_BAR_WIDTH, table_column=Column(no_wrap=True)),
            DownloadColumn(table_column=Column(no_wrap=True)),
            console=Screen(stderr=True, no_color=console.no_color),
            transient=True,
            redirect_stdout=console.shows_results,
        )
        self._rows: dict[str, TaskID] = {}
        self._lock = Lock()
        self._progress.start()

    def stop(self) -> None:
        """Draw no more, and leave the terminal as it was."""
        self._progress.stop()

    def started(self, name: str) -> None:
        """See `Watcher`."""

    def sized(self, name: str, size: int) -> None:
        """See `Watcher`."""
        with self._lock:
            self._rows[name] = self._progress.add_task(name, total=size)

    def moved(self, name: str, size: int) -> None:
        """See `Watcher`."""
        self._progress.advance(self._rows[name], size)

    def finished(self, transfer: Transfer) -> None:
        """See `Watcher`."""
        with self._lock:
            row = self._rows.pop(transfer.name, None)
        if row is not None:
            self._progress.remove_task(row)

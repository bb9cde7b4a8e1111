"""Ctrl-C: the first lets running datasets finish and starts no more, the second stops at once.

So does the signal by which a CI or a service manager ends a program.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from threading import Event
from types import FrameType
from typing import NoReturn

from odfbuild.cli.console import Console


@contextlib.contextmanager
def cancel_on_interrupt(console: Console, abort: Callable[[], None]) -> Iterator[Event]:
    """An event that is set by the first interrupt; the second one ends the program.

    `abort` is called before it ends.
    """
    cancel = Event()

    def leave() -> None:
        with contextlib.suppress(Exception):
            abort()
        _leave()

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        if cancel.is_set():
            leave()
        cancel.set()
        console.note("Interrupted: finishing running datasets. Press Ctrl-C again to stop at once.")

    before = signal.signal(signal.SIGINT, on_interrupt)
    before_end = signal.signal(signal.SIGTERM, lambda number, frame: leave())
    try:
        yield cancel
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, before_end)


def _leave() -> NoReturn:
    """End without waiting for workers, which may sit in a download for hours.

    Every step can be cut off anywhere, so nothing has to be tidied up but programs of others.
    """
    from odfbuild.cli.exit_codes import EXIT_INTERRUPTED
    from odfbuild.engine import shutdown as elsewhere
    from odfbuild.ingest.process import end_all

    end_all()
    elsewhere.end_all()
    # The signal may have come in the middle of a write to one of them.
    with contextlib.suppress(RuntimeError, OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(EXIT_INTERRUPTED)

"""Ctrl-C: the first lets running datasets finish and starts no more, the second stops at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType

from odfbuild.cli.console import Console


@contextmanager
def cancel_on_interrupt(console: Console) -> Iterator[Event]:
    """An event that is set by the first interrupt; the second one ends the program."""
    cancel = Event()

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        if cancel.is_set():
            raise KeyboardInterrupt
        cancel.set()
        console.note("Interrupted: finishing what has begun. Once more to stop at once.")

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield cancel
    finally:
        signal.signal(signal.SIGINT, before)

"""Poll the engine for the progress of running datasets.

Steps that end within the first interval are not polled, so small jobs have no overhead.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from threading import Event, Lock, Thread

from odfbuild.engine.contract import StepProgress

SECONDS = 2.0


class ProgressReporter:
    """Calls `tell(name, progress, elapsed seconds)` whenever the progress has changed."""

    def __init__(self, tell: Callable[[str, StepProgress, float], None]) -> None:
        self._tell = tell
        self._since: dict[str, float] = {}
        self._lock = Lock()
        self._ended = Event()

    def begin(self, ask: Callable[[str], StepProgress | None]) -> None:
        """Begin to ask; ends with `end`, or with the process."""
        Thread(target=self._beat, args=(ask,), name="pulse", daemon=True).start()

    def started(self, name: str) -> None:
        """Ask about a dataset from now on."""
        with self._lock:
            self._since[name] = time.monotonic()

    def finished(self, name: str) -> None:
        """Ask no more about it."""
        with self._lock:
            self._since.pop(name, None)

    def end(self) -> None:
        """Ask no more."""
        self._ended.set()

    def _beat(self, ask: Callable[[str], StepProgress | None]) -> None:
        told: dict[str, StepProgress] = {}
        while not self._ended.wait(SECONDS):
            with self._lock:
                now = dict(self._since)
            for name, since in now.items():
                elapsed = time.monotonic() - since
                found: StepProgress | None = None
                # The engine may end at any time; whoever works with it says so.
                with contextlib.suppress(Exception):
                    found = ask(name) if elapsed >= SECONDS else None
                if found is None or told.get(name) == found:
                    continue
                told[name] = found
                with self._lock:
                    if name in self._since:
                        self._tell(name, found, elapsed)

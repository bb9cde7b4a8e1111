"""Cancel work on other machines when this process stops at once.

Code that starts such work registers how to cancel it. Imports nothing heavy: programs that never
did ask, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from threading import Lock, Thread

_SECONDS = 3.0
_lock = Lock()
_endings: list[Callable[[], None]] = []


def began(end: Callable[[], None]) -> None:
    """Work goes on elsewhere until `end` is called."""
    with _lock:
        _endings.append(end)


def ended(end: Callable[[], None]) -> None:
    """Nothing is left to end; harmless when said twice."""
    with _lock, contextlib.suppress(ValueError):
        _endings.remove(end)


def end_all() -> None:
    """End all of it, as far as that takes seconds only."""
    # Whoever was interrupted may hold the lock, and what is asked may not answer.
    threads = [Thread(target=_quietly, args=(end,), daemon=True) for end in tuple(_endings)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_SECONDS)


def _quietly(end: Callable[[], None]) -> None:
    with contextlib.suppress(Exception):
        end()

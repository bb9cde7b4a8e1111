"""Pause Python's garbage collector while thousands of permanent objects are created."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """No collection inside. Nests.

    What was made there is looked at once or twice later on. `gc.freeze()` would spare that, but it
    keeps for ever what is garbage by then, also of an engine that works meanwhile, and of the
    program around us.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()

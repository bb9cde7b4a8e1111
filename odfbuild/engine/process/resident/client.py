"""An engine that asks the resident one; should that be lost in a step, it does the work itself.

One that left between two steps, because it was idle or stopped, is followed by another one if there
is one, or is to be one: a server lives longer than an idle engine.

Every request is carried out anew then, in a scratch folder of its own: requests change nothing but
that folder, and side-cars that may be made twice.
"""

from __future__ import annotations

import dataclasses
import secrets
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from odfbuild.engine.contract import Engine, StepProgress
from odfbuild.engine.process.resident.card import Card
from odfbuild.engine.process.resident.channel import Lost, ask
from odfbuild.engine.process.resident.wanted import Wanted


class ResidentEngine:
    """`contract.Engine`, carried out by the engine of `card` or else by one that `start` gives.

    Its methods are those of the engine that is asked.
    """

    def __init__(
        self,
        card: Card,
        wanted: Wanted,
        step_seconds: float | None,
        start: Callable[[], Engine],
        serving: Callable[[Card], Card | None],
    ) -> None:
        self._card = card
        self._wanted = wanted
        self._step_seconds = step_seconds
        self._start = start
        self._serving = serving
        self._name = secrets.token_hex(4)
        self._starting = Lock()
        self._own: Engine | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(Engine, name):
            raise AttributeError(name)
        return partial(self._carry_out, name)

    def progress(self, dataset: str) -> StepProgress | None:
        """See `contract.Engine`; nothing is known of work on an engine that was lost."""
        if self._own is not None:
            return self._own.progress(dataset)
        try:
            found: StepProgress | None = self._asked("progress", (dataset,), {})
        except Lost:
            return None
        return found

    def stop(self) -> None:
        """Leave the resident engine running, and end the one that took its place."""
        if self._own is not None:
            self._own.stop()

    def _carry_out(self, method: str, *arguments: Any, **named: Any) -> Any:
        found = self._serving(self._card) if self._own is None else None
        if found is not None:
            self._card = found
            try:
                return self._asked(method, arguments, named)
            except Lost:
                arguments, named = _afresh(arguments), _afresh(named)
        return getattr(self._instead(), method)(*arguments, **named)

    def _asked(self, method: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        call = (self._wanted, self._name, self._step_seconds, method, arguments, named)
        return ask(self._card, "call", *call)

    def _instead(self) -> Engine:
        with self._starting:
            if self._own is None:
                self._own = self._start()
            return self._own


def _afresh(value: Any) -> Any:
    """A request whose scratch folders hold nothing of an earlier attempt."""
    if isinstance(value, list | tuple):
        return type(value)(map(_afresh, value))
    if isinstance(value, dict):
        return {name: _afresh(each) for name, each in value.items()}
    if hasattr(value, "scratch"):
        return dataclasses.replace(value, scratch=Path(tempfile.mkdtemp(dir=value.scratch)))
    if hasattr(value, "step"):
        return dataclasses.replace(value, step=_afresh(value.step))
    return value

"""An engine that asks the resident one; should that be lost in a step, it does the work itself.

One that left between two steps, because it was idle or stopped, is followed by another one if there
is one, or is to be one: a server lives longer than an idle engine.

Every request is carried out anew then, in a scratch folder of its own: requests change nothing but
that folder, and side-cars that may be made twice.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from threading import Lock
from typing import Any

from odfbuild.engine.contract import Done, Engine, EngineInfo, Request, StepProgress
from odfbuild.engine.process.resident.card import Card
from odfbuild.engine.process.resident.channel import Lost, ask
from odfbuild.engine.process.resident.wanted import Wanted


class ResidentEngine:
    """`contract.Engine`, carried out by the engine of `card` or else by one that `start` gives."""

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

    def run(self, request: Request[Done]) -> Done:
        """See `contract.Engine`."""
        done: Done = self._carry_out("run", request)
        return done

    def about(self) -> EngineInfo:
        """See `contract.Engine`."""
        found: EngineInfo = self._carry_out("about")
        return found

    def progress(self, dataset: str) -> StepProgress | None:
        """See `contract.Engine`; nothing is known of work on an engine that was lost."""
        if self._own is not None:
            return self._own.progress(dataset)
        try:
            found: StepProgress | None = self._asked("progress", dataset)
        except Lost:
            return None
        return found

    def stop(self) -> None:
        """Leave the resident engine running, and end the one that took its place."""
        if self._own is not None:
            self._own.stop()

    def _carry_out(self, method: str, *requests: Request[Any]) -> Any:
        found = self._serving(self._card) if self._own is None else None
        if found is not None:
            self._card = found
            try:
                return self._asked(method, *requests)
            except Lost:
                requests = tuple(each.afresh() for each in requests)
        return getattr(self._instead(), method)(*requests)

    def _asked(self, method: str, *arguments: Any) -> Any:
        call = (self._wanted, self._name, self._step_seconds, method, arguments)
        return ask(self._card, "call", *call)

    def _instead(self) -> Engine:
        with self._starting:
            if self._own is None:
                self._own = self._start()
            return self._own

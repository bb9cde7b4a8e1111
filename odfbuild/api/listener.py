"""A listener of the user, which the apply that calls it waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from odfbuild.engine.shared import calling_back

if TYPE_CHECKING:
    from odfbuild.apply.options import Listener
    from odfbuild.engine.contract import StepProgress
    from odfbuild.survey.outcome import DatasetOutcome


class CallbackListener:
    """Calls `listener` as what it is: code that must not wait for the end of this apply."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def begin(self, total: int, step_progress: Callable[[str], StepProgress | None]) -> None:
        """See `Listener.begin`."""
        with calling_back():
            self._listener.begin(total, step_progress)

    def started(self, name: str) -> None:
        """See `Listener.started`."""
        with calling_back():
            self._listener.started(name)

    def progressed(self, name: str, blocks: int, records: int) -> None:
        """See `Listener.progressed`."""
        with calling_back():
            self._listener.progressed(name, blocks, records)

    def finished(self, outcome: DatasetOutcome) -> None:
        """See `Listener.finished`."""
        with calling_back():
            self._listener.finished(outcome)

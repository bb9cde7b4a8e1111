"""What is asked of an apply or a promotion, and who hears of it.

Apart from what they do: a promotion that computes nothing imports nothing that computes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Event
from typing import Protocol

from odfbuild.engine.contract import EngineFactory, StepProgress
from odfbuild.errors import OdfbuildError
from odfbuild.plan.model import Action, DatasetPlan, Plan, replays
from odfbuild.store.claims import NOT_WAITING, Waiting
from odfbuild.survey.outcome import DatasetOutcome
from odfbuild.values import Value


class Listener(Protocol):
    """Hears what happens while it happens; called from several threads."""

    def begin(self, total: int, step_progress: Callable[[str], StepProgress | None]) -> None:
        """`total` datasets will run; `progressed` reports the progress of the engine with one."""

    def started(self, name: str) -> None:
        """Work on a dataset begins."""

    def progressed(self, name: str, blocks: int, records: int) -> None:
        """Something was committed for a dataset: so many blocks and records of this run so far."""

    def finished(self, outcome: DatasetOutcome) -> None:
        """Work on a dataset ended."""


class ApplyOptions(Value, kw_only=True):
    """How to carry a plan out: `jobs` datasets at once, no new ones once `cancel` is set.

    Datasets that another process works on are waited for as `waiting` says.
    With `fail_fast` no new ones either once a dataset did not complete. `locate` maps an error
    about a query to the place in the project's files. Queries that were found right by
    `engine_version` (what `factory` starts) are not checked again.
    """

    factory: EngineFactory
    engine_version: str = ""
    listener: Listener
    locate: Callable[[str, OdfbuildError], OdfbuildError]
    jobs: int = os.cpu_count() or 1
    cancel: Event
    fail_fast: bool = False
    waiting: Waiting = NOT_WAITING


def to_do(plan: Plan) -> dict[str, DatasetPlan]:
    """The datasets of a plan for which there is something to do, or to refuse, in its order."""
    return {
        item.name: item
        for item in plan.datasets
        if item.refusal is not None or set(item.actions) - {Action.FORGET} or replays(item)
    }

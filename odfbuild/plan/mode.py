"""The mode in which a step of a derivative is expected to run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from odfbuild.engine.forecast import expected_mode
from odfbuild.engine.mode import Choice
from odfbuild.odf.model import DatasetSnapshot, SetTransform
from odfbuild.plan.model import Action, DatasetPlan
from odfbuild.store.kept_objects import Deferred


class FreshPlan(Deferred, DatasetPlan):
    """A plan whose mode is told when somebody looks: of ten thousand datasets few are shown."""

    __slots__ = ()
    MAKERS = {"mode": lambda plan: mode_of(plan.snapshot, plan.actions)}


def fresh(**fields: Any) -> FreshPlan:
    """A plan of a dataset with these fields; its mode is left for later."""
    plan = FreshPlan(**fields)
    object.__delattr__(plan, "mode")
    return plan


def mode_of(snapshot: DatasetSnapshot | None, actions: Collection[Action]) -> Choice | None:
    """How the transformation of a dataset will be carried out; `None` when there is none to do."""
    if snapshot is None or Action.RUN not in actions:
        return None
    for event in snapshot.metadata:
        if isinstance(event, SetTransform):
            return expected_mode(event.transform)
    return None

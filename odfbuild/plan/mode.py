"""The mode in which a step of a derivative is expected to run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from odfbuild.engine.forecast import expected_mode
from odfbuild.engine.mode import Choice
from odfbuild.odf.model import DatasetSnapshot, SetTransform
from odfbuild.plan.model import Action, DatasetPlan
from odfbuild.store.frozen import equality


class FreshPlan(DatasetPlan):
    """A plan whose mode is told when somebody looks: of ten thousand datasets few are shown.

    Equal to the plan with that mode.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        # Only called for a slot that is empty, see `fresh`.
        if name != "mode" or self.snapshot is None:
            raise AttributeError(name)
        mode = mode_of(self.snapshot, self.actions)
        object.__setattr__(self, "mode", mode)
        return mode

    __eq__ = equality(DatasetPlan)
    __hash__ = DatasetPlan.__hash__


def fresh(**fields: Any) -> FreshPlan:
    """A plan of a dataset with these fields; its mode is left for later."""
    plan = FreshPlan(**fields)
    object.__delattr__(plan, "mode")
    return plan


def mode_of(snapshot: DatasetSnapshot, actions: Collection[Action]) -> Choice | None:
    """How the transformation of a dataset will be carried out; `None` when there is none to do."""
    if Action.RUN not in actions:
        return None
    for event in snapshot.metadata:
        if isinstance(event, SetTransform):
            return expected_mode(event.transform)
    return None

"""The mode in which a step of a derivative is expected to run."""

from __future__ import annotations

from collections.abc import Collection

from odfbuild.engine.forecast import expected_mode
from odfbuild.engine.mode import Choice
from odfbuild.odf.model import DatasetSnapshot, SetTransform
from odfbuild.plan.model import Action


def mode_of(snapshot: DatasetSnapshot, actions: Collection[Action]) -> Choice | None:
    """How the transformation of a dataset will be carried out; `None` when there is none to do."""
    if Action.RUN not in actions:
        return None
    for event in snapshot.metadata:
        if isinstance(event, SetTransform):
            return expected_mode(event.transform)
    return None

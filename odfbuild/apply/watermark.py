"""Watermarks by hand: tell a root dataset that no earlier records are to be expected.

Appends an `AddData` that has no data, only the watermark, and carries on all else. Source: Open
Data Fabric, "Watermark"; reference behaviour, `set-watermark`.
"""

from __future__ import annotations

from odfbuild.apply.attempt import begin, held_elsewhere
from odfbuild.errors import PlanError
from odfbuild.odf.model import AddData, DatasetKind
from odfbuild.odf.projection import Projection
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.workspace import Workspace


def set_watermark(workspace: Workspace, name: str, moment: Timestamp) -> bool:
    """Move the watermark of a root to `moment`; `False` when it stands there already.

    `PlanError` for a derivative or an earlier time, `StaleHeadError` when somebody else is at work
    on the dataset; the chain is as before then.
    """
    with workspace.claim([name]) as claim:
        if name in claim.held:
            raise held_elsewhere(name, claim.held[name])
        state = workspace.projection(name)
        if state is None:
            raise PlanError(
                f"'{name}' has no chain yet",
                code="E0301",
                dataset=name,
                help="run `odfbuild apply` to create it",
            )
        if not _moves(name, state, moment):
            return False
        transaction = begin(workspace, name, DatasetKind.Root, state)
        transaction.add(
            AddData(
                prev_checkpoint=state.last_checkpoint,
                prev_offset=state.last_offset,
                new_watermark=moment,
                new_source_state=state.source_state,
            )
        )
        transaction.commit()
        return True


def _moves(name: str, state: Projection, moment: Timestamp) -> bool:
    if state.kind is DatasetKind.Derivative:
        raise PlanError(
            f"'{name}' is a derivative: its watermark follows from those of its inputs",
            code="E0322",
            dataset=name,
            help="set the watermark of the roots that it is computed from",
        )
    if state.watermark is not None and moment < state.watermark:
        raise PlanError(
            f"the watermark of '{name}' cannot go back from {state.watermark} to {moment}",
            code="E0323",
            dataset=name,
            notes=("readers may have relied on it already",),
            help="give a later time",
        )
    return moment != state.watermark

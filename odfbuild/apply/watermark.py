"""Set the watermark of a root dataset by hand.

For data that seldom comes: without new events nothing else lets windows of readers close. Source:
Open Data Fabric, "Watermark"; reference behaviour, `set-watermark`.
"""

from __future__ import annotations

from odfbuild.apply.refuse_external import check_own
from odfbuild.errors import PlanError
from odfbuild.odf.model import AddData, DatasetKind
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.claims import NOT_WAITING, Waiting, held_elsewhere
from odfbuild.store.workspace import Workspace


def move_watermark(
    workspace: Workspace, alias: str, watermark: Timestamp, waiting: Waiting = NOT_WAITING
) -> bool:
    """`set_watermark` now, for a person: who asks for an earlier time gets a `PlanError`.

    Raises `StaleHeadError` if another process has locked the dataset.
    """
    with workspace.claim([alias], waiting) as claim:
        if alias in claim.held:
            raise held_elsewhere(alias, claim.held[alias])
        check_own(workspace, alias)
        state = workspace.projection(alias)
        current = state.watermark if state else None
        moved = set_watermark(workspace, alias, watermark, Timestamp.now())
    if not moved and current is not None and watermark < current:
        raise PlanError(
            f"the watermark of '{alias}' cannot go back from {current} to {watermark}",
            code="E0323",
            dataset=alias,
            notes=("downstream datasets may already have used it",),
            help="give a later time",
        )
    return moved


def set_watermark(
    workspace: Workspace, alias: str, watermark: Timestamp, system_time: Timestamp
) -> bool:
    """Promise that no event before `watermark` will come; whether that was news.

    A watermark never moves back: an earlier one changes nothing. Appends an `AddData` without
    records. Raises `PlanError` for a derivative, whose watermark follows from its inputs, and
    `StaleHeadError` when another writer was first.
    """
    state = workspace.projection(alias)
    if state is None or state.kind is not DatasetKind.Root:
        raise PlanError(
            f"'{alias}' is not a root dataset: its watermark follows from its inputs",
            code="E0331",
            dataset=alias,
            help="set the watermark of the root datasets that it is derived from",
        )
    if state.watermark is not None and watermark <= state.watermark:
        return False
    event = AddData(
        prev_checkpoint=state.last_checkpoint,
        prev_offset=state.last_offset,
        new_watermark=watermark,
        # Carried along, because a peer resumes from the last block only.
        new_source_state=state.source_state,
    )
    moment = max(system_time, state.system_time)
    workspace.dataset(alias).append(state.head, [event], moment)
    return True

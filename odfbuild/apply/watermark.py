"""Set the watermark of a root dataset by hand.

For data that seldom comes: without new events nothing else lets windows of readers close. Source:
Open Data Fabric, "Watermark".
"""

from __future__ import annotations

from odfbuild.errors import PlanError
from odfbuild.odf.model import AddData, DatasetKind
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.workspace import Workspace


def set_watermark(
    workspace: Workspace, alias: str, watermark: Timestamp, system_time: Timestamp
) -> bool:
    """Promise that no event before `watermark` will come; whether that was news.

    A watermark never moves back: an earlier one changes nothing. Raises `PlanError` for a
    derivative, whose watermark follows from its inputs, and `StaleHeadError` when another writer is
    at work.
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

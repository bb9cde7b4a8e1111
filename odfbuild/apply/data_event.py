"""The event by which a root tells of new records, or of a new state of its source."""

from __future__ import annotations

from typing import Any

from odfbuild.apply.transaction import Transaction
from odfbuild.odf.model import AddData, DataSlice, SourceState
from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.settings.watermarks import WatermarkRule


def data_event(
    transaction: Transaction,
    data: DataSlice | None,
    newest: Timestamp | None,
    source_state: SourceState | None,
    rule: WatermarkRule,
    extra: dict[str, Any] | None = None,
) -> AddData:
    """What follows in `transaction`; `newest` is the latest event time of `data`."""
    state = transaction.state
    return AddData(
        prev_checkpoint=state.last_checkpoint,
        prev_offset=state.last_offset,
        new_data=data,
        new_watermark=rule.watermark(state.watermark, newest, transaction.system_time),
        # Carried in every block, because a peer resumes from the last one only.
        new_source_state=source_state,
        extra=extra or None,
    )

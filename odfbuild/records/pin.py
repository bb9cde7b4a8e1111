"""What records were read from, exactly: a dataset at a block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.odf.identity import DatasetId
    from odfbuild.odf.multihash import Multihash
    from odfbuild.odf.timestamp import Timestamp

View = Literal["current", "history"]
"""`current`: what all records amount to. `history`: every record, with the system columns."""


class Pin(Value, kw_only=True):
    """What records were read from: enough to read the same ones again, anywhere.

    `dataset` is its name here, `dataset_id` its identity everywhere. `block` is the newest block
    that was read; its hash covers all records before it. `first` and `last` are the offsets of the
    records that were read; `None` when there were none.
    """

    dataset: str
    dataset_id: DatasetId
    block: Multihash
    sequence_number: int
    system_time: Timestamp
    first: int | None
    last: int | None
    view: View

    def __str__(self) -> str:
        """A citation, on one line."""
        read = f"records {self.first:,} to {self.last:,}" if self.last is not None else "no records"
        return (
            f"{self.dataset} ({self.dataset_id}), block #{self.sequence_number} {self.block}, "
            f"committed {self.system_time}, {read}, {_SHOWN[self.view]}"
        )


_SHOWN = {"current": "current state", "history": "history"}

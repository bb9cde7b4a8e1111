"""What a plan knows about records in open and closed windows."""

from __future__ import annotations

from typing import Any

from odfbuild.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRecords:
    """Records of the inputs of a dataset that closes windows; `None`: they cannot be read here.

    `late` are to be read, but came after a window of theirs was closed. `for_new_query` were read
    before, and a changed query gets them too, for windows that are still open.
    """

    dataset: str
    late: int | None = 0
    for_new_query: int | None = 0

    def to_data(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "dataset": self.dataset,
            "late_records": self.late,
            "records_for_new_query": self.for_new_query,
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> WindowRecords:
        """From what `to_data` gives."""
        return cls(
            dataset=data["dataset"],
            late=data["late_records"],
            for_new_query=data["records_for_new_query"],
        )

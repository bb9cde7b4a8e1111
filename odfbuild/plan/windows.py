"""What a plan knows about records in open and closed windows."""

from __future__ import annotations

from typing import Any

from odfbuild.values import Value


class WindowRecords(Value, kw_only=True):
    """Records of the inputs of a dataset that closes windows; `None`: they cannot be read here.

    `late` are to be read, but came after a window of theirs was closed. All others were read before
    the query changed: `for_new_query` are in windows of the new one that are still open, `dropped`
    in an open window of the previous query and in none of the new one, `repeated` in a closed
    window of the previous query and in another one of the new query.
    """

    dataset: str
    late: int | None = 0
    for_new_query: int | None = 0
    dropped: int | None = 0
    repeated: int | None = 0

    def to_data(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "dataset": self.dataset,
            "late_records": self.late,
            "records_for_new_query": self.for_new_query,
            "dropped_records": self.dropped,
            "repeated_records": self.repeated,
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> WindowRecords:
        """From what `to_data` gives."""
        return cls(
            dataset=data["dataset"],
            late=data["late_records"],
            for_new_query=data["records_for_new_query"],
            dropped=data.get("dropped_records", 0),
            repeated=data.get("repeated_records", 0),
        )

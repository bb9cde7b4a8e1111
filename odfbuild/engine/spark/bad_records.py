"""What becomes of records that do not fit: the first is an error, or all are counted."""

from __future__ import annotations

from odfbuild.engine.contract import BadRecord, IngestTask
from odfbuild.errors import IngestError

_KEPT = 5


class BadRecords:
    """Takes the bad records of one task; `count` of them, and the first few in `examples`."""

    def __init__(self, task: IngestTask) -> None:
        self._task = task
        self.count = 0
        self.examples: list[BadRecord] = []

    def add(self, found: BadRecord, count: int = 1) -> None:
        """Note `count` records, `found` among them; `IngestError` unless they are skipped."""
        if not self._task.skip_bad_records:
            raise self.error(found)
        self.count += count
        if len(self.examples) < _KEPT and found not in self.examples:
            self.examples.append(found)

    def error(self, found: BadRecord) -> IngestError:
        """The error that `found` is."""
        return IngestError(
            f"{found.reason} in '{self._task.source_name}'",
            code="E0421",
            location=found.location,
            help="correct the row, or declare the column with a type that holds it, "
            "such as STRING, and convert it in `preprocess`",
            dataset=self._task.dataset,
        )

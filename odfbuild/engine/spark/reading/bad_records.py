"""Policy for bad records: raise an error for the first, or skip and count all."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from odfbuild.engine.contract import BadRecord, IngestTask, Skipped
from odfbuild.engine.spark.reading.bad_places import Flaw, Source, described, flaw_of_row
from odfbuild.errors import IngestError

_LOOKED_AT = 10_000
"""Rows that are taken apart to tell what is wrong with them; more are counted only."""


class BadRecords:
    """Takes the bad records of one task."""

    def __init__(self, task: IngestTask) -> None:
        self._task = task
        self.skipped = Skipped()

    @property
    def way_out(self) -> str:
        """How not to stop at a bad record."""
        return (
            f"`ingest.badRecords: {{{self._task.dataset}: skip}}` in odfbuild.yaml skips and "
            "counts such records"
        )

    def add(self, found: BadRecord) -> None:
        """Note a record; `IngestError` unless bad ones are skipped."""
        if not self._task.skip_bad_records:
            raise self.error(found)
        self.skipped = self.skipped.and_then(Skipped({found.flaw: 1}, (found,)))

    def skip(self, flaws: Sequence[Flaw], source: Source) -> None:
        """Count records with `flaws`, in the order of the file."""
        counts: Counter[str] = Counter()
        first: dict[str, list[Flaw]] = defaultdict(list)
        for number, flaw in enumerate(flaws):
            if flaw.kind != "row":
                name = f"column '{flaw.column}'"
            elif number < _LOOKED_AT:
                name = flaw_of_row(flaw.what, self._task, source.columns)
            else:
                name = "other ways"
            counts[name] += 1
            if len(first[name]) < Skipped.EXAMPLES:
                first[name].append(flaw)
        examples = self.describe([flaw for each in first.values() for flaw in each], source)
        self.skipped = self.skipped.and_then(Skipped(counts, tuple(examples)))

    def describe(self, flaws: Sequence[Flaw], source: Source) -> list[BadRecord]:
        """What is wrong with records, and where they stand."""
        return described(flaws, self._task, source)

    def blank(self, found: BadRecord) -> IngestError:
        """The error that `found`, a record without an event time, is."""
        name = self._task.dataset
        return IngestError(
            f"{found.reason} in '{self._task.source_name}'",
            code="E0437",
            location=found.location,
            dataset=name,
            notes=("with the time of ingestion it would move the watermark, and close windows",),
            help=f"give it a time; or let `ingest.blankEventTimes: {{{name}: fill}}` in "
            f"odfbuild.yaml take the time of the file or of ingestion; {self.way_out}",
        )

    def error(self, found: BadRecord) -> IngestError:
        """The error that `found` is."""
        return IngestError(
            f"{found.reason} in '{self._task.source_name}'",
            code="E0421",
            location=found.location,
            help="correct the row, or declare the column with a type that holds it, "
            f"such as STRING, and convert it in `preprocess`; {self.way_out}",
            dataset=self._task.dataset,
        )

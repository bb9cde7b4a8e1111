"""How new data joins the history of a dataset."""

from __future__ import annotations

from typing import ClassVar

from odfbuild.odf.model.record import Record


class MergeStrategyAppend(Record):
    """Everything is appended."""

    KIND: ClassVar[str] = "Append"


class MergeStrategyLedger(Record):
    """Records whose key was never seen are appended."""

    KIND: ClassVar[str] = "Ledger"

    primary_key: tuple[str, ...]


class MergeStrategySnapshot(Record):
    """Differences to the current state are recorded."""

    KIND: ClassVar[str] = "Snapshot"

    primary_key: tuple[str, ...]
    compare_columns: tuple[str, ...] | None = None


class MergeStrategyChangelogStream(Record):
    """The source is a changelog already."""

    KIND: ClassVar[str] = "ChangelogStream"

    primary_key: tuple[str, ...]


class MergeStrategyUpsertStream(Record):
    """The source is a stream of upserts and deletes."""

    KIND: ClassVar[str] = "UpsertStream"

    primary_key: tuple[str, ...]


MergeStrategy = (
    MergeStrategyAppend
    | MergeStrategyLedger
    | MergeStrategySnapshot
    | MergeStrategyChangelogStream
    | MergeStrategyUpsertStream
)
"""How new data joins the history."""

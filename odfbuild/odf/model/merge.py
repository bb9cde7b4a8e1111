"""How new data joins the history of a dataset.

A strategy says here what others ask about it; how it is computed is said in
`engine/spark/merging/merge.py`. docs/extending.md adds one.
"""

from __future__ import annotations

from typing import ClassVar

from odfbuild.odf.model.record import Record


class Strategy(Record):
    """What is asked about a merge strategy; the answers here are the safe ones.

    `KEEPS_ALL`: each record is appended. `ONLY_APPENDS`: no record is taken back. `IS_WHOLE`: what
    does not come is gone. `COMPARES`: new values are compared with committed ones. `HAS_CHANGES`:
    records may say by the column of operations what they do. `REPEATS`: a record that comes again
    is added again. `LOOKS_UP`: earlier records are looked up by their keys.
    """

    KEEPS_ALL: ClassVar[bool] = False
    ONLY_APPENDS: ClassVar[bool] = False
    IS_WHOLE: ClassVar[bool] = False
    COMPARES: ClassVar[bool] = False
    HAS_CHANGES: ClassVar[bool] = False
    REPEATS: ClassVar[bool] = False
    LOOKS_UP: ClassVar[bool] = False

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the primary key, `()` if there is none."""
        return getattr(self, "primary_key", ())

    def most(self, rows: int, files: int, own: int) -> int | None:
        """How many records merging so many rows appends at most to a dataset that has `own` ones.

        `None`: nobody can tell.
        """
        return rows if self.ONLY_APPENDS else None


class MergeStrategyAppend(Strategy):
    """Everything is appended."""

    KIND: ClassVar[str] = "Append"
    KEEPS_ALL = ONLY_APPENDS = REPEATS = True


class MergeStrategyLedger(Strategy):
    """Records whose key was never seen are appended."""

    KIND: ClassVar[str] = "Ledger"
    ONLY_APPENDS = LOOKS_UP = True

    primary_key: tuple[str, ...]


class MergeStrategySnapshot(Strategy):
    """Differences to the current state are recorded."""

    KIND: ClassVar[str] = "Snapshot"
    IS_WHOLE = COMPARES = True

    primary_key: tuple[str, ...]
    compare_columns: tuple[str, ...] | None = None

    def most(self, rows: int, files: int, own: int) -> int | None:
        """A change takes two records.

        What a file lacks is retracted: it was there, or came with a file before it.
        """
        return rows if files == 1 and not own else own + (2 if files == 1 else 3) * rows


class MergeStrategyChangelogStream(Strategy):
    """The source is a changelog already."""

    KIND: ClassVar[str] = "ChangelogStream"
    HAS_CHANGES = REPEATS = True

    primary_key: tuple[str, ...]


class MergeStrategyUpsertStream(Strategy):
    """The source is a stream of upserts and deletes."""

    KIND: ClassVar[str] = "UpsertStream"
    COMPARES = HAS_CHANGES = LOOKS_UP = True

    primary_key: tuple[str, ...]

    def most(self, rows: int, files: int, own: int) -> int | None:
        """A change takes two records."""
        return 2 * rows


MergeStrategy = (
    MergeStrategyAppend
    | MergeStrategyLedger
    | MergeStrategySnapshot
    | MergeStrategyChangelogStream
    | MergeStrategyUpsertStream
)
"""How new data joins the history."""

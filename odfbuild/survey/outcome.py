"""The outcome of each dataset of an apply, and the exit code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from odfbuild.engine.contract import NO_DRIFT, NONE_SKIPPED, Drift, Skipped
from odfbuild.errors import OdfbuildError
from odfbuild.exchange.repositories.outcome import Transfer
from odfbuild.exchange.repositories.outcome import exit_code as transfers_exit_code
from odfbuild.values import Value


class Status(Enum):
    """How an apply ended for one dataset."""

    COMMITTED = "committed"
    NOOP = "noop"
    SKIPPED = "skipped"
    FAILED = "failed"
    LOST = "lost"
    INTERRUPTED = "interrupted"


class DatasetOutcome(Value, kw_only=True):
    """The end of one dataset: blocks and records added, seconds of wall time, and why.

    `records_read` are those of inputs that a derivative went over, each counted once.
    `LOST` means that another writer holds or has moved the dataset; nothing was written then.
    `skipped` are bad records that were left out; `drift` is about columns of a source that were not
    the expected ones; `late` counts records that came behind a window, by input.
    """

    name: str
    status: Status
    because: str = ""
    blocks: int = 0
    records: int = 0
    records_read: int = 0
    skipped: Skipped = NONE_SKIPPED
    drift: Drift = NO_DRIFT
    warnings: tuple[str, ...] = ()
    late: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    error: OdfbuildError | None = None


class TableOutcome(Value, kw_only=True):
    """The end of one published table: how many partitions and records were written, and why.

    `NOOP`: it held everything already. `LOST`: another writer was first. A table that failed is as
    it was.
    """

    name: str
    dataset: str
    status: Status
    because: str = ""
    partitions: int = 0
    records: int = 0
    seconds: float = 0.0
    error: OdfbuildError | None = None


class WithdrawalOutcome(Value, kw_only=True):
    """What became of the old records of a dataset: so many are withdrawn, or why not."""

    dataset: str
    objects: int = 0
    records: int = 0
    error: OdfbuildError | None = None


class ApplyOutcome(Value, kw_only=True):
    """All datasets that apply touched or had to leave, in the order of the plan, and wall time.

    `withdrawn` tells of old records, `tables` are those that were published or looked at;
    `published` is what was pushed to repositories afterwards.
    """

    datasets: tuple[DatasetOutcome, ...]
    interrupted: bool = False
    seconds: float = 0.0
    withdrawn: tuple[WithdrawalOutcome, ...] = ()
    tables: tuple[TableOutcome, ...] = ()
    published: tuple[Transfer, ...] = ()

    @property
    def records(self) -> int:
        """Records that were added to all datasets."""
        return sum(each.records for each in self.datasets)

    def having(self, status: Status) -> tuple[DatasetOutcome, ...]:
        """The datasets with that status."""
        return tuple(outcome for outcome in self.datasets if outcome.status is status)

    @property
    def errors(self) -> list[OdfbuildError]:
        """Errors of datasets, those that several datasets share once."""
        found = [
            *(each.error for each in self.datasets),
            *(each.error for each in self.withdrawn),
            *(each.error for each in self.tables),
            *(each.error for each in self.published),
        ]
        return list(dict.fromkeys(error for error in found if error is not None))

    @property
    def exit_code(self) -> int:
        """0 done; 1 failed; 4 some committed, some not; 5 another writer was first; 9 is; 130.

        What was committed and could not be published counts as not done.
        """
        if self.interrupted:
            return 130
        failed = bool(self.having(Status.FAILED))
        lost = self.having(Status.LOST)
        others = [*(e.error for e in self.withdrawn), *(e.error for e in self.tables)]
        unpublished = transfers_exit_code(self.published) or max(
            (error.exit_code for error in others if error), default=0
        )
        if not failed and not lost and not unpublished:
            return 0
        written = any(each.status is Status.COMMITTED for each in self.tables) or any(
            each.error is None for each in self.withdrawn
        )
        if written or any(outcome.blocks for outcome in self.datasets):
            return 4
        if failed:
            return 1
        if not lost:
            return unpublished
        held = (outcome.error is not None and outcome.error.exit_code == 9 for outcome in lost)
        return 9 if all(held) else 5

"""Run one dataset, and return an outcome for every kind of failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from odfbuild.apply.audit import Audit
from odfbuild.apply.personal import Hide
from odfbuild.apply.transaction import Transaction
from odfbuild.engine.contract import Drift, Skipped
from odfbuild.errors import OdfbuildError, StaleHeadError
from odfbuild.ingest.secrets import scrub, scrub_error
from odfbuild.ingest.unexpected_errors import unforeseen
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import DatasetKind
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.workspace import Workspace
from odfbuild.survey.outcome import DatasetOutcome, Status


class Progress:
    """What one dataset has committed so far, also when it fails later."""

    def __init__(self, committed: Callable[[int, int], None]) -> None:
        self._committed = committed
        self.blocks = 0
        self.records = 0
        self.skipped = Skipped()
        self.drift = Drift()
        self.renamed_from: str | None = None
        self.deleted = False
        self.warnings: tuple[str, ...] = ()
        self.late: Counter[str] = Counter()
        self._read: dict[Path, int] = {}

    @property
    def records_read(self) -> int:
        """How many records of its inputs were read, each counted once."""
        return sum(self._read.values())

    def read(self, files: Iterable[Path], counted: Mapping[Path, int]) -> None:
        """Count the records in data files of inputs; how many others have was `counted`."""
        import pyarrow.parquet as pq

        self._read.update(counted)
        for file in files:
            if file not in self._read:
                self._read[file] = pq.read_metadata(file).num_rows

    def add(self, blocks: int, records: int = 0) -> None:
        """Count what a commit added, and say so."""
        self.blocks += blocks
        self.records += records
        if blocks:
            self._committed(self.blocks, self.records)

    def skip(self, skipped: Skipped) -> None:
        """Count bad records that were left out."""
        self.skipped = self.skipped.and_then(skipped)

    def warn(self, *found: object) -> None:
        """Note what does not stop the work, such as a check that was not kept and only warns."""
        self.warnings = (*self.warnings, *map(str, found))

    def tolerate(self, drift: Drift) -> None:
        """Note columns of a source that were not the expected ones."""
        self.drift = self.drift.and_then(drift)


def attempt(
    name: str,
    work: Callable[[Progress], str],
    *,
    locate: Callable[[str, OdfbuildError], OdfbuildError],
    cache: Path,
    committed: Callable[[int, int], None],
    hide: Hide | None = None,
) -> DatasetOutcome:
    """Do `work` on a dataset; never raises for its failure.

    `work` returns why nothing was done, which counts when nothing was committed. `locate` maps an
    error to a place in the project's files, `hide` takes values of records out of it. A defect of
    ours is logged in the folder `cache`. `committed` hears of blocks and records so far, after each
    commit.
    """
    progress = Progress(committed)

    def ended(status: Status, because: str, error: OdfbuildError | None = None) -> DatasetOutcome:
        return DatasetOutcome(
            name=name,
            status=status,
            because=because,
            blocks=progress.blocks,
            records=progress.records,
            records_read=progress.records_read,
            skipped=progress.skipped if hide is None else Skipped(progress.skipped.counts),
            drift=progress.drift,
            warnings=progress.warnings,
            late=dict(progress.late),
            error=error,
        )

    try:
        because = work(progress)
    except StaleHeadError as error:
        return ended(Status.LOST, error.message, error)
    except OdfbuildError as error:
        error = hide(error) if hide is not None else error
        return ended(Status.FAILED, scrub(error.message), scrub_error(locate(name, error)))
    except Exception as error:  # a defect of ours must not take the other datasets down
        if hide is not None:  # its text may quote a record
            error = RuntimeError(type(error).__name__).with_traceback(error.__traceback__)
        defect = unforeseen(error, cache, f"working on '{name}'", name)
        return ended(Status.FAILED, defect.message, defect)
    if progress.renamed_from is not None:
        return ended(Status.COMMITTED, f"renamed from {progress.renamed_from}")
    if progress.deleted:
        return ended(Status.COMMITTED, "deleted")
    return ended(Status.COMMITTED if progress.blocks else Status.NOOP, because)


def begin(
    workspace: Workspace,
    name: str,
    kind: DatasetKind,
    base: Projection | None,
    replaces: Multihash | None = None,
    audit: Audit | None = None,
) -> Transaction:
    """An empty transaction on top of `base`, at the present time; `replaces` as it says there."""
    now = Timestamp.now()
    # A clock that was set back must not break the order of the chain.
    system_time = max(now, base.system_time) if base else now
    return Transaction(workspace, name, kind, base, system_time, replaces, audit)

"""Work on one dataset: a place for scratch files, and an outcome whatever happens."""

from __future__ import annotations

import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from odfbuild.apply.outcome import DatasetOutcome, Status
from odfbuild.apply.transaction import Transaction
from odfbuild.errors import OdfbuildError, StaleHeadError
from odfbuild.odf.model import DatasetKind
from odfbuild.odf.projection import Projection
from odfbuild.odf.timestamp import Timestamp
from odfbuild.store.workspace import Workspace


class Progress:
    """What one dataset has committed so far, also when it fails later."""

    def __init__(self) -> None:
        self.blocks = 0
        self.records = 0

    def add(self, blocks: int, records: int) -> None:
        """Count what a commit added."""
        self.blocks += blocks
        self.records += records


def attempt(
    name: str,
    work: Callable[[Progress], str],
    *,
    locate: Callable[[str, OdfbuildError], OdfbuildError],
    cache: Path,
) -> DatasetOutcome:
    """Do `work` on a dataset; never raises for its failure.

    `work` returns why nothing was done, which counts when nothing was committed. `locate` maps an
    error to a place in the project's files. A defect of ours is logged in the folder `cache`.
    """
    progress = Progress()

    def ended(status: Status, because: str, error: OdfbuildError | None = None) -> DatasetOutcome:
        return DatasetOutcome(
            name=name,
            status=status,
            because=because,
            blocks=progress.blocks,
            records=progress.records,
            error=error,
        )

    try:
        because = work(progress)
    except StaleHeadError as error:
        return ended(Status.LOST, error.message, error)
    except OdfbuildError as error:
        return ended(Status.FAILED, error.message, locate(name, error))
    except Exception as error:  # a defect of ours must not take the other datasets down
        defect = _defect(name, error, cache)
        return ended(Status.FAILED, defect.message, defect)
    return ended(Status.COMMITTED if progress.blocks else Status.NOOP, because)


@contextmanager
def scratch_folder(cache: Path) -> Iterator[Path]:
    """A folder of one's own inside `cache`, removed at the end."""
    # Inside the project, so that a staged file can be moved into a dataset by rename.
    base = cache / "scratch"
    base.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="apply-", dir=base))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def begin(
    workspace: Workspace, name: str, kind: DatasetKind, base: Projection | None
) -> Transaction:
    """An empty transaction on top of `base`, at the present time."""
    now = Timestamp.now()
    # A clock that was set back must not break the order of the chain.
    system_time = max(now, base.system_time) if base else now
    return Transaction(workspace, name, kind, base, system_time)


def held_elsewhere(name: str, holder: str) -> StaleHeadError:
    """The error for a dataset that another process has claimed."""
    return StaleHeadError(
        f"another process is at work on '{name}' ({holder})",
        code="E0702",
        dataset=name,
        help="wait until it is done, then run the same command again",
    )


def _defect(name: str, error: Exception, cache: Path) -> OdfbuildError:
    log = cache / "defect.log"
    log.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    return OdfbuildError(
        f"internal error while working on '{name}': {type(error).__name__}: {error}",
        code="E0999",
        dataset=name,
        notes=(f"the details are in {log}",),
        help="this is a defect of odfbuild; please report it with that file",
    )

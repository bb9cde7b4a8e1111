"""Ingest only the planned files: files that arrived later wait for the next plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from odfbuild.errors import OdfbuildError, StaleHeadError
from odfbuild.ingest.fetch import Fetched
from odfbuild.ingest.fetch.sftp_address import is_elsewhere
from odfbuild.odf.model import FetchStep, FetchStepFilesGlob
from odfbuild.plan.model import DatasetPlan

_FILES = 500
"""How many files of a batch are read in one job."""
_BYTES = 4 << 20
"""The size of the largest file that is read with others: larger ones gain nothing by it."""


def as_planned(item: DatasetPlan, step: FetchStep, found: Iterable[Fetched]) -> Iterator[Fetched]:
    """The planned files of those that are found now.

    Raises `StaleHeadError` E0703 when another file comes before a planned one: the order of files
    is the order of records, so it cannot be left for later. Sources without a list of files in
    the plan are taken as they are.
    """
    planned = item.pending.files if item.pending else ()
    if not planned or not isinstance(step, FetchStepFilesGlob):
        yield from found
        return
    waiting = list(planned)
    for fetched in found:
        if not waiting:
            return
        if fetched.display_name != waiting[0]:
            raise _changed(item.name, waiting[0], fetched.display_name)
        yield fetched
        waiting.pop(0)
    if waiting:
        raise _changed(item.name, waiting[0], "nothing")


def in_batches(step: FetchStep, found: Iterable[Fetched]) -> Iterator[Sequence[Fetched]]:
    """Files that may be looked at together; what they raise comes after those before.

    Only files of a folder: taking the next one from another source says that the last is committed.
    The first is alone, because what comes of it may decide how others are read.
    """
    batch: list[Fetched] = []
    local = isinstance(step, FetchStepFilesGlob) and not is_elsewhere(step.path)
    most, size = 1, 0
    try:
        for fetched in found:
            batch.append(fetched)
            size += fetched.file.stat().st_size if fetched.file is not None and local else 0
            if len(batch) >= most or size >= _BYTES:
                yield batch
                batch, size, most = [], 0, _FILES if local else 1
    except (OdfbuildError, OSError):
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _changed(name: str, planned: str, found: str) -> StaleHeadError:
    return StaleHeadError(
        f"the source of '{name}' changed since the plan was made: "
        f"{planned} was next, and now it is {found}",
        code="E0703",
        dataset=name,
        help=f"plan it again: `odfbuild plan -s {name}`",
    )

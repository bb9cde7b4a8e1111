"""Progress in Python's `logging`, for programs that show no progress of their own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odfbuild.engine.contract import StepProgress
    from odfbuild.errors import OdfbuildError
    from odfbuild.exchange.repositories.outcome import Transfer
    from odfbuild.survey.outcome import DatasetOutcome

_LOG = logging.getLogger("odfbuild.apply")
_TRANSFERS = logging.getLogger("odfbuild.exchange.repositories")


class Logged:
    """A listener that logs datasets as they start, commit and end; called from several threads."""

    def begin(self, total: int, step_progress: Callable[[str], StepProgress | None]) -> None:
        """`total` datasets are going to be worked on."""
        _LOG.info("%d datasets to work on", total)

    def started(self, name: str) -> None:
        """Work on a dataset begins."""
        _LOG.info("%s: started", name)

    def progressed(self, name: str, blocks: int, records: int) -> None:
        """So much of a dataset is committed by now."""
        _LOG.debug("%s: %d blocks, %d records so far", name, blocks, records)

    def finished(self, outcome: DatasetOutcome) -> None:
        """Work on a dataset has ended."""
        name, seconds = outcome.name, outcome.seconds
        for warning in outcome.warnings:
            _LOG.warning("%s: %s", name, warning)
        if outcome.error is not None:
            _LOG.error(
                "%s: %s after %.1f s: %s", name, outcome.status.value, seconds, outcome.error
            )
        else:
            _LOG.info(
                "%s: %s %d records in %d blocks after %.1f s",
                name,
                outcome.status.value,
                outcome.records,
                outcome.blocks,
                seconds,
            )


class LoggedTransfers:
    """A watcher that logs datasets as they are pulled or pushed; called from several threads."""

    def started(self, name: str) -> None:
        """A dataset is being worked on."""
        _TRANSFERS.debug("%s: started", name)

    def sized(self, name: str, size: int) -> None:
        """So many bytes of objects belong to it."""
        _TRANSFERS.info("%s: %d bytes of objects", name, size)

    def moved(self, name: str, size: int) -> None:
        """So many more bytes have been transferred."""

    def finished(self, transfer: Transfer) -> None:
        """A dataset is done, or failed."""
        if transfer.error is not None:
            _TRANSFERS.error("%s: %s: %s", transfer.name, transfer.status.value, transfer.error)
            return
        _TRANSFERS.info(
            "%s: %s: %d blocks, %d records",
            transfer.name,
            transfer.status.value,
            transfer.blocks,
            transfer.records,
        )


def warn(errors: Iterable[OdfbuildError]) -> None:
    """Log errors that stop nothing."""
    for each in errors:
        _LOG.warning("[%s] %s", each.code, each.message)

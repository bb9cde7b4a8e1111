"""What became of a dataset that was pulled or pushed, and who hears of it while it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from odfbuild.errors import OdfbuildError
from odfbuild.exchange.repositories.head_rules import Vouched
from odfbuild.odf.multihash import Multihash
from odfbuild.values import Value


class TransferStatus(StrEnum):
    """How the transfer of a dataset ended."""

    NEW = "new"
    UPDATED = "updated"
    REPLACED = "replaced"
    UP_TO_DATE = "up-to-date"
    FAILED = "failed"


class Transfer(Value, kw_only=True):
    """What a pull or push did with the dataset `name`, or would do.

    `address` is where it was pulled from or pushed to, `before` and `after` are the heads of the
    chain that moved. `blocks`, `records`, `objects` and their `bytes` are what was added;
    `lost_blocks` and `lost_records` are no longer part of a history that was replaced. `vouched`
    says what of the chain its owner has signed, where that was looked at.
    """

    name: str
    address: str
    status: TransferStatus
    before: Multihash | None = None
    after: Multihash | None = None
    blocks: int = 0
    records: int = 0
    objects: int = 0
    bytes: int = 0
    lost_blocks: int = 0
    lost_records: int = 0
    vouched: Vouched | None = None
    error: OdfbuildError | None = None


def exit_code(transfers: Sequence[Transfer]) -> int:
    """0, or the greatest exit code of the errors."""
    return max((each.error.exit_code for each in transfers if each.error is not None), default=0)


class Watcher(Protocol):
    """Hears of transfers while they go on, from several threads."""

    def started(self, name: str) -> None:
        """A dataset is being worked on."""

    def sized(self, name: str, size: int) -> None:
        """So many bytes of objects belong to it."""

    def moved(self, name: str, size: int) -> None:
        """So many more bytes have been transferred."""

    def finished(self, transfer: Transfer) -> None:
        """A dataset is done, or failed."""


class Silent:
    """A `Watcher` that tells nobody."""

    def started(self, name: str) -> None:
        """See `Watcher`."""

    def sized(self, name: str, size: int) -> None:
        """See `Watcher`."""

    def moved(self, name: str, size: int) -> None:
        """See `Watcher`."""

    def finished(self, transfer: Transfer) -> None:
        """See `Watcher`."""

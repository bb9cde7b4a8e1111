"""Transfer several datasets at once; what fails with one leaves the others alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Protocol, TypeVar

from odfbuild.errors import OdfbuildError
from odfbuild.exchange.repositories.outcome import Silent, Transfer, TransferStatus, Watcher

AT_ONCE = 8
"""Datasets that are worked on at the same time."""


class Wanted(Protocol):
    """A dataset to transfer, by its alias here and the address of the other side."""

    @property
    def name(self) -> str:
        """Its alias."""

    @property
    def address(self) -> str:
        """Where the other side is."""


_W = TypeVar("_W", bound=Wanted)


def each_on_its_own(
    wanted: Sequence[_W], work: Callable[[_W, Watcher], Transfer], watcher: Watcher | None
) -> tuple[Transfer, ...]:
    """What became of each, in the same order; `work` gets the watcher that it has to tell.

    `KeyboardInterrupt` ends those that are under way, too, with the next piece of an object.
    """
    stopped = Event()
    watcher = _Stoppable(watcher or Silent(), stopped)

    def attempt(each: _W) -> Transfer | None:
        if stopped.is_set():
            return None
        watcher.started(each.name)
        try:
            transfer = work(each, watcher)
        except OdfbuildError as error:
            transfer = Transfer(
                name=each.name,
                address=each.address,
                status=TransferStatus.FAILED,
                error=error.changed(dataset=error.dataset or each.name),
            )
        watcher.finished(transfer)
        return transfer

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="transfer") as pool:
        try:
            found = list(pool.map(attempt, wanted))
        except BaseException:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return tuple(each for each in found if each is not None)


class _Stopped(BaseException):
    """Ends a transfer that nobody wants any more; what is complete stays for the next one."""


class _Stoppable:
    """Passes on what it hears until the work is stopped."""

    def __init__(self, watcher: Watcher, stopped: Event) -> None:
        self.started, self.sized, self.finished = watcher.started, watcher.sized, watcher.finished
        self._moved = watcher.moved
        self._stopped = stopped

    def moved(self, name: str, size: int) -> None:
        """See `Watcher`."""
        if self._stopped.is_set():
            raise _Stopped
        self._moved(name, size)

"""Let threads share the work on a stream: what comes next, what is left to do with each item.

It pays where most of the time goes into code that lets other threads run, such as Arrow's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_END: Any = object()


def ahead(items: Iterable[T], count: int = 2) -> Iterator[T]:
    """The same items in their order; up to `count` of them wait, computed in a thread of its own.

    What computing them raises is raised in their place. With a `count` of 0 there is no thread.
    """
    if not count:
        yield from items
        return
    iterator = iter(items)
    pool = ThreadPoolExecutor(1, thread_name_prefix="ahead")
    try:
        waiting = deque(pool.submit(next, iterator, _END) for _ in range(count))
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(pool.submit(next, iterator, _END))
            yield item
    finally:
        pool.shutdown(cancel_futures=True)


class Worker(Generic[T]):
    """Does the same with each item, in their order, in a thread of its own.

    Up to `count` items wait. What doing it raises is raised by one of the calls that follow. With a
    `count` of 0 there is no thread: it is done at once.
    """

    def __init__(self, do: Callable[[T], object], count: int = 2) -> None:
        self._do = do
        self._count = count
        self._waiting: deque[Future[object]] = deque()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="behind") if count else None

    def give(self, item: T) -> None:
        """Let `item` be worked on; waits while too many are."""
        if self._pool is None:
            self._do(item)
            return
        while len(self._waiting) >= self._count:
            self._waiting.popleft().result()
        self._waiting.append(self._pool.submit(self._do, item))

    def finish(self) -> None:
        """Wait until all is done."""
        while self._waiting:
            self._waiting.popleft().result()

    def stop(self) -> None:
        """End the thread; what still waits is left undone."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

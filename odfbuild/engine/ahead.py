"""Compute the next items of a stream while those before are in use."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
_END: Any = object()


def ahead(items: Iterable[T], count: int = 2) -> Iterator[T]:
    """The same items in their order; up to `count` of them wait, computed in a thread of its own.

    What computing them raises is raised in their place. It pays where most of the time goes into
    code that lets other threads run, such as Arrow's.
    """
    iterator = iter(items)
    pool = ThreadPoolExecutor(1, thread_name_prefix="ahead")
    try:
        waiting = deque(pool.submit(next, iterator, _END) for _ in range(count))
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(pool.submit(next, iterator, _END))
            yield item
    finally:
        pool.shutdown(cancel_futures=True)

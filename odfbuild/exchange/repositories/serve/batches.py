"""Requests that come at the same time are committed together; each waits for its own answer.

A batch of a dataset is complete after a short time, or when it is large enough; meanwhile those
that come behind gather for the next one. At most a few datasets are worked on at once.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from odfbuild.errors import OdfbuildError
from odfbuild.exchange.repositories.serve.handed import Handed, Receipt, Taker
from odfbuild.project.settings.serving import Pushing

_AT_ONCE = 4


@dataclass(slots=True)
class _Line:
    """Requests for a dataset that wait."""

    waiting: list[tuple[Handed, int, asyncio.Future[Receipt | OdfbuildError]]]
    full: asyncio.Event


class Batches:
    """The requests of a server that wait for their commit; used within one event loop."""

    def __init__(self, taker: Taker, limits: Pushing) -> None:
        self._taker = taker
        self._limits = limits
        self._lines: dict[str, _Line] = {}
        self._working: dict[str, asyncio.Task[None]] = {}
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    async def commit(self, dataset: str, handed: Handed, size: int) -> Receipt | OdfbuildError:
        """Wait until the request is committed, or cannot be; `size` of its data in bytes."""
        line = self._lines.setdefault(dataset, _Line([], asyncio.Event()))
        future: asyncio.Future[Receipt | OdfbuildError] = asyncio.get_running_loop().create_future()
        line.waiting.append((handed, size, future))
        if self._is_full(line):
            line.full.set()
        if dataset not in self._working:
            self._working[dataset] = asyncio.create_task(self._work(dataset, line))
        return await asyncio.shield(future)

    async def _work(self, dataset: str, line: _Line) -> None:
        """Commit what waits for a dataset, until nothing does."""
        try:
            while line.waiting:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._limits.batch_seconds):
                        await line.full.wait()
                number = self._taken(line)
                batch, line.waiting = line.waiting[:number], line.waiting[number:]
                line.full.clear()
                if self._is_full(line):
                    line.full.set()
                async with self._at_once:
                    handed = [each for each, _, _ in batch]
                    answers = await run_in_threadpool(self._taker.take, dataset, handed)
                for (_, _, future), answer in zip(batch, answers, strict=True):
                    if not future.done():
                        future.set_result(answer)
        finally:
            del self._working[dataset], self._lines[dataset]

    def _taken(self, line: _Line) -> int:
        """How many of those that wait are the next batch: one at least."""
        size = 0
        for number, (_, each, _) in enumerate(line.waiting[: self._limits.batch_requests]):
            size += each
            if size >= self._limits.batch_mb << 20:
                return number + 1
        return min(len(line.waiting), self._limits.batch_requests)

    def _is_full(self, line: _Line) -> bool:
        size = sum(each for _, each, _ in line.waiting)
        many = len(line.waiting) >= self._limits.batch_requests
        return many or size >= self._limits.batch_mb << 20

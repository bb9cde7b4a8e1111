"""Run tasks of a graph concurrently, inputs first.

A failed task stops its descendants and nothing else. Knows nothing of datasets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

Result = TypeVar("Result")


def run_graph(
    order: Sequence[str],
    inputs: Mapping[str, Sequence[str]],
    work: Callable[[str], Result],
    skip: Callable[[str, str], Result],
    failed: Callable[[Result], bool],
    *,
    jobs: int,
    stopped: Callable[[], bool],
) -> dict[str, Result]:
    """Call `work(name)` for every name in `order` once all its inputs are done.

    `inputs` may mention names that are not in `order`; those count as done. When a task's result is
    `failed`, each descendant gets `skip(name, culprit)` instead. Once it is `stopped` no new task
    starts; names that never started are missing from the result. `work` must not raise.
    """
    readers: dict[str, list[str]] = {name: [] for name in order}
    # Without networkx, whose import takes as long as a small apply.
    missing = {name: {each for each in inputs.get(name, ()) if each in readers} for name in order}
    for name, found in missing.items():
        for each in found:
            readers[each].append(name)
    ready = deque(name for name in order if not missing[name])
    results: dict[str, Result] = {}
    culprits: dict[str, str] = {}
    running: dict[Future[Result], str] = {}

    def settle(name: str, result: Result) -> None:
        results[name] = result
        if failed(result):
            culprits.setdefault(name, name)
        for reader in readers[name]:
            missing[reader].discard(name)
            if name in culprits:
                culprits.setdefault(reader, culprits[name])
            if not missing[reader]:
                ready.append(reader)

    with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="apply") as pool:
        while True:
            # What waits in the pool could not be stopped any more.
            while ready and len(running) < jobs and not stopped():
                name = ready.popleft()
                if name in culprits:
                    settle(name, skip(name, culprits[name]))
                else:
                    running[pool.submit(work, name)] = name
            if not running:
                return results
            done, _ = wait(running, return_when=FIRST_COMPLETED, timeout=0.5)
            for future in done:
                settle(running.pop(future), future.result())

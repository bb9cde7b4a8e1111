"""`python -m` this: odfbuild with an engine that needs no JVM, killed where the environment says.

`KILL_AT` counts changes of files below `chains/`, from 0; the process dies before that one.
`KILL_BEFORE_ANSWER` kills it when a batch is committed, and nobody has been told.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from odfbuild.apply.intake import Intake
from odfbuild.cli.main import run
from odfbuild.engine.contract import EngineResult, IngestTask, TransformTask
from odfbuild.engine.spark import start as module
from tests.apply.plain_engine import MILLIS, PlainEngine

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate"}


class Together(PlainEngine):
    """Reads files that are appended in one call, too; records without a time get the task's."""

    def _result(self, rows: pa.Table, task: TransformTask | IngestTask) -> EngineResult:
        if isinstance(task, IngestTask):
            time = pa.scalar(task.event_time.millis, pa.int64()).cast(MILLIS)
            rows = rows.set_column(0, "event_time", pc.fill_null(rows["event_time"], time))
        return super()._result(rows, task)

    def ingest_together(self, tasks: Sequence[IngestTask]) -> Sequence[EngineResult] | None:
        return [self.ingest(task) for task in tasks]


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _kill_at(step: int) -> None:
    numbers = itertools.count()

    def hear(event: str, given: tuple[Any, ...]) -> None:
        if event not in _CHANGES and not (event == "open" and given[2] & _WRITES):
            return
        paths = given[:2] if event == "os.rename" else given[:1]
        if any("/chains/" in str(path) for path in paths) and next(numbers) == step:
            _die()

    sys.addaudithook(hear)


if __name__ == "__main__":
    start: Any = module
    start.start_engine = lambda *_: Together()
    if "KILL_AT" in os.environ:
        _kill_at(int(os.environ["KILL_AT"]))
    if "KILL_BEFORE_ANSWER" in os.environ:
        changed: Any = Intake
        commit = changed._commit

        def last_deed(*given: Any) -> None:
            commit(*given)
            _die()

        changed._commit = last_deed
    sys.exit(run(sys.argv[1:]))

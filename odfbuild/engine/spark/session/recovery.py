"""Replace a JVM that ended, and find the step that caused it.

A query that fills the heap ends the JVM and all other steps in it. The next step gets a new JVM;
interrupted steps are retried one by one, so that only the one that cannot succeed fails.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from odfbuild.engine.spark.session.session import Session
from odfbuild.errors import Code, EnvironmentProblem, OdfbuildError, QueryError

Result = TypeVar("Result")

OUT_OF_MEMORY = 3
"""What the JVM ends with when told to end on `OutOfMemoryError`."""

_SETTLE_SECONDS = 3.0  # a JVM that is just ending may share its machine with others
_CUT_OFF = re.compile(
    r"SparkContext was shut ?down|stopped SparkContext"
    r"|Error while (sending|receiving)|Answer from Java side is empty|Connection (refused|reset)"
)
"""What errors say that come of a JVM that is just ending, whatever else they say."""
_WORKER_MEMORY = re.compile(
    r"OutOfMemoryError|UNABLE_TO_ACQUIRE_MEMORY|ExecutorLostFailure|code 52\b"
)


class JvmEnded(Exception):
    """The JVM ended under a piece of work; `error` says so to people."""

    def __init__(self, error: OdfbuildError) -> None:
        self.error = error
        super().__init__(error.message)


@dataclass(eq=False)
class _Turn:
    crowded: bool


class Recovery:
    """Gives sessions to pieces of work, several at once."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._starting = threading.Lock()
        self._changed = threading.Condition()
        self._turns: set[_Turn] = set()
        self._waiting = 0

    def live(self) -> Session:
        """The session, restarted if its JVM has ended."""
        with self._starting:
            if self.session.spark is None or self.session.exit_code(0) is not None:
                self.session.stop()
                self.session = Session(self.session.settings, self.session.reach)
            return self.session

    def carry_out(self, work: Callable[[bool], Result]) -> Result:
        """`work(False)`; if a JVM ended under it and others, `work(True)` with none beside it.

        Raises the error for people when `work` is to blame.
        """
        try:
            with self._together() as turn:
                return work(False)
        except JvmEnded as ended:
            if not turn.crowded:
                raise ended.error from None
        try:
            with self._alone():
                return work(True)
        except JvmEnded as ended:
            raise ended.error from None

    @contextmanager
    def _together(self) -> Iterator[_Turn]:
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting)
            for each in self._turns:
                each.crowded = True
            turn = _Turn(crowded=bool(self._turns))
            self._turns.add(turn)
        try:
            yield turn
        finally:
            self._leave(turn)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._changed:
            self._waiting += 1
            self._changed.wait_for(lambda: not self._turns)
            turn = _Turn(crowded=False)
            self._turns.add(turn)
        try:
            yield
        finally:
            with self._changed:
                self._waiting -= 1
            self._leave(turn)

    def _leave(self, turn: _Turn) -> None:
        with self._changed:
            self._turns.discard(turn)
            self._changed.notify_all()


def why_lost(error: Exception, session: Session, dataset: str) -> Exception | None:
    """What to raise when `error` came because a JVM ended or ran out of memory; `None` otherwise.

    That is `JvmEnded` for the one beside odfbuild, and `QueryError` E0546 for those of workers.
    PySpark, and so we, may take a question that a dying JVM leaves open for a fault of the query.
    """
    from pyspark.errors import PySparkException

    said = str(error)
    explains_itself = isinstance(error, PySparkException | OdfbuildError)
    seconds = 0.0 if explains_itself and not _CUT_OFF.search(said) else _SETTLE_SECONDS
    code = session.exit_code(seconds)
    if code is None:
        is_memory = not isinstance(error, OdfbuildError) and _WORKER_MEMORY.search(said)
        return _no_memory(session, dataset) if is_memory else None
    if code == OUT_OF_MEMORY:
        return JvmEnded(_no_memory(session, dataset))
    how, words = f"ended with code {code}", session.last_words()
    if code < 0:
        how, words = f"was killed by signal {-code}", ()
    return JvmEnded(
        EnvironmentProblem(
            f"Spark's JVM {how} while it worked on '{dataset}'",
            code="E0909",
            dataset=dataset,
            notes=("nothing of it was committed", *words),
            help="run `odfbuild apply` again; if the system ended it for want of memory, lower "
            "engine.memory in odfbuild.yaml",
        )
    )


def _no_memory(session: Session, dataset: str) -> QueryError:
    if session.settings.embedded:
        what, where = f"its heap of {session.memory} is full", "`engine.memory` in odfbuild.yaml"
    elif session.settings.remote:
        what, where = "the server's or a worker's is full", "the memory that they start with"
    else:
        what, where = "a worker's is full", "spark.executor.memory in `engine.conf`"
    return QueryError(
        f"Spark ran out of memory: {what}",
        code=Code.SPARK_OUT_OF_MEMORY,
        dataset=dataset,
        notes=("nothing of it was committed",),
        help=f"look for a join or collect_list() that gathers more than meant, or raise {where}"
        + (" (ODFBUILD_SPARK_MEMORY goes before it)" if session.settings.embedded else ""),
    )

"""The engine session of an apply: started at most once, in the background, only when needed."""

from __future__ import annotations

from concurrent.futures import Future
from contextvars import copy_context
from threading import Lock, Thread

from odfbuild.engine.contract import Engine, EngineFactory


class LazyEngine:
    """Starts an engine when it is first known to be needed, and hands it to all tasks."""

    def __init__(self, factory: EngineFactory) -> None:
        self._factory = factory
        # The engine is started by whichever thread needs it first, and on behalf of this one.
        self._context = copy_context()
        self._lock = Lock()
        self._future: Future[Engine] | None = None

    def __enter__(self) -> LazyEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def warm_up(self) -> Future[Engine]:
        """Begin to start the session; returns at once."""
        with self._lock:
            if self._future is None:
                self._future = Future()
                Thread(target=self._start, args=(self._future,), name="engine", daemon=True).start()
            return self._future

    def get(self) -> Engine:
        """The running engine; waits for the start and raises what the start raised."""
        return self.warm_up().result()

    def peek(self) -> Engine | None:
        """The engine if it is running already."""
        future = self._future
        if future is None or not future.done() or future.exception() is not None:
            return None
        return future.result()

    def stop(self) -> None:
        """End the session, if one was started."""
        if self._future is None:
            return
        try:
            engine = self._future.result()
        except Exception:
            return  # the start failed, and every task that needed it has reported that
        engine.stop()

    def _start(self, future: Future[Engine]) -> None:
        try:
            future.set_result(self._context.run(self._factory))
        except BaseException as error:
            future.set_exception(error)

"""A call of a coordinator: one after the other, with signs of life, and exactly one answer.

Whatever goes wrong is an answer of the protocol; gRPC itself reports nothing but lost connections.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Generic

from odfbuild.engine.process.server.log import ERROR, tell
from odfbuild.engine.process.server.problems import backtrace_of, is_of_query, text_of
from odfbuild.engine.process.wire import Call, MalformedMessage, Request, Response
from odfbuild.odf.model.messages import TransformRequest

if TYPE_CHECKING:
    from odfbuild.engine.contract import Engine
    from odfbuild.engine.process.server.at_hand import Desk
    from odfbuild.engine.settings import FileAccess

PROGRESS_SECONDS = 3.0
_CANCEL_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Method(Generic[Request, Response]):
    """A method of the service: its messages, and what does the work."""

    call: Call[Request, Response]
    work: Callable[[Engine, Request, Desk], Response]
    progress: Response
    invalid: Callable[..., Response]
    failed: Callable[..., Response]

    def failure(self, error: BaseException) -> Response:
        """How an error is told."""
        if not isinstance(error, Exception):
            return self.failed(message=f"the engine was stopped ({type(error).__name__})")
        if is_of_query(error):
            return self.invalid(message=text_of(error))
        return self.failed(message=text_of(error), backtrace=backtrace_of(error))


@dataclass(slots=True)
class Calls:
    """Where calls are carried out: an engine, one call at a time."""

    engine: Callable[[], Engine]
    reach: FileAccess | None = None
    progress_seconds: float = PROGRESS_SECONDS
    _turn: Lock = field(default_factory=Lock)
    _waiting: set[Event] = field(default_factory=set)

    def handler(self, method: Method[Request, Response]) -> Callable[[bytes, Any], Iterator[bytes]]:
        """`method` as gRPC takes it."""

        def handle(data: bytes, context: Any) -> Iterator[bytes]:
            left = Event()
            context.add_callback(left.set)
            self._waiting.add(left)
            try:
                for each in self._answers(method, data, left):
                    yield method.call.encode_response(each)
            finally:
                left.set()
                self._waiting.discard(left)

        return handle

    def leave_all(self) -> None:
        """End all calls as if their callers had gone."""
        for each in tuple(self._waiting):
            each.set()

    def _answers(
        self, method: Method[Request, Response], data: bytes, left: Event
    ) -> Iterator[Response]:
        try:
            request = method.call.decode_request(data)
        except MalformedMessage as error:
            tell(f"{method.call.name}: the request cannot be read: {error}", ERROR)
            yield method.failed(message=f"the request cannot be read: {error}")
            return
        found: list[Response] = []
        over = Event()
        target, name = self._carry_out, f"{method.call.name} of {_subject(request)}"
        thread = Thread(target=target, args=(method, request, left, found, over), name=name)
        thread.daemon = True
        thread.start()
        while not over.wait(self.progress_seconds):
            yield method.progress
        yield from found

    def _carry_out(
        self,
        method: Method[Request, Response],
        request: Request,
        left: Event,
        found: list[Response],
        over: Event,
    ) -> None:
        """Work in its turn, in a thread of its own; `left` is set when the caller is gone."""
        from odfbuild.engine.process.server.at_hand import Desk

        with self._turn:
            subject, began = _subject(request), time.monotonic()
            watcher = Thread(target=self._cancel_when, args=(left, over, subject), daemon=True)
            watcher.start()
            scratch = Path(tempfile.mkdtemp(prefix="step-"))
            try:
                if not left.is_set():
                    found.append(method.work(self.engine(), request, Desk(scratch, self.reach)))
            except BaseException as error:
                found.append(method.failure(error))
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
                over.set()
        _tell(f"{method.call.name} of {subject}", found, time.monotonic() - began)

    def _cancel_when(self, left: Event, over: Event, subject: str) -> None:
        left.wait()
        while not over.wait(_CANCEL_SECONDS):
            try:
                cancel = getattr(self.engine(), "cancel", None)
                if cancel is not None:
                    cancel()
            except Exception as error:
                tell(f"what is computed for {subject} cannot be cancelled: {error}", ERROR)


def _subject(request: Any) -> str:
    """What a request is about: a dataset, or `query`."""
    return str(request.dataset_alias) if isinstance(request, TransformRequest) else "query"


def _tell(what: str, found: list[Any], seconds: float) -> None:
    if not found:
        tell(f"{what}: the caller left")
        return
    response = found[0]
    if response.KIND == "Success":
        tell(f"{what}: done in {seconds:.2f} s")
        return
    trace = getattr(response, "backtrace", None) or ""
    tell(f"{what}: {response.KIND}: {response.message}\n{trace}".rstrip(), ERROR)

"""Ask an engine over gRPC, and tell what goes wrong with it.

Every fault has an error of its own: it does not start or listen, ends, is silent, takes too long,
refuses a query, fails, or breaks the contract. Nothing is committed then.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odfbuild.engine import shutdown
from odfbuild.engine.contract import TransformResult, TransformTask, ValidateTask
from odfbuild.engine.process.accused import Accused
from odfbuild.engine.process.files import StepFiles, step_files, transform_request
from odfbuild.engine.process.programs import Address, Program, start_command
from odfbuild.engine.process.wire import (
    CHANNEL_OPTIONS,
    EXECUTE_TRANSFORM,
    Call,
    MalformedMessage,
)
from odfbuild.errors import Code, EngineError, missing_extra
from odfbuild.odf.model.messages import (
    TransformResponseInternalError,
    TransformResponseInvalidQuery,
    TransformResponseSuccess,
)
from odfbuild.odf.timestamp import Timestamp
from odfbuild.sql.translate.named import RemoteEngine
from odfbuild.values import Value

if TYPE_CHECKING:
    import grpc
    import pyarrow as pa

    from odfbuild.engine.process.container import Runtime

_POLL_SECONDS = 0.02
_LOGS_KEPT = 20
_KILLED = 137
"""How a container ends that took more memory than it may."""
_OPTIONS = (
    *CHANNEL_OPTIONS,
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
)


class Host(Value):
    """Where engines work: the project, its cache, and what runs containers."""

    root: Path
    cache: Path
    runtime: Callable[[], Runtime]

    def log(self, engine: str) -> Path:
        """A new file for what an engine prints; the oldest ones go."""
        folder = self.cache / "engines"
        folder.mkdir(parents=True, exist_ok=True)
        for old in sorted(folder.glob("*.log"))[:-_LOGS_KEPT]:
            old.unlink(missing_ok=True)
        handle, name = tempfile.mkstemp(".log", f"{time.time_ns()}-{engine}-", folder)
        os.close(handle)
        return Path(name)


class Client:
    """One engine in one version; several steps may be asked for at once."""

    def __init__(self, name: str, version: str, engine: RemoteEngine, host: Host) -> None:
        self._name, self._version = name, version
        self._engine, self._host = engine, host
        self._lock = threading.Lock()
        self._shared: tuple[Program, Path | None] | None = None
        self._channels: dict[str, grpc.Channel] = {}
        self._running: set[Program] = set()
        shutdown.began(self.stop)

    def run(self, request: TransformTask | ValidateTask) -> TransformResult | pa.Schema | None:
        """What `contract.Engine` gives for these requests."""
        if isinstance(request, ValidateTask):
            return self._result_schema(request)
        return self._transform(request)

    def _transform(self, task: TransformTask) -> TransformResult:
        """Carry out a step, and check what comes back."""
        from odfbuild.engine.process.checks import checked_result

        if task.system_time is None:  # what is computed to look at it, and not for a chain
            task = replace(task, system_time=Timestamp.now())
        files = step_files(task)
        with self._at_work(files, task.dataset) as (program, accused):
            request = transform_request(task, files, program.inside)
            answer = self._ask(program, accused, EXECUTE_TRANSFORM, request)
            if not isinstance(answer, TransformResponseSuccess):
                raise _said(answer, accused)
        return checked_result(task, answer, files, accused)

    def _result_schema(self, asked: ValidateTask) -> pa.Schema | None:
        """The columns of a query over no records; `None` where the engine cannot tell them.

        Raises `EngineError` E1438 for a query that the engine refuses. That it fails otherwise says
        nothing of the query: some engines cannot do without records.
        """
        self._host.cache.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix="validate-", dir=self._host.cache))
        task = TransformTask(
            dataset=asked.dataset,
            transform=replace(asked.transform, version=self._version),
            inputs=tuple(replace(each, slices=(), first=None, last=None) for each in asked.inputs),
            vocab=asked.vocab,
            scratch=scratch,
        )
        try:
            return self._transform(task).schema
        except EngineError as error:
            if error.code in (
                Code.ENGINE_BROKE_OFF,
                Code.ENGINE_WITHOUT_ANSWER,
                Code.ENGINE_FAILED,
            ):
                return None
            raise
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def stop(self) -> None:
        """End all that runs."""
        shutdown.ended(self.stop)
        for program in list(self._running):
            with suppress(Exception):
                program.end()
        if self._shared is not None:
            self._shared[0].end()
            self._shared = None
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()

    # --- Programs ---

    @contextmanager
    def _at_work(self, files: StepFiles, dataset: str) -> Iterator[tuple[Program, Accused]]:
        """The engine for one step; one that was started for it is gone afterwards."""
        accused = Accused(self._name, self._version, dataset)
        if self._engine.image is None:
            with self._lock:
                if self._shared is None or self._shared[0].exit_code() is not None:
                    self._shared = self._start_shared(accused)
                program, log = self._shared
            yield program, replace(accused, log=log)
            return
        from odfbuild.engine.process.container import start_container

        runtime = self._host.runtime()
        accused = replace(accused, log=self._host.log(self._name))
        log = accused.log or Path(os.devnull)
        program = start_container(self._engine, runtime, files, log, accused)
        self._running.add(program)
        try:
            yield program, accused
            log.unlink(missing_ok=True)
        finally:
            self._running.discard(program)
            program.end()

    def _forget(self, program: Program) -> None:
        """End a program of ours that works on for nobody; the next call starts another one."""
        with self._lock:
            if self._shared is not None and self._shared[0] is program:
                self._shared = None
        program.end()

    def _start_shared(self, accused: Accused) -> tuple[Program, Path | None]:
        if self._engine.address is not None:
            return Address.of(self._engine.address, self._host.root), None
        log = self._host.log(self._name)
        return start_command(self._engine, self._host.root, log, replace(accused, log=log)), log

    # --- Calls ---

    def _ask(self, program: Program, accused: Accused, call: Call[Any, Any], request: Any) -> Any:
        """The final answer to a request; progress before it is only a sign of life."""
        grpc = grpc_library()
        channel = self._channel(program, accused, grpc)
        method: Any = channel.unary_stream(call.path)
        stream = method(call.encode_request(request), timeout=self._engine.timeout)
        try:
            for data in stream:
                answer = call.decode_response(data)
                if answer.KIND != "Progress":
                    stream.cancel()
                    return answer
        except MalformedMessage as error:
            stream.cancel()
            raise accused.broken(f"its answer cannot be read: {error}", "E1440") from None
        except grpc.RpcError as error:
            raise self._broken_off(error, program, accused, grpc) from None
        raise accused.error(
            "ended without an answer",
            Code.ENGINE_WITHOUT_ANSWER,
            "what it prints should say why; run the same command again when that is corrected",
        )

    def _channel(self, program: Program, accused: Accused, grpc: Any) -> grpc.Channel:
        """A connection over which the engine has said something."""
        deadline = time.monotonic() + self._engine.start_timeout
        channel: grpc.Channel | None = None
        ready = threading.Event()
        while not ready.is_set():
            code = program.exit_code()
            if code is not None:
                raise self._never_listened(code, accused)
            if time.monotonic() > deadline:
                raise self._silent(accused)
            target = program.target
            if channel is None and target is not None:
                with self._lock:
                    known = self._channels.get(target)
                    if known is not None:
                        return known
                channel = grpc.insecure_channel(target, _OPTIONS)

                def listen(state: object) -> None:
                    if state is grpc.ChannelConnectivity.READY:
                        ready.set()

                channel.subscribe(listen, try_to_connect=True)
            ready.wait(_POLL_SECONDS)
        assert channel is not None and target is not None
        if self._engine.image is None:
            with self._lock:
                channel = self._channels.setdefault(target, channel)
        return channel

    # --- What goes wrong ---

    def _never_listened(self, code: int, accused: Accused) -> EngineError:
        what = f"ended before it listened, with {_exit(code)}"
        return accused.error(what, "E1433", "what it prints should say why")

    def _silent(self, accused: Accused) -> EngineError:
        place = self._engine.address or f"within {self._engine.start_timeout:g} seconds"
        where = f"at {place}" if self._engine.address else place
        help = "start it" if self._engine.address else "see what it prints"
        return accused.error(
            f"does not listen {where}",
            "E1434",
            f"{help}, or raise `startTimeout` in `engines.{self._name}`",
        )

    def _broken_off(self, error: Any, program: Program, accused: Accused, grpc: Any) -> EngineError:
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            self._forget(program)
            return accused.error(
                f"did not answer within {self._engine.timeout:g} seconds, and was ended",
                "E1436",
                f"raise `timeout` in `engines.{self._name}`, or select fewer records",
            )
        code = _settled(program)
        if code == _KILLED and self._engine.image is not None:
            return accused.error(
                f"was ended: it took more than {self._engine.memory} of memory",
                "E1446",
                f"raise `memory` in `engines.{self._name}`",
            )
        why = f"with {_exit(code)}" if code is not None else f"{error.code().name.lower()}"
        return accused.error(
            f"broke off in the middle of the step: {why}",
            Code.ENGINE_BROKE_OFF,
            "what it prints should say why; then run the same command again",
            *([str(error.details())] if error.details() else []),
        )


def grpc_library() -> Any:
    """The library that speaks gRPC; `EnvironmentProblem` E0903 where it is not installed."""
    # It would make the processes that we start fail, and tell people of its own affairs.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        import grpc
    except ImportError:
        raise missing_extra("engines", "engines that are programs of their own") from None
    return grpc


def _said(answer: Any, accused: Accused) -> EngineError:
    """The error that an engine reports."""
    if isinstance(answer, TransformResponseInvalidQuery):
        return accused.error(f"refuses the query: {answer.message}", "E1438", "correct the query")
    assert isinstance(answer, TransformResponseInternalError)
    trace = answer.backtrace.splitlines() if answer.backtrace else []
    return accused.error(
        f"failed: {answer.message}",
        Code.ENGINE_FAILED,
        "what it says and prints should tell why",
        *trace,
    )


def _settled(program: Program) -> int | None:
    """How a program ended whose connection broke; `None` when it goes on."""
    deadline = time.monotonic() + 2
    while program.exit_code() is None and time.monotonic() < deadline:
        if isinstance(program, Address):
            break
        time.sleep(_POLL_SECONDS)
    return program.exit_code()


def _exit(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"

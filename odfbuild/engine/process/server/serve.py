"""Listen for coordinators, and end in time.

Listening begins before Spark starts: a coordinator waits for a connection, and kills what does not
answer. Imports nothing heavy at the top, for the same reason.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NoReturn

from odfbuild.engine.lazy import LazyEngine
from odfbuild.engine.process.server.calls import Calls, Method
from odfbuild.engine.process.server.log import ERROR, follow, tell
from odfbuild.engine.process.wire import (
    CHANNEL_OPTIONS,
    EXECUTE_RAW_QUERY,
    EXECUTE_TRANSFORM,
    PORT,
    SERVICE,
    SOCKET_VARIABLE,
    SPECIFIED_PORT,
)
from odfbuild.engine.settings import DEFAULTS, FileAccess
from odfbuild.errors import EngineError, OdfbuildError, missing_extra
from odfbuild.odf.model.messages import (
    RawQueryRequest,
    RawQueryResponse,
    RawQueryResponseInternalError,
    RawQueryResponseInvalidQuery,
    RawQueryResponseProgress,
    TransformRequest,
    TransformResponse,
    TransformResponseInternalError,
    TransformResponseInvalidQuery,
    TransformResponseProgress,
)
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.engine.contract import Engine
    from odfbuild.engine.process.server.at_hand import Desk

IN_CONTAINERS = Path("/opt/engine")
"""Where coordinators mount the files of a request."""
_UNIX = "unix:"
_LONGEST_PATH = 107
_CALLERS = 8
_STOP_SECONDS = 2.5


class Serving(Value, kw_only=True):
    """Where to listen, which folders Spark may read, and how much a checkpoint may hold."""

    addresses: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    checkpoint_limit: int = 256 << 20


def addresses_of(given: Sequence[str]) -> tuple[str, ...]:
    """Where to listen: as `given`, and on the socket that the environment names.

    Without either, on the ports of the protocol, on this machine only.
    """
    named = os.environ.get(SOCKET_VARIABLE)
    found = (*([_UNIX + named.removeprefix(_UNIX)] if named else []), *given)
    return found or (f"127.0.0.1:{PORT}", f"127.0.0.1:{SPECIFIED_PORT}")


def serve(serving: Serving) -> NoReturn:
    """Answer coordinators until SIGTERM or Ctrl-C, which end the process.

    Raises `EngineError` E1401 for an address that cannot be used.
    """
    over = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    scratch = Path(tempfile.mkdtemp(prefix="odf-engine-"))
    tempfile.tempdir = str(scratch)  # Spark's files, too, go away with it
    reach = FileAccess(read=(IN_CONTAINERS, *serving.folders), write=(scratch,))
    reach = FileAccess(tuple(each for each in reach.read if each.is_dir()), reach.write)
    engine = LazyEngine(lambda: _start(reach))
    calls = Calls(engine.get, reach)
    try:
        with listening(calls, serving):
            engine.warm_up()
            Thread(target=follow, args=(lambda: _printed(engine), over), daemon=True).start()
            over.wait()
            tell("ends")
            calls.leave_all()
    finally:
        _end(engine)
        shutil.rmtree(scratch, ignore_errors=True)
    _leave()


def prepare() -> None:
    """Start Spark once, so that it starts in half the time from then on where its Java can."""
    from odfbuild.engine.spark.session.class_archive import can_be_made, finish
    from odfbuild.engine.spark.session.java import find_java
    from odfbuild.engine.spark.start import start_engine

    if not can_be_made(find_java()):
        tell("nothing to prepare: this Java has no archive of classes to build on")
        return
    engine = start_engine()
    jvm = engine.jvm
    engine.stop()
    with contextlib.suppress(ChildProcessError):
        os.waitpid(jvm or 0, 0)  # it writes what it leaves behind when it ends
    for each in finish():
        tell(f"prepared {each}")


@contextlib.contextmanager
def listening(calls: Calls, serving: Serving) -> Iterator[tuple[str, ...]]:
    """Answer by `calls` inside; gives the addresses, with the port where any was asked for."""
    grpc = _grpc()
    addresses = addresses_of(serving.addresses)
    server = grpc.server(ThreadPoolExecutor(_CALLERS), options=CHANNEL_OPTIONS)
    handlers = {
        method.call.name: grpc.unary_stream_rpc_method_handler(calls.handler(method))
        for method in methods(serving.checkpoint_limit)
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    bound = tuple(_bind(server, each) for each in addresses)
    server.start()
    for each in bound:
        tell(f"listens on {each}")
    try:
        yield bound
    finally:
        server.stop(0.2).wait()
        for each in bound:
            if each.startswith(_UNIX):
                Path(each.removeprefix(_UNIX)).unlink(missing_ok=True)


def methods(checkpoint_limit: int) -> tuple[Method[Any, Any], ...]:
    """The methods of the protocol; what does the work is imported when the first call comes."""

    def transform(engine: Engine, request: TransformRequest, desk: Desk) -> TransformResponse:
        from odfbuild.engine.process.server.step import carry_out

        return carry_out(engine, request, desk, checkpoint_limit)

    def raw_query(engine: Engine, request: RawQueryRequest, desk: Desk) -> RawQueryResponse:
        from odfbuild.engine.process.server.raw_query import answer

        return answer(engine, request, desk)

    return (
        Method(
            EXECUTE_TRANSFORM,
            transform,
            TransformResponseProgress(),
            TransformResponseInvalidQuery,
            TransformResponseInternalError,
        ),
        Method(
            EXECUTE_RAW_QUERY,
            raw_query,
            RawQueryResponseProgress(),
            RawQueryResponseInvalidQuery,
            RawQueryResponseInternalError,
        ),
    )


def _grpc() -> Any:
    try:
        import grpc
    except ModuleNotFoundError:
        raise missing_extra("engines", "engines of the protocol") from None
    return grpc


def _bind(server: Any, address: str) -> str:
    """Listen on one address; gives it with its port."""
    path = Path(address.removeprefix(_UNIX)) if address.startswith(_UNIX) else None
    if path is not None:
        _make_way(path)
    try:
        port = server.add_insecure_port(address)
    except RuntimeError:
        port = 0
    if not port:
        raise _cannot_listen(address, "it is in use, or it is no address of this machine")
    if path is not None:
        # Who may connect is for the folder to say, whose owner named the socket.
        path.chmod(0o666 if os.environ.get(SOCKET_VARIABLE) else 0o600)
        return address
    return f"{address.rpartition(':')[0]}:{port}"


def _make_way(path: Path) -> None:
    """Remove a socket on which nobody listens any more."""
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise _cannot_listen(str(path), f"a socket has at most {_LONGEST_PATH} characters")
    if not path.parent.is_dir():
        raise _cannot_listen(str(path), "its folder does not exist")
    if not path.is_socket():
        if path.exists():
            raise _cannot_listen(str(path), "there is a file of that name")
        return
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink(missing_ok=True)
        else:
            raise _cannot_listen(str(path), "another program listens there")


def _cannot_listen(address: str, why: str) -> EngineError:
    return EngineError(
        f"the engine cannot listen on {address}: {why}",
        code="E1401",
        help="give another address with --listen, such as 127.0.0.1:0 or unix:/tmp/odf.sock",
    )


def _start(reach: FileAccess) -> Engine:
    from odfbuild.engine.spark.start import start_engine

    try:
        engine = start_engine(DEFAULTS, reach)
    except OdfbuildError as error:
        tell(str(error), ERROR)
        raise
    tell(f"Spark {engine.about().version} is ready (fences: {engine.about().fences})")
    return engine


def _printed(engine: LazyEngine) -> Path | None:
    found: Callable[[], Path | None] | None = getattr(engine.peek(), "printed", None)
    return None if found is None else found()


def _end(engine: LazyEngine) -> None:
    """End Spark, whatever it does, in time."""
    if engine.peek() is not None:
        ending = Thread(target=engine.stop, daemon=True)
        ending.start()
        ending.join(_STOP_SECONDS)
    for child in _children():
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)


def _leave() -> NoReturn:
    """End without waiting for threads that still work for callers who have gone."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)


def _children() -> list[int]:
    """Processes that this one started; a JVM that is just starting is known to nobody else."""
    found = []
    for file in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(each) for each in file.read_text().split()]
    return found

"""Work on an untrusted file, in a process with limits of memory and time.

A template is a program: sixteen characters ask for gigabytes, three nested loops for days. So
templates are rendered in a process that is forked once and does all of them, one after the other.
It has no file open but the pipe to its parent, and ends with it.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import pickle
import select
import signal
import struct
import sys
import threading
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from odfbuild.errors import Location, ProjectError
from odfbuild.limits import RENDER_MEMORY, RENDER_SECONDS

P = ParamSpec("P")
T = TypeVar("T")

_WAITED = 12 * RENDER_SECONDS
"""Seconds by the clock, on however busy a machine, after which nothing is expected any more."""

_LENGTH = struct.Struct("=Q")


class _TooLong(BaseException):
    """Passes by whoever catches any exception."""


class _Ended(Exception):
    """The process is not there any more; why."""


def bounded(work: Callable[P, T], file: str, *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work` gives or raises; `ProjectError` E0126 where it takes too much.

    `work` is a function of a module, and all that it takes and gives can be pickled.
    """
    with _mutex:
        try:
            is_done, result = _process().ask((work, args, kwargs))
        except _Ended as ended:
            _forget()
            raise too_much(file, str(ended)) from None
    if is_done:
        return result  # type: ignore[no-any-return]
    if isinstance(result, MemoryError):
        raise too_much(file, _TOO_MUCH_MEMORY)
    if isinstance(result, _TooLong):
        raise too_much(file, _TOO_MUCH_TIME)
    raise result


def too_much(file: str, why: str) -> ProjectError:
    """A file of the project asks for more than one may."""
    return ProjectError(
        f"this is too much for one file: {why}",
        code="E0126",
        location=Location(file),
        help="make it smaller, or divide it among several files",
    )


_TOO_MUCH_TIME = f"it takes more than {RENDER_SECONDS} seconds"
_TOO_MUCH_MEMORY = f"it takes more than {RENDER_MEMORY >> 20} MiB of memory"


class _Process:
    """The other process, seen from this one."""

    def __init__(self) -> None:
        ours, theirs = os.pipe(), os.pipe()
        collects = gc.isenabled()
        gc.disable()
        with warnings.catch_warnings():
            # The child runs nothing but `_serve`, whatever other threads held when it began.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._id = os.fork()
        if self._id == 0:
            # What the parent had is never finalized here: it may wait for a thread that is not.
            gc.freeze()
            gc.enable()
            _serve(theirs[0], ours[1])
        if collects:
            gc.enable()
        os.close(theirs[0])
        os.close(ours[1])
        self._read, self._write = ours[0], theirs[1]
        os.set_blocking(self._write, False)

    def ask(self, request: Any) -> tuple[bool, Any]:
        """Whether the work was done, and its result or what it raised; `_Ended`."""
        try:
            _send(self._write, request)
            _wait(self._read, select.POLLIN)
            found: tuple[bool, Any] = _receive(self._read)
            return found
        except TimeoutError:
            os.kill(self._id, signal.SIGKILL)
            raise _Ended(_TOO_MUCH_TIME) from None
        except (OSError, EOFError):
            raise _Ended(_TOO_MUCH_MEMORY) from None

    def end(self) -> None:
        """Let it end."""
        for each in (self._write, self._read):
            os.close(each)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._id, 0)


_running: list[_Process] = []
_mutex = threading.RLock()


def _after_fork() -> None:
    """A child has none of its own yet."""
    _running.clear()
    _mutex.release()


def _process() -> _Process:
    if not _running:
        _running.append(_Process())
    return _running[0]


def _forget() -> None:
    while _running:
        _running.pop().end()


atexit.register(_forget)
os.register_at_fork(
    before=_mutex.acquire, after_in_parent=_mutex.release, after_in_child=_after_fork
)


# --- In the other process ---


def _serve(read: int, write: int) -> None:
    """Do what is asked until nobody asks."""
    try:
        _leave_open({read, write})
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGVTALRM, _too_long)
        _limit_memory()
        while True:
            work, args, kwargs = _receive(read)
            _send(write, _outcome(work, args, kwargs))
    except (EOFError, OSError):
        pass
    finally:
        os._exit(0)


def _outcome(work: Callable[..., Any], args: Any, kwargs: Any) -> tuple[bool, Any]:
    signal.setitimer(signal.ITIMER_VIRTUAL, RENDER_SECONDS)
    try:
        return True, work(*args, **kwargs)
    except _TooLong:
        return False, _TooLong()
    except Exception as error:
        return False, error.with_traceback(None)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _too_long(signal: int, frame: FrameType | None) -> None:
    raise _TooLong


def _limit_memory() -> None:
    import resource

    if sys.platform != "linux":
        return  # other systems do not keep to it
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
        pages = int(file.read().split()[0])
    most = pages * resource.getpagesize() + RENDER_MEMORY
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _leave_open(kept: set[int]) -> None:
    """Close files of the parent: a lock lasts as long as any process has its file open."""
    first = 3
    for each in sorted(kept):
        os.closerange(first, each)
        first = each + 1
    os.closerange(first, 1 << 16)


# --- Messages ---


def _send(fd: int, value: Any) -> None:
    data = pickle.dumps(value)
    left = memoryview(_LENGTH.pack(len(data)) + data)
    while left:
        try:
            left = left[os.write(fd, left) :]
        except BlockingIOError:
            _wait(fd, select.POLLOUT)


def _wait(fd: int, event: int) -> None:
    """Until a pipe can be read or written; `TimeoutError`."""
    waiting = select.poll()
    waiting.register(fd, event)
    if not waiting.poll(_WAITED * 1000):
        raise TimeoutError


def _receive(fd: int) -> Any:
    (length,) = _LENGTH.unpack(_exactly(fd, _LENGTH.size))
    return pickle.loads(_exactly(fd, length))


def _exactly(fd: int, size: int) -> bytes:
    parts = []
    while size:
        part = os.read(fd, min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)

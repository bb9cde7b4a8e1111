"""The process of a resident engine: takes requests until nobody has any for a while.

It belongs to no terminal and to no command. Its JVM ends when its standard input closes, that is
with this process, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from odfbuild.engine.contract import Engine
from odfbuild.engine.lazy import LazyEngine
from odfbuild.engine.process.resident import card
from odfbuild.engine.process.resident.channel import Channel, Lost, peer_of
from odfbuild.engine.process.resident.wanted import Wanted
from odfbuild.engine.release import engine_version
from odfbuild.engine.shared import places
from odfbuild.engine.spark.session.java import find_java
from odfbuild.engine.spark.start import start_engine
from odfbuild.version import __version__

METHODS = frozenset(name for name in vars(Engine) if not name.startswith("_")) - {"stop"}
"""What commands may ask of the engine."""

_LOOK_SECONDS = 5.0
_AT_ONCE = 64
_SCARCE = 0.05
"""An engine without work ends where less than this part of the machine's memory is available."""
_QUIET_SECONDS = 20.0


def main() -> None:
    """Serve what the process that started this one wrote to standard input."""
    wanted: Wanted = pickle.load(sys.stdin.buffer)
    sys.stdin.close()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lock = _lock(wanted.key)
    if lock is None:
        return  # another one was faster
    resident = _Resident(wanted, lock)
    signal.signal(signal.SIGTERM, lambda *_: resident.leave())
    resident.serve()


def _lock(key: str) -> int | None:
    """The lock of that name; `None` once another process serves under it."""
    for _ in range(40):  # others hold it for a moment, to see whether anybody does
        lock = card.take(key)
        if lock is not None or card.running(key):
            return lock
        time.sleep(0.05)
    return None


@dataclass(eq=False)
class _Resident:
    wanted: Wanted
    lock: int | None
    calls: int = 0
    served: int = 0
    leaving: threading.Event = field(default_factory=threading.Event)
    changed: Any = field(default_factory=threading.RLock)  # signals come in between
    last: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.engine = LazyEngine(lambda: start_engine(self.wanted.settings, self.wanted.reach))
        self.folder = Path(tempfile.mkdtemp(prefix="odfbuild-"))  # for this user alone
        self.address = self.folder / "s"
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(self.address))
        self.listener.listen(_AT_ONCE)
        self.listener.settimeout(_LOOK_SECONDS)

    def serve(self) -> None:
        """Take requests until it is time to leave; work under way is finished."""
        self.engine.warm_up().add_done_callback(
            lambda started: self.leave() if started.exception() else None
        )
        card.write(
            card.Card(
                self.wanted.key,
                os.getpid(),
                str(self.address),
                str(self.wanted.project),
                __version__,
                engine_version(),
                find_java().version,
                datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
            )
        )
        pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="call")
        try:
            while not self.leaving.is_set():
                with contextlib.suppress(TimeoutError):
                    connection, _ = self.listener.accept()
                    pool.submit(self._converse, connection)
                if self._is_done():
                    self.leave()
        except OSError:
            if not self.leaving.is_set():  # nobody closed the socket: it cannot be used
                raise
        finally:
            self.leave()
            pool.shutdown()
            self.engine.stop()
            shutil.rmtree(self.folder, ignore_errors=True)

    def leave(self) -> None:
        """Take no more requests, and let another one take the place."""
        with self.changed:
            self.leaving.set()
            if self.lock is not None:
                card.remove(self.wanted.key)
                os.close(self.lock)
                self.lock = None
            with contextlib.suppress(OSError):
                self.listener.shutdown(socket.SHUT_RDWR)  # wakes who waits for a connection

    def _is_done(self) -> bool:
        idle = time.monotonic() - self.last
        if self.calls or idle < _LOOK_SECONDS / 2:
            return False
        minutes = self.wanted.settings.idle_minutes
        reach = self.wanted.reach
        return (
            idle > minutes * 60
            or (idle > _QUIET_SECONDS and _memory_is_scarce())
            or not self.address.exists()
            or places(reach) != self.wanted.places  # a project that was removed, for one
        )

    def _converse(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(Lost, EOFError):
            if peer_of(connection) != os.geteuid():
                return
            channel = Channel(connection)
            kind, *rest = channel.receive()
            if kind == "call":
                with self._busy():
                    self._carry_out(connection, channel, *rest)
            elif kind == "serves":
                channel.send("value", rest[0].is_served_by(self.wanted))
            elif kind == "ready":
                channel.answer(lambda: self.engine.get() and None)
            elif kind == "status":
                channel.send("value", self._status())
            elif kind == "leave":
                self.leave()
                channel.send("value", None)

    def _carry_out(
        self,
        connection: socket.socket,
        channel: Channel,
        wanted: Wanted,
        caller: str,
        step_seconds: float | None,
        method: str,
        arguments: tuple[Any, ...],
    ) -> None:
        if self.leaving.is_set() or method not in METHODS or not wanted.is_served_by(self.wanted):
            channel.send("error", Lost("this is not the engine that was asked for"))
            return
        if method == "progress" and self.engine.peek() is None:
            channel.send("value", None)
            return
        try:
            engine: Any = self.engine.get()
        except Exception as error:
            channel.send("error", Lost(str(error)))
            return
        own = engine.for_caller(caller, step_seconds)

        def work() -> Any:
            # Watched only until the answer is sent: then the command closes the connection, and
            # may have the next request for the same dataset under way.
            with _cancelled_with(connection, own):
                return getattr(own, method)(*arguments)

        channel.answer(work)

    @contextlib.contextmanager
    def _busy(self) -> Iterator[None]:
        with self.changed:
            self.calls += 1
            self.served += 1
        try:
            yield
        finally:
            with self.changed:
                self.calls -= 1
                self.last = time.monotonic()

    def _status(self) -> dict[str, Any]:
        engine: Any = self.engine.peek()
        jvm = engine.jvm if engine is not None else None
        processes = [os.getpid(), *([jvm] if jvm is not None else [])]
        return {
            "ready": engine is not None,
            "processes": processes,
            "calls": self.calls,
            "served": self.served,
            "idle_seconds": 0.0 if self.calls else time.monotonic() - self.last,
            "idle_minutes": self.wanted.settings.idle_minutes,
            "memory": sum(map(_memory_of, processes)),
        }


@contextlib.contextmanager
def _cancelled_with(connection: socket.socket, engine: Any) -> Iterator[None]:
    """Cancel the jobs of `engine` when the command at the other end is gone."""
    woken, wake = socket.socketpair()
    waiting = select.poll()
    waiting.register(connection, 0)  # that it was closed is always told
    waiting.register(woken, select.POLLIN)

    def watch() -> None:
        waiting.poll()
        waiting.unregister(connection)
        while not waiting.poll(0):
            with contextlib.suppress(Exception):
                engine.cancel()
            waiting.poll(500)

    watcher = threading.Thread(target=watch, name="watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        wake.close()
        watcher.join()
        woken.close()


def _memory_is_scarce() -> bool:
    known = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            name, _, size = line.partition(":")
            known[name] = int(size.split()[0])
    total, available = known.get("MemTotal", 0), known.get("MemAvailable", 1)
    return available < total * _SCARCE


def _memory_of(process: int) -> int:
    """Bytes of memory that a process has; 0 where the system does not tell so."""
    with contextlib.suppress(OSError, ValueError):
        pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    return 0

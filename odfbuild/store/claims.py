"""Locks on datasets, which the operating system releases when a process ends.

A few lock files for all datasets, one byte for each (file and offset drawn from the alias): ten
thousand claims need sixteen file descriptors. Record locks exclude processes from each other and
name the holder; threads of one process are kept apart by a table. A claim only saves work: what
keeps a chain whole is the compare-and-swap of its head.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import random
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from odfbuild.errors import StaleHeadError
from odfbuild.store.lock_holders import LockHolder, holder_of, sign, withdraw
from odfbuild.values import Value

# The kernel keeps the locks of a file in a list: several files keep the lists short.
_FILES = 16

# Layout of `struct flock`, and where the holder's process id stands in it.
_FLOCK, _PID = ("hhqqi", 4) if sys.platform == "linux" else ("qqihh", 2)


@dataclass(slots=True)
class Claim:
    """What was claimed: `won` by us, `held` by others (alias → who, for messages).

    A context manager; leaving it frees what was won.
    """

    won: frozenset[str]
    held: Mapping[str, str]
    _bytes: tuple[tuple[_LockFile, int], ...] = field(repr=False, default=())

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Free what was won; a second call does nothing."""
        owned, self._bytes = self._bytes, ()
        with _mutex:
            for file, offset in owned:
                file.free(offset)
            _close_idle({file for file, _ in owned})
            for folder in {file.path.parent for file, _ in owned}:
                if not any(
                    file.owned for file in _open_files.values() if file.path.parent == folder
                ):
                    withdraw(folder)


def holders(folder: Path, aliases: Iterable[str]) -> list[LockHolder]:
    """Other processes that hold any of `aliases`, in order of their ids; claims nothing."""
    if not folder.is_dir():
        return []
    found: dict[int, list[str]] = {}
    with _mutex:
        files = [_lock_file(folder.resolve() / f"claims-{n:x}") for n in range(_FILES)]
        for alias in aliases:
            offset = _offset(alias)
            if pid := _holder(files[offset % _FILES].fd, offset):
                found.setdefault(pid, []).append(alias)
        _close_idle(files)
    return [holder_of(folder, pid, tuple(names)) for pid, names in sorted(found.items())]


class Waiting(Value, kw_only=True):
    """How many seconds to wait for datasets that others hold.

    `tell` hears once of those that are waited for (alias → who); `stopped` ends the wait early.
    """

    seconds: float = 0.0
    tell: Callable[[Mapping[str, str]], None] = lambda held: None
    stopped: Callable[[], bool] = lambda: False


NOT_WAITING = Waiting()


def claim_within(folder: Path, aliases: Iterable[str], waiting: Waiting) -> Claim:
    """Claim every alias, those that others hold once these let go of them."""
    names = list(aliases)
    deadline = time.monotonic() + waiting.seconds
    won = claim(folder, names)
    if won.held and waiting.seconds > 0:
        waiting.tell(won.held)
    while won.held and time.monotonic() < deadline and not waiting.stopped():
        # Giving up all of it keeps two that wait for each other from waiting for ever.
        won.release()
        time.sleep(random.uniform(0.05, 0.25))
        won = claim(folder, names)
    return won


def claim(folder: Path, aliases: Iterable[str]) -> Claim:
    """Claim every alias that nobody else holds; never waits. `folder` keeps the lock files."""
    names = list(aliases)
    folder.mkdir(parents=True, exist_ok=True)
    with _mutex:
        files = [_lock_file(folder.resolve() / f"claims-{n:x}") for n in range(_FILES)]
        won: set[str] = set()
        mine: set[tuple[_LockFile, int]] = set()
        held: dict[str, str] = {}
        known: dict[int, str] = {}
        for name in names:
            offset = _offset(name)
            file = files[offset % _FILES]
            holder = None if (file, offset) in mine else file.take(offset)
            if holder is None:
                won.add(name)
                mine.add((file, offset))
            else:
                if holder not in known:
                    known[holder] = str(holder_of(folder, holder))
                held[name] = known[holder]
        if won:
            sign(folder.resolve())
        _close_idle(files)
    return Claim(frozenset(won), held, tuple(mine))


def held_elsewhere(name: str, holder: str) -> StaleHeadError:
    """The error for a dataset that another process has claimed."""
    return StaleHeadError(
        f"another process holds the lock of '{name}' ({holder})",
        code="E0702",
        exit_code=9,
        dataset=name,
        help="wait longer (--lock-timeout SECONDS), or stop it: "
        f"`odfbuild lock break {name}`; then run the same command again",
    )


def forget(folder: Path, alias: str) -> None:
    """Let `alias` be claimed again, whoever holds it: by another lock file in place of its own.

    The holder goes on, and so do holders of other datasets in that file; none of them is known any
    more. For machines that are gone without the file system noticing.
    """
    with _mutex:
        (folder / f"claims-{_offset(alias) % _FILES:x}").unlink(missing_ok=True)


class _LockFile:
    """An open lock file of this process and the bytes that it owns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Never closed while bytes are owned: closing any descriptor frees all record locks on it.
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        self.pid = os.getpid()
        self.owned: set[int] = set()

    def is_current(self) -> bool:
        """Whether this is still the file at `path`, and this process the one that opened it."""
        try:
            there = self.path.stat()
        except FileNotFoundError:
            return False
        here = os.fstat(self.fd)
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino) and (
            self.pid == os.getpid()
        )

    def take(self, offset: int) -> int | None:
        """Own a byte; otherwise the id of the process that owns it (0: unknown)."""
        if offset in self.owned:
            return self.pid
        try:
            fcntl.lockf(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset, os.SEEK_SET)
        except (BlockingIOError, PermissionError):
            return _holder(self.fd, offset)
        self.owned.add(offset)
        return None

    def free(self, offset: int) -> None:
        """Give a byte back."""
        if self.pid == os.getpid():  # a fork does not inherit record locks
            fcntl.lockf(self.fd, fcntl.LOCK_UN, 1, offset, os.SEEK_SET)
            self.owned.discard(offset)


_mutex = threading.RLock()
_open_files: dict[Path, _LockFile] = {}


def _lock_file(path: Path) -> _LockFile:
    file = _open_files.get(path)
    if file is None or not file.is_current():
        if file is not None and not (file.owned and file.pid == os.getpid()):
            os.close(file.fd)
        file = _open_files[path] = _LockFile(path)
    return file


def _close_idle(files: Iterable[_LockFile]) -> None:
    """Close those of which nothing is owned; a process may live long and see many projects."""
    for file in files:
        if file.owned or file.pid != os.getpid():
            continue
        os.close(file.fd)
        if _open_files.get(file.path) is file:
            del _open_files[file.path]


def _offset(alias: str) -> int:
    # 62 bits: two aliases of a project meet at one byte with a probability of about 10⁻¹¹.
    digest = hashlib.sha256(alias.lower().encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 2


def _holder(fd: int, offset: int) -> int:
    if sys.platform == "linux":
        query = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0)
    else:
        query = struct.pack(_FLOCK, offset, 1, 0, fcntl.F_WRLCK, os.SEEK_SET)
    answer = struct.unpack(_FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, query))
    pid: int = answer[_PID]
    return pid

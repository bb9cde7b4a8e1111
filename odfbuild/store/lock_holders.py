"""Information about processes that hold locks: command, start time and heartbeat.

A card is a file `PID@HOST` beside the lock files: JSON of `since` and `command`, touched every few
seconds. It tells people what the kernel does not; who holds what is the kernel's answer alone.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from odfbuild.values import Value

LOCK_TIMEOUT = 600
"""Seconds to wait for datasets that others work on, if nobody says how long."""
HEARTBEAT_SECONDS = 10.0
_FORGOTTEN_SECONDS = 7 * 24 * 3600.0  # what another machine left behind
_TIME = "%Y-%m-%d %H:%M:%S UTC"

_command = "python"
_beating: dict[Path, threading.Event] = {}


class LockHolder(Value):
    """A process that works on datasets.

    `host` is empty when nothing but the id is known; `since` and `command` are, too. `silent` is
    how many seconds ago it gave a sign of life.
    """

    pid: int
    aliases: tuple[str, ...]
    host: str = ""
    since: str = ""
    command: str = ""
    silent: float | None = None

    @property
    def is_here(self) -> bool:
        """Whether it is a process of this machine, and runs."""
        return self.host == this_host() and is_alive(self.pid)

    def __str__(self) -> str:
        if self.pid <= 0:
            return "another process"
        where = "" if self.host in ("", this_host()) else f" on {self.host}"
        return f"process {self.pid}{where}" + (f", since {self.since}" if self.since else "")


def this_host() -> str:
    """The name of this machine."""
    return os.uname().nodename


def introduce(command: str) -> None:
    """Say what this process does, in words for people without any values, for its cards."""
    global _command  # noqa: PLW0603 (a process has one)
    _command = command


def sign(folder: Path) -> None:
    """Leave a card of this process, keep it warm, and clear away those of dead processes."""
    for path, pid, host in _cards(folder):
        dead = host == this_host() and not is_alive(pid)
        if dead or _silent(path) > _FORGOTTEN_SECONDS:
            path.unlink(missing_ok=True)
    card = folder / f"{os.getpid()}@{this_host()}"
    if card not in _beating or not card.is_file():
        since = datetime.now(UTC).strftime(_TIME)
        card.write_text(json.dumps({"since": since, "command": _command}), encoding="utf-8")
    if card not in _beating:
        stop = _beating[card] = threading.Event()
        threading.Thread(target=_beat, args=(card, stop), daemon=True).start()


def withdraw(folder: Path) -> None:
    """Take the card of this process away."""
    card = folder / f"{os.getpid()}@{this_host()}"
    stop = _beating.pop(card, None)
    if stop is not None:
        stop.set()
        card.unlink(missing_ok=True)


def holder_of(folder: Path, pid: int, aliases: tuple[str, ...] = ()) -> LockHolder:
    """What is known of the process with an id that the kernel gave."""
    found = [(path, host) for path, each, host in _cards(folder) if each == pid]
    # Of two machines with such a process, the one that was heard of last.
    found.sort(key=lambda card: _silent(card[0]))
    for path, host in found:
        try:
            said = json.loads(path.read_bytes())
            since, command = str(said["since"]), str(said["command"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        return LockHolder(pid, aliases, host, since, command, _silent(path))
    return LockHolder(pid, aliases)


def is_alive(pid: int) -> bool:
    """Whether this machine runs a process with that id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _beat(card: Path, stop: threading.Event) -> None:
    while not stop.wait(HEARTBEAT_SECONDS):
        with suppress(OSError):
            os.utime(card)


def _silent(path: Path) -> float:
    try:
        return max(0.0, time.time() - path.stat().st_mtime)
    except OSError:
        return float("inf")


def _cards(folder: Path) -> Iterator[tuple[Path, int, str]]:
    for name in os.listdir(folder):  # noqa: PTH208 (a few short names)
        pid, at, host = name.partition("@")
        if at and pid.isdigit():
            yield folder / name, int(pid), host

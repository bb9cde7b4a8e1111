"""Where resident engines of this user are found: a card, a lock and a socket for each.

Cards and locks lie beside the key of the cache, where neither projects nor Spark get at them. Who
holds the lock runs, whatever its card says; so what a killed engine left is recognised at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from odfbuild.store.files import stage
from odfbuild.store.machine_key import key_file
from odfbuild.values import Value


class Card(Value):
    """A resident engine: its process, the address of its socket, project and releases."""

    key: str
    pid: int
    socket: str
    project: str
    odfbuild: str
    spark: str
    java: str
    since: str


def folder() -> Path | None:
    """Where cards lie, made for this user alone; `None` for a user without a place to keep them."""
    key = key_file()
    if key is None:
        return None
    made = key.parent / "engines"
    try:
        made.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return made if is_own(made) else None


def is_own(path: Path | str) -> bool:
    """Whether only this user gets into a folder."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return mine and not found.st_mode & 0o077


def running(key: str) -> Card | None:
    """The engine of that name, if it runs and takes requests."""
    place = folder()
    card = place and _read(place / f"{key}.json")
    return card if card and place and _is_held(place / f"{key}.lock") else None


def all_running() -> Iterator[Card]:
    """All engines of this user on this machine, in order of project."""
    place = folder()
    keys = sorted(file.stem for file in place.glob("*.json")) if place else []
    yield from sorted(filter(None, map(running, keys)), key=lambda card: card.project)


def take(key: str) -> int | None:
    """The lock of the engine of that name, held until it is closed; `None` while another has it."""
    place = folder()
    if place is None:
        return None
    lock = os.open(place / f"{key}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def clear_left() -> None:
    """Remove what engines left that were killed."""
    place = folder()
    for file in place.glob("*.json") if place else ():
        lock = take(file.stem)
        if lock is not None:
            card = _read(file)
            if card is not None and is_own(Path(card.socket).parent):
                shutil.rmtree(Path(card.socket).parent, ignore_errors=True)
            file.unlink(missing_ok=True)
            os.close(lock)


def write(card: Card) -> None:
    """Let `card` be found; only who holds the lock may do so."""
    place = folder()
    if place is not None:
        text = json.dumps(asdict(card)).encode()
        stage(place, text, mode=0o600, durable=False).replace(place / f"{card.key}.json")


def remove(key: str) -> None:
    """Let the card not be found any more; only who holds the lock may do so."""
    place = folder()
    if place is not None:
        (place / f"{key}.json").unlink(missing_ok=True)


def log_of(key: str) -> Path | None:
    """What an engine prints, if it prints anything."""
    place = folder()
    return place / f"{key}.log" if place else None


def _read(file: Path) -> Card | None:
    with contextlib.suppress(OSError, ValueError, TypeError):
        data: dict[str, Any] = json.loads(file.read_bytes())
        return Card(**data)
    return None


def _is_held(lock: Path) -> bool:
    try:
        opened = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(opened)
    return False

"""The key of this user on this machine, which seals cache files.

A checksum proves that a file is whole, not who wrote it: anyone can commit a cache with the right
one. So what a cache keeps is sealed with a key that lies outside of every project. Losing the key
loses what is cached, nothing else.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import stat
from functools import cache
from pathlib import Path

from odfbuild.store.files import read_small, stage

SEAL_SIZE = 32
_KEY_SIZE = 32
_MODE = 0o400
"""Git gives what it brings the mode 644 or 755: a key that came with a project is not taken."""


def key_file() -> Path | None:
    """Where the key is kept; `None` for a user without a home."""
    try:
        base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    except RuntimeError:
        return None
    return Path(base) / "odfbuild" / "cache-key"


def machine_key() -> bytes | None:
    """The key, made when there is none; `None` where none can be kept: nothing is cached then."""
    file = key_file()
    return None if file is None else _key(str(file))


def seal(place: str, *pieces: bytes | memoryview) -> bytes | None:
    """What only the holder of the key can tell of these bytes at this place; `None` without one."""
    hasher = sealer(place)
    if hasher is None:
        return None
    for piece in pieces:
        hasher.update(piece)
    return hasher.digest()


def sealer(place: str) -> hmac.HMAC | None:
    """An object that makes such a seal of what it is fed."""
    key = machine_key()
    # SHA-256, for which processors have instructions: every plan checks the whole cache.
    return None if key is None else hmac.new(key, os.fsencode(place) + b"\0", "sha256")


def is_sealed(found: bytes, place: str, *pieces: bytes | memoryview) -> bool:
    """Whether `found` is the seal of these bytes at this place."""
    expected = seal(place, *pieces)
    return expected is not None and hmac.compare_digest(found, expected)


@cache
def _key(file: str) -> bytes | None:
    path = Path(file)
    with contextlib.suppress(OSError):
        return _read(path) or _make(path)
    return None


def _read(file: Path) -> bytes | None:
    try:
        found = file.lstat()
    except FileNotFoundError:
        return None
    mine = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
    if not mine or stat.S_IMODE(found.st_mode) != _MODE or found.st_size != _KEY_SIZE:
        return None
    return read_small(file)


def _make(file: Path) -> bytes | None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    staged = stage(file.parent, secrets.token_bytes(_KEY_SIZE), mode=_MODE)
    try:
        # Of two processes that start at once, the first wins.
        os.link(staged, file)
    except FileExistsError:
        if _read(file) is None:
            staged.replace(file)
    finally:
        staged.unlink(missing_ok=True)
    return _read(file)

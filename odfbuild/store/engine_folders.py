"""Folders for an engine's own files: outside of projects, and recognised when nobody uses them.

Spark keeps what it spills and shuffles there. A process that ends takes its folder along; one that
is killed cannot, and `gc` does it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

_ENGINE = "odfbuild-spark-"
_IN_USE = "in-use"


def engine_folder() -> tuple[Path, int]:
    """An empty folder for an engine's own files, and the open lock file that says it is in use.

    It lies outside of projects, where temporary files are, and belongs to this process until the
    lock is closed, by whatever end.
    """
    folder = Path(tempfile.mkdtemp(prefix=_ENGINE))
    lock = os.open(folder / _IN_USE, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return folder, lock


def abandoned_engine_folders() -> Iterator[Path]:
    """Folders of engines whose process was killed, of this user."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_ENGINE}*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_uid == os.getuid() and not _is_in_use(folder / _IN_USE):
                yield folder


def _is_in_use(file: Path) -> bool:
    try:
        lock = os.open(file, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False

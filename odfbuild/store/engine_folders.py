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


def engine_folder(scratch: Path | None) -> tuple[Path, int]:
    """An empty folder for an engine's own files, and the open lock file that says it is in use.

    It lies where temporary files are, outside of the project whose scratch folder is `scratch`,
    and belongs to this process until the lock is closed, by whatever end.
    """
    folder = Path(tempfile.mkdtemp(prefix=_ENGINE))
    # Whoever finds the file under its name finds it locked.
    made = folder / f".{_IN_USE}"
    lock = os.open(made, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.write(lock, os.fsencode(scratch or ""))
    made.rename(folder / _IN_USE)
    return folder, lock


def abandoned_engine_folders(scratch: Path) -> Iterator[Path]:
    """Folders of engines that worked for that project and whose process was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_ENGINE}*"):
        # It may be another user's, or just go away.
        with contextlib.suppress(OSError):
            file = folder / _IN_USE
            if file.read_bytes() == os.fsencode(scratch) and not _is_locked(file):
                yield folder


def _is_locked(file: Path) -> bool:
    lock = os.open(file, os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False

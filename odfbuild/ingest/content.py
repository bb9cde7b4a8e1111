"""A hash of a file's bytes: the source state of a single file.

Times of modification are not used: Git changes them with each checkout. Files that are large are
hashed again only when they look different; how they looked is noted in the cache.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import TypeAlias

from odfbuild.odf.multihash import SHA2_256, Multihash
from odfbuild.store.disposable import RACY_NS, read_disposable, write_disposable

_NOTED_BYTES = 1 << 20
"""Smaller files are hashed in about the time that finding a note takes."""

_STAMP = b"odfbuild contents 1\n"


FileMark: TypeAlias = tuple[int, int, int]
"""How a file looks from outside: times of modification and of change (ns), size (bytes)."""


def mark_of(path: str) -> FileMark | None:
    """How a file looks; `None` when there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116  # twice as fast as Path, for thousands of files
    except (FileNotFoundError, NotADirectoryError):
        return None
    # A copy may keep the time of modification; nobody can set that of the change.
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size


def content_of(path: str | Path) -> str:
    """SHA2-256 of the bytes of a file as a multihash: `f1220`, then what `sha256sum` prints."""
    with open(path, "rb") as file:  # noqa: PTH123
        return str(Multihash.of(SHA2_256, hashlib.file_digest(file, "sha256").digest()))


class KnownContents:
    """Contents of files, taken from notes of the cache while large files look as they did."""

    def __init__(self, cache: Path) -> None:
        self._file = cache / "contents.bin"
        self._notes: dict[str, tuple[FileMark, str]] | None = None
        self._changed = False

    def of(self, path: str) -> str:
        """`content_of`, without reading a large file that was noted."""
        mark = mark_of(path)
        if mark is None or mark[2] < _NOTED_BYTES:
            return content_of(path)
        if self._notes is None:
            self._notes = read_disposable(self._file, _STAMP, dict[str, tuple[FileMark, str]]) or {}
        noted = self._notes.get(path)
        if noted is not None and noted[0] == mark:
            return noted[1]
        content = content_of(path)
        # It may change within a tick of its clock, and would look the same afterwards.
        if mark_of(path) == mark and max(mark[:2]) <= time.time_ns() - RACY_NS:
            self._notes[path] = (mark, content)
            self._changed = True
        return content

    def save(self) -> None:
        """Keep notes of files that are as noted; a cache that cannot be written keeps none."""
        if self._changed and self._notes is not None:
            notes = {path: note for path, note in self._notes.items() if mark_of(path) == note[0]}
            write_disposable(self._file, _STAMP, notes)
            self._changed = False

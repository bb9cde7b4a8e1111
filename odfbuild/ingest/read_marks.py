"""Size, time and hash of source files when they were read, to detect later edits.

A chain names the last file only, and no run reads one of that name or an earlier one again. Their
sizes, times and digests are kept in the cache of the machine that read them. Losing them loses
warnings, nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from odfbuild.fallbacks import falling_back
from odfbuild.ingest.fetch.result import Fetched
from odfbuild.ingest.fetch.sftp_address import is_elsewhere
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import FetchStep, FetchStepFilesGlob
from odfbuild.store.files import read_bounded
from odfbuild.store.machine_key import is_sealed, seal

_FOLDER = "files-read"
_MOST = 128 << 20
"""Bytes of the marks of one dataset, which is some hundred thousand files."""


class FileMark(NamedTuple):
    """How a file looked: base name, time of modification (ns), size (bytes), BLAKE2b in hex."""

    name: str
    modified: int
    size: int
    digest: str


def look_at(step: FetchStep, fetched: Fetched) -> FileMark | None:
    """How a file of a pattern looks that is about to be read; `None` for other data."""
    if not isinstance(step, FetchStepFilesGlob) or is_elsewhere(step.path):
        return None
    try:
        return _look(str(fetched.file))
    except OSError:
        return None  # whoever reads it will tell


def marked(cache: Path) -> Collection[str]:
    """What stands for the datasets of which there are marks, see `key_of`."""
    try:
        return {name.partition(".")[0] for name in os.listdir(cache / _FOLDER)}  # noqa: PTH208
    except OSError:
        return ()


def key_of(dataset: DatasetId) -> str:
    """What a dataset is called among those that have marks."""
    return dataset.key.hex()


class ReadMarks:
    """Marks of the files of one dataset, by base name."""

    def __init__(self, cache: Path, dataset: DatasetId) -> None:
        self._file = cache / _FOLDER / f"{key_of(dataset)}.jsonl"
        self._place = f"{_FOLDER} {key_of(dataset)}"

    def add(self, *marks: FileMark) -> None:
        """Keep marks of files that were read. A cache that cannot be written keeps nothing."""
        with falling_back(__name__, "files that were read are looked at again", OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            lines = []
            for text in map(json.dumps, marks):
                sealed = seal(self._place, text.encode())
                if sealed is None or self._file.is_symlink():
                    return
                # The line break goes first too, for the last line may not be whole.
                lines.append(f"\n{sealed.hex()} {text}\n")
            with self._file.open("a", encoding="ascii") as file:
                file.writelines(lines)

    def load(self) -> dict[str, FileMark]:
        """All marks by base name. A line that is not whole, or not written here, is no mark."""
        try:
            data = read_bounded(self._file, _MOST)
        except OSError:
            return {}
        found: dict[str, FileMark] = {}
        for line in data.decode("utf-8", "surrogateescape").splitlines():
            sealed, _, text = line.partition(" ")
            with contextlib.suppress(ValueError):
                if is_sealed(bytes.fromhex(sealed), self._place, text.encode()):
                    mark = FileMark(*json.loads(text))
                    found[mark.name] = mark
        return found

    def edited(self, paths: Iterable[str]) -> list[str]:
        """Those of `paths`, sorted, that are no longer what was read.

        One that was only written again with the same content gets a new mark.
        """
        marks = self.load()
        return sorted(path for path in paths if self._is_edited(path, marks.get(_name(path))))

    def unmarked(self, paths: Iterable[str]) -> list[str]:
        """Those of `paths`, sorted, that were not read here."""
        marks = self.load()
        return sorted(path for path in paths if _name(path) not in marks)

    def _is_edited(self, path: str, mark: FileMark | None) -> bool:
        if mark is None:
            return False
        try:
            status = os.stat(path)  # noqa: PTH116  # twice as fast as Path, for thousands of files
            if (status.st_mtime_ns, status.st_size) == (mark.modified, mark.size):
                return False
            if status.st_size != mark.size:
                return True
            now = _look(path)
        except OSError:
            return False  # whoever reads it will tell
        if now.digest != mark.digest:
            return True
        self.add(now)
        return False


def _look(path: str) -> FileMark:
    with open(path, "rb") as file:  # noqa: PTH123
        status = os.fstat(file.fileno())
        content = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16))
    return FileMark(_name(path), status.st_mtime_ns, status.st_size, content.hexdigest())


def _name(path: str) -> str:
    return path.rpartition("/")[2]

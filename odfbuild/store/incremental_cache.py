"""A mapping in two disposable files: all of it, and what changed since.

Little changes from one plan to the next, and writing ten thousand entries for the sake of one took
longer than finding it. The second file holds the entries that stand in for those of the first, to
which it belongs by its seal; when they are many, all is written anew. A branch has a second file of
its own, and leaves the first one alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from odfbuild.store.disposable import Buffer, map_disposable, write_disposable

Entry = tuple[Any, ...]
"""Plain values; among them may be positions in the bytes that are kept beside."""

_FEW = 20
"""Up to a part in so many of entries and bytes is written beside the others."""


class Kept:
    """Entries by key as they were saved last, and the bytes that they tell positions in.

    With an `own` file, what is saved differs from what is in `file` there and not in it.
    """

    def __init__(self, file: Path, stamp: bytes, own: Path | None = None) -> None:
        self._file = file
        self._stamp = stamp
        self._is_own = own is not None
        self._changes_file = own or file.with_suffix(".changes.bin")
        self._base: dict[str, Entry] = {}
        self._bytes = self._new_bytes = memoryview(b"")
        self._base_stamp: bytes | None = None
        changes: dict[str, Entry | None] = {}  # `None`: gone
        whole = map_disposable(file, stamp)
        if whole is not None:
            self._base, self._bytes = whole.plain, whole.rest
            self._base_stamp = stamp + whole.seal
            found = map_disposable(self._changes_file, self._base_stamp)
            if found is None and own is not None:
                found = map_disposable(file.with_suffix(".changes.bin"), self._base_stamp)
            if found is not None:
                changes, self._new_bytes = found.plain, found.rest
        self.size = len(self._bytes) + len(self._new_bytes)
        """How many bytes there are; the next ones begin here."""
        self.entries: Mapping[str, Entry] = self._base
        if changes:
            merged = self._base | changes
            self.entries = {key: entry for key, entry in merged.items() if entry is not None}

    def part(self, start: int, end: int) -> Buffer:
        """The bytes between two positions."""
        first = len(self._bytes)
        if start < first:
            return self._bytes[start:end]
        return self._new_bytes[start - first : end - first]

    def save(
        self,
        entries: Mapping[str, Entry],
        more: Sequence[bytes] = (),
        moved: Callable[[Mapping[str, Entry]], tuple[Mapping[str, Entry], list[Buffer]]]
        | None = None,
    ) -> None:
        """Keep these entries, and bytes after those there are; a failure costs only time.

        Where all is written anew, `moved` gives entries and bytes without those nobody points to.
        """
        changes: dict[str, Entry | None] = {
            key: entry for key, entry in entries.items() if self._base.get(key) != entry
        }
        changes |= dict.fromkeys(self._base.keys() - entries.keys())
        new: tuple[Buffer, ...] = (self._new_bytes, *more)
        few = self._is_own or _FEW * len(changes) <= len(self._base)
        few_bytes = self._is_own or _FEW * sum(map(len, new)) <= len(self._bytes)
        if self._base_stamp and few and few_bytes:
            write_disposable(self._changes_file, self._base_stamp, changes, new)
            return
        parts: list[Buffer] = []
        if moved is not None:
            entries, parts = moved(entries)
        write_disposable(self._file, self._stamp, entries, parts)
        with contextlib.suppress(OSError):
            self._changes_file.unlink(missing_ok=True)

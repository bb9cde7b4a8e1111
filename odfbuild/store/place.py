"""Places: where files of datasets are kept by name, such as `blocks/<hash>` or `refs/head`.

A storage and a repository are both made on a place, so that each works in a folder and in every
kind of object store. A name is a path below the place; callers make it of checked names and hashes
only. Errors are those of the operating system or of a client (see `remote.is_failure`).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from odfbuild.store.files import (
    PENDING,
    folder_lock,
    make_folder,
    move_file,
    sync,
    write_file,
)
from odfbuild.values import Value

Progress = Callable[[int], None]
"""Told how many more bytes have been transferred."""


LEFT_OVER_SECONDS = 3_600
"""Who writes to a staging file does so more often."""


class TooLarge(OSError):
    """A file has more bytes than it may have."""


class Unconditional(OSError):
    """A store cannot replace a file on the condition that nobody else did."""


class PlacedFile(Value):
    """A file at a place: its name there, its bytes, and when it was written (seconds, Unix)."""

    name: str
    bytes: int
    written: float


class ReadablePlace(Protocol):
    """Files that can be read; methods may be called from several threads at once."""

    @property
    def address(self) -> str:
        """Where it is, without credentials."""
        ...

    def read(self, name: str, limit: int) -> bytes | None:
        """A small file; `None` when it is not there, `TooLarge` behind `limit` bytes."""
        ...

    def download(
        self, name: str, target: Path, limit: int, progress: Progress | None = None
    ) -> bool:
        """Copy a file to the new file `target`; false when it is not there.

        `TooLarge` behind `limit` bytes; part of `target` may be left then, or after other errors.
        """
        ...

    def below(self, name: str) -> ReadablePlace:
        """The place of the names that begin with `name/`."""
        ...


class Place(ReadablePlace, Protocol):
    """Files that can be written, too. A file is there as a whole or not at all."""

    def size(self, name: str) -> int | None:
        """Bytes of a file; `None` when it is not there."""
        ...

    def upload(self, file: Path, name: str, progress: Progress | None = None) -> None:
        """Copy `file` there, instead of what is there."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Write a small file, instead of what is there."""
        ...

    def swap(self, name: str, expected: bytes | None, new: bytes) -> bool:
        """Replace a small file that holds `expected` (`None`: is not there); false when not so.

        Of several writers at once, one gets true. `Unconditional` where that cannot be had.
        """
        ...

    def list(self, name: str = "") -> list[str]:
        """Names directly below `name`, sorted; those that hold further names end with `/`."""
        ...

    def files(self, name: str = "") -> Iterator[PlacedFile]:
        """All files below `name`, at any depth, in any order."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file; nothing happens when it is not there."""
        ...

    def tidy(self) -> None:
        """Remove what writers left that were killed some time ago; it has no name that counts."""
        ...

    def tidy_now(self) -> None:
        """The same however short ago; only `swap` may write there at the same time."""
        ...

    def below(self, name: str) -> Place:
        """The place of the names that begin with `name/`."""
        ...


class Folder:
    """A folder that several machines may see, such as a share.

    Writers of `swap` exclude each other by a lock of the kernel; on a share the file system has to
    pass it on, as NFS and SMB do.
    """

    def __init__(self, folder: Path, address: str | None = None) -> None:
        self.address = address or str(folder)
        self._folder = folder

    def below(self, name: str) -> Folder:
        """The folder of that name."""
        return Folder(self._folder / name, f"{self.address.rstrip('/')}/{name}")

    def size(self, name: str) -> int | None:
        """Bytes of a file; `None` when it is not there."""
        try:
            return (self._folder / name).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def read(self, name: str, limit: int) -> bytes | None:
        """A small file."""
        try:
            with (self._folder / name).open("rb") as file:
                data = file.read(limit + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if len(data) > limit:
            raise too_large(name, limit)
        return data

    def download(
        self, name: str, target: Path, limit: int, progress: Progress | None = None
    ) -> bool:
        """Copy a file to `target`."""
        try:
            return _copy(self._folder / name, target, limit, progress)
        except (FileNotFoundError, NotADirectoryError):
            if self.size(name) is not None:
                raise  # the folder of `target` is not there
            return False

    def upload(self, file: Path, name: str, progress: Progress | None = None) -> None:
        """Copy `file` there."""
        target = self._folder / name
        make_folder(target.parent)
        staged = target.parent / f"{PENDING}{secrets.token_hex(8)}"
        try:
            _copy(file, staged, None, progress)
            move_file(staged, target)
        finally:
            staged.unlink(missing_ok=True)

    def write(self, name: str, data: bytes) -> None:
        """Write a small file."""
        target = self._folder / name
        make_folder(target.parent)
        write_file(target, data)

    def swap(self, name: str, expected: bytes | None, new: bytes) -> bool:
        """Replace a small file under the lock of its folder."""
        target = self._folder / name
        make_folder(target.parent)
        with folder_lock(target.parent):
            if (None if self.size(name) is None else target.read_bytes()) != expected:
                return False
            write_file(target, new)
        return True

    def list(self, name: str = "") -> list[str]:
        """Names directly below."""
        try:
            with os.scandir(self._folder / name) as entries:
                return sorted(
                    each.name + "/" * each.is_dir()
                    for each in entries
                    if not each.name.startswith(PENDING)
                )
        except FileNotFoundError:
            return []

    def files(self, name: str = "") -> Iterator[PlacedFile]:
        """All files below, but staging files."""
        for each in (self._folder / name).rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                found = each.lstat()
                if stat.S_ISREG(found.st_mode) and not each.name.startswith(PENDING):
                    below = each.relative_to(self._folder).as_posix()
                    yield PlacedFile(below, found.st_size, found.st_mtime)

    def remove(self, name: str) -> None:
        """Remove a file."""
        (self._folder / name).unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove staging files that nobody has written to for a long time."""
        for staged in self._folder.rglob(f"{PENDING}*"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - staged.stat().st_mtime > LEFT_OVER_SECONDS:
                    staged.unlink()

    def tidy_now(self) -> None:
        """Remove all staging files: who holds the lock of a folder is alone there."""
        for folder in {staged.parent for staged in self._folder.rglob(f"{PENDING}*")}:
            with folder_lock(folder):
                for staged in folder.glob(f"{PENDING}*"):
                    staged.unlink(missing_ok=True)
                sync(folder)


def too_large(name: str, limit: int) -> TooLarge:
    """The error for a file that has more than `limit` bytes."""
    return TooLarge(f"{name} has more than the {limit:,} bytes that it may have")


_PIECE = 1 << 20


def _copy(source: Path, target: Path, limit: int | None, progress: Progress | None) -> bool:
    """Copy a file by pieces; always true."""
    with source.open("rb") as file, target.open("wb") as copy:
        done = 0
        while piece := file.read(_PIECE):
            done += len(piece)
            if limit is not None and done > limit:
                raise too_large(source.name, limit)
            copy.write(piece)
            if progress is not None:
                progress(len(piece))
    return True

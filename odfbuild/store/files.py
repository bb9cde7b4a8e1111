"""Atomic file writes, also across power failures, and locks on folders.

A file appears under its name by rename, after its bytes are on disk; the folder that lists it is
synced next. Staging files are called `.pending-…` and stand in the same folder as their target.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import stat
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

PENDING = ".pending-"

_MAKING = threading.Lock()
"""Threads that need the same folder make it once."""

_AT_ONCE = 1_000
"""So many pieces the kernel takes in one call (IOV_MAX is 1024)."""

_SYNCED_AT_ONCE = 16

_READ = os.O_RDONLY | os.O_NONBLOCK
"""Opening a pipe does not wait for somebody who writes to it."""


def sync(path: Path) -> None:
    """Make the bytes of a file durable, or the list of names in a folder."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@cache
def _threads() -> ThreadPoolExecutor:
    """Threads that wait for the disk, for the whole process: many small commits share them."""
    from concurrent.futures import ThreadPoolExecutor

    os.register_at_fork(after_in_child=_threads.cache_clear)
    return ThreadPoolExecutor(_SYNCED_AT_ONCE, thread_name_prefix="sync")


@contextlib.contextmanager
def beside(*works: Callable[[], object]) -> Iterator[None]:
    """Do other durable writes while the body does its own: all are done, or raised, behind it.

    They wait for the same few writes of the disk then. None of `works` may use `beside` itself.
    """
    begun = [_threads().submit(work) for work in works]
    try:
        yield
    finally:
        # Whoever clears up behind an error must find nobody at work.
        faults = [each.exception() for each in begun]
    for fault in filter(None, faults):
        raise fault


def _sync_files(files: Sequence[Path]) -> None:
    """Make the bytes of files durable.

    Several are synced at once, because what they wait for is then the same few writes of the disk.
    """
    with beside(*(partial(sync, file) for file in files[1:])):
        for file in files[:1]:
            sync(file)


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """Create `folder` (and what is above it) durably; nothing if it is there."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with _MAKING:
        if folder.is_dir():
            return
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode)
        sync(folder.parent)


def stage(
    folder: Path,
    *data: bytes | memoryview,
    mode: int = 0o666,
    token: str | None = None,
    durable: bool = True,
) -> Path:
    """Write `data` to a new staging file in `folder`, and sync it if it is to be `durable`.

    `token` is the last part of its name.
    """
    staged = folder / f"{PENDING}{token or secrets.token_hex(8)}"
    fd = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        for first in range(0, len(data), _AT_ONCE):
            _write(fd, data[first : first + _AT_ONCE])
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)
    return staged


def _write(fd: int, data: Sequence[bytes | memoryview]) -> None:
    written = os.writev(fd, data)
    for piece in data:
        # Whatever the kernel did not take at once.
        rest = memoryview(piece)[written:]
        written = max(0, written - len(piece))
        while rest:
            rest = rest[os.write(fd, rest) :]


def write_file(
    target: Path,
    data: bytes,
    mode: int = 0o666,
    token: str | None = None,
    *,
    list_synced: bool = True,
) -> None:
    """Write or replace `target` durably; readers see the old bytes or the new, never a part.

    Who puts more into the folder can sync the list of its names once, behind the last.
    """
    staged = stage(target.parent, data, mode=mode, token=token)
    staged.replace(target)
    if list_synced:
        sync(target.parent)


def move_file(source: Path, target: Path, *, list_synced: bool = True) -> None:
    """Move `source` to `target` durably, over file systems if need be.

    Who moves many files to one folder can sync the list of its names once, behind the last.
    """
    sync(source)
    _move(source, target, list_synced=list_synced)


def move_files(moves: Mapping[Path, Path], folder: Path) -> None:
    """Move each source to its target in `folder` like `move_file`; what is there becomes durable.

    The list of names is synced also without a move: who left a file there may have died before it.
    """
    _sync_files(list(moves))
    for source, target in moves.items():
        _move(source, target, list_synced=False)
    sync(folder)


def _move(source: Path, target: Path, *, list_synced: bool) -> None:
    try:
        source.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        staged = target.parent / f"{PENDING}{secrets.token_hex(8)}"
        shutil.copyfile(source, staged)
        move_file(staged, target, list_synced=list_synced)
        source.unlink()
        return
    if list_synced:
        sync(target.parent)


def names_like(folder: Path, name: str) -> list[str]:
    """What in `folder` has that name, whose case does not count."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 (ten thousand names, for every new dataset)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [other for other in names if other.lower() == name.lower()]


def read_small(path: str | Path) -> bytes:
    """Bytes of a small file, without the cost of a file object."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return read_open(fd)
    finally:
        os.close(fd)


class TooLarge(OSError):
    """A file has more bytes than its reader takes."""


def read_bounded(path: str | Path, most: int) -> bytes:
    """Bytes of a regular file; `TooLarge` where there are more than `most`, `OSError` else."""
    with regular(path) as fd:
        if os.fstat(fd).st_size > most:
            raise TooLarge(errno.EFBIG, "it is too large", os.fspath(path))
        return read_open(fd)


@contextlib.contextmanager
def regular(path: str | Path) -> Iterator[int]:
    """A regular file, open for reading; `OSError` where it is none.

    A pipe without a writer would wait for one, and a device may never end.
    """
    fd = os.open(path, _READ)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))
        yield fd
    finally:
        os.close(fd)


def read_inside(path: str) -> bytes:
    """Bytes of a small file of a chain, as `open_inside` opens it."""
    fd = open_inside(path)
    try:
        return read_open(fd)
    finally:
        os.close(fd)


def open_inside(path: str) -> int:
    """A file of a chain, open for reading; no link is followed that leads out of the repository.

    Only a regular file is one: a pipe would never end, nor would a device. `FileNotFoundError` for
    anything else.
    """
    try:
        fd = os.open(path, _READ | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        real = _behind_link(path)
        if real is None:
            raise FileNotFoundError(errno.ENOENT, "a link out of the repository", path) from None
        fd = os.open(real, _READ)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileNotFoundError(errno.ENOENT, "not a regular file", path)
    return fd


def is_file_inside(path: str | Path) -> bool:
    """Whether there is a file that `open_inside` opens; false also for a link that leads nowhere.

    `UnfitFile` where there is something else.
    """
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            real = _behind_link(path)
            if real is None:
                raise UnfitFile("is a link out of the repository")
            mode = real.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not stat.S_ISREG(mode):
        raise UnfitFile("is not a regular file")
    return True


class UnfitFile(Exception):
    """What is there is no file that a chain may have; the text has no subject."""


def _behind_link(path: str | Path) -> Path | None:
    """Where a link leads to inside of the repository, `None` if elsewhere or in a circle."""
    try:
        real = Path(path).resolve()
    except (OSError, RuntimeError):
        return None
    return real if real.is_relative_to(top_of(Path(path).absolute().parent)) else None


def top_of(root: Path) -> Path:
    """The top of the repository around the folder `root`; that folder where there is none."""
    found = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), None)
    return root if found is None else found


def read_open(fd: int) -> bytes:
    """Bytes of a small file that is open."""
    data = os.read(fd, 4_096)
    if len(data) < 4_096:
        return data
    parts = [data]
    while more := os.read(fd, 1 << 20):
        parts.append(more)
    return b"".join(parts)


@contextlib.contextmanager
def folder_lock(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the exclusive lock of `folder` among all threads and processes that ask for it.

    The kernel frees it when the process dies. `BlockingIOError` when it is taken and `wait` is
    false. The folder itself is locked: no lock file lies around among the files of a dataset.
    """
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(fd)


def size_of(file: Path) -> int | None:
    """Bytes of a file; `None` when it is not there."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return None


def look_new(file: Path) -> None:
    """Make a file that was there already look new, lest garbage collection takes it for old.

    Somebody else's file stays as it is: only its owner can collect it.
    """
    with contextlib.suppress(PermissionError):
        os.utime(file)

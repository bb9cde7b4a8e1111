"""The file system under a project, and what odfbuild keeps there besides chains."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.inspect.health import Check, fail, ok, warn
from odfbuild.store.machine_key import machine_key
from odfbuild.store.side_cars import BY_KEY

if TYPE_CHECKING:
    from odfbuild.project.model import Config

_LEFT_SECONDS = 24 * 3600
_LITTLE = 1 << 30
_NETWORK = ("nfs", "cifs", "smb", "9p", "fuse.sshfs", "afs", "lustre", "ceph")
"""Where locks of one machine may not hold for another, by how the names of file systems begin."""


def file_system(config: Config) -> Iterator[Check]:
    """Whether what commits rest on works where the chains are."""
    folder = config.state if config.state.is_dir() else config.root
    try:
        probe = Path(tempfile.mkdtemp(prefix=".odfbuild-doctor-", dir=folder))
    except OSError as error:
        help = f"chmod u+rwx {folder}"
        yield fail("file system", f"{folder} cannot be written: {error.strerror}", help)
        return
    try:
        wrong = [problem for each in (_renames, _locks) if (problem := each(probe)) is not None]
        folds = _folds_case(probe)
    finally:
        shutil.rmtree(probe, ignore_errors=True)
    kind = _kind(folder)
    found = f"{kind or 'unknown kind'}, {'letter case does not count' if folds else 'case counts'}"
    if wrong:
        help = "keep the project, or its `state`, on a local file system"
        yield fail("file system", f"{found}; {'; '.join(wrong)}", help)
    elif kind.startswith(_NETWORK):
        help = "apply from one machine at a time, or keep `state` on a local file system"
        yield warn("file system", f"{found}: locks may not hold between machines", help)
    else:
        yield ok("file system", f"{found}; renames replace, locks hold")
    free = shutil.disk_usage(folder).free
    if free < _LITTLE:
        help = "run `odfbuild gc`, or free disk space"
        yield warn("disk", f"{size(free)} free below {folder}", help)
    else:
        yield ok("disk", f"{size(free)} free")


def _renames(folder: Path) -> str | None:
    old, new = folder / "old", folder / "new"
    old.write_text("old")
    new.write_text("new")
    new.replace(old)
    if old.read_text() != "new" or new.exists():
        return "a file that is renamed does not replace another"
    try:
        os.close(os.open(old, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return None
    return "a file can be created twice"


def _locks(folder: Path) -> str | None:
    """A lock of this process has to keep a child from the same byte."""
    with (folder / "lock").open("w") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
        except OSError as error:
            return f"files cannot be locked ({error.strerror})"
        child = os.fork()
        if child == 0:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
            except OSError as error:
                os._exit(0 if error.errno in (errno.EACCES, errno.EAGAIN) else 2)
            os._exit(1)
        _, status = os.waitpid(child, 0)
    return None if status == 0 else "locks do not keep other processes out"


def _folds_case(folder: Path) -> bool:
    (folder / "case").touch()
    return (folder / "CASE").exists()


def _kind(folder: Path) -> str:
    """The type of the file system that holds `folder`, as Linux calls it; empty elsewhere."""
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    real = folder.resolve()
    best, kind = -1, ""
    for line in lines:
        _, place, found, *_ = line.split(" ")
        point = Path(place.encode().decode("unicode_escape"))
        if real.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), found
    return kind


def cache(config: Config, now: float) -> Iterator[Check]:
    """How large the disposable folder is, and what killed runs left in it; `now`: since 1970."""
    if not config.cache.is_dir():
        yield ok("cache", "none yet")
        return
    if not os.access(config.cache, os.W_OK):
        help = f"chmod -R u+rwX {config.cache}"
        yield warn("cache", f"cannot be written, so nothing can be cached: {config.cache}", help)
        return
    if machine_key() is None:
        help = "set XDG_STATE_HOME to a folder that you may write to"
        detail = "there is no place for its key, so nothing can be cached"
        yield warn("cache", detail, help)
        return
    total = _total(config.cache)
    left = [
        entry
        for entry in _entries(config.cache / "scratch")
        if now - entry.stat().st_mtime > _LEFT_SECONDS
    ]
    if left:
        lost = sum(map(_total, left))
        detail = f"{size(total)}, of which {size(lost)} was left by runs that were killed"
        yield warn("cache", detail, "odfbuild gc")
    else:
        by_key = sum(map(_total, config.cache.rglob(BY_KEY)))
        of_it = f", of which {size(by_key)} are records by key" if by_key else ""
        yield ok("cache", f"{size(total)}{of_it}: {config.cache}")


def keys(config: Config) -> Iterator[Check]:
    """Whether private keys are for their owner only."""
    if not config.keys.is_dir():
        yield ok("keys", "none yet")
        return
    mode = config.keys.stat().st_mode & 0o777
    if mode & 0o077:
        help = f"chmod 700 {config.keys}"
        yield fail("keys", f"the folder of private keys is open to others (mode {mode:o})", help)
        return
    open_ones = [each for each in _entries(config.keys) if each.stat().st_mode & 0o077]
    if open_ones:
        help = f"chmod 600 {config.keys}/*"
        yield fail(
            "keys", f"others may read {open_ones[0].name} and {len(open_ones) - 1} more", help
        )
        return
    count = sum(1 for each in _entries(config.keys) if each.name != ".gitignore")
    yield ok("keys", f"{count}, for their owner only: {config.keys}")


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _total(path: Path) -> int:
    if not path.is_dir():
        return path.lstat().st_size
    return sum(each.lstat().st_size for each in path.rglob("*") if not each.is_dir())


def size(count: int) -> str:
    """Bytes in units of 1000, without digits after the point."""
    for unit in ("bytes", "KB", "MB"):
        if count < 1000:
            return f"{count} {unit}"
        count //= 1000
    return f"{count:,} GB"

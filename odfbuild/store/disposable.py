"""The disposable folder `.odfbuild/`, and files in it that may be lost, damaged or outdated.

Such a file begins with a stamp, which says what it was made from, and a seal (`machine_key`). One
that is not there, not whole, of another stamp, moved or not written by this user on this machine is
no file: deleting it changes nothing but time. Then come plain values, which are read at once, and
bytes of which a part is looked at when it is needed. `marshal` reads them faster than anything
else, and is safe because nothing is read that is not sealed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import marshal
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import odfbuild
from odfbuild.store.files import regular, stage
from odfbuild.store.machine_key import SEAL_SIZE, is_sealed, seal

RACY_NS = 2_000_000_000
"""Changes within this time after a file was written may not show in its time of modification."""

_NAME = ".odfbuild"
_SIZE = 8
"""Bytes that tell, after the seal, how long the plain values are."""
Buffer: TypeAlias = bytes | memoryview
Entry = tuple[Any, ...]
"""Plain values; among them may be positions in the bytes that are kept beside."""

_FEW = 20
"""Up to a part in so many of entries and bytes is written beside the others."""

_CACHEDIR_TAG = b"""Signature: 8a477f597d28d172789f06886806bc55
# This folder is a cache of odfbuild; deleting it changes nothing but time.
# For information about cache directory tags see https://bford.info/cachedir/
"""


def user_cache() -> Path:
    """Disposable files of this user, for all projects."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "odfbuild"


def cache_folder(root: Path, env: str | None = None) -> Path:
    """Disposable files of the project in `root`, or of an environment of it.

    Beside the user's own where the project is read-only, or where links lead out of the folder: Git
    brings links, and what is written or cleared behind them would be somebody else's.
    """
    inside = Path(_NAME, *(("env", env) if env else ()))
    if os.access(root / _NAME if (root / _NAME).is_dir() else root, os.W_OK):
        folder = root / inside
        if not (is_linked(folder) or _holds_links(folder)):
            return folder
    base = user_cache() / "projects" / hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    return base.joinpath(*inside.parts[1:])


def is_linked(folder: Path) -> bool:
    """Whether a link on the way from the project to `folder` leads out of the cache."""
    depth = folder.parts.index(_NAME) if _NAME in folder.parts else len(folder.parts)
    inside = (folder, *folder.parents)[: len(folder.parts) - depth]
    return any(each.is_symlink() for each in inside)


def _holds_links(folder: Path) -> bool:
    try:
        with os.scandir(folder) as found:
            return any(entry.is_symlink() for entry in found)
    except OSError:
        return False


def prepare_cache_folder(folder: Path) -> None:
    """Create the cache folder, hidden from Git and from backups; `OSError` when it is no such."""
    if is_linked(folder):
        raise NotADirectoryError(errno.ENOTDIR, "it is a link", str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in ((".gitignore", b"*\n"), ("CACHEDIR.TAG", _CACHEDIR_TAG)):
        file = folder / name
        if not file.exists():
            stage(folder, content, durable=False).replace(file)


@contextmanager
def scratch_folder(cache: Path, prefix: str) -> Iterator[Path]:
    """An empty folder that is gone afterwards, on the file system of the project.

    So a file that was made in it becomes part of a dataset by rename.
    """
    prepare_cache_folder(cache)
    base = cache / "scratch"
    base.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{prefix}-", dir=base))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def read_disposable(file: Path, stamp: bytes) -> Any:
    """The plain values in `file`; `None` unless it is whole and begins with `stamp`."""
    found = map_disposable(file, stamp)
    return found and found.plain


class Mapped(NamedTuple):
    """The plain values in a file, the bytes after them, and its seal."""

    plain: Any
    rest: memoryview
    seal: bytes


def map_disposable(file: Path, stamp: bytes) -> Mapped | None:
    """What is in `file`; `None` as above.

    The file is mapped, not read: what nobody looks at takes no memory. Nobody writes to it under
    this name, so it stays as it is.
    """
    try:
        with regular(file) as opened:
            data = memoryview(mmap(opened, 0, access=ACCESS_READ))
    except (OSError, ValueError):  # not there, or empty
        return None
    sealed = len(stamp) + SEAL_SIZE
    if data[: len(stamp)] != stamp or len(data) < sealed + _SIZE:
        return None
    found = bytes(data[len(stamp) : sealed])
    if not is_sealed(found, str(file), stamp, data[sealed:]):
        return None
    start = sealed + _SIZE
    end = start + int.from_bytes(data[sealed:start], "little")
    return Mapped(marshal.loads(data[start:end]), data[end:], found)


def write_disposable(file: Path, stamp: bytes, plain: Any, parts: Iterable[Buffer] = ()) -> bool:
    """Write plain values and bytes by rename; false when nothing can be kept there."""
    values = marshal.dumps(plain)
    # Parts of an older file are its pages: they are written from there, not copied before.
    pieces = (len(values).to_bytes(_SIZE, "little"), values, *parts)
    sealed = seal(str(file), stamp, *pieces)
    if sealed is None:
        return False
    try:
        prepare_cache_folder(file.parent)
        # Without waiting for the disk: one that a power cut damages is not whole.
        stage(file.parent, stamp, sealed, *pieces, durable=False).replace(file)
    except OSError:
        return False  # a read-only checkout: the next reader computes again
    return True


class Kept:
    """A mapping in two disposable files: all of it, and what changed since.

    Little changes from one plan to the next, and writing ten thousand entries for the sake of one
    took longer than finding it. The second file holds the entries that stand in for those of the
    first, to which it belongs by its seal; when they are many, all is written anew. With an `own`
    file, such as that of a branch, what is saved differs from what is in `file` there and not in
    it. Entries are by key as they were saved last, with the bytes that they tell positions in.
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


@cache
def code_stamp() -> bytes:
    """32 bytes that change with the code of odfbuild, in a checkout as well as by version."""
    digest = hashlib.sha256(odfbuild.__version__.encode())
    for folder in odfbuild.__path__:
        _stamp_folder(folder, digest)
    return digest.digest()


def _stamp_folder(folder: str, digest: Any) -> None:
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name.endswith(".py"):
            status = entry.stat()
            digest.update(f"{entry.name}:{status.st_mtime_ns}:{status.st_size}\n".encode())
        elif entry.is_dir() and entry.name != "__pycache__":
            _stamp_folder(entry.path, digest)

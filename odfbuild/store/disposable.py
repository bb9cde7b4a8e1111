"""The disposable folder `.odfbuild/`, and files in it that may be lost, damaged or outdated.

Such a file begins with a stamp, which says what it was made from, and a checksum. One that is not
there, not whole or of another stamp is no file: deleting it changes nothing but time. Then come
plain values, which are read at once, and bytes of which a part is looked at when it is needed.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import shutil
import struct
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, reduce
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import odfbuild
from odfbuild.store.files import stage

RACY_NS = 2_000_000_000
"""Changes within this time after a file was written may not show in its time of modification."""

_HEADER = struct.Struct("<IQ")
"""Checksum of all that follows it, size of the plain values."""
Buffer: TypeAlias = bytes | memoryview

_LAYOUT = 2
"""Where the checksum begins: a file that was laid out in another way is not whole."""

_CACHEDIR_TAG = b"""Signature: 8a477f597d28d172789f06886806bc55
# This folder is a cache of odfbuild; deleting it changes nothing but time.
# For information about cache directory tags see https://bford.info/cachedir/
"""


def user_cache() -> Path:
    """Disposable files of this user, for all projects."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "odfbuild"


def cache_folder(root: Path) -> Path:
    """Disposable files of the project in `root`: beside the user's own where it is read-only."""
    folder = root / ".odfbuild"
    if os.access(folder if folder.is_dir() else root, os.W_OK):
        return folder
    return user_cache() / "projects" / hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


def prepare_cache_folder(folder: Path) -> None:
    """Create the cache folder, hidden from Git and from backups."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in ((".gitignore", b"*\n"), ("CACHEDIR.TAG", _CACHEDIR_TAG)):
        file = folder / name
        if not file.exists():
            stage(folder, content).replace(file)


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
    """The plain values in a file, the bytes after them, and its checksum."""

    plain: Any
    rest: memoryview
    checksum: bytes


def map_disposable(file: Path, stamp: bytes) -> Mapped | None:
    """What is in `file`; `None` as above.

    The file is mapped, not read: what nobody looks at takes no memory. Nobody writes to it under
    this name, so it stays as it is.
    """
    try:
        with file.open("rb", buffering=0) as opened:
            data = memoryview(mmap(opened.fileno(), 0, access=ACCESS_READ))
    except (OSError, ValueError):  # not there, or empty
        return None
    start = len(stamp) + _HEADER.size
    if len(data) < start or data[: len(stamp)] != stamp:
        return None
    checksum, size = _HEADER.unpack_from(data, len(stamp))
    if zlib.crc32(data[len(stamp) + 4 :], _LAYOUT) != checksum:
        return None
    plain = marshal.loads(data[start : start + size])
    return Mapped(plain, data[start + size :], bytes(data[len(stamp) : len(stamp) + 4]))


def write_disposable(file: Path, stamp: bytes, plain: Any, parts: Iterable[Buffer] = ()) -> bool:
    """Write plain values and bytes by rename; false when the folder cannot be written to."""
    values = marshal.dumps(plain)
    size = len(values).to_bytes(8, "little")
    # Parts of an older file are its pages: they are written from there, not copied before.
    pieces = (size, values, *parts)
    checksum = reduce(lambda known, piece: zlib.crc32(piece, known), pieces, _LAYOUT)
    data = (stamp, checksum.to_bytes(4, "little"), *pieces)
    try:
        prepare_cache_folder(file.parent)
        # Without waiting for the disk: one that a power cut damages is not whole.
        stage(file.parent, *data, durable=False).replace(file)
    except OSError:
        return False  # a read-only checkout: the next reader computes again
    return True


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

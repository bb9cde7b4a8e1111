"""The disposable folder `.odfbuild/`, and files in it that may be lost, damaged or outdated.

Such a file begins with a stamp, which says what it was made from, and a checksum. One that is not
there, not whole or of another stamp is no file: deleting it changes nothing but time.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import odfbuild
from odfbuild.store.files import read_small, stage

RACY_NS = 2_000_000_000
"""Changes within this time after a file was written may not show in its time of modification."""

_CACHEDIR_TAG = b"""Signature: 8a477f597d28d172789f06886806bc55
# This folder is a cache of odfbuild; deleting it changes nothing but time.
# For information about cache directory tags see https://bford.info/cachedir/
"""


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
    try:
        data = read_small(file)
    except OSError:
        return None
    start = len(stamp) + 4
    if len(data) < start or not data.startswith(stamp):
        return None
    payload = memoryview(data)[start:]
    if zlib.crc32(payload) != int.from_bytes(data[len(stamp) : start], "little"):
        return None
    return marshal.loads(payload)


def write_disposable(file: Path, stamp: bytes, plain: Any) -> bool:
    """Write plain values by rename; false when the folder cannot be written to."""
    payload = marshal.dumps(plain)
    data = stamp + zlib.crc32(payload).to_bytes(4, "little") + payload
    try:
        prepare_cache_folder(file.parent)
        stage(file.parent, data).replace(file)
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

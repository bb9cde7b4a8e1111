"""The disposable folder `.odfbuild/`, and files in it that may be lost, damaged or outdated.

Such a file is a stamp, which says what it was made from, a seal (`machine_key`), and a value in
msgpack. One that is not there, not whole, of another stamp, moved or not written by this user on
this machine is no file: deleting it changes nothing but time. Nothing is decoded that is not
sealed. Parts of a value that are seldom looked at are `Raw`: bytes of the file until then.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import msgspec

import odfbuild
from odfbuild.fallbacks import fell_back
from odfbuild.store.files import regular, stage
from odfbuild.store.machine_key import SEAL_SIZE, is_sealed, seal

RACY_NS = 2_000_000_000
"""Changes within this time after a file was written may not show in its time of modification."""

_NAME = ".odfbuild"
_FORM = b"odfbuild 2\n"
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


def read_disposable(file: Path, stamp: bytes, form: Any = Any) -> Any:
    """The value in `file`, of the type `form`; `None` unless it is whole and begins with `stamp`.

    The file is mapped, not read: what nobody looks at takes no memory. Nobody writes to it under
    this name, so it stays as it is.
    """
    try:
        with regular(file) as opened:
            data = memoryview(mmap(opened, 0, access=ACCESS_READ))
    except (OSError, ValueError):  # not there, or empty
        return None
    stamp = _FORM + stamp
    start = len(stamp) + SEAL_SIZE
    if data[: len(stamp)] != stamp or not is_sealed(
        bytes(data[len(stamp) : start]), str(file), stamp, data[start:]
    ):
        return None
    try:
        return unpacked(form, data[start:])
    except msgspec.DecodeError as error:  # another release wrote another form under this stamp
        fell_back(__name__, f"{file.name} is made anew", error)
        return None


def unpacked(form: Any, data: Any) -> Any:
    """The value that `packed` made bytes of."""
    return _decoder(form).decode(data)


packed = msgspec.msgpack.Encoder().encode
"""The bytes of a value; `OverflowError` for numbers of more than 64 bits."""

_decoder = cache(msgspec.msgpack.Decoder)


def write_disposable(file: Path, stamp: bytes, value: Any) -> bool:
    """Write a value by rename; false when nothing can be kept there."""
    stamp = _FORM + stamp
    data = packed(value)
    sealed = seal(str(file), stamp, data)
    if sealed is None:
        return False
    try:
        prepare_cache_folder(file.parent)
        # Without waiting for the disk: one that a power cut damages is not whole.
        stage(file.parent, stamp, sealed, data, durable=False).replace(file)
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

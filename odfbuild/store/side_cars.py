"""Side-cars: files made from the records of a dataset, so that a merge need not read them again.

A folder of files with a manifest. The manifest names the block up to which the files cover the
chain, and vouches for each of them by size and seal. A folder that is damaged in any way, or not of
this user on this machine, counts as empty: deleting it changes nothing but time. One writer at a
time, the holder of the claim.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from odfbuild.odf.multihash import Multihash
from odfbuild.store.disposable import RACY_NS, is_linked, read_disposable, write_disposable
from odfbuild.store.files import sync
from odfbuild.store.machine_key import sealer
from odfbuild.values import Value

MANIFEST = "manifest.bin"
_BY_KEY = "by-"
BY_KEY = f"{_BY_KEY}{'[0-9a-f]' * 16}/"
"""The pattern of folders with records, or their keys, by key; whoever uses them makes them new."""
MERGED = "merged"
"""The folder with merged copies of slices, which every reader looks at."""
_OURS = (MANIFEST, ".gitignore", "CACHEDIR.TAG")
_CHUNK = 8 << 20


class SideCar(Value):
    """One file: how many records it stands for, and `notes`, plain values of its maker.

    `seen` identifies the bytes that were last checked without reading them; `None`: read them.
    """

    name: str
    records: int
    notes: Any
    size: int
    seal: bytes
    seen: tuple[int, ...] | None = None


class SideCars(Value):
    """Whole and checked files that together cover a chain up to the block `covered`.

    `None` where each of them tells which slices it holds.
    """

    covered: Multihash | None
    files: tuple[SideCar, ...]


def by_key_folder(side_cars: Path, key: str) -> Path:
    """The folder for what a dataset has by a key."""
    return side_cars / f"{_BY_KEY}{hashlib.sha256(key.encode()).hexdigest()[:16]}"


class SideCarFolder:
    """The folder of side-cars of one kind; `stamp` says of which kind and from what."""

    def __init__(self, folder: Path, stamp: bytes) -> None:
        self.folder = folder
        self._stamp = b"odfbuild side-cars 2\n" + stamp + b"\n"

    def path(self, file: SideCar) -> Path:
        """Where a file is."""
        return self.folder / file.name

    def load(self) -> SideCars | None:
        """What the folder holds; `None` unless it is whole."""
        kept: SideCars | None = read_disposable(self.folder / MANIFEST, self._stamp, SideCars)
        if kept is None or is_linked(self.folder):
            return None
        files = []
        for known in kept.files:
            checked = _checked(self.path(known), known)
            if checked is None:
                return None
            files.append(checked)
        found = SideCars(kept.covered, tuple(files))
        if found != kept:
            self._write(found)
        with contextlib.suppress(OSError):  # garbage collection leaves what is in use
            os.utime(self.folder / MANIFEST)
        return found

    def describe(self, name: str, records: int, notes: Any = None) -> SideCar:
        """Vouch for a file that was just written into the folder, and make it durable."""
        file = self.folder / name
        sync(file)
        return SideCar(name, records, notes, file.stat().st_size, _seal(file))

    def save(
        self, covered: Multihash | None, files: Sequence[SideCar], spared: float = 0
    ) -> SideCars:
        """Replace what the folder holds, in one step; `OSError` when it cannot be written to.

        Other files go once they have not changed for `spared` seconds.
        """
        sync(self.folder)
        saved = SideCars(covered, tuple(files))
        if not self._write(saved):
            raise PermissionError(f"cannot write to {self.folder}")
        kept = {Path(file.name).parts[0] for file in files}
        for entry in self.folder.iterdir():
            if entry.name in kept or entry.name in _OURS:
                continue
            if spared and time.time() - entry.stat().st_mtime < spared:
                continue
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    entry.unlink()
        return saved

    def _write(self, found: SideCars) -> bool:
        return write_disposable(self.folder / MANIFEST, self._stamp, found)


def _checked(path: Path, known: SideCar) -> SideCar | None:
    try:
        status = path.stat()
        # Any change of the bytes also changes the time of the last change, which nobody can set.
        seen = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if seen == known.seen:
            return known
        if status.st_size != known.size or _seal(path) != known.seal:
            return None
    except OSError:
        return None
    # A change in the same tick of the clock would not show.
    settled = time.time_ns() - status.st_ctime_ns > RACY_NS
    return replace(known, seen=seen if settled else None)


def _seal(path: Path) -> bytes:
    """`OSError` where nothing can be kept."""
    made = sealer(str(path))
    if made is None:
        raise PermissionError("there is no key to seal files with")
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            made.update(chunk)
    return made.digest()

"""SHA-256 of data objects: chains name objects by SHA3-256, which few other tools compute.

A digest is computed once and remembered under the hash of the object, so it cannot be stale.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from odfbuild.odf.multihash import SHA3_256, Multihash
from odfbuild.store.dataset import DatasetStore
from odfbuild.store.disposable import read_disposable, write_disposable
from odfbuild.store.storage import damaged_object

_STAMP = b"odfbuild sha256 1\n"
_CHUNK = 8 << 20


def sha256_of(store: DatasetStore, hashes: Sequence[Multihash], cache: Path) -> list[bytes]:
    """SHA-256 (32 bytes) of data objects of a dataset, in their order.

    Brings those that are not here. `IntegrityError` E0811 for one that is nowhere, E0813 for one
    whose bytes are not what its name says.
    """
    file = cache / "sha256" / f"{store.name.replace('/', '-')}.bin"
    known: dict[bytes, bytes] = read_disposable(file, _STAMP, dict[bytes, bytes]) or {}
    missing = [each for each in dict.fromkeys(hashes) if each.binary not in known]
    for hash, path in zip(missing, store.bring_all("data", missing), strict=True):
        known[hash.binary] = _digest(path, hash, store.name)
    if missing:
        write_disposable(file, _STAMP, known)
    return [known[each.binary] for each in hashes]


def _digest(path: Path, expected: Multihash, dataset: str) -> bytes:
    """Both hashes in one pass: nobody vouches for bytes that are not those of the chain."""
    ours, theirs = hashlib.sha3_256(), hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            ours.update(chunk)
            theirs.update(chunk)
    found = Multihash.of(SHA3_256, ours.digest())
    if found != expected:
        raise damaged_object(expected, path, found, dataset)
    return theirs.digest()

"""The storage of a project: where the data and checkpoint objects of all its clones are kept.

Chains are small and travel with Git, unless `chains: storage` has their blocks here, too (see
`stored_blocks`); what they refer to does not. An object is called by the hash
of its bytes, `<address>/data/<hash>` or `<address>/checkpoints/<hash>`, so that clones, branches
and environments can share one storage without meeting each other, and whatever comes from it is
checked before it is used. Nothing is ever replaced there, and nothing is removed but what the owner
of a dataset withdrew.
"""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable, Collection
from operator import methodcaller
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import urlsplit

from odfbuild.errors import EnvironmentProblem, IntegrityError
from odfbuild.odf.multihash import Multihash
from odfbuild.store.files import PENDING, make_folder, move_file
from odfbuild.store.place import Folder, Place, PlacedFile
from odfbuild.store.remote import CREDENTIALS, EXTRAS, is_failure, why

ObjectKind = Literal["data", "checkpoints"]

PROBES = "probes"
"""Where those who are to write try whether they may."""

_T = TypeVar("_T")

_NO_LIMIT = sys.maxsize

_PAUSE_SECONDS = 30
"""How long a storage that could not be reached is not asked for blocks again."""

_FOLDER = "check `storage` in odfbuild.yaml: it names a folder, which must be a folder that you "
"may write to"


class Storage:
    """The storage at `address`: `s3://bucket/prefix`, `gs:`, `az:`, `abfs:`, or a folder.

    A folder is named by `file:///mnt/share` or by a path, which `root` makes absolute. Methods may
    be called from several threads at once; `EnvironmentProblem` E0911 when it cannot be reached.
    """

    def __init__(self, address: str, root: Path) -> None:
        self.address = address
        self.root = root
        self._opened: Place | None = None
        self._failed: tuple[EnvironmentProblem | None, float] = (None, 0.0)

    def __repr__(self) -> str:
        return f"Storage({self.address!r})"

    def size(self, kind: ObjectKind, hash: Multihash) -> int | None:
        """Bytes of an object; `None` when it is not there."""
        return self._ask(lambda place: place.size(f"{kind}/{hash}"))

    def put(self, kind: ObjectKind, hash: Multihash, file: Path) -> bool:
        """Copy `file`, whose bytes have that hash; false when it was there already.

        It is there as a whole or not at all.
        """
        name = f"{kind}/{hash}"
        if self.size(kind, hash) == file.stat().st_size:
            return False
        self._ask(lambda place: place.upload(file, name))
        return True

    def upload(self, kind: ObjectKind, hash: Multihash, file: Path) -> None:
        """Copy `file` like `put`, also over what is there already, which looks new then."""
        self._ask(lambda place: place.upload(file, f"{kind}/{hash}"))

    def get(self, kind: ObjectKind, hash: Multihash, target: Path) -> bool:
        """Bring an object to the file `target`; false when it is not there.

        `IntegrityError` E0813 when what is there has other bytes; `target` is not made then.
        """
        make_folder(target.parent)
        staged = target.parent / f"{PENDING}{secrets.token_hex(8)}"
        try:
            if not self._ask(lambda place: place.download(f"{kind}/{hash}", staged, _NO_LIMIT)):
                return False
            found = Multihash.of_contents(staged)
            if found != hash:
                raise IntegrityError(
                    f"object {hash} in the storage is not what was committed",
                    code="E0813",
                    notes=(f"storage: {self.address}", f"its bytes hash to {found}"),
                    help="remove it there, and run `odfbuild storage push` where an intact copy is",
                )
            move_file(staged, target)
        finally:
            staged.unlink(missing_ok=True)
        return True

    def read(self, name: str, limit: int) -> bytes | None:
        """A small file, such as a block; `None` when it is not there. Its hash is not checked."""
        failed, since = self._failed
        if failed is not None and time.monotonic() - since < _PAUSE_SECONDS:
            raise failed  # thousands of chains do not wait for the same storage in turn
        try:
            return self._ask(lambda place: place.read(name, limit))
        except EnvironmentProblem as error:
            self._failed = error, time.monotonic()
            raise

    def has(self, name: str) -> bool:
        """Whether there is a file of that name."""
        return self._ask(lambda place: place.size(name)) is not None

    def write(self, name: str, data: bytes) -> None:
        """Write a small file, whose name says what its bytes are."""
        self._ask(lambda place: place.write(name, data))

    def discard(self, name: str) -> None:
        """Remove a file that nothing refers to, if it is there."""
        self._ask(lambda place: place.remove(name))

    def files(self, name: str) -> list[PlacedFile]:
        """All files below `name`."""
        return self._ask(lambda place: list(place.files(name)))

    def remove(self, objects: Collection[tuple[ObjectKind, Multihash]]) -> None:
        """Remove objects that their owner withdrew, as far as they are there."""
        for kind in {kind for kind, _ in objects}:
            there = set(self._ask(methodcaller("list", kind)))
            names = (str(hash) for other, hash in objects if other == kind)
            for name in there.intersection(names):
                self._ask(methodcaller("remove", f"{kind}/{name}"))

    def _ask(self, question: Callable[[Place], _T]) -> _T:
        try:
            if self._opened is None:
                self._opened = open_place(self.address, self.root)
            return question(self._opened)
        except Exception as error:
            if not is_failure(error):
                raise
            raise EnvironmentProblem(
                f"the storage {self.address} cannot be used: {why(error)}",
                code="E0911",
                help=CREDENTIALS if urlsplit(self.address).scheme in EXTRAS else _FOLDER,
            ) from None


def damaged_object(
    hash: Multihash, file: Path, found: Multihash, dataset: str | None = None
) -> IntegrityError:
    """E0813 for a file of a dataset whose bytes changed, so that it is not copied elsewhere."""
    of = f" of '{dataset}'" if dataset else ""
    return IntegrityError(
        f"object {hash}{of} is not what was committed",
        code="E0813",
        dataset=dataset,
        notes=(f"file: {file}", f"its bytes hash to {found}"),
        help="it was not pushed: remove the file, and push from a clone with an intact copy",
    )


def open_place(address: str, root: Path) -> Place:
    """The place at `s3://bucket/prefix`, `gs:`, `az:`, `abfs:`, or in a folder.

    A folder is named by `file:///mnt/share` or by a path, which `root` makes absolute.
    """
    parts = urlsplit(address)
    if parts.scheme in EXTRAS:
        from odfbuild.store.bucket import Bucket

        return Bucket.at(address)
    if not parts.scheme:
        return Folder(root / address, address)
    from urllib.request import url2pathname  # brings a client of HTTP along

    return Folder(Path(url2pathname(parts.path)), address)

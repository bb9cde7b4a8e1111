"""The storage of a project: where the data and checkpoint objects of all its clones are kept.

Chains are small and travel with Git; what they refer to does not. An object is called by the hash
of its bytes, `<address>/data/<hash>` or `<address>/checkpoints/<hash>`, so that clones, branches
and environments can share one storage without meeting each other, and whatever comes from it is
checked before it is used. Nothing is ever replaced there, and nothing is removed.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar
from urllib.parse import urlsplit

from odfbuild.errors import EnvironmentProblem, IntegrityError
from odfbuild.store.files import PENDING, make_folder, move_file
from odfbuild.store.remote import CREDENTIALS, EXTRAS, connect, is_failure, why

if TYPE_CHECKING:
    from odfbuild.odf.multihash import Multihash

ObjectKind = Literal["data", "checkpoints"]

_T = TypeVar("_T")


class _Place(Protocol):
    """Files by name, `data/<hash>`; errors are those of the operating system or of a client."""

    def size(self, name: str) -> int | None: ...

    def put(self, file: Path, name: str) -> None: ...

    def get(self, name: str, file: Path) -> None: ...


_FOLDER = "check `storage` in odfbuild.yaml: it names a folder, which must be a folder that you "
"may write to"


class Storage:
    """The storage at `address`: `s3://bucket/prefix`, `gs:`, `az:`, `abfs:`, or a folder.

    A folder is named by `file:///mnt/share` or by a path, which `root` makes absolute. Methods may
    be called from several threads at once; `EnvironmentProblem` E0911 when it cannot be reached.
    """

    def __init__(self, address: str, root: Path) -> None:
        self.address = address
        self._root = root
        self._opened: _Place | None = None

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
        self._ask(lambda place: place.put(file, name))
        return True

    def get(self, kind: ObjectKind, hash: Multihash, target: Path) -> bool:
        """Bring an object to the file `target`; false when it is not there.

        `IntegrityError` E0813 when what is there has other bytes; `target` is not made then.
        """
        from odfbuild.odf.digest import physical_hash

        if self.size(kind, hash) is None:
            return False
        make_folder(target.parent)
        staged = target.parent / f"{PENDING}{secrets.token_hex(8)}"
        try:
            self._ask(lambda place: place.get(f"{kind}/{hash}", staged))
            found, _ = physical_hash(staged)
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

    def _ask(self, question: Callable[[_Place], _T]) -> _T:
        try:
            if self._opened is None:
                self._opened = _open(self.address, self._root)
            return question(self._opened)
        except Exception as error:
            if not is_failure(error):
                raise
            raise EnvironmentProblem(
                f"the storage {self.address} cannot be used: {why(error)}",
                code="E0911",
                help=CREDENTIALS if urlsplit(self.address).scheme in EXTRAS else _FOLDER,
            ) from None


def _open(address: str, root: Path) -> _Place:
    parts = urlsplit(address)
    if parts.scheme in EXTRAS:
        return _Bucket(connect(parts.scheme), f"{parts.netloc}{parts.path}".rstrip("/"))
    if not parts.scheme:
        return _Folder(root / address)
    from urllib.request import url2pathname  # brings a client of HTTP along

    return _Folder(Path(url2pathname(parts.path)))


class _Folder:
    """A folder that several machines may see, such as a share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def size(self, name: str) -> int | None:
        try:
            return (self._folder / name).stat().st_size
        except FileNotFoundError:
            return None

    def put(self, file: Path, name: str) -> None:
        target = self._folder / name
        make_folder(target.parent)
        staged = target.parent / f"{PENDING}{secrets.token_hex(8)}"
        try:
            shutil.copyfile(file, staged)
            move_file(staged, target)
        finally:
            staged.unlink(missing_ok=True)

    def get(self, name: str, file: Path) -> None:
        shutil.copyfile(self._folder / name, file)


class _Bucket:
    """A prefix of a store of objects; an upload shows when it is complete."""

    def __init__(self, client: Any, prefix: str) -> None:
        self._client = client
        self._prefix = prefix

    def size(self, name: str) -> int | None:
        try:
            return int(self._client.info(f"{self._prefix}/{name}")["size"])
        except FileNotFoundError:
            return None

    def put(self, file: Path, name: str) -> None:
        self._client.put_file(os.fspath(file), f"{self._prefix}/{name}")

    def get(self, name: str, file: Path) -> None:
        self._client.get_file(f"{self._prefix}/{name}", os.fspath(file))

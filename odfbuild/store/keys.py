"""Ed25519 keys: one for each dataset, which is its identity, and one to sign proofs.

Private keys are PKCS8 PEM files that nobody but their owner may read, in a folder outside Git. A
bundle that the environment gives has them where there is no such folder, as in CI.
Source: Open Data Fabric, "Dataset Identity".
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.errors import EnvironmentProblem
from odfbuild.extras import require_cryptography
from odfbuild.odf.identity import DatasetId
from odfbuild.store.files import folder_lock, make_folder, write_file
from odfbuild.store.key_bundle import KeyBundle

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

BUNDLE = "ODFBUILD_KEYS"
"""The variable that holds a bundle, or the path of its file."""
PASSPHRASE = "ODFBUILD_KEYS_PASSPHRASE"

_SIGNER = "signer.pem"


class PrivateKeys:
    """Private keys of datasets: files in a folder, and after them the bundle of the environment.

    The bundle is opened when a key of it is needed. Methods may be called from several threads.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str] = os.environ) -> None:
        self.folder = folder
        self._environ = environ
        self._mutex = threading.Lock()
        self._opened: dict[DatasetId, bytes] | None = None

    def place(self, dataset_id: DatasetId) -> str | None:
        """Where a key is: its file, or the name of the variable; `None` where it is not here."""
        file = self._file(dataset_id)
        if file.exists():
            return str(file)
        bundle = self._bundle
        return BUNDLE if bundle is not None and dataset_id in bundle.datasets else None

    def held(self) -> set[DatasetId]:
        """The datasets whose keys are here."""
        names = os.listdir(self.folder) if self.folder.is_dir() else []  # noqa: PTH208 (thousands)
        found = {identity for name in names if (identity := _identity(name)) is not None}
        return found | set(self._bundle.datasets if self._bundle is not None else ())

    def pem(self, dataset_id: DatasetId) -> bytes | None:
        """A private key as PEM; `None` where it is not here.

        `EnvironmentProblem` E1088 when it is not that of the dataset, E1085 to E1087 when the
        bundle of the environment cannot be opened.
        """
        file, name = self._file(dataset_id), BUNDLE
        if file.exists():
            data, name = file.read_bytes(), str(file)
        elif self._bundle is None or dataset_id not in self._bundle.datasets:
            return None
        else:
            data = self._from_bundle(self._bundle).get(dataset_id, b"")
        require_cryptography("private keys")
        check_pem(data, dataset_id, name)
        return data

    def key(self, dataset_id: DatasetId) -> Ed25519PrivateKey | None:
        """A private key; see `pem`."""
        data = self.pem(dataset_id)
        return None if data is None else _load(data)

    def add(self, keys: Mapping[DatasetId, bytes]) -> list[DatasetId]:
        """Store private keys (PEM) as files, all or none; returns those that were not there.

        No file is replaced. `EnvironmentProblem` E1088 when one is not that of its dataset, or
        the file that is there is not.
        """
        require_cryptography("private keys")
        prepare_key_folder(self.folder)
        with folder_lock(self.folder):
            new = [each for each in keys if not self._file(each).exists()]
            for each, data in keys.items():
                file = self._file(each)
                check_pem(data, each, "the imported key")
                if each not in new:
                    check_pem(file.read_bytes(), each, str(file))
            for each in new:
                write_file(self._file(each), keys[each], mode=0o600)
        return new

    def _file(self, dataset_id: DatasetId) -> Path:
        return self.folder / dataset_id.multibase

    @cached_property
    def _bundle(self) -> KeyBundle | None:
        given = self._environ.get(BUNDLE, "").strip()
        if not given:
            return None
        if given.startswith("{"):
            return KeyBundle.parse(given.encode(), f"the variable {BUNDLE}")
        return read_bundle(Path(given))

    def _from_bundle(self, bundle: KeyBundle) -> dict[DatasetId, bytes]:
        with self._mutex:
            if self._opened is None:
                require_cryptography("private keys")
                self._opened = bundle.open(passphrase_in(self._environ))
            return self._opened


def passphrase_in(environ: Mapping[str, str]) -> str:
    """The passphrase that the environment gives; `EnvironmentProblem` E1087 when it gives none."""
    given = environ.get(PASSPHRASE)
    if not given:
        raise EnvironmentProblem(
            "no passphrase for the bundle of private keys",
            code="E1087",
            help=f"set the variable {PASSPHRASE}, give --passphrase-file FILE where a command has "
            "it, or run the command on a terminal",
        )
    return given


def read_bundle(file: Path) -> KeyBundle:
    """The bundle in a file; `EnvironmentProblem` E1085 when it holds none."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise EnvironmentProblem(
            f"{file} cannot be read: {error.strerror}",
            code="E1085",
            help="give the path of a file that `odfbuild key export --out FILE` wrote",
        ) from None
    return KeyBundle.parse(data, str(file))


def check_pem(data: bytes, dataset_id: DatasetId, name: str) -> None:
    """`EnvironmentProblem` E1088 unless `data`, called `name`, is the key of the dataset."""
    key = _load(data)
    if key is None or key.public_key().public_bytes_raw() != dataset_id.key:
        why = "an Ed25519 key in PEM form" if key is None else "the key of its dataset"
        raise EnvironmentProblem(
            f"{name} is not {why}",
            code="E1088",
            notes=(f"dataset: {dataset_id}",),
            help="restore the key from a copy, or move the file away; nothing was changed",
        )


def _load(data: bytes) -> Ed25519PrivateKey | None:
    """The key in a PEM; `None` when it is no Ed25519 key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError):
        return None
    return key if isinstance(key, Ed25519PrivateKey) else None


def _identity(name: str) -> DatasetId | None:
    """The dataset whose key a file is, by its name."""
    try:
        found = DatasetId.parse(f"did:odf:{name}")
    except ValueError:
        return None
    return found if found.multibase == name else None


def new_pair() -> tuple[DatasetId, bytes]:
    """A fresh public key, and the private one as PEM."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private = Ed25519PrivateKey.generate()
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return DatasetId(private.public_key().public_bytes_raw()), pem


def signing_key(keys: Path) -> Ed25519PrivateKey:
    """The key that signs answers, made when it is asked for first.

    `EnvironmentProblem` E0930 when others may read the folder, E0931 when the file is no such key.
    """
    prepare_key_folder(keys)
    file = keys / _SIGNER
    with folder_lock(keys):
        if not file.exists():
            write_file(file, new_pair()[1], mode=0o600)
    key = _load(file.read_bytes())
    if key is None:
        raise EnvironmentProblem(
            f"{file} is not an Ed25519 key in PEM form",
            code="E0931",
            help="restore the key; without a copy, move the file away: a new key is created, "
            "and you have to tell others its did:key",
        )
    return key


def prepare_key_folder(keys: Path) -> None:
    """Create the key store for its owner only, hidden from Git.

    `EnvironmentProblem` E0930 when others may enter it.
    """
    make_folder(keys, mode=0o700)
    mode = keys.stat().st_mode & 0o777
    if mode & 0o077:
        raise EnvironmentProblem(
            f"the folder of private keys is open to others (mode {mode:o})",
            code="E0930",
            notes=(f"folder: {keys}",),
            help=f"chmod 700 {keys}",
        )
    ignore = keys / ".gitignore"
    if not ignore.exists():
        write_file(ignore, b"*\n", mode=0o600)

"""Ed25519 keys: one for each dataset, which is its identity, and one to sign proofs.

Private keys are PKCS8 PEM files that nobody but their owner may read, in a folder outside Git.
Source: Open Data Fabric, "Dataset Identity".
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.errors import EnvironmentProblem
from odfbuild.odf.identity import DatasetId
from odfbuild.store.files import folder_lock, make_folder, write_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_SIGNER = "signer.pem"


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
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    prepare_key_folder(keys)
    file = keys / _SIGNER
    with folder_lock(keys):
        if not file.exists():
            write_file(file, new_pair()[1], mode=0o600)
    try:
        key = load_pem_private_key(file.read_bytes(), password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
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

"""Wrapping keys: what encrypts the key of a store of subjects' keys.

`env:NAME` and a file hold a secret of this machine; `kms:KEY` names a key that never leaves a key
management service with the interface of AWS KMS, which encrypts and decrypts by itself.
"""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from odfbuild.errors import PersonalDataError, missing_extra
from odfbuild.store.files import folder_lock, make_folder, write_file

_CONTEXT = b"odfbuild subject keys 1"
_FEWEST_BYTES = 32


class NotItsKey(ValueError):
    """What is to be unwrapped was wrapped by another key; the text says more."""


class Wrapping(Protocol):
    """A key that encrypts another one. `PersonalDataError` E1622 where it cannot be used."""

    @property
    def address(self) -> str:
        """Where it is, without secrets."""
        ...

    def prepare(self) -> None:
        """Make the key where that is possible and there is none: nothing is wrapped by it yet."""
        ...

    def wrap(self, key: bytes) -> bytes:
        """Encrypt at most 4 KiB."""
        ...

    def unwrap(self, wrapped: bytes) -> bytes:
        """What was encrypted; `NotItsKey` where that was done by another key."""
        ...


class SecretWrapping:
    """A secret of this machine: `env:NAME` for a variable, else the path of a file.

    Its bytes are hashed to a key, so any secret of 32 bytes or more will do. AES-SIV (RFC 5297).
    """

    def __init__(self, address: str, root: Path, environ: Mapping[str, str] = os.environ) -> None:
        self.address = address
        self._variable = address.removeprefix("env:") if address.startswith("env:") else None
        self._file = root / Path(address).expanduser()
        self._environ = environ

    def prepare(self) -> None:
        """Make the file where there is none, for its owner only."""
        if self._variable is not None or self._file.exists():
            return
        make_folder(self._file.parent, mode=0o700)
        with folder_lock(self._file.parent):
            if not self._file.exists():  # what another one made meanwhile may be in use
                key = base64.b64encode(secrets.token_bytes(64)) + b"\n"
                write_file(self._file, key, mode=0o600)

    def wrap(self, key: bytes) -> bytes:
        """Encrypt by the secret."""
        return bytes(self._cipher().encrypt(key, [_CONTEXT]))

    def unwrap(self, wrapped: bytes) -> bytes:
        """Decrypt by the secret."""
        from cryptography.exceptions import InvalidTag

        try:
            return bytes(self._cipher().decrypt(wrapped, [_CONTEXT]))
        except InvalidTag:
            raise NotItsKey("it is another key") from None

    def _cipher(self) -> Any:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV
        from cryptography.hazmat.primitives.hashes import SHA512
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        derived = HKDF(SHA512(), 64, salt=None, info=_CONTEXT).derive(self._secret())
        return AESSIV(derived)

    def _secret(self) -> bytes:
        if self._variable is not None:
            found = self._environ.get(self._variable, "").strip().encode()
            missing = f"the variable {self._variable} is not set"
        else:
            try:
                if self._file.stat().st_mode & 0o077:
                    raise _unusable(self.address, "others may read it", f"chmod 600 {self._file}")
                found = self._file.read_bytes().strip()
            except OSError as error:
                found, missing = b"", f"{self._file} cannot be read: {error.strerror}"
        if not found:
            way = "restore it from where it is kept; without it no key of a subject can be read"
            raise _unusable(self.address, missing, way)
        if len(found) < _FEWEST_BYTES:
            why = f"it has {len(found)} bytes, fewer than {_FEWEST_BYTES}"
            raise _unusable(self.address, why, "use a longer one, as `openssl rand -base64 64`")
        return found


class KmsWrapping:
    """`kms:KEY`: the id, ARN or alias of a key of a service with the interface of AWS KMS.

    Credentials, region and endpoint come from where the tools of AWS take them.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._key = address.removeprefix("kms:")

    def prepare(self) -> None:
        """Nothing: whoever runs the service makes its keys."""

    def wrap(self, key: bytes) -> bytes:
        """`Encrypt` of the service."""
        answer = self._ask("encrypt", KeyId=self._key, Plaintext=key)
        return bytes(answer["CiphertextBlob"])

    def unwrap(self, wrapped: bytes) -> bytes:
        """`Decrypt` of the service."""
        return bytes(self._ask("decrypt", KeyId=self._key, CiphertextBlob=wrapped)["Plaintext"])

    def _ask(self, method: str, **arguments: Any) -> dict[str, Any]:
        try:
            from botocore.exceptions import BotoCoreError, ClientError
            from botocore.session import get_session
        except ImportError:
            raise missing_extra("s3", "wrapping keys in a KMS") from None
        context = {"purpose": _CONTEXT.decode()}
        try:
            client = get_session().create_client("kms")
            answer: dict[str, Any] = getattr(client, method)(EncryptionContext=context, **arguments)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code in ("InvalidCiphertextException", "IncorrectKeyException"):
                raise NotItsKey("the service says that it is another key") from None
            raise _unusable(self.address, str(error), _KMS_HELP) from None
        except BotoCoreError as error:
            raise _unusable(self.address, str(error), _KMS_HELP) from None
        return answer


_KMS_HELP = (
    "check that the key is there and enabled, and the credentials, AWS_REGION and "
    "AWS_ENDPOINT_URL that the environment names"
)


def wrapping_key(address: str, root: Path) -> Wrapping:
    """The wrapping key at `kms:KEY`, `env:NAME` or in a file, whose path may be relative."""
    return KmsWrapping(address) if address.startswith("kms:") else SecretWrapping(address, root)


def _unusable(address: str, why: str, help: str) -> PersonalDataError:
    return PersonalDataError(
        f"the wrapping key of the keys of subjects cannot be used: {why}",
        code="E1622",
        notes=(f"key: {address}",),
        help=help,
    )

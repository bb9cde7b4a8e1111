"""Several private keys in one encrypted document, to keep in a safe place or to give to CI.

    {"kind": "OdfbuildKeys", "version": 1, "datasets": [DIDs], "salt": …, "nonce": …, "keys": …}

`keys` is JSON of DIDs and PKCS8 PEMs, encrypted with ChaCha20-Poly1305 (RFC 8439), which also
protects the other fields; its key is made of the passphrase with scrypt (RFC 7914, N=2^17, r=8,
p=1). Bytes are in base64. Which datasets it has keys of is legible without the passphrase.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Mapping
from hashlib import scrypt
from typing import Any, Self

from odfbuild.errors import EnvironmentProblem
from odfbuild.odf.identity import DatasetId
from odfbuild.values import Value

_KIND = "OdfbuildKeys"
_LIMIT = 64 << 20
"""Bytes; a key has about 300."""
_SALT, _NONCE = 16, 12


class KeyBundle(Value):
    """A bundle that was not opened yet; `name` is what messages call it."""

    name: str
    datasets: tuple[DatasetId, ...]
    salt: bytes
    nonce: bytes
    keys: bytes

    @classmethod
    def seal(cls, keys: Mapping[DatasetId, bytes], passphrase: str) -> Self:
        """Encrypt private keys (PEM) by their datasets."""
        salt, nonce = os.urandom(_SALT), os.urandom(_NONCE)
        said = json.dumps({str(each): pem.decode("ascii") for each, pem in keys.items()})
        empty = cls("the bundle", tuple(keys), salt, nonce, b"")
        sealed = empty._cipher(passphrase).encrypt(nonce, said.encode(), empty._header)
        return cls("the bundle", tuple(keys), salt, nonce, sealed)

    @classmethod
    def parse(cls, data: bytes, name: str) -> Self:
        """Read the form of `encode`; `EnvironmentProblem` E1085 when it is none."""
        try:
            if len(data) > _LIMIT:
                raise ValueError("it is too large")
            found = json.loads(data)
            if (found["kind"], found["version"]) != (_KIND, 1):
                raise ValueError("of another kind")
            salt, nonce, keys = (
                b64decode(found[each], validate=True) for each in ("salt", "nonce", "keys")
            )
            if (len(salt), len(nonce)) != (_SALT, _NONCE):
                raise ValueError("salt or nonce of another length")
            return cls(name, tuple(map(DatasetId.parse, found["datasets"])), salt, nonce, keys)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise EnvironmentProblem(
                f"{name} is not a bundle of keys",
                code="E1085",
                help="`odfbuild key export --out FILE` writes one",
            ) from None

    def encode(self) -> bytes:
        """One line of JSON, which fits into a variable of the environment."""
        return json.dumps(self._data | {"keys": _text(self.keys)}).encode("ascii") + b"\n"

    def open(self, passphrase: str) -> dict[DatasetId, bytes]:
        """The keys as PEM; `EnvironmentProblem` E1086 for another passphrase, or changed bytes."""
        from cryptography.exceptions import InvalidTag

        try:
            opened = self._cipher(passphrase).decrypt(self.nonce, self.keys, self._header)
        except InvalidTag:
            raise EnvironmentProblem(
                f"{self.name} does not open with this passphrase",
                code="E1086",
                help="give the passphrase of its export; if it is right, the file was changed",
            ) from None
        return {DatasetId.parse(did): pem.encode() for did, pem in json.loads(opened).items()}

    @property
    def _data(self) -> dict[str, Any]:
        return {
            "kind": _KIND,
            "version": 1,
            "datasets": [str(each) for each in self.datasets],
            "salt": _text(self.salt),
            "nonce": _text(self.nonce),
        }

    @property
    def _header(self) -> bytes:
        """What is not encrypted, and must not be changed either."""
        return json.dumps(self._data, sort_keys=True).encode("ascii")

    def _cipher(self, passphrase: str) -> Any:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        secret = passphrase.encode()
        return ChaCha20Poly1305(
            scrypt(secret, salt=self.salt, n=1 << 17, r=8, p=1, maxmem=256 << 20, dklen=32)
        )


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")

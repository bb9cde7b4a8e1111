"""Multihashes: a digest that says which function made it (multiformats.io, "multihash")."""

from __future__ import annotations

import hashlib
from pathlib import Path

from odfbuild.odf.multibase import decode_multibase
from odfbuild.values import Value

SHA2_256 = 0x12
SHA3_256 = 0x16
ARROW0_SHA3_256 = 0x300016

_NAMES = {
    SHA2_256: "sha2-256",
    SHA3_256: "sha3-256",
    ARROW0_SHA3_256: "arrow0-sha3-256",
}
_MAX_DIGEST = 32
_SHA3_256_PREFIX = bytes((SHA3_256, 32))


def encode_varint(number: int) -> bytes:
    """Unsigned LEB128 (multiformats, "unsigned-varint")."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def decode_varint(data: bytes) -> tuple[int, bytes]:
    """The number in front of `data` and what follows; `ValueError` if it is cut off or too long."""
    number = 0
    for index, byte in enumerate(data[:9]):
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if byte == 0 and index > 0:
                raise ValueError("varint is not in its shortest form")
            return number, data[index + 1 :]
    raise ValueError("varint is cut off or too long")


class Multihash(Value, order=True):
    """A hash in binary multihash form: code, length, digest."""

    binary: bytes

    @classmethod
    def of(cls, code: int, digest: bytes) -> Multihash:
        """From a multicodec number and the digest."""
        return cls(encode_varint(code) + encode_varint(len(digest)) + digest)

    @classmethod
    def sha3_256(cls, data: bytes | memoryview) -> Multihash:
        """SHA3-256 of `data`: the hash of blocks, data files and checkpoints."""
        return cls(_SHA3_256_PREFIX + hashlib.sha3_256(data).digest())

    @classmethod
    def of_contents(cls, path: Path) -> Multihash:
        """SHA3-256 of a file, read by pieces."""
        with path.open("rb") as file:
            return cls.of(SHA3_256, hashlib.file_digest(file, "sha3_256").digest())

    @classmethod
    def parse(cls, text: str) -> Multihash:
        """Read multibase text; `ValueError` when it is not a multihash."""
        try:
            binary = decode_multibase(text)
        except ValueError:
            raise ValueError(f"not a multihash: {text!r}") from None
        return cls.from_bytes(binary)

    @classmethod
    def of_file(cls, name: str) -> Multihash | None:
        """The hash that a file is called by; `None` for a staging file, or nothing of ours."""
        try:
            found = cls.parse(name)
        except ValueError:
            return None
        return found if str(found) == name else None

    @classmethod
    def from_bytes(cls, binary: bytes) -> Multihash:
        """Check binary multihash form; `ValueError` for an unknown code or a wrong length."""
        if len(binary) == 34 and binary.startswith(_SHA3_256_PREFIX):
            return cls(bytes(binary))  # nearly all of them: there is nothing more to check
        code, rest = decode_varint(binary)
        length, digest = decode_varint(rest)
        if code not in _NAMES:
            raise ValueError(f"unknown hash function 0x{code:x}")
        if length != len(digest) or length > _MAX_DIGEST:
            raise ValueError(f"multihash says {length} bytes of digest, has {len(digest)}")
        return cls(bytes(binary))

    @property
    def code(self) -> int:
        """Multicodec number of the hash function."""
        return decode_varint(self.binary)[0]

    @property
    def digest(self) -> bytes:
        """The bare digest."""
        return decode_varint(decode_varint(self.binary)[1])[1]

    @property
    def short(self) -> str:
        """The last eight digits, as `log` and `plan` show it."""
        return self.binary.hex()[-8:]

    def __str__(self) -> str:
        return "f" + self.binary.hex()

"""Multibase: text that says in which encoding it holds bytes (multiformats.io, "multibase").

Written is base16, as everywhere in Open Data Fabric; read are all encodings whose state is "final",
as its section "Hash Representation" asks for.
"""

from __future__ import annotations

from threading import Lock

_BY_LIBRARY = frozenset("bBzmuU")
"""base32, base32upper, base58btc, base64, base64url, base64urlpad."""
_LIBRARY = Lock()
"""One thread asks the library at a time: it makes encodings at first use, and fails in two."""


def parse_hex(text: str) -> bytes:
    """Bytes of base16 text; `ValueError` for anything else, also for white space."""
    # `bytes.fromhex` skips white space, and so would give one hash many spellings.
    if not text.isalnum():
        raise ValueError(f"not base16: {text!r}")
    return bytes.fromhex(text)


def decode_multibase(text: str) -> bytes:
    """Bytes of multibase text; `ValueError` for other encodings and what is not in its own."""
    prefix = text[:1]
    if prefix in ("f", "F"):
        return parse_hex(text[1:])
    if prefix in _BY_LIBRARY:
        from multiformats import multibase

        try:
            with _LIBRARY:
                return bytes(multibase.decode(text))
        except Exception as error:  # the library raises several unrelated classes
            raise ValueError(f"not multibase: {text!r}") from error
    raise ValueError(f"unsupported multibase prefix in {text!r}")


def encode_multibase(data: bytes, encoding: str) -> str:
    """Text of bytes in an encoding of that name, such as `base58btc`."""
    from multiformats import multibase

    with _LIBRARY:
        return str(multibase.encode(data, encoding))

"""Identity of datasets: DIDs, names, aliases, references and patterns.

Source: Open Data Fabric, "Dataset Identity", "Dataset References"; multiformats (multibase, DID).
"""

from __future__ import annotations

import re
from functools import lru_cache

from odfbuild.odf.multibase import decode_multibase, encode_multibase
from odfbuild.values import Value

_SUBDOMAIN = r"[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*"
_HOSTNAME = re.compile(rf"{_SUBDOMAIN}(?:\.{_SUBDOMAIN})*")
_ED25519_PUB = b"\xed\x01"


def is_name(text: str) -> bool:
    """Whether `text` is a dataset, account or repository name (`Hostname` in the grammar)."""
    return _HOSTNAME.fullmatch(text) is not None


def name_like(text: str) -> str | None:
    """The name that is nearest to `text`, such as `a-b` to `a_b`; `None` when there is none."""
    if "/" in text or not text.isascii():
        return None
    parts = (re.sub(r"[^a-zA-Z0-9]+", "-", part).strip("-") for part in text.split("."))
    name = ".".join(part for part in parts if part)
    return name if is_name(name) and name != text else None


def name_for(text: str) -> str | None:
    """The name for a table of that name: `order-lines` for `order_lines`.

    `None` where `text` is a name already, or has more than underscores that names cannot have.
    """
    return name_like(text) if "_" in text and re.fullmatch(r"[\w.-]+", text) else None


def identifier_of(name: str) -> str:
    """A name of a dataset as SQL takes it without quotes: `order_lines` for `order-lines`."""
    return re.sub(r"[^a-zA-Z0-9]", "_", name)


class DatasetId(Value, order=True, tag=True):
    """Identity of a dataset: the Ed25519 public key that was made with it (32 bytes)."""

    key: bytes

    @classmethod
    def from_bytes(cls, binary: bytes) -> DatasetId:
        """From the wire form, codec varint and key; `ValueError` when it is not that."""
        if len(binary) != 34 or binary[:2] != _ED25519_PUB:
            raise ValueError("not an Ed25519 public key in multicodec form")
        return cls(bytes(binary[2:]))

    @classmethod
    def parse(cls, text: str) -> DatasetId:
        """Read `did:odf:…` in any multibase of the specification; `ValueError` otherwise."""
        if not text.startswith("did:odf:"):
            raise ValueError(f"not a did:odf: {text!r}")
        return cls.from_bytes(decode_multibase(text[len("did:odf:") :]))

    @property
    def binary(self) -> bytes:
        """The wire form: codec varint and key."""
        return _ED25519_PUB + self.key

    @property
    def did_key(self) -> str:
        """The same key as `did:key`, in base58btc, as accounts and engines write it."""
        return f"did:key:{encode_multibase(self.binary, 'base58btc')}"

    @property
    def multibase(self) -> str:
        """`fed01…`, the DID without its method."""
        return "f" + self.binary.hex()

    def __str__(self) -> str:
        return "did:odf:" + self.multibase


class DatasetAlias(Value, tag=True):
    """Name of a dataset in a workspace, with an account where there are several.

    Case is kept and does not count: `NY` equals `ny`.
    """

    name: str
    account: str | None = None

    @classmethod
    def parse(cls, text: str) -> DatasetAlias:
        """Read `name` or `account/name`; `ValueError` when a part is not a name."""
        return _parsed_alias(text)

    @property
    def folded(self) -> str:
        """The form in which aliases are compared."""
        return str(self).lower()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatasetAlias) and self.folded == other.folded

    def __hash__(self) -> int:
        return hash(self.folded)

    def __str__(self) -> str:
        return f"{self.account}/{self.name}" if self.account else self.name


def is_alias(text: str) -> bool:
    """Whether `text` can be the alias of a dataset."""
    parts = text.split("/")
    return len(parts) <= 2 and all(map(is_name, parts))


@lru_cache(1 << 15)
def _parsed_alias(text: str) -> DatasetAlias:
    # Each name of a project stands in several definitions.
    if not is_alias(text):
        raise ValueError(
            f"not a dataset name: {text!r}; names are letters and digits, "
            "with single '-' and '.' between them"
        )
    account, _, name = text.rpartition("/")
    return DatasetAlias(name, account or None)


DatasetRef = DatasetId | DatasetAlias

_REMOTE = re.compile(r"[a-z][\w+.-]*://|[\w.-]+/(did:|[\w.-]+/[\w.-]+$)", re.IGNORECASE | re.ASCII)
"""What references to datasets elsewhere begin with: `https://…`, `repo/did:…`, `repo/account/x`."""


def parse_ref(text: str) -> DatasetRef:
    """Read a local reference: a DID or an alias; `ValueError` otherwise."""
    if _REMOTE.match(text):
        raise ValueError(
            f"'{text}' is not a name or DID, which is all that definitions may hold; give this "
            f"dataset a name with `external: {{NAME: {text}}}` in odfbuild.yaml"
        )
    return DatasetId.parse(text) if text.startswith("did:") else DatasetAlias.parse(text)

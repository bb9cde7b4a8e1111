"""What the owner of a dataset says of its head: so many blocks, the newest of them, at that time.

The statement is signed with the dataset's own key, whose public half is its DID, so that whoever
has the chain can check it and nobody else can make one. It lies beside the chain as
`info/signed-head`, which other programs ignore. Pure.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

from odfbuild.odf.identity import DatasetId
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.query_proof import Proof, is_signed_by_dataset, sign_as_dataset
from odfbuild.odf.timestamp import Timestamp
from odfbuild.values import Value

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FILE = "signed-head"
"""The name in `info/`."""

_KIND = "SignedHead"
_VERSION = 1
_LIMIT = 4096
"""Bytes; a statement has fewer than 700."""


class Statement(Value, kw_only=True):
    """`head` is the newest of `blocks` blocks of the dataset, at `time`."""

    dataset_id: DatasetId
    head: Multihash
    blocks: int
    time: Timestamp

    @property
    def data(self) -> dict[str, Any]:
        """What is signed."""
        return {
            "kind": _KIND,
            "version": _VERSION,
            "datasetId": str(self.dataset_id),
            "head": str(self.head),
            "blocks": self.blocks,
            "time": str(self.time),
        }


class SignedHead(Value):
    """A statement, and the proof that the dataset's key signed it."""

    statement: Statement
    proof: Proof

    @classmethod
    def sign(cls, statement: Statement, key: Ed25519PrivateKey) -> Self:
        """Sign a statement; `ValueError` when this is not the key of its dataset."""
        return cls(statement, sign_as_dataset(statement, key))

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read the form of `encode`, byte by byte the same; `ValueError` for anything else.

        The signature is not checked; see `holds`.
        """
        if len(data) > _LIMIT:
            raise ValueError(f"it is larger than {_LIMIT} bytes")
        try:
            document = json.loads(data)
            said, proof = document["statement"], document["proof"]
            if (said["kind"], said["version"]) != (_KIND, _VERSION):
                raise ValueError(f"it is not a {_KIND} of version {_VERSION}")
            statement = Statement(
                dataset_id=DatasetId.parse(said["datasetId"]),
                head=Multihash.parse(said["head"]),
                blocks=_number(said["blocks"]),
                time=Timestamp.parse(said["time"]),
            )
            found = cls(statement, Proof.parse(proof))
        except (KeyError, TypeError, AttributeError, RecursionError, OverflowError):
            raise ValueError("it has not the fields of one") from None
        # One statement has one spelling: no key twice, nothing added, no other form of a hash.
        if found.encode() != data:
            raise ValueError("it is not in canonical form")
        return found

    def encode(self) -> bytes:
        """The bytes of the file."""
        document = {"statement": self.statement.data, "proof": self.proof.data}
        return json.dumps(document, indent=2, sort_keys=True).encode("ascii") + b"\n"

    @property
    def holds(self) -> bool:
        """Whether the dataset's own key signed it; `ModuleNotFoundError` without cryptography."""
        return is_signed_by_dataset(self.statement, self.proof)


def _number(value: Any) -> int:
    if type(value) is not int or not 0 < value < 1 << 63:
        raise ValueError(f"{value!r} is not a number of blocks")
    return value

"""Proofs of query results: query, blocks, rows, and signature.

A commitment holds the hashes of the request, of the answer and of the queries below it, each
SHA3-256 over canonical JSON; an Ed25519 signature over the commitment makes it a proof. Pure: the
caller reads the chains and runs the query again. Source: the query commitments of the reference
implementation; Ed25519Signature2020; did:key.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from odfbuild.odf.identity import DatasetId
from odfbuild.odf.multibase import decode_multibase, encode_multibase
from odfbuild.odf.multihash import Multihash
from odfbuild.values import Value

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PROOF_TYPE = "Ed25519Signature2020"


class Flaw(StrEnum):
    """Why a proof does not hold, as the reference says it."""

    INPUT_HASH = "InvalidRequest::InputHash"
    SUB_QUERIES_HASH = "InvalidRequest::SubQueriesHash"
    BAD_SIGNATURE = "InvalidRequest::BadSignature"
    DATASET_NOT_FOUND = "VerificationFailed::DatasetNotFound"
    BLOCK_NOT_FOUND = "VerificationFailed::DatasetBlockNotFound"
    OUTPUT_MISMATCH = "VerificationFailed::OutputMismatch"


class Commitment(Value):
    """The hashes that a signature stands for."""

    input_hash: Multihash
    output_hash: Multihash
    sub_queries_hash: Multihash

    @classmethod
    def to(cls, input: Any, output: Any, sub_queries: Any) -> Commitment:
        """The commitment to plain data: a request, its answer, the queries below it."""
        return cls(hash_of(input), hash_of(output), hash_of(sub_queries))

    @classmethod
    def parse(cls, data: Any) -> Commitment:
        """Read the JSON form; `ValueError` when it is none."""
        return cls(
            *(Multihash.parse(_text(data, key)) for key in _COMMITMENT_KEYS),
        )

    @property
    def data(self) -> dict[str, str]:
        """The JSON form."""
        hashes = (self.input_hash, self.output_hash, self.sub_queries_hash)
        return {key: str(each) for key, each in zip(_COMMITMENT_KEYS, hashes, strict=True)}


_COMMITMENT_KEYS = ("inputHash", "outputHash", "subQueriesHash")


class Signable(Protocol):
    """What is signed: its canonical JSON."""

    @property
    def data(self) -> Mapping[str, Any]:
        """The JSON form."""
        ...


class Proof(Value):
    """Who signed (`did:key`), and the signature (64 bytes)."""

    signer: str
    signature: bytes

    @classmethod
    def parse(cls, data: Any) -> Proof:
        """Read the JSON form; `ValueError` when it is none of this type."""
        if _text(data, "type") != PROOF_TYPE:
            raise ValueError(f"a proof of type {data['type']!r}, not {PROOF_TYPE}")
        return cls(_text(data, "verificationMethod"), decode_multibase(_text(data, "proofValue")))

    @property
    def data(self) -> dict[str, str]:
        """The JSON form."""
        return {
            "type": PROOF_TYPE,
            "verificationMethod": self.signer,
            "proofValue": encode_multibase(self.signature, "base64url"),
        }

    def holds_for(self, signed: Signable) -> bool:
        """Whether the signature is the signer's, over this."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        if not self.signer.startswith("did:key:"):
            return False
        try:
            key = DatasetId.from_bytes(decode_multibase(self.signer.removeprefix("did:key:"))).key
            public = Ed25519PublicKey.from_public_bytes(key)
            public.verify(self.signature, canonical_json(signed.data))
        except (ValueError, InvalidSignature):
            return False
        return True


class OfDataset(Signable, Protocol):
    """What the key of a dataset vouches for."""

    @property
    def dataset_id(self) -> DatasetId:
        """The dataset, whose identity is the public half of its key."""
        ...


def sign_as_dataset(said: OfDataset, key: Ed25519PrivateKey) -> Proof:
    """Sign what a dataset says; `ValueError` when this is not the key of that dataset."""
    if DatasetId(key.public_key().public_bytes_raw()) != said.dataset_id:
        raise ValueError("not the key of this dataset")
    return sign(said, key)


def is_signed_by_dataset(said: OfDataset, proof: Proof) -> bool:
    """Whether the dataset's own key signed it; `ModuleNotFoundError` without cryptography."""
    return proof.signer == said.dataset_id.did_key and proof.holds_for(said)


def why_forged(said: OfDataset, proof: Proof, dataset_id: DatasetId) -> str | None:
    """Why nobody should take it for what that dataset says, as the end of a sentence."""
    if said.dataset_id != dataset_id:
        return "is about another dataset"
    return None if is_signed_by_dataset(said, proof) else "is not signed with the dataset's key"


class DatasetAt(Value):
    """A dataset that a request read: what the query calls it, its identity, the block."""

    alias: str
    id: DatasetId
    block: Multihash

    @classmethod
    def parse(cls, data: Any) -> DatasetAt:
        """Read the JSON form; `ValueError` when it is none."""
        return cls(
            _text(data, "alias"),
            DatasetId.parse(_text(data, "id")),
            Multihash.parse(_text(data, "blockHash")),
        )

    @property
    def data(self) -> dict[str, str]:
        """The JSON form."""
        return {"alias": self.alias, "id": str(self.id), "blockHash": str(self.block)}

    def flaw(self, blocks: Container[Multihash] | None) -> Flaw | None:
        """Whether it can be read where its chain has `blocks` (`None`: there is no such chain)."""
        if blocks is None:
            return Flaw.DATASET_NOT_FOUND
        return None if self.block in blocks else Flaw.BLOCK_NOT_FOUND


def datasets_of(request: Any) -> tuple[DatasetAt, ...]:
    """The datasets that a request read; `ValueError` when they are not said."""
    found = _part(_part(request, "input", dict), "datasets", list)
    return tuple(DatasetAt.parse(each) for each in found)


def sign(what: Signable, key: Ed25519PrivateKey) -> Proof:
    """Sign a commitment, or a statement about a head (`odf.signed_head`)."""
    public = key.public_key().public_bytes_raw()
    return Proof(DatasetId(public).did_key, key.sign(canonical_json(what.data)))


def flaw_of_request(request: Any) -> Flaw | None:
    """What is wrong with `input`, `subQueries`, `commitment` and `proof` taken by themselves.

    `ValueError` when the data is not in the form of a proof.
    """
    commitment = Commitment.parse(_part(request, "commitment", dict))
    proof = Proof.parse(_part(request, "proof", dict))
    if hash_of(_part(request, "input", dict)) != commitment.input_hash:
        return Flaw.INPUT_HASH
    if hash_of(_part(request, "subQueries", list)) != commitment.sub_queries_hash:
        return Flaw.SUB_QUERIES_HASH
    return None if proof.holds_for(commitment) else Flaw.BAD_SIGNATURE


def hash_of(data: Any) -> Multihash:
    """SHA3-256 of the canonical JSON of plain data."""
    return Multihash.sha3_256(canonical_json(data))


def canonical_json(data: Any) -> bytes:
    """JSON with sorted keys, no spaces, and escapes for all that is not ASCII.

    Numbers are in the shortest form that reads back as the same; `ValueError` for NaN and
    infinity, which JSON has not.
    """
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _part(data: Any, key: str, kind: type) -> Any:
    found = data.get(key) if isinstance(data, dict) else None
    if not isinstance(found, kind):
        raise ValueError(f"no '{key}'")
    return found


def _text(data: Any, key: str) -> str:
    return str(_part(data, key, str))

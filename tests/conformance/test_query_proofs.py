"""Commitments to answers and their proofs, against the vectors."""

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from odfbuild.odf.multihash import Multihash
from odfbuild.odf.query_proof import (
    Commitment,
    Flaw,
    Proof,
    canonical_json,
    datasets_of,
    flaw_of_request,
    hash_of,
    sign,
)
from tests.conformance.vectors import cases


def _key(case: dict[str, Any]) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(case["private_key_hex"]))


@pytest.mark.parametrize("case", cases("query_proofs", "ed25519_did_key"))
def test_a_signer_is_known_by_the_did_of_his_key(case: dict[str, Any]) -> None:
    found = sign(Commitment.to({}, {}, []), _key(case))
    assert found.signer == case["expected"]["did_key"]


@pytest.mark.parametrize("case", cases("query_proofs", "commitment"))
def test_an_answer_is_committed_to_and_signed_as_the_reference_does(case: dict[str, Any]) -> None:
    commitment = Commitment.to(case["input"], case["output"], case["subQueries"])
    expected = case["expected"]
    assert canonical_json(case["input"]).decode() == expected["canonical_input"]
    assert commitment.data == expected["commitment"]
    assert sign(commitment, _key(case)).data == expected["proof"]
    assert Commitment.parse(commitment.data) == commitment
    assert Proof.parse(expected["proof"]).holds_for(commitment)


@pytest.mark.parametrize("case", cases("query_proofs", "verify"))
def test_a_proof_is_taken_or_refused_with_the_reason(case: dict[str, Any]) -> None:
    expected = case["expected"]
    assert _verify(case["request"], case["node_state"]) == (
        None if expected["ok"] else expected["error"]
    )


def _verify(request: dict[str, Any], state: dict[str, Any]) -> Flaw | None:
    flaw = flaw_of_request(request)
    if flaw is not None:
        return flaw
    for dataset in datasets_of(request):
        blocks = state["datasets"].get(str(dataset.id))
        flaw = dataset.flaw(None if blocks is None else [Multihash.parse(each) for each in blocks])
        if flaw is not None:
            return flaw
    again = hash_of(state["output"])
    same = again == Commitment.parse(request["commitment"]).output_hash
    return None if same else Flaw.OUTPUT_MISMATCH

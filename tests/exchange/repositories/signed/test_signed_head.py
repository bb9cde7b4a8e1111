"""Statements about heads: one spelling each, signed by the dataset's own key and no other."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.odf.identity import DatasetId
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.query_proof import Proof, sign
from odfbuild.odf.signed_head import SignedHead, Statement
from odfbuild.odf.timestamp import Timestamp

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OWNER = DatasetId(KEY.public_key().public_bytes_raw())
STRANGER = Ed25519PrivateKey.from_private_bytes(bytes(32))

statements = st.builds(
    Statement,
    dataset_id=st.just(OWNER),
    head=st.binary(max_size=9).map(Multihash.sha3_256),
    blocks=st.integers(1, (1 << 63) - 1),
    time=st.integers(0, 4_000_000_000_000_000_000).map(Timestamp),
)
ONE = SignedHead.sign(
    Statement(dataset_id=OWNER, head=Multihash.sha3_256(b""), blocks=3, time=Timestamp(0)), KEY
)


@given(statements)
def test_a_signed_statement_is_read_back_and_holds(statement: Statement) -> None:
    signed = SignedHead.sign(statement, KEY)
    assert SignedHead.parse(signed.encode()) == signed
    assert signed.holds


@given(st.integers(0, len(ONE.encode()) * 8 - 1))
def test_a_statement_with_another_bit_is_no_statement_or_does_not_hold(bit: int) -> None:
    data = bytearray(ONE.encode())
    data[bit // 8] ^= 1 << bit % 8
    try:
        found = SignedHead.parse(bytes(data))
    except ValueError:
        return
    assert not found.holds


@given(
    st.binary()
    | st.recursive(
        st.none() | st.integers() | st.text(),
        _json := lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ).map(lambda value: json.dumps(value).encode())
)
def test_any_other_bytes_are_refused_with_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError):
        SignedHead.parse(data)


def changed(**fields: object) -> bytes:
    document = json.loads(ONE.encode())
    for name, value in fields.items():
        part, _, key = name.partition("_")
        document[part][key] = value
    return json.dumps(document, indent=2, sort_keys=True).encode() + b"\n"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(changed(statement_blocks=0), id="no blocks"),
        pytest.param(changed(statement_blocks=1 << 63), id="more blocks than a number holds"),
        pytest.param(changed(statement_blocks=True), id="blocks that are no number"),
        pytest.param(changed(statement_blocks=3.0), id="blocks that are a fraction"),
        pytest.param(changed(statement_version=2), id="another version"),
        pytest.param(changed(statement_kind="Head"), id="another kind"),
        pytest.param(changed(statement_more=1), id="a field too many"),
        pytest.param(changed(statement_time="1970-01-01T00:00:00+00:00"), id="another zone"),
        pytest.param(changed(statement_time="yesterday"), id="no time"),
        pytest.param(changed(statement_head=str(ONE.statement.head).upper()), id="upper case"),
        pytest.param(changed(statement_datasetId=OWNER.did_key), id="another kind of DID"),
        pytest.param(changed(proof_type="EcdsaSecp256k1Signature2019"), id="another signature"),
        pytest.param(changed(proof_verificationMethod=1), id="a signer that is no text"),
        pytest.param(json.dumps(json.loads(ONE.encode())).encode(), id="another layout"),
        pytest.param(ONE.encode() + b" " * 5000, id="much too long"),
        pytest.param(b"[" * 4000, id="deeply nested"),
        pytest.param(
            ONE.encode().replace(b'"blocks": 3,', b'"blocks": 3,\n    "blocks": 3,'), id="twice"
        ),
    ],
)
def test_what_differs_in_form_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        SignedHead.parse(data)


def test_another_key_can_neither_sign_nor_be_named_as_the_signer() -> None:
    with pytest.raises(ValueError):
        SignedHead.sign(ONE.statement, STRANGER)
    foreign = sign(ONE.statement, STRANGER)
    assert foreign.holds_for(ONE.statement)
    assert not SignedHead(ONE.statement, foreign).holds
    assert not SignedHead(ONE.statement, Proof(OWNER.did_key, foreign.signature)).holds

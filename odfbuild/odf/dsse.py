"""Signed envelopes of statements: Dead Simple Signing Envelope, version 1. Pure.

Source: https://github.com/secure-systems-lab/dsse, "envelope" and "protocol" (1.0.2).
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from odfbuild.odf.identity import DatasetId

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """The bytes that a signature of an envelope is about."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def signed_envelope(payload_type: str, payload: bytes, key: Ed25519PrivateKey) -> bytes:
    """An envelope as one line of JSON, without a line break at its end.

    It is signed with the key of a dataset, whose DID is the name of the key. Ed25519 gives the same
    signature each time.
    """
    signature = key.sign(pre_authentication_encoding(payload_type, payload))
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": payload_type,
        "signatures": [
            {
                "keyid": str(DatasetId(key.public_key().public_bytes_raw())),
                "sig": base64.b64encode(signature).decode(),
            }
        ],
    }
    return json.dumps(envelope, sort_keys=True, separators=(",", ":")).encode()

"""Each step of a dataset as a signed statement of in-toto: what went in, and what came out.

The statements are those of the chain, in a form that supply chain tools check; the signature is
that of the dataset's own key, whose public half is the DID. One envelope is one line. Pure.
Sources: in-toto Attestation Framework 1.1, "Statement", "Bundle"; SLSA 1.0, "Provenance".
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from odfbuild.exchange.passport.facts import Facts, Step
from odfbuild.odf.dsse import signed_envelope
from odfbuild.odf.model import ExecuteTransformInput
from odfbuild.odf.multihash import Multihash

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PAYLOAD = "application/vnd.in-toto+json"
_STATEMENT = "https://in-toto.io/Statement/v1"
_PROVENANCE = "https://slsa.dev/provenance/v1"
_PAGE = "https://odfbuild.github.io/odfbuild/passport/"
Data = dict[str, Any]


def statements(facts: Facts) -> list[Data]:
    """The statement of each step, oldest first."""
    return [_statement(facts, each) for each in facts.steps]


def signed_statements(facts: Facts, key: Ed25519PrivateKey) -> bytes:
    """The file of all statements, each in an envelope that the key of the dataset signed."""
    lines = [signed_envelope(PAYLOAD, _canonical(each), key) for each in statements(facts)]
    return b"".join(line + b"\n" for line in lines)


def _canonical(statement: Data) -> bytes:
    return json.dumps(statement, sort_keys=True, separators=(",", ":")).encode()


def _statement(facts: Facts, step: Step) -> Data:
    did = str(facts.state.dataset_id)
    return {
        "_type": _STATEMENT,
        "subject": [
            {
                "name": step.path,
                "digest": {"sha256": step.sha256, **_sha3(step.data.physical_hash)},
            },
            {"name": f"blocks/{step.block}", "digest": _sha3(step.block)},
        ],
        "predicateType": _PROVENANCE,
        "predicate": {
            "buildDefinition": {
                "buildType": f"{_PAGE}#{'portal' if facts.portal else 'in-toto'}",
                "externalParameters": {
                    "dataset": did,
                    "firstOffset": step.data.offset_interval.start,
                    "lastOffset": step.data.offset_interval.end,
                    **({} if step.source is None else {"definedBy": str(step.source)}),
                },
                "resolvedDependencies": [
                    *([] if step.source is None else [_block(did, step.source)]),
                    *(_input(each) for each in step.inputs),
                ],
            },
            "runDetails": {
                "builder": {"id": f"{_PAGE}#portal"} if facts.portal else _builder(step),
                "metadata": {
                    "invocationId": f"urn:odf:block:{step.block}",
                    "finishedOn": str(step.time),
                },
            },
        },
    }


def _builder(step: Step) -> Data:
    if step.engine is None:
        return {"id": f"{_PAGE}#ingest"}
    name, version = step.engine
    return {
        "id": f"{_PAGE}#engine-{name}",
        **({} if version is None else {"version": {name: version}}),
    }


def _input(each: ExecuteTransformInput) -> Data:
    """The block up to which an input was read, and the offsets of the records."""
    found = _block(str(each.dataset_id), each.new_block_hash or each.prev_block_hash)
    offsets = {"afterOffset": each.prev_offset, "lastOffset": each.new_offset}
    known = {name: offset for name, offset in offsets.items() if offset is not None}
    return found | ({"annotations": known} if known else {})


def _block(dataset: str, block: Multihash | None) -> Data:
    if block is None:
        return {"uri": dataset}
    return {"uri": f"{dataset}#{block}", "digest": _sha3(block)}


def _sha3(hash: Multihash) -> dict[str, str]:
    return {"sha3_256": hash.digest.hex()}

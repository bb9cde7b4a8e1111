"""What strangers use to look at a passport: the tools of each standard, and nothing of odfbuild."""

from __future__ import annotations

import base64
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import mlcroissant
import yaml
from google.protobuf.json_format import ParseDict
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
from jsonschema import Draft201909Validator
from open_data_contract_standard.model import OpenDataContractStandard
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

SCHEMA = json.loads(files("open_data_contract_standard").joinpath("schema.json").read_text())


def read_croissant(file: Path) -> mlcroissant.Dataset:
    """The dataset as mlcroissant understands it; it raises what is wrong."""
    found = mlcroissant.Dataset(str(file))
    assert not found.metadata.ctx.issues.errors
    return found


def read_contract(text: str) -> OpenDataContractStandard:
    """The contract, right by the schema of the standard and by its own package."""
    Draft201909Validator(SCHEMA).validate(yaml.safe_load(text))
    return OpenDataContractStandard.from_string(text)


def read_statements(lines: bytes, dataset: str) -> list[dict[str, Any]]:
    """Statements whose envelopes the key in a DID signed, and which in-toto accepts."""
    public = dataset.removeprefix("did:odf:fed01")
    key = SSlibKey(dataset, "ed25519", "ed25519", {"public": public})
    found = []
    for line in lines.splitlines():
        envelope = Envelope.from_dict(json.loads(line))
        envelope.verify([key], 1)
        assert envelope.payload_type == "application/vnd.in-toto+json"
        statement = json.loads(envelope.payload)
        Statement.copy_from_pb(ParseDict(statement, StatementMessage())).validate()
        found.append(statement)
    return found


def changed(line: bytes) -> bytes:
    """An envelope with another digest in its statement."""
    envelope = json.loads(line)
    statement = json.loads(base64.b64decode(envelope["payload"]))
    digest = statement["subject"][0]["digest"]["sha256"]
    statement["subject"][0]["digest"]["sha256"] = ("1" if digest[0] == "0" else "0") + digest[1:]
    envelope["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()
    return json.dumps(envelope).encode()

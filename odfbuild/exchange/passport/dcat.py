"""The passport as a dataset of DCAT-AP 3, which open data portals of public bodies harvest. Pure.

Sources: W3C, "Data Catalog Vocabulary (DCAT) - Version 3"; SEMIC, "DCAT-AP 3.0".
"""

from __future__ import annotations

import json
from typing import Any

from odfbuild.exchange.passport.facts import Facts, Step

Data = dict[str, Any]

_CONTEXT = {
    "adms": "http://www.w3.org/ns/adms#",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "prov": "http://www.w3.org/ns/prov#",
    "spdx": "http://spdx.org/rdf/terms#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_PARQUET = "https://www.iana.org/assignments/media-types/application/vnd.apache.parquet"
_SHA256 = "http://spdx.org/rdf/terms#checksumAlgorithm_sha256"


def dcat(facts: Facts) -> Data:
    """The document in JSON-LD; addresses of files begin where the document lies."""
    state = facts.state
    info, license = state.info, state.license
    description = info.description if info and info.description else f"The dataset {facts.name}"
    return {
        "@context": _CONTEXT,
        "@id": str(state.dataset_id),
        "@type": "dcat:Dataset",
        "dct:identifier": str(state.dataset_id),
        "dct:title": facts.name,
        "dct:description": description,
        **_said("dcat:keyword", list(info.keywords or ()) if info else []),
        **_said("dct:publisher", _agent(facts.owners)),
        "dct:issued": _time(str(facts.created)),
        "dct:modified": _time(str(state.system_time)),
        "dcat:version": facts.version,
        **_said("prov:wasDerivedFrom", [{"@id": str(each.dataset_id)} for each in state.inputs]),
        **_said(
            "dcat:distribution",
            [_distribution(each, license.website_url if license else None) for each in facts.steps],
        ),
    }


def dcat_text(facts: Facts) -> bytes:
    """The file of the document."""
    return json.dumps(dcat(facts), indent=2, ensure_ascii=False).encode() + b"\n"


def _distribution(step: Step, license: str | None) -> Data:
    offsets = step.data.offset_interval
    return {
        "@type": "dcat:Distribution",
        "dct:title": f"Records {offsets.start} to {offsets.end}",
        "dcat:accessURL": {"@id": step.path},
        "dcat:downloadURL": {"@id": step.path},
        "dcat:mediaType": {"@id": _PARQUET},
        "dcat:byteSize": {"@type": "xsd:nonNegativeInteger", "@value": str(step.data.size)},
        "dct:issued": _time(str(step.time)),
        **_said("dct:license", {"@id": license} if license else None),
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": {"@id": _SHA256},
            "spdx:checksumValue": {"@type": "xsd:hexBinary", "@value": step.sha256},
        },
    }


def _agent(owners: tuple[str, ...]) -> Data | None:
    return {"@type": "foaf:Agent", "foaf:name": ", ".join(owners)} if owners else None


def _time(text: str) -> Data:
    return {"@type": "xsd:dateTime", "@value": text}


def _said(key: str, value: Any) -> Data:
    return {key: value} if value else {}

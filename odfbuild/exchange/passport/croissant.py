"""The passport as Croissant 1.1: a description that machine learning and search engines read. Pure.

Sources: MLCommons, "Croissant Format Specification" 1.1; W3C, "PROV-O".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from odfbuild.exchange.passport.facts import Facts, Step
from odfbuild.odf.schema import arrow
from odfbuild.odf.schema.ddl import ddl_of

Data = dict[str, Any]

_CROISSANT = "http://mlcommons.org/croissant/1.1"
_PARQUET = "application/x-parquet"
_FILES = "slices"
_RECORDS = "records"

_CONTEXT: Data = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "odf": "https://odfbuild.github.io/odfbuild/passport/#",
    "prov": "http://www.w3.org/ns/prov#",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "description": {"@container": "@language"},
    "name": {"@container": "@language"},
    **{
        each: f"cr:{each}"
        for each in (
            "arrayShape",
            "citeAs",
            "column",
            "containedIn",
            "equivalentProperty",
            "extract",
            "field",
            "fileObject",
            "fileProperty",
            "fileSet",
            "format",
            "includes",
            "isArray",
            "isLiveDataset",
            "jsonPath",
            "key",
            "md5",
            "parentField",
            "path",
            "recordSet",
            "references",
            "regex",
            "repeated",
            "replace",
            "samplingRate",
            "separator",
            "source",
            "subField",
            "transform",
        )
    },
}

_TYPES = {
    "bool": "sc:Boolean",
    "date32": "sc:Date",
    "date64": "sc:Date",
    "timestamp": "sc:DateTime",
    "time32": "sc:Time",
    "time64": "sc:Time",
    **{each: f"cr:Int{each.removeprefix('int')}" for each in arrow.SIGNED},
    **{each: f"cr:UInt{each.removeprefix('uint')}" for each in arrow.UNSIGNED},
    **{each: f"cr:Float{each.removeprefix('float')}" for each in arrow.FLOATS},
    **dict.fromkeys(arrow.DECIMALS, "sc:Float"),
}
"""All that is not here is text: Croissant has no other type for it."""


def croissant(facts: Facts) -> Data:
    """The document in JSON-LD."""
    state = facts.state
    info, license = state.info, state.license
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "@id": str(state.dataset_id),
        "conformsTo": _CROISSANT,
        "name": facts.name,
        **_said("description", info.description if info else None),
        **_said("keywords", list(info.keywords or ()) if info else None),
        **_said("license", license.website_url if license else None),
        "identifier": str(state.dataset_id),
        "url": str(state.dataset_id),
        "citeAs": f"{facts.name} ({state.dataset_id}), block {state.head}",
        "version": facts.version,
        "dateCreated": str(facts.created),
        "datePublished": str(facts.created),
        "dateModified": str(state.system_time),
        **_said("creator", [{"@type": "sc:Organization", "name": e} for e in facts.owners]),
        **_provenance(facts),
        **_contents(facts),
    }


def croissant_text(facts: Facts) -> bytes:
    """The file of the document."""
    return json.dumps(croissant(facts), indent=2, ensure_ascii=False).encode() + b"\n"


def _said(key: str, value: Any) -> Data:
    return {key: value} if value else {}


# --- Files and columns ---


def _contents(facts: Facts) -> Data:
    if not facts.steps:
        return {}
    files = [_file(each) for each in facts.steps]
    together = {
        "@type": "cr:FileSet",
        "@id": _FILES,
        "name": _FILES,
        "encodingFormat": _PARQUET,
        "includes": [each.path for each in facts.steps],
    }
    names = facts.vocabulary
    described = {
        names.offset: "Number of the record in the history of the dataset.",
        names.operation_type: "0: appended; 1: retracted; 2 and 3: corrected from and to.",
        names.system_time: "When the record was committed.",
        names.event_time: "When what the record tells happened.",
    }
    records = {
        "@type": "cr:RecordSet",
        "@id": _RECORDS,
        "name": _RECORDS,
        "description": "All records in the order in which they were committed.",
        "key": {"@id": f"{_RECORDS}/{quote(names.offset, safe='')}"},
        "field": [
            _field(each, facts.description_of(each) or described.get(each.name), source=True)
            for each in facts.fields
        ],
    }
    return {"distribution": [*files, together], "recordSet": [records]}


def _file(step: Step) -> Data:
    return {
        "@type": "cr:FileObject",
        "@id": step.path,
        "name": str(step.data.physical_hash),
        "contentUrl": step.path,
        "contentSize": f"{step.data.size} B",
        "encodingFormat": _PARQUET,
        "sha256": step.sha256,
        "prov:wasGeneratedBy": {"@id": _activity(step)},
    }


def _field(
    field: arrow.Field, description: str | None, *, source: bool = False, inside: str = _RECORDS
) -> Data:
    """A column, or a member of one; `source`: it is a column of the files."""
    name = f"{inside}/{quote(field.name, safe='')}"
    item, is_list = _item(field.type)
    members = [_field(each, None, inside=name) for each in item.fields if item.name == "struct"]
    return {
        "@type": "cr:Field",
        "@id": name,
        "name": field.name,
        **_said("description", description),
        **({} if members else {"dataType": _TYPES.get(item.name, "sc:Text")}),
        "odf:type": ddl_of(field.type),
        **({"isArray": True, "arrayShape": "-1"} if is_list else {}),
        **(
            {"source": {"fileSet": {"@id": _FILES}, "extract": {"column": field.name}}}
            if source
            else {}
        ),
        **_said("subField", members),
    }


def _item(kind: arrow.Type) -> tuple[arrow.Type, bool]:
    """What a list holds, or the type itself."""
    is_list = kind.name in arrow.LISTS or kind.name == "fixed_size_list"
    return (kind.item.type, True) if is_list else (kind, False)


# --- Derivation ---


def _provenance(facts: Facts) -> Data:
    found: Data = {
        "prov:wasAttributedTo": {
            "@id": facts.state.dataset_id.did_key,
            "@type": "prov:Agent",
            **_said("name", ", ".join(facts.owners)),
        }
    }
    derived = list(_derived_from(facts))
    if derived:
        found["prov:wasDerivedFrom"] = derived
    if facts.steps:
        found["prov:wasGeneratedBy"] = [_run(each) for each in facts.steps]
    return found


def _derived_from(facts: Facts) -> Iterator[Data]:
    """What was read of each input so far: all records up to a block."""
    for each in facts.state.inputs:
        if each.new_block_hash is not None:
            yield {
                "@type": "prov:Entity",
                "@id": f"{each.dataset_id}#{each.new_block_hash}",
                "odf:dataset": str(each.dataset_id),
                "odf:block": str(each.new_block_hash),
                **({} if each.new_offset is None else {"odf:lastOffset": each.new_offset}),
            }


def _run(step: Step) -> Data:
    return {
        "@type": "prov:Activity",
        "@id": _activity(step),
        "prov:endedAtTime": str(step.time),
        "odf:block": str(step.block),
        "odf:sequenceNumber": step.number,
        **_said("odf:definedBy", str(step.source) if step.source else None),
        **_said("prov:used", [_used(each) for each in step.inputs]),
        **(
            {}
            if step.engine is None
            else {
                "prov:wasAssociatedWith": {
                    "@type": "prov:SoftwareAgent",
                    "name": " ".join(filter(None, step.engine)),
                }
            }
        ),
        "odf:firstOffset": step.data.offset_interval.start,
        "odf:lastOffset": step.data.offset_interval.end,
    }


def _used(each: Any) -> Data:
    """What a run read of an input: the records and blocks behind those of the run before."""
    block = each.new_block_hash or each.prev_block_hash
    return {
        "@type": "prov:Entity",
        "@id": f"{each.dataset_id}#{block}",
        "odf:dataset": str(each.dataset_id),
        "odf:block": str(block),
        **({} if each.prev_offset is None else {"odf:afterOffset": each.prev_offset}),
        **({} if each.new_offset is None else {"odf:lastOffset": each.new_offset}),
    }


def _activity(step: Step) -> str:
    return f"urn:odf:block:{step.block}"

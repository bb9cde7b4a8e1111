"""Passports are right by the tools of their standards, and tell what the chains tell."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import rdflib

from odfbuild import Project
from odfbuild.odf.dsse import pre_authentication_encoding
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny
from tests.exchange.passport.others import (
    changed,
    read_contract,
    read_croissant,
    read_statements,
)

SPDX = rdflib.Namespace("http://spdx.org/rdf/terms#")
SETTINGS = """\
  owners:
    - {match: ["*"], owners: [ann@example.org]}
  descriptions:
    - {match: [derived], columns: {value: Ten times the value}}
  freshness:
    - {match: [derived], maxAge: 36h}
  checks:
    - match: [derived]
      notNull: [id]
      unique: [[id], [id, value]]
      acceptedValues: {value: [10, 20, 30, 40]}
      relationships: {id: {to: root, field: id}}
      rowCount: {min: 1}
      kAnonymous: {columns: [event_time], k: 2}
      sql: {no negative value: SELECT * FROM slice WHERE value < 0}
      severity: warn
"""
INFO = """\
    - kind: SetInfo
      description: Ten times the values of root
      keywords: [tenfold, example]
    - kind: SetLicense
      shortName: CC0
      name: Creative Commons Zero
      spdxId: CC0-1.0
      websiteUrl: https://creativecommons.org/publicdomain/zero/1.0/
"""


@pytest.fixture
def applied(tiny: Tiny, odfbuild: Program) -> Project:
    """Two steps of `root` and of `derived`, which is described in full."""
    definition = tiny.root / "datasets" / "derived.yaml"
    definition.write_text(definition.read_text().rstrip("\n") + "\n" + INFO)
    odfbuild.apply()
    tiny.arrive(2)
    odfbuild.apply()
    # The engine of these tests knows no queries of checks, so they come afterwards.
    settings = tiny.root / "odfbuild.yaml"
    settings.write_text(settings.read_text() + SETTINGS)
    return Project(tiny.root)


def beside(project: Project, name: str) -> tuple[Path, dict[str, Any]]:
    """The passport as a file in the folder of its dataset, and what it says."""
    file = project.root / "chains" / name / "croissant.json"
    file.write_bytes(project.passport(name))
    return file, json.loads(file.read_bytes())


def test_mlcroissant_reads_the_records_of_all_files(applied: Project) -> None:
    file, said = beside(applied, "derived")
    found = read_croissant(file)
    assert found.metadata.ctx.conforms_to.value == "http://mlcommons.org/croissant/1.1"
    assert not found.metadata.ctx.issues.warnings
    records = sorted(found.records("records"), key=lambda each: each["records/offset"])
    assert [each["records/value"] for each in records] == [10, 20, 30, 40]
    assert [each["name"] for each in said["recordSet"][0]["field"]] == [
        *("offset", "op", "system_time", "event_time", "id", "value")
    ]
    value = said["recordSet"][0]["field"][-1]
    assert (value["dataType"], value["odf:type"]) == ("cr:Int64", "BIGINT")
    assert value["description"] == "Ten times the value"
    assert said["license"] == "https://creativecommons.org/publicdomain/zero/1.0/"
    assert said["description"] == "Ten times the values of root"
    assert said["creator"][0]["name"] == "ann@example.org"


def test_every_file_has_its_size_and_its_sha256(applied: Project) -> None:
    file, said = beside(applied, "root")
    slices = said["distribution"][:-1]
    assert len(slices) == 2
    for each in slices:
        data = (file.parent / each["contentUrl"]).read_bytes()
        assert each["sha256"] == hashlib.sha256(data).hexdigest()
        assert each["contentSize"] == f"{len(data)} B"


def test_the_derivation_goes_down_to_blocks_and_offsets(applied: Project) -> None:
    _, said = beside(applied, "derived")
    states = applied.datasets()
    root = states["root"]
    assert said["prov:wasDerivedFrom"] == [
        {
            "@type": "prov:Entity",
            "@id": f"{root.dataset_id}#{root.head}",
            "odf:dataset": str(root.dataset_id),
            "odf:block": str(root.head),
            "odf:lastOffset": 3,
        }
    ]
    first, second = said["prov:wasGeneratedBy"]
    assert "odf:afterOffset" not in first["prov:used"][0]
    assert first["prov:used"][0]["odf:lastOffset"] == second["prov:used"][0]["odf:afterOffset"] == 2
    assert said["prov:wasAttributedTo"]["@id"] == states["derived"].dataset_id.did_key
    assert said["dateModified"] == str(states["derived"].system_time)


@pytest.mark.parametrize("form", ["croissant", "in-toto", "odcs", "dcat"])
def test_the_same_state_gives_the_same_bytes(applied: Project, form: Any) -> None:
    found = applied.passport("derived", form)
    assert applied.passport("derived", form) == found
    assert Project(applied.root).passport("DERIVED", form) == found


def test_statements_are_signed_and_name_what_went_in(applied: Project, tiny: Tiny) -> None:
    states = applied.datasets()
    lines = applied.passport("derived", "in-toto")
    first, second = read_statements(lines, str(states["derived"].dataset_id))
    made = second["predicate"]["buildDefinition"]
    assert made["resolvedDependencies"][-1] == {
        "uri": f"{states['root'].dataset_id}#{states['root'].head}",
        "digest": {"sha3_256": states["root"].head.digest.hex()},
        "annotations": {"afterOffset": 2, "lastOffset": 3},
    }
    query = made["externalParameters"]["definedBy"]
    assert query == first["predicate"]["buildDefinition"]["externalParameters"]["definedBy"]
    assert second["predicate"]["runDetails"]["builder"]["version"]["spark"]
    block = second["subject"][1]["name"].removeprefix("blocks/")
    assert block == str(states["derived"].head)
    for each in second["subject"]:
        data = (tiny.root / "chains" / "derived" / each["name"]).read_bytes()
        assert each["digest"]["sha3_256"] == hashlib.sha3_256(data).hexdigest()
        assert each["digest"].get("sha256") in (None, hashlib.sha256(data).hexdigest())


def test_a_changed_statement_is_not_signed(applied: Project) -> None:
    did = str(applied.datasets()["derived"].dataset_id)
    line = applied.passport("derived", "in-toto").splitlines()[0]
    with pytest.raises(Exception, match="Accepted signatures"):
        read_statements(changed(line), did)
    other = str(applied.datasets()["root"].dataset_id)
    with pytest.raises(Exception, match="Accepted signatures"):
        read_statements(line, other)


def test_what_is_signed_is_the_encoding_of_the_specification() -> None:
    # The example of the specification of DSSE.
    said = pre_authentication_encoding("http://example.com/HelloWorld", b"hello world")
    assert said == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_statements_need_the_key_of_the_dataset(applied: Project, odfbuild: Program) -> None:
    key = applied.root / ".odfbuild-keys" / applied.datasets()["derived"].dataset_id.multibase
    key.unlink()
    said = odfbuild("passport", "derived", "--format", "in-toto")
    assert said.code == 1
    assert "error[E1650]: the private key of 'derived' is not here" in said.err
    assert odfbuild.ok("passport", "derived").data["name"] == "derived"


def test_a_damaged_file_gets_no_passport(applied: Project, odfbuild: Program) -> None:
    file = next((applied.root / "chains" / "root" / "data").iterdir())
    file.chmod(0o600)
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    said = odfbuild("passport", "root")
    assert said.code == 3
    assert "error[E0813]" in said.err


def test_the_contract_is_right_by_the_standard_and_has_the_checks(applied: Project) -> None:
    found = read_contract(applied.passport("derived", "odcs").decode())
    assert found.apiVersion == "v3.1.0"
    (schema,) = found.schema_
    by_name = {each.name: each for each in schema.properties}
    assert list(by_name) == ["event_time", "id", "value"]
    value = by_name["value"]
    assert (value.logicalType, value.physicalType) == ("integer", "BIGINT")
    assert [each.metric for each in by_name["id"].quality] == ["nullValues", "duplicateValues"]
    assert value.quality[0].arguments == {"validValues": [10, 20, 30, 40]}
    assert schema.quality[0].arguments == {"properties": ["id", "value"]}
    assert [each.implementation for each in schema.quality[1:]] == [
        {"relationships": {"id": {"to": "root", "field": "id"}}},
        {"rowCount": {"min": 1}},
        {"kAnonymous": {"columns": ["event_time"], "k": 2}},
        {"sql": {"no negative value": "SELECT * FROM slice WHERE value < 0"}},
    ]
    (age,) = found.slaProperties
    assert (age.property, age.value, age.unit) == ("latency", 36, "h")


def test_open_data_portals_find_what_they_require(applied: Project) -> None:
    graph = rdflib.Graph()
    # Addresses of files begin where the document lies.
    address = "https://data.example.org/derived/"
    graph.parse(data=applied.passport("derived", "dcat"), format="json-ld", base=address)
    dcat = rdflib.DCAT
    (dataset,) = graph.subjects(rdflib.RDF.type, dcat.Dataset)
    assert str(dataset) == str(applied.datasets()["derived"].dataset_id)
    for mandatory in (rdflib.DCTERMS.title, rdflib.DCTERMS.description):
        assert graph.value(dataset, mandatory)
    files = list(graph.objects(dataset, dcat.distribution))
    assert len(files) == 2
    for each in files:
        place = str(graph.value(each, dcat.accessURL))
        assert place.startswith(f"{address}data/")
        data = (applied.root / "chains" / "derived" / place.removeprefix(address)).read_bytes()
        assert str(graph.value(each, dcat.byteSize)) == str(len(data))
        checksum = graph.value(each, SPDX.checksum)
        said = str(graph.value(checksum, SPDX.checksumValue))
        assert said.lower() == hashlib.sha256(data).hexdigest()
        assert graph.value(each, rdflib.DCTERMS.license)


def test_the_command_prints_one_or_writes_files(applied: Project, odfbuild: Program) -> None:
    said = odfbuild.ok("passport", "derived")
    assert said.out.encode() == applied.passport("derived")
    several = odfbuild("passport")
    assert several.code == 64
    assert "these are 2 datasets: name one, or give a folder" in several.err
    odfbuild.ok("passport", "--format", "odcs", "-o", "out/passports")
    out = applied.root / "out" / "passports"
    assert sorted(each.name for each in out.iterdir()) == ["derived.odcs.yaml", "root.odcs.yaml"]
    assert (out / "derived.odcs.yaml").read_bytes() == applied.passport("derived", "odcs")
    listed = odfbuild.ok("passport", "--format", "in-toto", "--json").data
    assert [(each["name"], len(each["content"])) for each in listed] == [
        ("derived", 2),
        ("root", 2),
    ]


def test_digests_are_remembered_and_files_read_once(
    applied: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = applied.passport("derived")
    monkeypatch.setattr("odfbuild.store.sha256._digest", lambda *_: pytest.fail("read again"))
    assert applied.passport("derived") == before

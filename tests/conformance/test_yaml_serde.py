"""The YAML form, against the vectors."""

from typing import Any

import pytest

from odfbuild.odf import model
from odfbuild.odf.decode_errors import DecodeErrors
from odfbuild.odf.defaults import same_meaning
from odfbuild.odf.model import messages
from odfbuild.odf.yaml_form import from_data, from_manifest, to_data, to_manifest
from odfbuild.odf.yaml_text import dump_yaml
from odfbuild.project.yaml.source import read_documents
from tests.conformance.vectors import cases

ELSEWHERE = ("Secrets", "Variables", "Resource")
"""Objects of a later, declarative resource format, which no chain holds."""


CASES = cases("yaml_serde")
EQUALITIES = [case for case in CASES if "left" in (case.values[0] or {})]


@pytest.mark.parametrize("case", EQUALITIES)
def test_an_absent_field_equals_its_default(case: dict[str, Any]) -> None:
    kind = _kind(case["root"])
    left, right = from_data(kind, case["left"]), from_data(kind, case["right"])
    assert same_meaning(left, right) is case["expected"]["equal"]
    assert to_data(left) == case["left"]
    assert to_data(right) == case["right"]


@pytest.mark.parametrize("case", [case for case in CASES if case not in EQUALITIES])
def test_yaml_is_read_and_written_like_the_reference_does(case: dict[str, Any]) -> None:
    root, _, wrapped = case["root"].partition(" ")
    if root.startswith(ELSEWHERE):
        pytest.skip("resource manifests are configuration of a server: docs/compatibility.md")
    expected = case["expected"]
    assert read_documents(case["document"], "case.yaml") == [case["document_json"]]
    try:
        value = _read(root, wrapped == "manifest", case["document_json"])
    except DecodeErrors:
        assert expected.get("ok") is False
        return
    assert expected.get("ok") is not False
    data = to_manifest(value) if wrapped else to_data(value)
    assert data == expected["canonical_json"]
    assert dump_yaml(data) == expected["canonical_yaml"]
    assert read_documents(expected["canonical_yaml"], "case.yaml") == [data]


def _read(root: str, wrapped: bool, data: Any) -> Any:
    return from_manifest(root, data) if wrapped else from_data(_kind(root), data)


def _kind(root: str) -> Any:
    return getattr(messages, root, None) or getattr(model, root)

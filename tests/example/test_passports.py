"""The passports of all datasets of the example, by the tools of their standards."""

from __future__ import annotations

import json

import pytest

from tests.example.odfbuild_project import ExampleProject
from tests.exchange.passport.others import read_contract, read_croissant, read_statements

pytestmark = pytest.mark.spark


def test_passports_of_all_datasets_are_right(tmp_path_factory: pytest.TempPathFactory) -> None:
    applied = ExampleProject.applied(tmp_path_factory)
    project = applied.copy(tmp_path_factory.mktemp("passports") / "project")
    for form in ("croissant", "in-toto", "odcs"):
        project.ok("passport", "--format", form, "--out", "passports")
    names = sorted(each["name"] for each in json.loads(project.ok("ls", "--json").out))
    assert len(names) == 18
    for name in names:
        made = project.root / "passports"
        file = project.root / "chains" / name / "croissant.json"
        file.write_bytes((made / f"{name}.croissant.json").read_bytes())
        found = read_croissant(file)
        assert next(iter(found.records("records")))["records/offset"] is not None
        did = json.loads(file.read_text())["@id"]
        assert read_statements((made / f"{name}.intoto.jsonl").read_bytes(), did)
        assert read_contract((made / f"{name}.odcs.yaml").read_text()).name == name

"""Data contracts: a dataset that breaks one is refused, and told with the place in the contract."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild import Project
from odfbuild.errors import ProjectError
from odfbuild.odf.schema import arrow
from odfbuild.odf.schema.ddl import ddl_of
from odfbuild.project.odcs.contract import read_contract
from odfbuild.project.odcs.quality import checks_of_rule, rules_of
from odfbuild.project.odcs.types import physical_type
from odfbuild.records.checks import (
    AcceptedValues,
    Asked,
    KAnonymous,
    NotNull,
    Relationship,
    RowCount,
    Sql,
    Unique,
)
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny

CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: tenfold
version: 1.0.0
status: active
schema:
  - name: derived
    properties:
      - name: id
        logicalType: integer
      - {name: value, logicalType: integer, physicalType: BIGINT}
slaProperties:
  - {property: latency, value: 2, unit: d}
"""


@pytest.fixture
def settings(tiny: Tiny) -> Path:
    """odfbuild.yaml with a contract of `derived` that it keeps to; nothing is applied."""
    (tiny.root / "contracts").mkdir()
    (tiny.root / "contracts" / "tenfold.yaml").write_text(CONTRACT)
    settings = tiny.root / "odfbuild.yaml"
    settings.write_text(
        settings.read_text()
        + "  contracts:\n    - {match: [derived], file: contracts/tenfold.yaml}\n"
        + "  freshness:\n    - {match: ['*'], maxAge: 36h}\n"
    )
    return settings


def promise(settings: Path, before: str, after: str) -> None:
    file = settings.parent / "contracts" / "tenfold.yaml"
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def test_a_project_that_keeps_to_its_contract_plans_no_changes(
    settings: Path, odfbuild: Program
) -> None:
    odfbuild.ok("validate")
    odfbuild.apply()
    assert "No changes" in odfbuild.ok("plan", "--detailed-exitcode").out


@pytest.mark.parametrize(
    ("before", "after", "code", "place", "why"),
    [
        ("name: id", "name: key", "E0395", "9:9", "it has no column 'key'"),
        ("logicalType: integer\n", "logicalType: string\n", "E0396", "9:9", "BIGINT, and string"),
        ("BIGINT", '"DECIMAL(18, 2)"', "E0396", "11:9", "BIGINT, and DECIMAL(18, 2) is promised"),
        ("BIGINT", "BIGINT, required: true", "E0397", "11:67", "checks `notNull: value`"),
        ("BIGINT", "BIGINT, unique: true", "E0397", "11:67", "checks `unique: value`"),
        ("value: 2, unit: d", "value: 1, unit: day", "E0398", "13:5", "an age of 1 day"),
    ],
)
def test_a_breach_is_told_by_plan_and_validate_with_its_place(
    settings: Path,
    odfbuild: Program,
    before: str,
    after: str,
    code: str,
    place: str,
    why: str,
) -> None:
    odfbuild.apply()
    promise(settings, before, after)
    for command in ("plan", "validate"):
        said = odfbuild(command)
        assert said.code == 1, said.out
        text = said.out + said.err
        assert code in text
        assert f"contracts/tenfold.yaml:{place}" in text
    planned = odfbuild("plan", "--json").data
    derived = next(each for each in planned["datasets"] if each["name"] == "derived")
    assert derived["actions"] == ["refuse"]
    assert derived["reasons"][0]["code"] == "breaking"
    assert why in derived["refusal"]["message"]
    assert odfbuild("apply", "-y").code != 0


def test_a_changed_query_that_breaks_the_contract_is_refused_before_it_runs(
    settings: Path, odfbuild: Program, tiny: Tiny
) -> None:
    file = tiny.root / "datasets" / "derived.yaml"
    file.write_text(file.read_text().replace("AS value", "AS amount"))
    said = odfbuild("apply", "-y")
    assert said.code != 0
    assert "'derived' breaks its contract: it has no column 'value'" in said.err
    assert tiny.workspace().aliases() == ["root"]


def test_a_project_that_has_no_data_yet_may_promise_required_columns(
    settings: Path, odfbuild: Program
) -> None:
    promise(settings, "name: value,", "name: event_time, required: true}\n      - {name: value,")
    odfbuild.ok("validate")
    odfbuild.apply()
    exported = Project(settings.parent).passport("derived", "odcs")
    (settings.parent / "contracts" / "tenfold.yaml").write_bytes(exported)
    assert "No changes" in odfbuild.ok("plan").out


def test_what_an_exported_contract_promises_is_kept(settings: Path, odfbuild: Program) -> None:
    odfbuild.apply()
    text = settings.read_text() + (
        "  checks:\n    - match: [derived]\n      notNull: [id]\n      unique: [[id, value]]\n"
        "      acceptedValues: {value: [10, 20, 30]}\n      kAnonymous: {columns: [id], k: 2}\n"
    )
    settings.write_text(text)
    exported = Project(settings.parent).passport("derived", "odcs")
    (settings.parent / "contracts" / "tenfold.yaml").write_bytes(exported)
    assert "No changes" in odfbuild.ok("plan").out
    settings.write_text(text.replace("      kAnonymous: {columns: [id], k: 2}\n", ""))
    said = odfbuild("plan")
    assert said.code == 1
    assert "nothing checks `kAnonymous: id with k = 2`" in said.out + said.err


def test_a_check_may_be_stricter_than_what_is_promised(settings: Path, odfbuild: Program) -> None:
    promise(settings, "BIGINT}", "BIGINT, quality: [{metric: invalidValues, mustBe: 0, "
            "arguments: {validValues: [10, 20, 30, 40]}}]}")  # fmt: skip
    checks = "  checks:\n    - match: [derived]\n      acceptedValues: {value: [10, 20, 30]}\n"
    text = settings.read_text()
    settings.write_text(text + checks)
    odfbuild.ok("validate")
    settings.write_text(text + checks + "      severity: warn\n")
    assert odfbuild("validate").code == 1


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("kind: DataContract", "kind: Contract", "its `kind` is not `DataContract`"),
        ("v3.1.0", "v2.2.2", "its `apiVersion` is not one of v3"),
        ("- name: derived", "- name: other\n  - name: another", "none of its schemas is called"),
        ("- name: id", "- title: id", "a property has no `name`"),
        ("unit: d", "unit: moons", "an age has a number"),
        ("slaProperties:", "slaProperties: 5\nx:", "`slaProperties` is not a list of objects"),
    ],
)
def test_a_file_that_is_no_contract_is_told_with_its_place(
    settings: Path, odfbuild: Program, before: str, after: str, why: str
) -> None:
    promise(settings, before, after)
    said = odfbuild("validate")
    assert said.code == 1
    assert f"error[E0399]: this is no data contract that can be read: {why}" in said.err
    assert "--> contracts/tenfold.yaml:" in said.err


def test_a_contract_that_is_not_there_is_told(settings: Path, odfbuild: Program) -> None:
    (settings.parent / "contracts" / "tenfold.yaml").unlink()
    said = odfbuild("validate")
    assert said.code == 1
    assert "contracts/tenfold.yaml" in said.err


NAMES = st.text("abc_", min_size=1, max_size=5)
VALUES = st.lists(st.integers(-5, 5) | st.text("xyz", max_size=3), max_size=4)
LISTS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
CHECKS = st.one_of(
    st.builds(NotNull, NAMES),
    st.builds(Unique, LISTS),
    st.builds(AcceptedValues, NAMES, VALUES.map(tuple)),
    st.builds(Relationship, NAMES, NAMES, NAMES),
    st.builds(RowCount, st.integers(0, 9), st.integers(0, 9)),
    st.builds(KAnonymous, LISTS, st.integers(2, 9)),
    st.builds(Sql, NAMES, st.just("SELECT 1")),
)


@given(st.lists(CHECKS, max_size=6))
def test_checks_become_rules_and_rules_become_the_same_checks(checks: list) -> None:
    columns, whole = rules_of(Asked(each, False) for each in checks)
    found = [check for rule in whole for check in checks_of_rule(rule, None)]
    found += [c for name, rules in columns.items() for r in rules for c in checks_of_rule(r, name)]
    assert sorted(map(repr, found)) == sorted(map(repr, checks))


@pytest.mark.parametrize(
    "kind",
    [
        arrow.Type("int64"),
        arrow.Type("string"),
        arrow.Type("float64"),
        arrow.decimal(18, 4),
        arrow.timestamp("ms"),
        arrow.list_of(arrow.Type("int32")),
        arrow.struct([arrow.Field("x", arrow.Type("bool"))]),
    ],
    ids=str,
)
def test_types_are_read_as_they_are_written(kind: arrow.Type) -> None:
    assert physical_type(ddl_of(kind)) == kind


def test_types_of_other_systems_are_none_of_ours() -> None:
    assert physical_type("NUMBER(38,0)") is None
    assert physical_type("") is None


@given(st.text(max_size=60))
def test_any_text_is_a_contract_or_refused(text: str) -> None:
    try:
        read_contract(text, "contract.yaml", "name")
    except ProjectError as error:
        assert error.code

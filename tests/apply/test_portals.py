"""A portal publishes records under an identity of its own, and not where they come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfbuild import Project
from odfbuild.odf.model import AddData, ExecuteTransform, Seed
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny
from tests.exchange.passport.others import read_croissant, read_statements

PORTAL = """\
kind: DatasetSnapshot
version: 1
content:
  name: public
  kind: Root
  metadata:
    - kind: SetInfo
      description: Values
"""
SETTINGS = "  portals:\n    - {name: public, of: derived}\n"


@pytest.fixture
def portal(tiny: Tiny) -> Tiny:
    (tiny.root / "datasets" / "public.yaml").write_text(PORTAL)
    settings = tiny.root / "odfbuild.yaml"
    settings.write_text(settings.read_text() + SETTINGS)
    return tiny


def slices(tiny: Tiny, name: str) -> list:
    store = tiny.workspace().dataset(name)
    events = [block.event for _, block in store.walk(store.head())]
    steps = [each for each in events if isinstance(each, AddData | ExecuteTransform)]
    return [each.new_data for each in steps if each.new_data][::-1]


def test_a_portal_gets_the_records_of_its_dataset_step_by_step(
    portal: Tiny, odfbuild: Program
) -> None:
    planned = odfbuild.ok("plan")
    assert "public" in planned.out
    odfbuild.apply()
    assert portal.ids("public") == [1, 2, 3]
    assert "No changes" in odfbuild.ok("plan").out
    portal.arrive(2)
    odfbuild.apply()
    assert portal.ids("public") == portal.ids("derived")
    assert slices(portal, "public") == slices(portal, "derived")
    assert "No changes" in odfbuild.ok("plan").out
    odfbuild.ok("verify")
    project = Project(portal.root)
    assert project["public"].count() == project["derived"].count()


def test_a_portal_that_comes_later_catches_up(portal: Tiny, odfbuild: Program) -> None:
    odfbuild.ok("apply", "-y", "root", "derived")
    portal.arrive(2)
    odfbuild.ok("apply", "-y", "root", "derived")
    said = odfbuild.ok("plan")
    assert "derived has 4 new records" in said.out
    odfbuild.apply()
    assert slices(portal, "public") == slices(portal, "derived")


def test_what_others_see_names_neither_inputs_nor_query(
    portal: Tiny, odfbuild: Program, tmp_path: Path
) -> None:
    odfbuild.apply()
    settings = portal.root / "odfbuild.yaml"
    shared = f"  repositories:\n    shared: {{url: {tmp_path / 'shared'}, passports: true}}\n"
    settings.write_text(settings.read_text() + shared)
    odfbuild.ok("push", "public", "--to", "shared")
    states = Project(portal.root).datasets()
    secrets = [b"derived", b"value * 10", b"root"]
    for name in ("root", "derived"):
        state = states[name]
        blocks = [hash for hash, _ in portal.workspace().dataset(name).walk(state.head)]
        secrets += [state.dataset_id.key, state.dataset_id.multibase.encode()]
        secrets += [each.digest for each in blocks] + [str(each).encode() for each in blocks]
    files = [each for each in (tmp_path / "shared").rglob("*") if each.is_file()]
    assert {each.parent.name for each in files} >= {"blocks", "data", "public"}
    for each in files:
        found = [secret for secret in secrets if secret in each.read_bytes()]
        assert not found, each
    store = portal.workspace().dataset("public")
    events = [block.event for _, block in store.walk(store.head())]
    assert isinstance(events[-1], Seed)
    assert not any(isinstance(each, ExecuteTransform) for each in events)


def test_the_owner_vouches_for_the_records_with_the_key_of_the_portal(
    portal: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    project = Project(portal.root)
    did = str(project.datasets()["public"].dataset_id)
    (statement,) = read_statements(project.passport("public", "in-toto"), did)
    made = statement["predicate"]["buildDefinition"]
    assert made["buildType"].endswith("#portal")
    assert made["resolvedDependencies"] == []
    assert made["externalParameters"] == {"dataset": did, "firstOffset": 0, "lastOffset": 2}
    file = portal.root / "chains" / "public" / "croissant.json"
    file.write_bytes(project.passport("public"))
    read_croissant(file)
    assert "prov:wasDerivedFrom" not in file.read_text()


def test_a_check_of_the_portal_stands_before_its_records_leave(
    portal: Tiny, odfbuild: Program
) -> None:
    settings = portal.root / "odfbuild.yaml"
    check = "  checks:\n    - {match: [public], kAnonymous: {columns: [value], k: 2}}\n"
    settings.write_text(settings.read_text() + check)
    said = odfbuild("apply", "-y")
    assert said.code != 0
    assert "error[E0551]: with its new records 'public' is not k-anonymous" in said.err
    assert portal.ids("derived") == [1, 2, 3]
    assert "public" not in portal.workspace().aliases()


def test_a_portal_does_not_follow_another_history(portal: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    before = slices(portal, "public")
    portal.arrive(2)
    for more in (["--allow", "rebuild:derived"], []):
        said = odfbuild("apply", "-y", *more)
        assert said.code != 0
        assert "error[E1653]: 'public' cannot follow 'derived'" in said.err
        assert slices(portal, "public") == before
    assert portal.ids("derived") == [1, 2, 3, 4]


def test_system_columns_have_the_names_of_the_dataset(portal: Tiny, odfbuild: Program) -> None:
    vocabulary = "    - {kind: SetVocab, eventTimeColumn: moment}\n"
    (portal.root / "datasets" / "public.yaml").write_text(PORTAL + vocabulary)
    said = odfbuild("apply", "-y")
    assert said.code != 0
    assert "error[E1654]: 'public' has other names of system columns than 'derived'" in said.err


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("name: public", "name: pubic", "error[E1651]: no dataset is called 'pubic'"),
        ("name: public", "name: root", "error[E1652]: 'root' cannot be a portal"),
        ("of: derived", "of: derivd", "error[E0202]: the portal 'public' follows 'derivd'"),
        ("of: derived", "of: public", "error[E0203]"),
    ],
)
def test_a_wrong_portal_is_told(
    portal: Tiny, odfbuild: Program, before: str, after: str, told: str
) -> None:
    settings = portal.root / "odfbuild.yaml"
    settings.write_text(settings.read_text().replace(before, after))
    said = odfbuild("validate")
    assert said.code == 1
    assert told in said.err


def test_personal_columns_do_not_leave_through_a_portal(portal: Tiny, odfbuild: Program) -> None:
    settings = portal.root / "odfbuild.yaml"
    personal = "  personal:\n    - {match: [derived], columns: [value], subject: id}\n"
    settings.write_text(settings.read_text() + personal)
    said = odfbuild("validate")
    assert said.code == 1
    assert "error[E1655]: 'public' cannot publish 'derived': it has personal columns" in said.err
    assert "personal: value" in said.err

"""Persons are erased: their values cannot be read, everything else can, and the chains say so."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from odfbuild import Project
from odfbuild.engine.contract import Engine
from odfbuild.store.stewardship import erasures
from odfbuild.store.workspace import Workspace
from tests.stewardship.killed import lives
from tests.stewardship.visits import Visits

pytestmark = pytest.mark.spark

SETTINGS = """\
kind: Project
version: 1
content:
  name: visits
  repositories: {acme: {url: ../acme}}
  personal:
    - {match: ["*"], columns: [name], subject: person}
  tables:
    - {match: [people], format: parquet, location: "../tables/{name}"}
"""
ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: people
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: "data/*.csv", order: ByName}
      read:
        kind: Csv
        header: true
        schema: [event_time TIMESTAMP, person STRING, name STRING]
      merge: {kind: Append}
"""
SHOUTED = "SELECT event_time, person, UPPER(name) AS name FROM people"


@pytest.fixture
def ours(
    spark_engine: Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Visits:
    """Two increments with values of three persons, and a derivative of them."""
    made = Visits.fresh(tmp_path, spark_engine, monkeypatch, capsys)
    machine = tmp_path / "machine.yaml"
    machine.write_text(
        "kind: Machine\nversion: 1\ncontent:\n"
        "  personal: {keys: subject-keys, wrapping: wrapping-key, show: true, publish: true}\n"
    )
    monkeypatch.setenv("ODFBUILD_CONFIG", str(machine))
    (made.root / "odfbuild.yaml").write_text(SETTINGS)
    for file in (made.root / "datasets").iterdir():
        file.unlink()
    (made.root / "datasets" / "people.yaml").write_text(ROOT)
    made.derive("shouted", SHOUTED)
    derived = made.root / "datasets" / "shouted.yaml"
    derived.write_text(derived.read_text().replace("visits", "people"))
    for number, names in enumerate((["ada", "bob"], ["ada", "eve"]), 1):
        rows = "".join(f"2024-01-0{number}T00:00:00Z,{n},Ms {n}\n" for n in names)
        (made.root / "data" / f"{number}.csv").write_text(f"event_time,person,name\n{rows}")
        made.run("apply", "-y", "--no-publish")
    return made


def names_in(project: Visits, dataset: str) -> list[str | None]:
    found = project.run(
        "sql", f"SELECT person, name FROM {dataset} ORDER BY event_time, person", "--json"
    ).data
    return [each["name"] for each in found]


def test_an_erased_person_is_unreadable_and_the_chains_say_why(
    ours: Visits, tmp_path: Path
) -> None:
    assert names_in(ours, "people") == ["Ms ada", "Ms bob", "Ms ada", "Ms eve"]
    blocks = sorted((ours.root / "chains").rglob("blocks/*"))
    looked = ours.run("erase", "ada", "--dry-run")
    assert "people: 2 records of 1 subject" in looked.out
    assert "shouted: 2 steps cannot be recomputed any more" in looked.out
    assert names_in(ours, "people")[0] == "Ms ada"
    assert ours("any", "erase", "ada").code == 1  # nobody to ask
    done = ours.run("erase", "ada", "-y", "--json").data
    assert (done["destroyed"], done["stated"]) == (1, ["people", "shouted"])

    assert names_in(ours, "people") == [None, "Ms bob", None, "Ms eve"]
    assert sorted((ours.root / "chains").rglob("blocks/*")) == blocks
    verified = ours.run("verify").out
    assert "shouted: 2 steps not recomputed: the statement of" in verified
    assert "erased subjects" in verified
    assert "'people': erased: values of 1 person in 2 records" in ours.run("log", "people").err
    statement = (ours.root / "chains" / "people" / "info" / "statements").read_bytes()
    assert not re.search(rb"\bada\b", statement)  # a hash may have these letters

    again = ours.run("erase", "ada", "-y", "--json").data
    assert (again["destroyed"], again["stated"]) == (0, [])
    # New values of an erased person are not kept.
    (ours.root / "data" / "3.csv").write_text(
        "event_time,person,name\n2024-01-03T00:00:00Z,ada,Ms ada\n"
    )
    ours.run("apply", "-y", "--no-publish")
    assert names_in(ours, "people")[-1] is None

    ours.run("push", "--to", "acme")
    peer = ours.other("peer")
    peer.run("pull", "acme/people", "--as", "people")
    assert (peer.root / "chains" / "people" / "info" / "statements").read_bytes() == statement
    tables = b"".join(f.read_bytes() for f in (tmp_path / "tables").rglob("*.parquet"))
    assert b"Ms bob" in tables


def test_a_kill_at_each_step_and_another_run_give_the_same_end(
    ours: Visits, tmp_path: Path
) -> None:
    work = partial(Project(ours.root).erase, "ada", "bob")
    assert any(lives(number, work) for number in range(40))
    ours.run("erase", "ada", "bob", "-y")
    assert names_in(ours, "people") == [None, None, None, "Ms eve"]
    workspace = Workspace(ours.root / "chains", ours.root / ".odfbuild-keys", tmp_path / "cache")
    for name in ("people", "shouted"):
        said = erasures(workspace.dataset(name).statements())
        assert sum(len(each.subjects) for each in said) == 2
        assert sum(each.records for each in said) == 3
    ours.run("verify")

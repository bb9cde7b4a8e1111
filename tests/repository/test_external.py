"""Datasets of others in a project: names, plans, and what each command makes of them."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import pytest

from odfbuild.odf.model import SetTransform
from tests.repository.two_projects import Pair


@pytest.fixture
def pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Pair:
    return Pair.in_folder(tmp_path, monkeypatch, capsys)


def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("planning opened a connection")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


def test_a_reader_of_what_nobody_pulled_is_refused_with_the_command_that_pulls_it(
    pair: Pair,
) -> None:
    pair.reads("acme/root")
    pair.reads("mine", "further")
    (pair.ours / "datasets" / "other.yaml").write_text(
        (pair.theirs.root / "datasets" / "root.yaml").read_text().replace("root", "other")
    )
    shutil.copytree(pair.theirs.root / "data", pair.ours / "data")
    said = pair.we("plan")
    assert said.code == 1
    assert "'mine' cannot be planned: its external input 'acme/root' is not here yet" in said.out
    assert "help: odfbuild pull acme/root" in said.out
    assert "! acme/root  not pulled yet: odfbuild pull acme/root" in said.out
    assert "+ other" in said.out


def test_validate_accepts_an_external_input_that_nobody_pulled_yet(pair: Pair) -> None:
    pair.reads("acme/root")
    assert "1 dataset defined, all valid" in pair.we("validate").out


def test_a_pinned_external_dataset_is_part_of_the_plan_in_all_forms_and_not_forgotten(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_network(monkeypatch)
    pair.pin()
    pair.reads("acme/root")
    text = pair.we("plan").out
    assert "+ mine" in text
    assert "External datasets:\n  = acme/root  pinned at block #" in text
    assert "3 records" in text and "orphaned" not in text
    document = json.loads(pair.we("plan", "--json").out)
    [pinned] = document["external"]
    assert (pinned["name"], pinned["reference"], pinned["records"]) == ("acme/root", "acme/root", 3)
    assert document["forgotten"] == [] and document["applyable"]
    line = pair.we("plan", "--format", "md").out
    assert "External datasets:" in line and "`=` `acme/root` pinned at block" in line
    assert "External datasets</h2>" in pair.we("plan", "--format", "html").out


def test_a_chain_that_was_pulled_and_that_nobody_names_is_external_too(pair: Pair) -> None:
    pair.pin("prices", "https://data.example.org/root")
    pair.settings("")
    said = pair.we("plan").out
    assert "= prices  pinned at block #" in said
    assert "from https://data.example.org/root" in said
    assert "orphaned" not in said


@pytest.mark.parametrize("reference", ["prices", "acme/root", "ACME/root"])
def test_external_gives_a_name_that_either_reference_finds(pair: Pair, reference: str) -> None:
    pair.settings("  external: {prices: acme/root}\n")
    pair.pin("prices")
    pair.reads(reference)
    plan = json.loads(pair.we("plan", "--json").out)
    assert [each["inputs"] for each in plan["datasets"]] == [["prices"]]
    assert [each["name"] for each in plan["external"]] == ["prices"]


@pytest.mark.parametrize(
    "reference", ["acme/anna/root", "s3://lake/published/root", "../acme/root"]
)
def test_external_takes_references_that_no_definition_may_hold(pair: Pair, reference: str) -> None:
    pair.settings(f"  external: {{prices: {reference}}}\n")
    pair.reads("prices")
    said = pair.we("plan").out
    assert f"! prices  not pulled yet, from {reference}: odfbuild pull prices" in said


def test_blocks_that_a_pull_brought_make_readers_stale_and_a_saved_plan_old(pair: Pair) -> None:
    pair.pin()
    pair.reads("acme/root")
    pair.publish()
    assert pair.we("apply", "-y").code == 0
    assert "No changes." in pair.we("plan").out
    pair.theirs.arrive(2)
    pair.they("apply", "-y")
    assert "No changes." in pair.we("plan", "-o", "plan.json").out
    pair.pin()
    assert "> mine" in (said := pair.we("plan")).out
    assert "because acme/root has 1 new record" in said.out
    moved = json.loads(pair.we("plan", "--json").out)
    [reason] = moved["datasets"][0]["reasons"]
    assert (reason["code"], reason["input"]) == ("input_advanced", "acme/root")


def test_a_saved_plan_is_refused_for_readers_when_an_external_input_moved(pair: Pair) -> None:
    pair.pin()
    pair.reads("acme/root")
    assert pair.we("plan", "-o", "plan.json").code == 0
    pair.theirs.arrive(2)
    pair.they("apply", "-y")
    pair.pin()
    said = pair.we("apply", "-y", "plan.json")
    assert said.code == 5
    assert "the input 'acme/root' of 'mine' moved since the plan was made" in said.err + said.out


def test_the_chain_of_a_reader_has_the_identity_and_the_alias_of_the_specification(
    pair: Pair,
) -> None:
    pair.pin()
    pair.publish()
    pair.reads("acme/root")
    assert pair.we("apply", "-y").code == 0
    workspace = pair.workspace()
    state = workspace.projection("mine")
    external = workspace.projection("acme/root")
    assert state is not None and external is not None
    assert isinstance(state.transform, SetTransform)
    [declared] = state.transform.inputs
    assert (declared.dataset_ref, declared.alias) == (external.dataset_id, "source")


def test_a_dataset_cannot_have_the_name_of_an_external_one(pair: Pair) -> None:
    pair.settings("  external: {mine: acme/root}\n")
    pair.reads("acme/root")
    said = pair.we("plan")
    assert said.code == 1 and "error[E1065]" in said.out


def test_settings_of_sharing_are_checked_all_at_once_with_places(pair: Pair) -> None:
    pair.settings("  external: {a: acne/root, b: prices}\n  publish: [{match: ['*'], to: acm}]\n")
    said = pair.we("plan")
    assert said.code == 1
    assert "odfbuild.yaml:6:14" in said.err and "odfbuild.yaml:6:28" in said.err
    assert said.err.count("did you mean 'acme'?") == 2


def test_a_selection_finds_external_datasets_and_their_readers(pair: Pair) -> None:
    pair.pin()
    pair.reads("acme/root")
    names = [each["name"] for each in json.loads(pair.we("ls", "--json", "-s", "acme/root+").out)]
    assert names == ["acme/root", "mine"]

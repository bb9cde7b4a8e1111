"""Datasets of others in a project: names, plans, and what each command makes of them."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from odfbuild.odf.model import SetTransform
from tests.exchange.repositories.two_projects import Pair
from tests.servers.web import nginx


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


def test_ls_status_graph_and_explain_show_external_datasets_as_such(pair: Pair) -> None:
    pair.settings("  external: {later: acme/later}\n")
    pair.pin()
    pair.reads("acme/root")
    listed = {each["name"]: each["status"] for each in json.loads(pair.we("ls", "--json").out)}
    assert listed == {"acme/root": "external", "later": "not pulled", "mine": "new, stale"}
    status = pair.we("status").out
    assert "1 dataset, 1 external dataset" in status and "not pulled (1):\n  later" in status
    assert pair.we("graph").out == "acme/root (external)\n└─ mine\nlater (external)\n"
    assert "style d0,d1 stroke-dasharray" in pair.we("graph", "--format", "mermaid").out
    data = json.loads(pair.we("graph", "--json").out)
    assert [each["external"] for each in data] == [True, True, False]
    said = pair.we("explain", "acme/root").out
    assert "external: a dataset of others" in said and "3 records of acme/root are pinned" in said
    assert "`odfbuild pull later` brings its chain" in pair.we("explain", "later").out


def test_neither_drift_nor_diff_take_an_external_dataset_for_a_removed_definition(
    pair: Pair,
) -> None:
    pair.pin()
    pair.settings("")
    assert pair.we("drift").out.startswith("No drift.")
    assert "acme/root" not in pair.we("diff").out


@pytest.mark.parametrize(
    "command",
    [
        "reset acme/root -y",
        "watermark set acme/root 2030-01-01T00:00:00Z",
        "ingest acme/root ../theirs/data/1.csv",
        "import acme/root --write",
    ],
)
def test_commands_that_would_change_a_dataset_of_others_are_refused(
    pair: Pair, command: str
) -> None:
    pair.pin()
    head = (pair.ours / "chains/acme/root/refs/head").read_bytes()
    said = pair.we(*command.split())
    assert said.code == 1
    assert "error[E1067]: 'acme/root' is a dataset of others, from acme/root" in said.err
    assert (pair.ours / "chains/acme/root/refs/head").read_bytes() == head


def test_a_reset_to_a_block_pins_an_older_block_of_a_dataset_of_others(pair: Pair) -> None:
    pair.pin()
    before = str(next(iter(pair.workspace().dataset("acme/root").stored("blocks"))))
    assert pair.we("reset", "acme/root", "--to", before, "-y").code == 0
    assert str(pair.workspace().dataset("acme/root").head()) == before


def test_verify_fetches_the_data_of_an_external_dataset_and_tells_where_it_lacks(
    pair: Pair,
) -> None:
    pair.pin()
    pair.settings("")
    failed = pair.we("verify")
    assert failed.code == 3 and "error[E1007]" in failed.out
    assert "Verified 1 dataset: 1 failed" in failed.out
    pair.publish()
    assert "all blocks and objects are intact" in pair.we("verify", "acme/root").out


def test_a_plan_for_some_datasets_names_the_external_ones_that_these_read(pair: Pair) -> None:
    pair.pin()
    pair.reads("acme/root")
    plan = json.loads(pair.we("plan", "--json", "-s", "mine").out)
    assert [each["name"] for each in plan["external"]] == ["acme/root"]


def test_own_data_that_is_missing_comes_from_where_it_was_pushed(pair: Pair) -> None:
    pair.publish()
    theirs = pair.theirs.root
    settings = (theirs / "odfbuild.yaml").read_text() + "  repositories: {acme: {url: ../acme}}\n"
    (theirs / "odfbuild.yaml").write_text(settings)
    (theirs / "chains/root/info/config").write_text(
        "kind: DatasetConfig\nversion: 1\ncontent:\n  pullAliases: []\n  pushAliases: [acme/root]\n"
    )
    shutil.rmtree(theirs / "chains/root/data")
    assert pair.they("drift").out.startswith("No drift.")
    said = pair.they("tail", "root", "--json")
    assert [each["id"] for each in said.data] == [1, 2, 3]


@pytest.mark.parametrize("form", ["did", "acme/did", "acme/root", "ACME/ROOT", "prices"])
def test_selections_and_arguments_take_every_reference_of_the_specification(
    pair: Pair, form: str
) -> None:
    pair.settings("  external: {prices: acme/root}\n")
    pair.pin("prices")
    pair.publish()
    state = pair.workspace().projection("prices")
    assert state is not None
    text = form.replace("did", str(state.dataset_id))
    assert [each["name"] for each in json.loads(pair.we("ls", "--json", "-s", text).out)] == [
        "prices"
    ]
    assert pair.we("tail", text).code == 0
    assert pair.we("explain", text).out.startswith("prices  external")


def test_an_address_selects_what_was_pulled_from_it(pair: Pair) -> None:
    address = "https://data.example.org:8080/root"
    pair.pin("prices", address)
    listed = json.loads(pair.we("ls", "--json", "-s", f"{address}+").out)
    assert [each["name"] for each in listed] == ["prices"]
    assert pair.we("log", address).code == 0


def test_a_damaged_chain_of_others_is_refused_with_its_readers_and_nothing_else(
    pair: Pair,
) -> None:
    pair.pin()
    pair.reads("acme/root")
    head = (pair.ours / "chains/acme/root/refs/head").read_text()
    (pair.ours / "chains/acme/root/blocks" / head).write_bytes(b"damage")
    said = pair.we("plan")
    assert said.code == 3 and "error[E0801]" in said.out and "error[E0308]" in said.out
    assert "not pulled" not in said.out


def test_a_definition_may_name_a_declared_dataset_by_its_did(pair: Pair) -> None:
    state = pair.theirs.workspace().projection("root")
    assert state is not None
    pair.settings(f"  external: {{prices: acme/{state.dataset_id}}}\n")
    pair.reads(str(state.dataset_id))
    assert "odfbuild pull prices" in pair.we("plan").out
    pair.pin("prices")
    assert "+ mine" in pair.we("plan").out


def test_an_unknown_repository_in_a_definition_is_told_with_the_one_that_was_meant(
    pair: Pair,
) -> None:
    pair.reads("acne/root")
    assert "help: did you mean 'acme/root'?" in pair.we("plan").out
    pair.reads("elsewhere/root")
    assert "if 'elsewhere' is a repository, add it to `repositories`" in pair.we("plan").out


def test_data_that_the_repository_lacks_fails_the_step_that_needs_it_and_no_other(
    pair: Pair,
) -> None:
    pair.pin()
    pair.reads("acme/root")
    said = pair.we("apply", "-y")
    assert said.code == 1
    assert "failed     mine" in said.out
    assert str(pair.repository) in said.err or "../acme" in said.err
    assert "help: " in said.err
    assert pair.workspace().projection("mine") is None


def test_git_commits_the_chain_of_an_external_dataset_like_a_lock_file(pair: Pair) -> None:
    pair.pin()
    pair.settings("")
    for command in ("init -q", "config user.email a@example.org", "config user.name a"):
        subprocess.run(["git", *command.split()], cwd=pair.ours, check=True)
    assert pair.we("git", "install").code == 0
    assert "acme/root: 4 blocks, 3 records" in pair.we("git", "commit", "-m", "Pin").out
    tracked = subprocess.run(
        ["git", "ls-files", "chains"], cwd=pair.ours, check=True, capture_output=True, text=True
    ).stdout
    assert "chains/acme/root/refs/head" in tracked and "chains/acme/root/info/config" in tracked


def test_several_readers_at_once_fetch_each_object_once(pair: Pair, tmp_path: Path) -> None:
    pair.publish()
    with nginx(tmp_path / "web") as server:
        shutil.copytree(pair.repository, server.www / "published")
        pair.settings("")
        text = (pair.ours / "odfbuild.yaml").read_text()
        (pair.ours / "odfbuild.yaml").write_text(
            text.replace("url: ../acme", f"url: '{server.url('published')}'")
        )
        pair.pin()
        for number in range(6):
            pair.reads("acme/root", f"mine{number}")
        assert pair.we("apply", "-y", "-j", "6").code == 0
        asked = [line for line in server.requests() if "/published/root/data/" in line]
    assert len(asked) == 1

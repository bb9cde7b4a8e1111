"""`pull` and `push` as people use them: two projects that share nothing but a repository."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.apply.in_process import Program
from tests.apply.tiny import Tiny
from tests.cli.real import ANSI, BINARY
from tests.cli.repository import git, own_configuration
from tests.cli.test_locks import held, let_go_when_awaited
from tests.cli.test_screens import record
from tests.exchange.repositories.chains import create, with_object, workspace
from tests.exchange.repositories.two_projects import Pair

__all__ = ["own_configuration"]


@pytest.fixture
def pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Pair:
    return Pair.in_folder(tmp_path, monkeypatch, capsys)


def statuses(text: str) -> dict[str, str]:
    return {each["name"]: each["status"] for each in json.loads(text)["datasets"]}


def test_what_one_project_publishes_another_one_builds_on(pair: Pair) -> None:
    """Must show 1, over a folder: publish, pull, derive, verify, update, publish back."""
    said = pair.they("push", "--to", str(pair.repository))
    assert said.out.endswith("Push: 2 new, 0 updated, 0 replaced, 0 up-to-date, 0 failed.\n")
    pair.reads("acme/root")
    assert pair.we("plan").code != 0  # the input was not pulled yet
    said = pair.we("pull", "acme/root")
    assert said.out.startswith("  new         acme/root  4 blocks, 3 records, ")
    assert pair.we("apply", "-y").code == 0
    assert pair.we("pull").out.startswith("  up-to-date  acme/root  signed\n")

    pair.theirs.arrive(2)
    pair.they("apply", "-y", "-s", "root")
    pair.they("push", "root", "--to", str(pair.repository))
    said = pair.we("pull", "--json")
    [moved] = json.loads(said.out)["datasets"]
    assert (moved["status"], moved["blocks"], moved["records"]) == ("updated", 1, 1)
    assert "mine" in pair.we("plan").out
    assert pair.we("apply", "-y").code == 0
    assert pair.we("verify", "--integrity").code == 0

    said = pair.we("push", "--to", "acme")
    assert "  new         mine  " in said.out
    assert "root" not in said.out  # what was pulled is not pushed back
    assert (pair.repository / "mine" / "refs" / "head").exists()
    pair.they("pull", str(pair.repository / "mine"))
    assert "mine" in pair.they("ls").out


def test_a_derivative_of_theirs_is_pulled_with_its_input_and_verified_here(pair: Pair) -> None:
    pair.they("push", "--to", str(pair.repository))
    said = pair.we("pull", "acme/derived", "acme/root")
    assert said.out.endswith("Pull: 2 new, 0 updated, 0 replaced, 0 up-to-date, 0 failed.\n")
    assert pair.we("verify", "--integrity").code == 0


def test_a_derivative_travels_without_its_inputs(pair: Pair) -> None:
    """Scenario 50."""
    pair.they("push", "derived", "--to", str(pair.repository))
    assert pair.we("pull", "acme/derived").code == 0
    assert pair.we("verify", "--integrity").code == 0
    assert '"value": 30' in pair.we("tail", "acme/derived", "--json").out.replace("\n", " ")


def test_git_shows_as_text_what_a_pull_brought(pair: Pair) -> None:
    tiny = Tiny(pair.ours)
    pair.they("push", "root", "--to", str(pair.repository))
    git(tiny, "init", "-q", "-b", "main")
    (pair.ours / ".gitignore").write_text("/.odfbuild*\n")
    assert pair.we("git", "install").code == 0
    assert pair.we("pull", "acme/root").code == 0
    git(tiny, "add", "-A")
    git(tiny, "commit", "-q", "-m", "Pin acme/root")
    pair.theirs.arrive(2)
    pair.they("apply", "-y", "-s", "root")
    pair.they("push", "root", "--to", str(pair.repository))
    assert pair.we("pull").code == 0
    changed = git(tiny, "status", "--porcelain", "-uall").split("\n")
    assert not [line for line in changed if "/data/" in line or ".pending" in line]
    git(tiny, "add", "-A")
    shown = git(tiny, "diff", "--cached")
    assert "kind: AddData" in shown
    assert "prevOffset: 2" in shown


def test_every_form_of_a_reference_names_the_dataset(pair: Pair) -> None:
    pair.they("push", "--to", str(pair.repository))
    state = pair.theirs.workspace().projection("root")
    assert state is not None
    did = str(state.dataset_id)
    forms = {
        ("acme/root",): "acme/root",
        (str(pair.repository / "root"),): "root",
        ((pair.repository / "root").as_uri(),): "root",
        ("root", "--from", "acme"): "root",
        ("root", "--from", "../acme"): "root",
        ("acme/root", "--as", "prices"): "prices",
        (did, "--from", "acme"): "root",
        (f"acme/{did}",): "root",
        (f"acme/{did}", "--as", "prices"): "prices",
    }
    for arguments, name in forms.items():
        said = pair.we("pull", *arguments, "--json")
        assert statuses(said.out) == {name: "new"}, said.err
        assert statuses(pair.we("pull", name, "--json").out) == {name: "up-to-date"}
        assert statuses(pair.we("pull", did, "--json").out) == {name: "up-to-date"}
        shutil.rmtree(pair.ours / "chains")
    said = pair.we("pull", did)
    assert (said.code, "error[E1032]" in said.err) == (1, True)


def test_a_selection_pulls_the_external_datasets_in_it(pair: Pair) -> None:
    pair.they("push", "--to", str(pair.repository))
    pair.reads("acme/root")
    pair.we("pull", "acme/root", "acme/derived")
    assert statuses(pair.we("pull", "-s", "+mine", "--json").out) == {"acme/root": "up-to-date"}
    said = pair.we("pull", "--exclude", "acme/root", "--json")
    assert statuses(said.out) == {"acme/derived": "up-to-date"}


def test_a_project_without_external_datasets_has_nothing_to_pull(pair: Pair) -> None:
    said = pair.we("pull")
    assert (said.code, "odfbuild pull REPOSITORY/NAME" in said.err) == (0, True)


def test_all_that_is_wrong_is_told_at_once_and_what_is_right_is_pulled(pair: Pair) -> None:
    pair.they("push", "--to", str(pair.repository))
    said = pair.we("pull", "nobody", "other")
    assert (said.code, said.err.count("error[E1032]")) == (1, 2)
    assert "note: repositories in odfbuild.yaml: acme" in said.err
    pair.we("pull", "acme/derived")
    assert "did you mean 'acme/derived'?" in pair.we("pull", "acne/derived").err
    said = pair.we("pull", "acme/root", "acme/gone", "acme/lost")
    assert said.code == 1
    assert said.err.count("error[E1020]") == 2
    assert said.out.endswith("Pull: 1 new, 0 updated, 0 replaced, 0 up-to-date, 2 failed.\n")


def test_options_for_one_dataset_are_refused_for_several(pair: Pair) -> None:
    for arguments in (
        ("pull", "acme/a", "acme/b", "--as", "c"),
        ("pull", "acme/a", "acme/b", "--to", "f1620"),
        ("push", "--to", "acme", "--as", "c"),
    ):
        said = pair.we(*arguments)
        assert (said.code, "error[E1034]" in said.err) == (64, True)


def test_a_history_is_replaced_only_where_that_is_allowed_by_name(pair: Pair) -> None:
    pair.they("push", "root", "--to", str(pair.repository))
    pair.we("pull", "acme/root")
    head = (pair.ours / "chains" / "acme" / "root" / "refs" / "head").read_text()
    pair.they("reset", "root", "--readers", "-y")
    pair.they("apply", "-y")
    said = Program(pair.theirs.root, pair.monkeypatch, pair.capsys)(
        "push", "root", "--to", str(pair.repository)
    )
    assert (said.code, "error[E1028]" in said.err) == (1, True)
    pair.they("push", "root", "--to", str(pair.repository), "--allow", "reset:root")
    said = pair.we("pull")
    assert (said.code, "error[E1084]" in said.err) == (3, True)  # both heads are signed
    assert "note: the last common block is f1620" in said.err
    assert "note: only here:  3 blocks with 3 records" in said.err
    said = pair.we("pull", "--allow", "reset:elsewhere")
    assert (said.code, "error[E1035]" in said.err) == (64, True)
    assert pair.we("pull", "--allow", "rebuild:x").code == 64
    said = pair.we("pull", "--allow", "reset:acme/root")
    assert "  replaced    acme/root  " in said.out
    assert (pair.ours / "chains" / "acme" / "root" / "refs" / "head").read_text() != head
    assert "No drift" in pair.we("drift").out
    assert pair.we("reset", "acme/root", "--to", head, "-y").code == 0  # and back


def test_a_damaged_chain_is_restored_as_the_error_says(pair: Pair) -> None:
    pair.they("push", "root", "--to", str(pair.repository))
    pair.we("pull", "acme/root")
    chain = pair.ours / "chains" / "acme" / "root"
    block = sorted((chain / "blocks").iterdir())[0]
    before = block.read_bytes()
    block.write_bytes(b"x")
    said = pair.we("verify", "--integrity")
    assert (said.code, "pull it again, if it is published" in said.out.replace("\n", " ")) == (
        3,
        True,
    )
    chain.rename(pair.ours / "damaged")
    assert pair.we("pull", "acme/root").code == 0
    assert block.read_bytes() == before
    assert pair.we("verify", "--integrity").code == 0
    data = next(iter((chain / "data").iterdir()))
    data.unlink()
    assert pair.we("tail", "acme/root").code == 0  # it is fetched again
    assert data.exists()


def test_a_pull_waits_for_a_dataset_that_another_process_works_on(pair: Pair) -> None:
    pair.they("push", "root", "--to", str(pair.repository))
    (pair.ours / ".odfbuild").mkdir()
    with held(pair.ours, "acme/root") as process:
        said = pair.we("pull", "acme/root", "--lock-timeout", "0")
        assert (said.code, "error[E0702]" in said.err) == (9, True)
        let_go_when_awaited(process, pair.monkeypatch)
        said = pair.we("pull", "acme/root")
    assert (said.code, "Waiting up to 600 s for 'acme/root'" in said.err) == (0, True)


def test_a_terminal_shows_how_much_of_a_dataset_has_come(tmp_path: Path) -> None:
    store = create(workspace(tmp_path / "origin"), "a.name.that.is.longer.than.its.column.is")
    with_object(store, 512 << 20)
    (tmp_path / "odfbuild.yaml").write_text("kind: Project\nversion: 1\ncontent: {name: p}\n")
    said = record([BINARY], tmp_path, "pull", "./origin/chains/" + store.name, columns=80)
    assert said.code == 0
    assert re.search(r"a\.name\.that.*…? +\S+ +[\d.]+/536.9 MB", ANSI.sub("", said.text))
    screen = said.screen(80)
    assert screen.broken == []
    assert screen.text.startswith(
        f"  new         {store.name}  2 blocks, 0 records,\n      536.9 MB"
    )


def test_ctrl_c_ends_a_pull_and_the_next_one_goes_on(pair: Pair, tmp_path: Path) -> None:
    store = create(workspace(tmp_path / "origin"), "large")
    with_object(store, 256 << 20)
    process = subprocess.Popen(
        [sys.executable, "-m", "odfbuild", "pull", str(store.path)],
        cwd=pair.ours,
        stderr=subprocess.PIPE,
    )
    staged = pair.ours / "chains" / "large" / "checkpoints"
    while not list(staged.glob(".pending-*")) and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, b"Traceback" in err) == (130, False)
    assert pair.workspace().aliases() == []
    assert pair.we("pull", str(store.path)).code == 0


def test_a_name_never_leads_out_of_the_folder_of_chains(pair: Pair) -> None:
    pair.they("push", "root", "--to", str(pair.repository))
    (pair.repository / "root").rename(pair.repository / "..root")
    for arguments in (
        ("pull", "acme/root", "--as", "../../evil"),
        ("pull", "acme/root", "--as", "/tmp/evil"),
        ("pull", "../acme/..root"),
        ("pull", "acme/../root"),
        ("push", "root", "--to", "acme", "--as", "../evil"),
    ):
        said = pair.we(*arguments)
        assert said.code in (1, 64), arguments
        assert "Traceback" not in said.err
    assert not list(pair.ours.parent.rglob("*evil*"))
    assert not (pair.ours / "chains").exists() or not pair.workspace().aliases()


def test_a_protected_history_is_not_replaced(pair: Pair) -> None:
    pair.they("push", "root", "--to", str(pair.repository))
    pair.settings("  policies: [{match: ['*'], rebuild: refuse}]\n")
    pair.we("pull", "acme/root")
    said = pair.we("pull", "--allow", "reset:acme/root")
    assert (said.code, "error[E0339]" in said.err) == (1, True)


def test_the_spelling_of_earlier_releases_explains_itself(pair: Pair) -> None:
    program = Program(pair.theirs.root, pair.monkeypatch, pair.capsys)
    for file in ("data/1.csv", "-"):
        said = program("push", "root", file)
        assert (said.code, "error[E1036]" in said.err) == (64, True)
        assert f"odfbuild ingest root {file}" in said.err
    said = program("push", "root", "--source", "till")
    assert (said.code, "odfbuild ingest DATASET FILE" in said.err) == (64, True)
    said = program("push", "root")
    assert (said.code, "odfbuild ingest DATASET FILE" in said.err) == (64, True)


def test_where_datasets_are_published_can_be_settled_in_the_project(pair: Pair) -> None:
    config = pair.theirs.root / "odfbuild.yaml"
    config.write_text(
        config.read_text() + "  repositories: {acme: {url: ../acme}}\n"
        "  publish: [{match: [r*], to: acme}]\n"
    )
    assert statuses(pair.they("push", "root", "--json").out) == {"root": "new"}
    said = Program(pair.theirs.root, pair.monkeypatch, pair.capsys)("push")
    assert (said.code, "'derived'" in said.err) == (64, True)


def test_what_is_told_fits_into_80_columns(pair: Pair) -> None:
    pair.monkeypatch.setenv("COLUMNS", "80")
    pair.they("push", "--to", str(pair.repository))
    said = pair.we("pull", "acme/root", "acme/derived")
    assert max(map(len, said.out.splitlines())) <= 80

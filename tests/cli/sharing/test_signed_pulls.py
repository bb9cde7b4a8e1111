"""Signed heads as people meet them: policies, keys of CI, what `verify` says of pulled chains."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.apply.in_process import Program
from tests.exchange.repositories.two_projects import Pair

SECRET = "correct horse battery staple"


@pytest.fixture
def pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Pair:
    return Pair.in_folder(tmp_path, monkeypatch, capsys)


def policy(pair: Pair, signatures: str) -> None:
    (pair.ours / "odfbuild.yaml").write_text(
        "kind: Project\nversion: 1\ncontent:\n  name: ours\n"
        f"  repositories: {{acme: {{url: ../acme, signatures: {signatures}}}}}\n"
    )


def lose_keys(pair: Pair) -> None:
    shutil.rmtree(pair.theirs.root / ".odfbuild-keys")


def test_the_policy_of_a_repository_decides_about_unsigned_heads(pair: Pair) -> None:
    lose_keys(pair)
    said = pair.they("push", "root", "--to", str(pair.repository))
    assert said.out.splitlines()[0].endswith(", unsigned")
    policy(pair, "required")
    for reference in ("acme/root", "../acme/root"):
        said = pair.we("pull", reference)
        assert (said.code, "error[E1082]" in said.err) == (1, True)
        assert "signatures: accepted" in said.err
    policy(pair, "accepted")
    said = pair.we("pull", "acme/root")
    assert (said.code, said.out.splitlines()[0].endswith(", unsigned")) == (0, True)
    assert "  acme/root: unsigned\n" in pair.we("verify", "--integrity").out
    [found] = json.loads(pair.we("pull", "--json").out)["datasets"]
    assert (found["signed_head"], found["unsigned_blocks"]) == (None, 4)


def test_ci_alone_signs_with_keys_of_its_environment(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODFBUILD_KEYS_PASSPHRASE", SECRET)
    pair.they("key", "export", "--out", "../keys.json")
    lose_keys(pair)
    monkeypatch.setenv("ODFBUILD_KEYS", (pair.ours.parent / "keys.json").read_text())
    pair.they("push", "--to", str(pair.repository))
    assert not (pair.theirs.root / ".odfbuild-keys").exists()
    monkeypatch.delenv("ODFBUILD_KEYS")
    policy(pair, "required")
    assert pair.we("pull", "acme/root").out.splitlines()[0].endswith(", signed")


def test_a_key_that_cannot_be_read_stops_only_its_own_dataset(pair: Pair) -> None:
    state = Program(pair.theirs.root, pair.monkeypatch, pair.capsys)
    status = {each["name"]: each for each in state.ok("key", "status", "--json").data}
    Path(status["root"]["private_key"]).write_text("damaged")
    said = state("push", "--to", str(pair.repository))
    assert (said.code, "error[E1088]" in said.err) == (1, True)
    assert "1 new, 0 updated, 0 replaced, 0 up-to-date, 1 failed" in said.out


def test_a_rollback_ends_with_its_own_error_and_exit_code(pair: Pair, tmp_path: Path) -> None:
    pair.they("push", "root", "--to", str(pair.repository))
    shutil.copytree(pair.repository / "root", tmp_path / "old")
    pair.theirs.arrive(2)
    pair.they("apply", "-y", "-s", "root")
    pair.they("push", "root", "--to", str(pair.repository))
    assert pair.we("pull", "acme/root").code == 0
    shutil.rmtree(pair.repository / "root")
    shutil.copytree(tmp_path / "old", pair.repository / "root")
    said = pair.we("pull")
    assert (said.code, "error[E1083]: rollback" in said.err) == (3, True)
    assert json.loads(pair.we("pull", "--json").out)["datasets"][0]["error"]["code"] == "E1083"


def test_a_consumer_whose_inputs_are_not_published_verifies_what_can_be_verified(
    pair: Pair,
) -> None:
    pair.they("push", "--to", str(pair.repository))
    pair.we("pull", "acme/derived")
    said = pair.we("verify")
    assert said.code == 0, said.out
    assert "Verified 1 dataset: all blocks and objects are intact.\n" in said.out
    assert "  acme/derived was not recomputed: input 'source' did:odf:" in said.out
    assert "odfbuild pull acme/did:odf:" in said.out
    found = json.loads(pair.we("verify", "--json").out)
    assert (found["findings"], found["damaged"]) == ([], [])
    assert [(e["dataset"], e["code"]) for e in found["unchecked"]] == [("acme/derived", "E0822")]
    # Who asks for this dataset is told that it cannot be done.
    assert pair.we("verify", "acme/derived").code == 3
    assert pair.we("verify", "acme/derived", "--integrity").code == 0


def test_a_pulled_derivative_is_recomputed_from_inputs_that_are_found_by_identity(
    pair: Pair,
) -> None:
    pair.they("push", "--to", str(pair.repository))
    pair.we("pull", "acme/derived")
    said = pair.we("verify", "-r", "acme/derived")
    assert said.code == 3
    assert "error[E0822]" in said.out
    command = said.out.partition("`odfbuild pull acme/did:odf:")[2].partition("`")[0]
    assert command, said.out
    # What it names brings the input, whatever it is called here.
    assert pair.we("pull", f"acme/did:odf:{command}", "--as", "renamed").code == 0
    said = pair.we("verify", "-r", "acme/derived")
    assert said.code == 0, said.out
    assert "Verified 2 datasets" in said.out
    assert "recomputed 1 step of 1 derivative, all records are identical" in said.out
    assert "  acme/derived: signed with its key up to block #" in said.out
    assert "  renamed: signed with its key up to block #" in said.out
    found = json.loads(pair.we("verify", "-r", "acme/derived", "--json").out)
    assert {(each["dataset"], each["signed"]) for each in found["signatures"]} == {
        ("acme/derived", True),
        ("renamed", True),
    }


def test_data_that_was_not_pulled_comes_when_verify_needs_it(pair: Pair) -> None:
    pair.they("push", "--to", str(pair.repository))
    pair.we("pull", "acme/derived", "acme/root", "--no-data")
    said = pair.we("verify", "-r", "acme/derived")
    assert said.code == 0, said.out
    assert "all records are identical" in said.out

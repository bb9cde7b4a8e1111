"""`odfbuild serve` between two projects that share nothing else, as people use it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.exchange.repositories.serving import ALICE, served
from tests.exchange.repositories.two_projects import Pair

ACCESS = f"""\
kind: Machine
version: 1
content:
  serve:
    access: [{{read: ["*"]}}, {{name: ours, token: {ALICE}, write: ["mine*", "root"]}}]
"""


def test_what_one_project_serves_another_one_builds_on_and_gives_back(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Must show 1, over our own server: pull, derive, verify, update, publish back.

    Its address is http://, and it is found to speak the Smart protocol, too.
    """
    pair = Pair.in_folder(tmp_path, monkeypatch, capsys)
    monkeypatch.setenv("ACME_TOKEN", ALICE)
    with served(pair.theirs.root, access=ACCESS) as server:
        (pair.ours / "odfbuild.yaml").write_text(
            "kind: Project\nversion: 1\ncontent:\n  name: ours\n  repositories:\n"
            f"    acme: {{url: '{server.address}', token: '${{{{ env.ACME_TOKEN }}}}'}}\n"
        )
        listed = json.loads(pair.we("ls", "--remote", "acme", "--json").out)
        assert {each["name"] for each in listed} == {"derived", "root"}

        pair.reads("acme/root")
        said = pair.we("pull", "acme/root")
        assert said.out.startswith("  new         acme/root  4 blocks, 3 records, ")
        assert pair.we("apply", "-y").code == 0
        assert pair.we("pull").out.startswith("  up-to-date  acme/root  signed\n")

        pair.theirs.arrive(2)
        pair.they("apply", "-y", "-s", "root")  # while the server runs
        [moved] = json.loads(pair.we("pull", "--json").out)["datasets"]
        assert (moved["status"], moved["blocks"], moved["records"]) == ("updated", 1, 1)
        assert "mine" in pair.we("plan").out
        assert pair.we("apply", "-y").code == 0
        assert pair.we("verify", "--integrity").code == 0

        assert "  new         mine  " in pair.we("push", "mine", "--to", "acme").out
        assert "mine" in pair.they("ls").out
        mine = pair.workspace().dataset("mine").head()
        assert server.space.dataset("mine").head() == mine
        assert "  up-to-date  mine" in pair.we("push", "mine", "--to", "acme").out

        refused = pair.we("push", "mine", "--to", "acme", "--as", "other")
        assert "E1041" in refused.err
        refused = pair.we("push", "mine", "--to", "acme", "--as", "root")
        assert "error[E1029]" in refused.err, "another dataset never takes its place"
        assert ALICE not in refused.err + server.log()


def test_a_server_that_is_not_there_is_told_with_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = Pair.in_folder(tmp_path, monkeypatch, capsys)
    said = pair.we("pull", "odf+http://127.0.0.1:9/prices")
    assert said.code == 1
    assert "error[E1040]" in said.err
    assert "127.0.0.1:9" in said.err

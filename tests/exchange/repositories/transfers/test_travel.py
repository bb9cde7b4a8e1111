"""Two projects that share nothing but a repository: datasets go there and back.

`theirs` applies and publishes, `ours` pulls, derives, verifies and publishes back. In this process,
on an engine without a JVM; servers are real. What differs from one repository to the next is only
its address.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import QUERY, Tiny
from tests.exchange.repositories.serving import ALICE, served
from tests.servers.objects import BUCKET, s3_endpoint
from tests.servers.web import nginx

PROJECT = """\
kind: Project
version: 1
content:
  name: {name}
  repositories:
    acme: {{url: '{read}'{token}}}
    out: {{url: '{write}'{token}}}
  publish:
    - match: ['{publishes}']
      to: out
"""


@dataclass(frozen=True)
class Place:
    """A repository: where it is written, and where it is read."""

    write: str
    read: str
    token: str = ""


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[Place]:
    access = (
        "kind: Machine\nversion: 1\ncontent:\n  serve:\n    access:\n"
        f"      - name: alice\n        token: {ALICE}\n        read: ['*']\n        write: ['*']\n"
    )
    with served(folder / "hub", access=access) as hub:
        address = f"odf+{hub.address}"
        yield Place(address, address, ", token: '${{ env.TRAVEL_TOKEN }}'")


@contextlib.contextmanager
def _place(kind: str, folder: Path) -> Iterator[Place]:
    if kind == "folder":
        yield Place("../published", "../published")
    elif kind == "s3":
        with s3_endpoint():
            yield Place(f"s3://{BUCKET}/published", f"s3://{BUCKET}/published")
    elif kind == "nginx":
        with nginx(folder / "web") as server:
            yield Place(str(folder / "web/www/published"), server.url("published"))
    else:
        with _served(folder) as place:
            yield place


def _blocks(root: Path, dataset: str) -> set[str]:
    return {each.name for each in (root / "chains" / dataset / "blocks").iterdir()}


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("kind", ["folder", "s3", "nginx", "serve"])
def test_datasets_travel_between_projects_that_share_nothing_but_a_repository(
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    share(PlainEngine(), monkeypatch)
    monkeypatch.setenv("TRAVEL_TOKEN", ALICE)
    theirs, ours = Tiny.fresh(tmp_path / "theirs"), Tiny(tmp_path / "ours")
    (ours.root / "datasets").mkdir(parents=True)
    they = Program(theirs.root, monkeypatch, capsys)
    we = Program(ours.root, monkeypatch, capsys)
    with _place(kind, tmp_path) as place:
        values = {"write": place.write, "read": place.read, "token": place.token}
        for name, project, publishes in (("theirs", theirs, "[rd]*"), ("ours", ours, "mine")):
            text = PROJECT.format(name=name, publishes=publishes, **values)
            (project.root / "odfbuild.yaml").write_text(text)
        ours.derive("mine", QUERY, "acme/derived")

        # They apply and publish.
        published = they.ok("apply", "-y", "--json").data["published"]
        assert [(each["name"], each["status"]) for each in published] == [
            ("root", "new"),
            ("derived", "new"),
        ]

        # We pull, verify what they derived from its roots, derive, and publish back.
        assert we("plan").code == 1  # nothing is here yet
        pulled = we.ok("pull", "acme/root", "acme/derived", "--no-data", "--json").data["datasets"]
        assert [each["status"] for each in pulled] == ["new", "new"]
        for name in ("root", "derived"):
            assert _blocks(ours.root, f"acme/{name}") == _blocks(theirs.root, name)
        assert not list(ours.root.glob("chains/acme/*/data/*"))
        said = we.ok("verify", "-r", "acme/derived").out
        assert "recomputed 1 step of 1 derivative, all records are identical" in said
        _git(ours.root, "init", "-q")
        we.ok("git", "install")
        first = we.ok("apply", "-y", "--json").data
        assert [each["status"] for each in first["datasets"]] == ["committed"]
        assert [(each["name"], each["status"]) for each in first["published"]] == [("mine", "new")]
        assert [each["value"] for each in ours.records("mine")] == [100, 200, 300]
        _git(ours.root, "add", "-A")
        _git(ours.root, "commit", "-qm", "Derive from their dataset")

        # They go on; a pull brings exactly the new blocks.
        before = _blocks(theirs.root, "derived")
        theirs.arrive(2)
        they.ok("apply", "-y")
        new = _blocks(theirs.root, "derived") - before
        assert "No changes." in we.ok("plan").out  # what is pinned counts
        [news] = [
            each
            for each in we.ok("plan", "--refresh", "--json").data["news"]
            if each["name"] == "acme/derived"
        ]
        assert (news["blocks"], news["records"]) == (len(new), 1)
        we.ok("pull")
        assert _blocks(ours.root, "acme/derived") == before | new

        # Git shows them as text, and the plan which dataset is stale and why.
        _git(ours.root, "add", "-AN")
        diff = _git(ours.root, "diff", "--", "chains/acme/derived")
        assert "ExecuteTransform" in diff and "newData:" in diff, diff
        [stale] = [each for each in we.ok("plan", "--json").data["datasets"] if each["actions"]]
        assert (stale["name"], stale["actions"]) == ("mine", ["run"])
        assert [(each["code"], each["input"]) for each in stale["reasons"]] == [
            ("input_advanced", "acme/derived")
        ]
        again = we.ok("apply", "-y", "--json").data
        assert [each["status"] for each in again["published"]] == ["updated"]

        # What came back is what was derived.
        they.ok("pull", "acme/mine")
        assert _blocks(theirs.root, "acme/mine") == _blocks(ours.root, "mine")
        assert [each["value"] for each in theirs.records("acme/mine")] == [100, 200, 300, 400]
        assert json.loads(they.ok("verify", "acme/mine", "--json").out)

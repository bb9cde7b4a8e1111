"""`diff`: definitions of two revisions, and definitions beside their chains."""

from __future__ import annotations

from pathlib import Path

import pytest
from git import Actor, Repo

from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import QUERY, Tiny
from tests.project.write_project import derived_yaml
from tests.report.golden import assert_golden

_TEMPLATE = derived_yaml(
    "per.{{ n }}", "root", "SELECT event_time, id, value * {{ n }} AS v FROM src"
)
_ANN = Actor("Ann", "ann@example.com")


def commit(repo: Repo, message: str) -> str:
    """Commit all files; returns the hash."""
    repo.git.add(all=True)
    return repo.index.commit(message, author=_ANN, committer=_ANN).hexsha


def write(tiny: Tiny, file: str, text: str) -> None:
    """Write a definition."""
    path = tiny.root / "datasets" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def odfbuild(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    """Committed: a project in a subfolder of its repository, never applied."""
    tiny = Tiny.fresh(tmp_path / "repo" / "p")
    for name in ("cosmetic", "gone", "moved", "old.name"):
        tiny.derive(name, QUERY)
    write(tiny, "per.yaml.j2", "matrix:\n  n: [2, 3]\n---\n" + _TEMPLATE)
    repo = Repo.init(tmp_path / "repo", initial_branch="main")
    (tmp_path / "repo" / ".gitignore").write_text(".odfbuild*\nchains/\n")
    commit(repo, "Begin")
    repo.close()
    share(PlainEngine(), monkeypatch)
    return Program(tiny.root, monkeypatch, capsys)


def edit(odfbuild: Program) -> None:
    """One change of each kind."""
    tiny = Tiny(odfbuild.root)
    tiny.derive("derived", QUERY.replace("10", "20"))
    tiny.derive("cosmetic", QUERY.replace("SELECT ", "SELECT   "))
    tiny.derive("new.name", QUERY)
    folder = odfbuild.root / "datasets"
    (folder / "gone.yaml").unlink()
    (folder / "old.name.yaml").unlink()
    (folder / "moved.yaml").rename(folder / "elsewhere.yaml")
    template = _TEMPLATE.replace("AS v", "AS amount")
    write(tiny, "per.yaml.j2", "matrix:\n  n: [2, 3, 4]\n---\n" + template)
    config = odfbuild.root / "odfbuild.yaml"
    config.write_text(config.read_text() + "  moved:\n    old.name: new.name\n")


def test_a_working_tree_beside_a_revision_reads_like_this(odfbuild: Program) -> None:
    assert odfbuild.ok("diff", "HEAD").out == "No differences.\n"
    edit(odfbuild)
    assert_golden("diff-head.txt", odfbuild.ok("diff", "HEAD").out.rstrip())


def test_only_files_that_differ_are_read(odfbuild: Program) -> None:
    """A definition that is wrong at both revisions is none of the comparison's business."""
    write(Tiny(odfbuild.root), "wrong.yaml", "kind: Nothing\n")
    repo = Repo(odfbuild.root.parent)
    first = commit(repo, "Wrong")
    Tiny(odfbuild.root).derive("derived", QUERY.replace("10", "20"))
    second = commit(repo, "Twenty")
    repo.close()
    said = odfbuild.ok("diff", f"{first}..{second}", "--json").data
    assert [(d["name"], d["change"]) for d in said["datasets"]] == [("derived", "changed")]
    (event,) = said["datasets"][0]["events"]
    assert event["source"]["file"] == "datasets/derived.yaml"
    assert event["source"]["line"] == 15
    refused = odfbuild("diff", f"{first}~1..{first}")
    assert refused.code == 1
    assert "error[E0342]: the definitions at the revision" in refused.err


def test_definitions_beside_chains_are_what_apply_would_append(odfbuild: Program) -> None:
    assert "Diff: 8 added, 0 changed, 0 renamed, 0 removed." in odfbuild.ok("diff").out
    odfbuild.apply()
    assert odfbuild.ok("diff").out == "No differences.\n"
    edit(odfbuild)
    said = odfbuild.ok("diff", "--json").data
    assert {d["name"]: d["change"] for d in said["datasets"]} == {
        "cosmetic": "cosmetic",
        "derived": "changed",
        "new.name": "renamed",
        "per.2": "changed",
        "per.3": "changed",
        "per.4": "added",
        "gone": "removed",
    }


@pytest.mark.parametrize(
    ("revision", "code"), [("nowhere", "E0340"), ("HEAD~9", "E0340"), ("HEAD..nowhere", "E0340")]
)
def test_an_unknown_revision_is_refused(odfbuild: Program, revision: str, code: str) -> None:
    said = odfbuild("diff", revision)
    assert said.code == 1
    assert f"error[{code}]: Git knows no revision" in said.err


def test_without_a_repository_there_are_no_revisions(odfbuild: Program, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    odfbuild.root.rename(elsewhere)
    said = Program(elsewhere, odfbuild.monkeypatch, odfbuild.capsys)("diff", "HEAD")
    assert said.code == 1
    assert "error[E0341]" in said.err


def test_what_changed_since_a_revision_can_be_selected(odfbuild: Program) -> None:
    Tiny(odfbuild.root).derive("derived", QUERY.replace("10", "20"))
    Tiny(odfbuild.root).derive("further", QUERY, source="derived")
    said = odfbuild("plan", "-s", "+git:HEAD", "--json")
    assert [d["name"] for d in said.data["datasets"]] == ["root", "derived", "further"]

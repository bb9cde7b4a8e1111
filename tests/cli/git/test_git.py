"""Chains and Git: blocks as text in `git diff`, notes on commits, blocks traced to commits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.apply.in_process import Program, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import QUERY, Tiny
from tests.cli.repository import WHO, commit, git, own_configuration, sign, tiny

__all__ = ["own_configuration", "tiny"]


def blamed(odfbuild: Program, dataset: str) -> list[tuple[int, str | None]]:
    """Number of each block, and the subject of its commit."""
    found = odfbuild.ok("blame", dataset, "--json").data
    return [(b["sequenceNumber"], b["commit"] and b["commit"]["subject"]) for b in found]


def test_git_shows_new_blocks_as_text(tiny: Tiny, odfbuild: Program) -> None:
    assert "blocks are shown by" in odfbuild.ok("git", "install").out
    odfbuild.apply()
    commit(tiny, "Add datasets")
    tiny.derive("derived", QUERY.replace("10", "20"))
    odfbuild.apply()
    git(tiny, "add", "-A")
    shown = git(tiny, "diff", "--cached", "--", "chains")
    assert "+    kind: SetTransform" in shown
    assert "value * 20 AS value" in shown
    assert "Binary files" not in shown.replace("data/f1620", "")


def test_installing_again_changes_nothing(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.ok("git", "install")
    files = [tiny.root / ".gitattributes", tiny.root.parent / ".git" / "config"]
    before = [file.read_bytes() for file in files]
    assert odfbuild.ok("git", "install").out == "Git is configured already.\n"
    assert [file.read_bytes() for file in files] == before


def test_attributes_that_are_there_stay(tiny: Tiny, odfbuild: Program) -> None:
    (tiny.root / ".gitattributes").write_text("*.csv text")
    odfbuild.ok("git", "install")
    text = (tiny.root / ".gitattributes").read_text()
    assert text.splitlines() == [
        "*.csv text",
        "/chains/**/blocks/* diff=odfbuild",
        "/chains/**/refs/* -merge",
        "/chains/**/info/branches/* -merge",
        "/chains/**/info/statements merge=union",
    ]


def committed(tiny: Tiny, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`git commit`, which the hook may refuse."""
    command = ["git", *WHO, "commit", "-q", "-m", "Change", *arguments]
    return subprocess.run(command, cwd=tiny.root, capture_output=True, text=True, check=False)


def test_a_head_is_not_committed_without_its_blocks(tiny: Tiny, odfbuild: Program) -> None:
    assert ".git/hooks/pre-commit: it rejects heads" in odfbuild.ok("git", "install").out
    odfbuild.apply()
    git(tiny, "add", "-A")
    assert committed(tiny).returncode == 0
    tiny.arrive(2)
    odfbuild.apply()
    before = git(tiny, "rev-parse", "HEAD")
    said = committed(tiny, "-a")
    assert said.returncode == 1
    assert (
        "error[E0382]: heads are staged without their new blocks: 'derived', 'root'" in said.stderr
    )
    assert "note: derived: 1 block" in said.stderr
    assert git(tiny, "rev-parse", "HEAD") == before
    # What the help says.
    assert "help: `git add :/project/chains`, and commit again" in said.stderr
    git(tiny, "add", ":/project/chains")
    assert odfbuild.ok("git", "check").out == "All staged heads have their blocks.\n"
    assert committed(tiny, "-a").returncode == 0


def test_one_of_two_new_blocks_is_not_enough(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.ok("git", "install")
    odfbuild.apply()
    head = (tiny.root / "chains" / "root" / "refs" / "head").read_text()
    git(tiny, "add", "chains/root/refs/head", f"chains/root/blocks/{head}")
    said = odfbuild("git", "check")
    assert (said.code, "note: root: 3 blocks" in said.err) == (1, True)


def test_commits_without_heads_do_not_ask_odfbuild(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.ok("git", "install")
    hook = tiny.root.parent / ".git" / "hooks" / "pre-commit"
    program = Path(sys.executable).with_name("odfbuild")
    assert str(program) in hook.read_text()
    hook.write_text(hook.read_text().replace(str(program), "/nowhere/odfbuild"))
    git(tiny, "add", "datasets")
    assert committed(tiny).returncode == 0
    odfbuild.apply()
    git(tiny, "add", "-A")
    assert "/nowhere/odfbuild" in committed(tiny).stderr
    # Installing again, in the environment that there is now, repairs it.
    assert "pre-commit" in odfbuild.ok("git", "install").out
    assert committed(tiny).returncode == 0


def test_hooks_of_others_are_left_alone(tiny: Tiny, odfbuild: Program) -> None:
    hook = tiny.root.parent / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\nexit 0\n")
    said = odfbuild.ok("git", "install").out
    assert "pre-commit was not installed by odfbuild and was not changed; make it run `" in said
    assert hook.read_text() == "#!/bin/sh\nexit 0\n"
    # Where it asks by itself, or pre-commit does, nothing is said.
    hook.write_text("#!/bin/sh\nodfbuild -C project git check\n")
    assert odfbuild.ok("git", "install").out == "Git is configured already.\n"
    hook.write_text("#!/bin/sh\nexec pre-commit\n")
    (tiny.root.parent / ".pre-commit-config.yaml").write_text("hooks: [{id: odfbuild-chains}]\n")
    assert odfbuild.ok("git", "install").out == "Git is configured already.\n"


def test_histories_that_parted_are_a_conflict_for_a_person(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.ok("git", "install")
    odfbuild.apply()
    commit(tiny, "Add datasets")
    git(tiny, "switch", "-q", "-c", "other")
    tiny.derive("derived", QUERY.replace("10", "20"))
    odfbuild.apply()
    commit(tiny, "Double it")
    git(tiny, "switch", "-q", "main")
    tiny.derive("derived", QUERY.replace("10", "30"))
    odfbuild.apply()
    commit(tiny, "Triple it")
    with pytest.raises(AssertionError):
        git(tiny, "merge", "other")
    head = tiny.root / "chains" / "derived" / "refs" / "head"
    assert "<<<<" not in head.read_text()
    assert "chains/derived/refs/head" in git(tiny, "diff", "--name-only", "--diff-filter=U")


def test_blocks_belong_to_the_commits_that_brought_their_files(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    assert {subject for _, subject in blamed(odfbuild, "derived")} == {None}
    assert "not committed" in odfbuild.ok("blame", "derived").out
    commit(tiny, "Add datasets (#1)")
    tiny.derive("derived", QUERY.replace("10", "20"))
    odfbuild.apply()
    commit(tiny, "Double it (#2)")
    found = blamed(odfbuild, "derived")
    assert found == [(4, "Double it (#2)"), *((n, "Add datasets (#1)") for n in (3, 2, 1, 0))]
    assert (
        odfbuild.ok("blame", "derived", "-n", "1")
        .out.splitlines()[1]
        .endswith(" Ann     Double it (#2)")
    )


def test_apply_notes_heads_on_the_commit_that_it_worked_for(tiny: Tiny, odfbuild: Program) -> None:
    (tiny.root / ".gitignore").write_text("/chains/\n")  # the chains are kept elsewhere
    sign(tiny)
    odfbuild.ok("git", "install")
    first = commit(tiny, "Add datasets")
    odfbuild.apply()
    heads = {name: str(p.head) for name, p in tiny.workspace().projections().items()}
    noted = git(tiny, "notes", "--ref=odfbuild", "show", first).split("\n")
    assert noted[:2] == [f"{heads[name]} {name} tiny" for name in ("derived", "root")]
    assert "Notes (odfbuild)" in git(tiny, "log", "-1")
    tiny.derive("derived", QUERY.replace("10", "20"))
    second = commit(tiny, "Double it")
    odfbuild.apply()
    # What did not move is not noted again.
    assert " root " not in git(tiny, "notes", "--ref=odfbuild", "show", second)
    assert blamed(odfbuild, "derived")[0] == (4, "Double it")
    assert {subject for _, subject in blamed(odfbuild, "root")} == {"Add datasets"}
    tiny.arrive(2)
    commit(tiny, "Nothing noted yet")
    assert odfbuild.ok("git", "anchor").out.startswith("Noted the heads of 2 datasets on ")
    assert {subject for _, subject in blamed(odfbuild, "root")} == {"Add datasets"}


def test_blocks_older_than_the_first_note_belong_to_the_commit_of_their_file(
    tiny: Tiny, odfbuild: Program
) -> None:
    sign(tiny)
    odfbuild.apply()
    commit(tiny, "Add datasets")
    odfbuild.ok("git", "install")
    tiny.derive("derived", QUERY.replace("10", "20"))
    commit(tiny, "Double it")
    odfbuild.apply()
    assert blamed(odfbuild, "derived")[:2] == [(4, "Double it"), (3, "Add datasets")]


def test_a_run_is_good_although_git_takes_no_note(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.ok("git", "install")
    commit(tiny, "Add datasets")
    # As if another process were writing notes, and went on for ever.
    notes = tiny.root.parent / ".git" / "refs" / "notes"
    notes.mkdir(exist_ok=True)
    (notes / "odfbuild.lock").touch()
    said = odfbuild.apply()
    assert "The heads were not noted on the commit: " in said.err
    refused = odfbuild("git", "anchor")
    assert refused.code == 1
    assert "error[E0343]: the heads were not noted: " in refused.err


def test_without_a_repository_nothing_is_asked_of_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    share(PlainEngine(), monkeypatch)
    alone = Tiny.fresh(tmp_path / "alone")
    odfbuild = Program(alone.root, monkeypatch, capsys)
    assert "noted" not in odfbuild.apply().err
    for arguments in (("git", "install"), ("git", "anchor"), ("blame", "root")):
        said = odfbuild(*arguments)
        assert (said.code, "error[E0341]" in said.err) == (1, True)

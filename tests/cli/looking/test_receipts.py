"""`explain` and `status` with their evidence: blocks, commits, checks and runs."""

from __future__ import annotations

import pytest

from odfbuild.cli.main import run
from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny
from tests.cli.repository import commit, git, own_configuration, sign, tiny
from tests.cli.test_locks import held

__all__ = ["own_configuration", "tiny"]

CHECKS = "  checks:\n    - match: [derived]\n      rowCount: {max: 3}\n"


def test_a_changed_definition_names_commit_and_author_of_its_line(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    commit(tiny, "Add datasets")
    tiny.derive("derived", QUERY.replace("10", "20"))
    assert "the transformation changed" in odfbuild.ok("explain", "derived").out
    assert "commit" not in odfbuild.ok("explain", "derived").out  # not committed yet
    made = commit(tiny, "Double it (#7)")
    said = odfbuild.ok("explain", "derived").out
    assert f', datasets/derived.yaml:15:11, commit {made[:10]} "Double it (#7)" (Ann)' in said
    (cause,) = odfbuild.ok("explain", "derived", "--json").data["causes"]
    assert (cause["commit"]["hash"], cause["commit"]["author"]) == (made, "Ann")


def test_an_advanced_input_names_numbers_of_blocks_and_the_commit_of_the_last(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    tiny.arrive(2)
    odfbuild.ok("apply", "-y", "-s", "root")
    made = commit(tiny, "More records")
    said = odfbuild.ok("explain", "derived").out
    assert "└─ root has 1 new record, offsets 3 to 3, block #3 " in said
    assert " → #4 " in said
    assert f', commit {made[:10]} "More records" (Ann)' in said
    (cause,) = odfbuild.ok("explain", "derived", "--json").data["causes"]
    assert (cause["from"]["sequence_number"], cause["to"]["sequence_number"]) == (3, 4)


def test_checks_that_were_kept_and_the_last_failure_are_told(tiny: Tiny, odfbuild: Program) -> None:
    config = tiny.root / "odfbuild.yaml"
    config.write_text(config.read_text() + CHECKS)
    odfbuild.apply()
    assert "  its checks: 1 was kept in run 2" in odfbuild.ok("explain", "derived").out
    config.write_text(config.read_text().replace("max: 3", "max: 0"))
    tiny.arrive(2)
    assert odfbuild("apply", "-y").code == 4
    said = odfbuild.ok("explain", "derived").out
    assert "Last time: failed [E0540] in run 2" in said
    assert "its checks: " not in said


def test_status_groups_what_is_to_be_done(tiny: Tiny, odfbuild: Program) -> None:
    assert odfbuild.ok("status").out.splitlines() == [
        "Project tiny, 2 datasets",
        "",
        "new (2):",
        "  derived",
        "  root",
    ]
    odfbuild.apply()
    commit(tiny, "Add datasets")
    assert odfbuild.ok("status").out.endswith("\n\nAll datasets are up to date.\n")
    tiny.derive("second", QUERY)
    tiny.derive("derived", QUERY.replace("10", "20"))
    tiny.arrive(2)
    data = odfbuild.ok("status", "--json").data
    assert data["groups"] == {"new": ["second"], "changed": ["derived"], "stale": ["root"]}
    assert data["git"]["dirty"] is True
    assert odfbuild.ok("status", "root", "--json").data["groups"] == {"stale": ["root"]}


def test_status_names_what_did_not_complete_and_what_is_locked(
    tiny: Tiny, odfbuild: Program
) -> None:
    (tiny.root / "data" / "1.csv").write_text("no,such,columns\n")
    assert odfbuild("apply", "-y").code == 1
    lines = odfbuild.ok("status").out.splitlines()
    at = lines.index("not completed last time (2):")
    assert lines[at + 1].startswith("  derived: skipped in run ")
    assert lines[at + 2].startswith("  root: failed [E0")
    with held(tiny.root, "root") as process:
        assert f"  root by process {process.pid}" in odfbuild.ok("status").out.splitlines()


def test_status_names_heads_that_a_merge_left_to_be_chosen(tiny: Tiny, odfbuild: Program) -> None:
    """Meanwhile plans go by one of the two sides, which looks as if nothing were to be done."""
    sign(tiny)
    odfbuild.ok("git", "install")
    odfbuild.apply()
    commit(tiny, "Add datasets")
    tiny.arrive(2)
    for branch in ("ours", "theirs"):
        git(tiny, "switch", "-q", "-c", branch, "main")
        odfbuild.apply()
        git(tiny, "add", "chains")
        git(tiny, "commit", "-q", "-m", branch)
    assert "in conflict" not in odfbuild.ok("status").out
    with pytest.raises(AssertionError):  # Git could not merge them
        git(tiny, "merge", "ours")
    assert odfbuild.ok("status").out.endswith(
        "\n\nin conflict in Git (2):\n  derived\n  root\n"
        "  help: choose all of one side, as in `git checkout --theirs chains`, "
        "then `odfbuild apply`, `git add --all` and `git commit`\n"
    )
    assert odfbuild.ok("status", "--json").data["in_conflict"] == ["derived", "root"]


def test_status_of_many_datasets_stays_short(tiny: Tiny, odfbuild: Program) -> None:
    for number in range(12):
        tiny.derive(f"d{number:02}", QUERY)
    assert "  … and 4 more; --full names all" in odfbuild.ok("status").out
    assert "  root" in odfbuild.ok("status", "--full").out.splitlines()


def test_status_outside_of_a_project_is_an_error() -> None:
    assert run(["-C", "/", "status"]) == 1

"""Kinds of drift, told apart by evidence: definitions, histories, bytes, sources."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from odfbuild.odf.model import SetInfo
from odfbuild.odf.timestamp import Timestamp
from odfbuild.project.model import Config
from odfbuild.store.workspace import Workspace
from odfbuild.survey.known_heads import KnownHead, noted_heads
from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny
from tests.cli.repository import commit, git, own_configuration, sign, tiny
from tests.report.golden import assert_golden

__all__ = ["own_configuration", "tiny"]

INFO = "    - kind: SetInfo\n      description: {}\n"


def drift(odfbuild: Program, *arguments: str) -> list[tuple[str, str, str]]:
    """Dataset, kind and cause of each drift."""
    found = odfbuild.ok("drift", "--json", *arguments).data["drift"]
    return [(each["dataset"], each["kind"], each["cause"]) for each in found]


def describe(tiny: Tiny, text: str) -> None:
    """Let the definition of `root` say what the dataset is."""
    file = tiny.root / "datasets" / "root.yaml"
    file.write_text(file.read_text().partition("    - kind: SetInfo")[0] + INFO.format(text))


def append_elsewhere(tiny: Tiny, text: str) -> str:
    """Describe `root` in its chain, as another tool would; returns the head."""
    store = tiny.workspace().dataset("root")
    return str(store.append(store.head(), [SetInfo(description=text)], Timestamp.now()))


def move_head(tiny: Tiny, name: str, head: str) -> None:
    """Let a chain end elsewhere, as a hand would."""
    (tiny.root / "chains" / name / "refs" / "head").write_text(head)


def heads(tiny: Tiny, name: str) -> list[str]:
    """Hashes of the blocks of a chain, newest first."""
    store = tiny.workspace().dataset(name)
    head = store.head()
    assert head is not None
    return [str(hash) for hash, _ in store.walk(head)]


def anchored(tiny: Tiny, odfbuild: Program) -> None:
    """A described project whose chains lie outside of Git, applied at a commit that is noted."""
    (tiny.root / ".gitignore").write_text("/chains/\n/.odfbuild*\n")
    sign(tiny)
    odfbuild.ok("git", "install")
    describe(tiny, "Three records")
    commit(tiny, "Add datasets")
    odfbuild.apply()


def test_what_a_run_left_is_no_drift(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    said = odfbuild("drift", "--detailed-exitcode")
    assert (said.code, said.out) == (
        0,
        "No drift. Looked at 2 datasets, objects by presence and size; --deep hashes them.\n",
    )
    assert "objects by their hashes" in odfbuild.ok("drift", "--deep").out


def test_drift_is_2_only_with_detailed_exitcode(tiny: Tiny, odfbuild: Program) -> None:
    assert odfbuild("drift").code == 0
    assert odfbuild("drift", "--detailed-exitcode").code == 2


# --- Definitions ---


def test_a_definition_that_was_never_applied(tiny: Tiny, odfbuild: Program) -> None:
    never = ("definition", "never_applied")
    assert drift(odfbuild) == [("derived", *never), ("root", *never)]
    assert drift(odfbuild, "-s", "root") == [("root", *never)]
    assert drift(odfbuild, "--exclude", "root") == [("derived", *never)]


def test_a_chain_without_a_definition(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    (tiny.root / "datasets" / "derived.yaml").unlink()
    assert drift(odfbuild) == [("derived", "definition", "not_defined")]
    assert drift(odfbuild, "DERIVED") == [("derived", "definition", "not_defined")]


def test_an_edited_definition_was_not_applied(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    tiny.derive("derived", QUERY.replace("10", "20"))
    said = odfbuild.ok("drift").out
    assert "drift of definition (not_applied): its definition changed, and SetTransform" in said
    assert "--> datasets/derived.yaml:15:11" in said
    # Formatting is no drift.
    tiny.derive("derived", QUERY.replace(" FROM", "   FROM"))
    assert drift(odfbuild) == []


def test_a_chain_that_another_hand_changed(tiny: Tiny, odfbuild: Program) -> None:
    describe(tiny, "Three records")
    odfbuild.apply()
    append_elsewhere(tiny, "A better text")
    assert drift(odfbuild) == [("root", "definition", "changed_elsewhere")]
    said = odfbuild.ok("drift").out
    assert "SetInfo in block #" in said and "not appended from its" in said
    # What belongs to nobody's definition is nobody's drift.
    file = tiny.root / "datasets" / "root.yaml"
    file.write_text(file.read_text().partition("    - kind: SetInfo")[0])
    assert drift(odfbuild) == []


def test_commits_tell_an_edit_from_another_hand_where_no_run_is_logged(
    tiny: Tiny, odfbuild: Program
) -> None:
    describe(tiny, "Three records")
    odfbuild.apply()
    (tiny.root / ".gitignore").write_text("/.odfbuild*\n")
    commit(tiny, "Add datasets")
    forget_runs(tiny)
    describe(tiny, "Some records")
    assert drift(odfbuild) == [("root", "definition", "not_applied")]
    commit(tiny, "Say it better")
    assert "its definition changed since commit " in odfbuild.ok("drift").out
    append_elsewhere(tiny, "By hand")
    commit(tiny, "Somebody commits the chain")
    assert drift(odfbuild) == [("root", "definition", "changed_elsewhere")]


def test_without_any_evidence_nobody_is_blamed(tiny: Tiny, odfbuild: Program) -> None:
    describe(tiny, "Three records")
    odfbuild.apply()
    forget_runs(tiny)
    describe(tiny, "Some records")
    assert drift(odfbuild) == [("root", "definition", "differs")]


# --- Histories ---


def test_a_head_that_was_moved_back(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    first = heads(tiny, "root")
    move_head(tiny, "root", first[1])
    assert drift(odfbuild, "root") == [
        ("root", "history", "moved_back"),
        ("root", "history", "read_elsewhere"),
    ]
    found = odfbuild.ok("drift", "--json", "root").data["drift"][0]
    assert found["help"].startswith(f"`odfbuild reset root --to {first[0]}` restores it")
    odfbuild.ok("reset", "root", "--to", first[0], "-y")
    assert drift(odfbuild) == []


def test_a_head_that_was_moved_aside(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    first = heads(tiny, "derived")
    move_head(tiny, "derived", first[1])
    store = tiny.workspace().dataset("derived")
    store.append(store.head(), [SetInfo(description="Another life")], Timestamp.now())
    assert drift(odfbuild) == [("derived", "history", "moved_aside")]


def test_a_reset_by_odfbuild_is_no_drift(tiny: Tiny, odfbuild: Program) -> None:
    anchored(tiny, odfbuild)
    odfbuild.ok("reset", "derived", "-y")
    assert drift(odfbuild) == []
    odfbuild.apply()
    forget_runs(tiny)
    odfbuild.ok("reset", "derived", "-y")
    assert drift(odfbuild) == []


def test_a_chain_that_is_gone(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    chain = tiny.root / "chains" / "derived"
    chain.rename(tiny.root / "elsewhere")
    assert drift(odfbuild) == [
        ("derived", "definition", "never_applied"),
        ("derived", "history", "gone"),
    ]


def test_heads_in_git_are_known_where_no_run_is_logged(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    (tiny.root / ".gitignore").write_text("/.odfbuild*\n")
    commit(tiny, "Add datasets")
    forget_runs(tiny)
    assert drift(odfbuild) == []
    move_head(tiny, "derived", heads(tiny, "derived")[1])
    assert drift(odfbuild) == [("derived", "history", "moved_back")]
    assert "where it lies in Git, left it at " in odfbuild.ok("drift").out


def test_environments_have_notes_of_their_own(tiny: Tiny, odfbuild: Program) -> None:
    anchored(tiny, odfbuild)
    text = (tiny.root / "odfbuild.yaml").read_text()
    (tiny.root / "odfbuild.yaml").write_text(text + "  environments:\n    prod: {}\n")
    odfbuild.ok("apply", "-y", "-e", "prod")
    assert drift(odfbuild) == []
    assert drift(odfbuild, "-e", "prod") == []


# --- Bytes ---


def data_file(tiny: Tiny, name: str) -> Path:
    """The only data file of a dataset."""
    (found,) = (tiny.root / "chains" / name / "data").iterdir()
    return found


def test_bytes_are_missing_cut_or_others(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    file = data_file(tiny, "root")
    whole = file.read_bytes()
    file.chmod(0o644)
    file.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    assert drift(odfbuild) == []
    assert drift(odfbuild, "--deep") == [("root", "bytes", "hash")]
    file.write_bytes(whole[:-1])
    assert drift(odfbuild) == [("root", "bytes", "size")]
    file.unlink()
    assert drift(odfbuild, "-s", "root") == [("root", "bytes", "missing")]


def test_a_file_that_came_too_late_is_never_read(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    tiny.arrive(2)
    odfbuild.apply()
    assert drift(odfbuild) == []
    (tiny.root / "data" / "0.csv").write_text("no matter what")
    assert drift(odfbuild) == [("root", "source", "passed_over")]
    told = (
        "data/0.csv arrived after 2.csv was read, and is never read\n"
        "      --> datasets/root.yaml\n"
        "      help: give it a name that comes after '2.csv', and the next apply reads it\n"
    )
    assert told in odfbuild.ok("drift").out
    for _ in range(2):  # also when the plan is remembered
        assert sources_in_plan(odfbuild) == [("root", "passed_over")]
    said = odfbuild.ok("apply").out
    assert told in said
    assert "No changes." in said
    (tiny.root / "data" / "00.csv").write_text("")
    assert "data/0.csv and 1 more arrived after 2.csv was read" in odfbuild.ok("drift").out


def test_a_file_that_another_machine_read_did_not_come_too_late(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    shutil.rmtree(tiny.root / ".odfbuild" / "files-read")
    tiny.arrive(2)
    odfbuild.apply()
    assert sources_in_plan(odfbuild) == []


def sources_in_plan(odfbuild: Program) -> list[tuple[str, str]]:
    return [(each["dataset"], each["cause"]) for each in planned(odfbuild)]


def test_a_file_that_was_edited_after_it_was_read_is_told(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    tiny.arrive(2)
    odfbuild.apply()
    file, other = (tiny.root / "data" / f"{number}.csv" for number in (1, 2))
    read = file.read_bytes()
    file.write_bytes(read)  # the time of modification alone says nothing
    assert (sources_in_plan(odfbuild), drift(odfbuild)) == ([], [])

    for edited in (read + b"9,2024-01-01T00:00:00Z,9\n", read[:-2] + b"8\n"):
        file.write_bytes(edited)
        for _ in range(2):  # also when the plan is remembered
            assert sources_in_plan(odfbuild) == [("root", "edited")]
    said = odfbuild.ok("plan").out
    assert "No changes." in said
    told = "data/1.csv was changed after being read, and is not read again"
    help = "put new records into a file whose name comes after '2.csv', or restore the file as "
    "it was read"
    assert f"drift of source (edited): {told}\n" in said
    assert help in said
    assert f"`root` drift of source (edited): {told}\n" in odfbuild.ok("plan", "--md").out
    assert sources_in_plan(odfbuild) == [("root", "edited")]
    assert odfbuild("plan", "-s", "root", "--json").data["drift"][0]["message"] == told
    assert drift(odfbuild) == [("root", "source", "edited")]
    assert help in odfbuild.ok("drift").out
    other.write_bytes(b"")
    assert (
        "data/1.csv and 1 more were changed after being read, and are not"
        in odfbuild.ok("plan").out
    )
    other.unlink()  # what is not there is read by nobody
    file.write_bytes(read)
    assert (sources_in_plan(odfbuild), drift(odfbuild)) == ([], [])


def test_without_marks_as_in_a_fresh_clone_no_file_is_suspected(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    tiny.arrive(2)
    odfbuild.apply()
    shutil.rmtree(tiny.root / ".odfbuild" / "files-read")
    os.utime(tiny.root / "data" / "1.csv", (0, 0))
    (tiny.root / "data" / "2.csv").touch()  # Git sets times anew with each checkout
    assert (sources_in_plan(odfbuild), drift(odfbuild)) == ([], [])


@pytest.mark.parametrize("arguments", [(), ("root",), ("--deep",)])
def test_a_damaged_chain_is_drift_of_bytes_and_stops_nothing(
    tiny: Tiny, odfbuild: Program, arguments: tuple[str, ...]
) -> None:
    odfbuild.apply()
    forget_runs(tiny)
    block = tiny.root / "chains" / "root" / "blocks" / heads(tiny, "root")[1]
    block.unlink()
    assert ("root", "bytes", "missing") in drift(odfbuild, *arguments)


# --- In a plan ---


def planned(odfbuild: Program) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = odfbuild("plan", "--json").data["drift"]
    return found


def test_a_plan_tells_a_rewritten_history_by_the_notes_in_git(
    tiny: Tiny, odfbuild: Program
) -> None:
    anchored(tiny, odfbuild)
    assert planned(odfbuild) == []
    move_head(tiny, "derived", heads(tiny, "derived")[1])
    forget_runs(tiny)  # a plan does not depend on what can be deleted
    (found,) = planned(odfbuild)
    assert (found["dataset"], found["cause"]) == ("derived", "moved_back")
    assert "  ! derived  drift of history (moved_back): its head moved back" in odfbuild("plan").out
    assert "drift of history" in odfbuild("plan", "--format", "html").out
    assert "drift of history" in odfbuild("plan", "--md").out
    git(tiny, "pack-refs", "--all")
    assert len(planned(odfbuild)) == 1
    odfbuild.ok("git", "anchor")
    assert planned(odfbuild) == []


def test_git_is_asked_again_when_anything_moved(
    tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    anchored(tiny, odfbuild)
    asked: list[object] = []

    def noted(config: Config) -> dict[str, KnownHead]:
        asked.append(config)
        return noted_heads(config)

    monkeypatch.setattr("odfbuild.survey.chain_drift.noted_heads", noted)
    for times in (1, 1):
        assert planned(odfbuild) == []
        assert len(asked) == times
    git(tiny, "commit", "--quiet", "--allow-empty", "--message", "Nothing")
    for times in (2, 2):
        assert planned(odfbuild) == []
        assert len(asked) == times
    right = heads(tiny, "derived")[0]
    move_head(tiny, "derived", heads(tiny, "derived")[1])
    for times in (3, 4):
        (found,) = planned(odfbuild)
        assert (found["cause"], len(asked)) == ("moved_back", times)
    move_head(tiny, "derived", right)
    for times in (4, 4):  # as it was when there was none
        assert planned(odfbuild) == []
        assert len(asked) == times
    git(tiny, "notes", "--ref=odfbuild", "remove", "HEAD~1")
    assert planned(odfbuild) == []
    assert len(asked) == 5


def test_a_plan_tells_what_it_puts_back(tiny: Tiny, odfbuild: Program) -> None:
    anchored(tiny, odfbuild)
    append_elsewhere(tiny, "A better text")
    (found,) = planned(odfbuild)
    assert (found["dataset"], found["cause"]) == ("root", "changed_elsewhere")
    assert "after the run at commit " in found["message"]
    odfbuild.ok("plan", "-o", "saved.json")
    shown = odfbuild.ok("show", "saved.json").out
    assert "! root  drift of definition (changed_elsewhere)" in " ".join(shown.split("\n"))
    odfbuild.ok("apply", "saved.json", "-y")
    assert planned(odfbuild) == []
    assert drift(odfbuild) == []


def test_a_plan_tells_a_history_that_a_reader_no_longer_finds(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    move_head(tiny, "root", heads(tiny, "root")[1])
    (found,) = planned(odfbuild)
    assert (found["dataset"], found["cause"]) == ("root", "read_elsewhere")


# --- Forms ---


def test_text_and_markdown_show_the_same(tiny: Tiny, odfbuild: Program) -> None:
    tiny.derive("second", QUERY)
    odfbuild.apply()
    tiny.derive("derived", QUERY.replace("10", "20"))
    (tiny.root / "datasets" / "second.yaml").unlink()
    data_file(tiny, "root").unlink()
    for form in ("text", "md"):
        said = odfbuild.ok("drift", "--format", form).out
        assert_golden(f"drift.{'txt' if form == 'text' else form}", masked(tiny, said).rstrip())


def masked(tiny: Tiny, text: str) -> str:
    """`text` without what differs from run to run."""
    for name in ("root", "derived", "second"):
        for number, hash in enumerate(heads(tiny, name)):
            text = text.replace(hash[-8:], f"<{name}-{number}>")
    file = text.partition("data object ")[2].partition(" ")[0]
    return text.replace(file, "<hash>").replace(str(tiny.root), "<project>")


def forget_runs(tiny: Tiny) -> None:
    """Delete what may be deleted: logs of runs, and all that is remembered."""
    import shutil

    shutil.rmtree(tiny.root / ".odfbuild")


def test_heads_are_listed_as_often_for_many_datasets_as_for_few(
    tiny: Tiny, odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[None] = []
    heads_of = Workspace.heads

    def counted(self: Workspace) -> dict[str, bytes]:
        listed.append(None)
        return heads_of(self)

    monkeypatch.setattr(Workspace, "heads", counted)
    drift(odfbuild)
    few = len(listed)
    listed.clear()
    definition = (tiny.root / "datasets" / "root.yaml").read_text()
    for number in range(20):
        more = definition.replace("name: root", f"name: root-{number}")
        (tiny.root / "datasets" / f"root-{number}.yaml").write_text(more)
    assert len(drift(odfbuild)) >= 20
    assert len(listed) == few

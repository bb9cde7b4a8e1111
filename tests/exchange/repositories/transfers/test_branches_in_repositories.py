"""`push -b` and `pull -b`: a branch lies in a repository beside the heads that peers read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny

OTHER = QUERY.replace("value * 10", "value * 20")


@pytest.fixture
def odfbuild(tiny: Tiny, odfbuild: Program) -> Program:
    """The program in a project whose heads are published, and a branch with a new dataset."""
    with (tiny.root / "odfbuild.yaml").open("a") as file:
        file.write("  repositories: {lake: {url: ../lake}}\n")
        file.write("  publish: [{match: ['*'], to: lake}]\n")
    odfbuild.apply()
    tiny.derive("derived", OTHER)
    tiny.derive("fresh", QUERY)
    odfbuild.ok("apply", "-y", "-b", "pr-1", "--allow", "rebuild:derived")
    return odfbuild


@pytest.fixture
def other(tiny: Tiny, odfbuild: Program) -> Program:
    """Another machine with the definitions and the heads of the project, without the branch."""
    root = tiny.root.parent / "other"
    shutil.copytree(tiny.root, root, ignore=shutil.ignore_patterns(".odfbuild*", "pr-1", "fresh"))
    shutil.copy(tiny.root / "datasets" / "fresh.yaml", root / "datasets")
    return Program(root, odfbuild.monkeypatch, odfbuild.capsys)


def lake(tiny: Tiny) -> dict[str, bytes]:
    folder = tiny.root.parent / "lake"
    return {
        str(each.relative_to(folder)): each.read_bytes()
        for each in folder.rglob("*")
        if each.is_file()
    }


def test_apply_in_a_branch_publishes_nothing(tiny: Tiny, odfbuild: Program) -> None:
    assert not [name for name in lake(tiny) if "pr-1" in name]
    assert not any(name.startswith("fresh/") for name in lake(tiny))


def test_a_branch_goes_to_a_repository_and_from_there_to_another_machine(
    tiny: Tiny, odfbuild: Program, other: Program
) -> None:
    before = lake(tiny)
    odfbuild.ok("push", "-b", "pr-1", "--dry-run")
    assert lake(tiny) == before
    said = odfbuild.ok("push", "-b", "pr-1")
    assert "Push: 2 new, 0 updated" in said.out
    # Whoever knows heads only sees what was there before.
    after = lake(tiny)
    assert {name: after[name] for name in before} == before
    assert {n.partition("/")[2] for n in after if "pr-1" in n} == {
        "refs/pr-1",
        "info/branches/pr-1",
    }
    assert "fresh" not in odfbuild.ok("ls", "--remote", "lake").out
    again = odfbuild.ok("push", "-b", "pr-1").out
    assert "Push: 0 new, 0 updated, 0 replaced, 2 up-to-date" in again

    assert "Pull: 2 new" in other.ok("pull", "-b", "pr-1").out
    assert "No changes" in other.ok("plan", "-b", "pr-1").out
    other.ok("verify", "-b", "pr-1", "--integrity")
    for name in ("root", "derived"):
        heads = [each.root / "chains" / name / "refs" / "head" for each in (odfbuild, other)]
        assert len({head.read_text() for head in heads}) == 1
    ours, theirs = (each.ok("branch", "list", "--json").data for each in (odfbuild, other))
    told = ("name", "base", "head", "left", "created", "records")
    assert [{key: each[key] for key in told} for each in ours[0]["datasets"]] == [
        {key: each[key] for key in told} for each in theirs[0]["datasets"]
    ]
    assert "up-to-date" in other.ok("pull", "-b", "pr-1").out


def test_what_was_appended_to_a_branch_follows(
    tiny: Tiny, odfbuild: Program, other: Program
) -> None:
    odfbuild.ok("push", "-b", "pr-1")
    other.ok("pull", "-b", "pr-1", "fresh", "derived")
    tiny.derive("fresh", OTHER)
    odfbuild.ok("apply", "-y", "-b", "pr-1")
    assert "1 updated" in odfbuild.ok("push", "-b", "pr-1").out
    assert "1 updated" in other.ok("pull", "-b", "pr-1").out


def test_blocks_of_the_other_side_are_given_up_by_name_only(
    tiny: Tiny, odfbuild: Program, other: Program
) -> None:
    odfbuild.ok("push", "-b", "pr-1")
    other.ok("pull", "-b", "pr-1")
    for program, factor in ((odfbuild, 30), (other, 40)):
        query = QUERY.replace("value * 10", f"value * {factor}")
        Tiny(program.root).derive("derived", query)
        program.ok("apply", "-y", "-b", "pr-1", "-s", "derived")
    odfbuild.ok("push", "-b", "pr-1")
    before = lake(tiny)
    for verb in ("push", "pull"):
        said = other(verb, "-b", "pr-1")
        assert said.code == 1
        assert "E1144" in said.err
        assert f"odfbuild {verb} -b pr-1 derived --allow reset:derived" in said.err
    assert lake(tiny) == before
    assert "1 replaced" in other.ok("pull", "-b", "pr-1", "--allow", "reset:derived").out
    other.ok("verify", "-b", "pr-1", "--integrity")


def test_wrong_uses_have_a_way_out(tiny: Tiny, odfbuild: Program, other: Program) -> None:
    said = other("pull", "-b", "pr-1")
    assert (said.code, "E1143" in said.err) == (1, True)
    assert "odfbuild push -b pr-1" in said.err
    assert "E1102" in other("push", "-b", "pr-1").err
    server = "odf+http://127.0.0.1:9/data"
    assert "E1142" in odfbuild("push", "-b", "pr-1", "--to", server).err
    assert "E1142" in odfbuild("pull", "-b", "pr-1", "--from", server).err
    assert odfbuild("push", "-b", "pr-1", "derived", "--as", "x").code == 64
    assert odfbuild("pull", "-b", "pr-1", "--to", "x").code == 64


def test_a_branch_with_lost_information_is_not_pulled(
    tiny: Tiny, odfbuild: Program, other: Program
) -> None:
    odfbuild.ok("push", "-b", "pr-1")
    (tiny.root.parent / "lake" / "derived" / "info" / "branches" / "pr-1").unlink()
    said = other("pull", "-b", "pr-1", "derived")
    assert "E1104" in said.err
    assert not (other.root / "chains" / "derived" / "refs" / "pr-1").exists()


def test_a_branch_of_other_bytes_is_refused(tiny: Tiny, odfbuild: Program, other: Program) -> None:
    odfbuild.ok("push", "-b", "pr-1")
    folder = tiny.root.parent / "lake" / "fresh"
    block = folder / "blocks" / (folder / "refs" / "pr-1").read_text()
    block.write_bytes(block.read_bytes() + b"x")
    said = other("pull", "-b", "pr-1", "fresh")
    assert "E1006" in said.err
    assert not list(Path(other.root / "chains").glob("fresh/refs/*"))

"""`branch list|show|delete`: what branches hold, and that deleting them frees exactly that."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny
from tests.cli.test_locks import held

OTHER = QUERY.replace("value * 10", "value * 20")


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """A project of three datasets."""
    tiny = Tiny.fresh(tmp_path / "tiny")
    tiny.derive("reader", QUERY, source="derived")
    return tiny


@pytest.fixture
def odfbuild(odfbuild: Program) -> Program:
    """The program in the applied project."""
    odfbuild.apply()
    return odfbuild


def begin(tiny: Tiny, odfbuild: Program, name: str = "pr-1", query: str = OTHER) -> None:
    """A branch with a changed query whose records are computed again, and a new dataset."""
    tiny.derive("derived", query)
    tiny.derive("fresh", QUERY)
    odfbuild.ok("apply", "-y", "-b", name, "--allow", "rebuild:derived+")


def files(folder: Path) -> dict[Path, int]:
    """Sizes of all files of the chains."""
    return {each: each.stat().st_size for each in folder.rglob("*") if each.is_file()}


def listed(odfbuild: Program) -> list[dict[str, object]]:
    found: list[dict[str, object]] = odfbuild.ok("branch", "list", "--json").data
    return found


def test_list_tells_what_each_branch_has_that_heads_do_not(tiny: Tiny, odfbuild: Program) -> None:
    assert odfbuild.ok("branch", "list").out == "There are no branches.\n"
    begin(tiny, odfbuild)
    [found] = listed(odfbuild)
    assert found["name"] == "pr-1"
    datasets = {each["name"]: each for each in found["datasets"]}  # type: ignore[attr-defined]
    assert {name: each["base"] for name, each in datasets.items()} == {
        "derived": "unmoved",
        "reader": "unmoved",
        "fresh": "new",
    }
    assert {name: each["records"] for name, each in datasets.items()} == {
        "derived": 3,
        "reader": 3,
        "fresh": 3,
    }
    assert found["size"] == sum(each["size"] for each in datasets.values())
    line = odfbuild.ok("branch", "list").out.splitlines()[1].split()
    assert line[0] == "pr-1"
    assert line[2] == "3"
    assert line[4] == "9"
    assert odfbuild.ok("branch", "list", "--md").out.startswith("| branch | age |")


def test_show_tells_how_each_dataset_relates_to_its_head(tiny: Tiny, odfbuild: Program) -> None:
    begin(tiny, odfbuild)
    tiny.arrive(2)
    tiny.derive("derived", QUERY)
    (tiny.root / "datasets" / "fresh.yaml").unlink()
    odfbuild.apply()
    found = odfbuild.ok("branch", "show", "pr-1", "--json").data
    assert {each["name"]: each["base"] for each in found["datasets"]} == {
        "derived": "moved",
        "reader": "moved",
        "fresh": "new",
    }
    said = odfbuild.ok("branch", "show", "pr-1").out
    assert "moved by 1 block" in said
    assert "no head yet" in said
    assert "| derived |" in odfbuild.ok("branch", "show", "pr-1", "--md").out


def test_delete_frees_exactly_the_bytes_that_it_names(tiny: Tiny, odfbuild: Program) -> None:
    begun = files(tiny.root / "chains")
    begin(tiny, odfbuild)
    full = files(tiny.root / "chains")
    [found] = listed(odfbuild)
    assert found["size"] == sum(full.values()) - sum(begun.values())
    keys = set((tiny.root / ".odfbuild-keys").iterdir())
    said = odfbuild.ok("branch", "delete", "pr-1", "-y")
    assert "these datasets are nowhere else and go with their private keys: 'fresh'" in said.out
    assert files(tiny.root / "chains") == begun
    assert not (tiny.root / "chains" / "fresh").exists()
    assert len(keys - set((tiny.root / ".odfbuild-keys").iterdir())) == 1
    assert not (tiny.root / ".odfbuild" / "branches" / "pr-1").exists()
    assert listed(odfbuild) == []
    odfbuild.ok("verify", "--integrity")


def test_what_two_branches_share_goes_with_the_last_of_them(tiny: Tiny, odfbuild: Program) -> None:
    begun = files(tiny.root / "chains")
    begin(tiny, odfbuild)
    for dataset in ("derived", "fresh"):
        folder = tiny.root / "chains" / dataset
        shutil.copy(folder / "refs" / "pr-1", folder / "refs" / "pr-2")
        shutil.copy(folder / "info" / "branches" / "pr-1", folder / "info" / "branches" / "pr-2")
    sizes = {each["name"]: each["size"] for each in listed(odfbuild)}
    full = files(tiny.root / "chains")
    odfbuild.ok("branch", "delete", "pr-1", "-y")
    assert sum(full.values()) - sum(files(tiny.root / "chains").values()) == sizes["pr-1"]
    odfbuild.ok("verify", "--integrity", "-b", "pr-2")
    odfbuild.ok("branch", "delete", "pr-2", "-y")
    assert files(tiny.root / "chains") == begun


def test_several_are_deleted_by_names_and_patterns_at_once(tiny: Tiny, odfbuild: Program) -> None:
    begun = files(tiny.root / "chains")
    begin(tiny, odfbuild, "pr-1")
    begin(tiny, odfbuild, "pr-2", QUERY.replace("value * 10", "value * 30"))
    begin(tiny, odfbuild, "dev", QUERY.replace("value * 10", "value * 40"))
    full = sum(files(tiny.root / "chains").values())
    done = odfbuild.ok("branch", "delete", "pr-*", "dev", "-y", "--json").data
    assert done["branches"] == ["dev", "pr-1", "pr-2"]
    assert full - done["size"] == sum(begun.values())
    assert files(tiny.root / "chains") == begun


def test_delete_asks_and_does_nothing_without_an_answer(tiny: Tiny, odfbuild: Program) -> None:
    begin(tiny, odfbuild)
    before = files(tiny.root / "chains")
    said = odfbuild("branch", "delete", "pr-1")
    assert said.code == 1
    assert "E0334" in said.err
    assert "1 branch was not deleted" in said.err
    assert files(tiny.root / "chains") == before


def test_wrong_names_are_refused_with_a_way_out(tiny: Tiny, odfbuild: Program) -> None:
    begin(tiny, odfbuild)
    before = files(tiny.root / "chains")
    for arguments, code, help_ in (
        (("show", "pr-2"), "E1102", "did you mean 'pr-1'?"),
        (("delete", "pr-2", "-y"), "E1102", "did you mean 'pr-1'?"),
        (("delete", "a/..", "-y"), "E1101", "such as 'a'"),
        (("show", "../derived"), "E1101", "such as"),
        (("delete", "x-*", "-y"), "E1140", "`odfbuild branch list` shows all branches"),
    ):
        said = odfbuild("branch", *arguments)
        assert said.code == 1
        assert code in said.err
        assert help_ in said.err
    for given in ((), ("--older-than", "x"), ("pr-1", "--fetch")):
        assert odfbuild("branch", "delete", *given).code == 64
    assert files(tiny.root / "chains") == before


def test_a_promoted_branch_is_closed_and_one_with_news_is_not(
    tiny: Tiny, odfbuild: Program
) -> None:
    begin(tiny, odfbuild)
    assert "nothing to delete" in odfbuild.ok("branch", "delete", "--closed", "-y").out
    for name in ("derived", "reader", "fresh"):
        refs = tiny.root / "chains" / name / "refs"
        shutil.copy(refs / "pr-1", refs / "head")
    [found] = listed(odfbuild)
    assert found["promoted"] is True
    keys = set((tiny.root / ".odfbuild-keys").iterdir())
    assert "1 branch" in odfbuild.ok("branch", "delete", "--closed", "-y").out
    assert listed(odfbuild) == []
    assert set((tiny.root / ".odfbuild-keys").iterdir()) == keys
    odfbuild.ok("verify", "--integrity")


def test_older_than_leaves_branches_that_changed_since(tiny: Tiny, odfbuild: Program) -> None:
    begin(tiny, odfbuild)
    assert "nothing to delete" in odfbuild.ok("branch", "delete", "--older-than", "1h", "-y").out
    assert "1 branch" in odfbuild.ok("branch", "delete", "--older-than", "0s", "-y").out


def test_a_branch_whose_information_is_lost_is_shown_and_can_be_deleted(
    tiny: Tiny, odfbuild: Program
) -> None:
    begun = files(tiny.root / "chains")
    begin(tiny, odfbuild)
    (tiny.root / "chains" / "derived" / "info" / "branches" / "pr-1").write_text("{")
    [found] = listed(odfbuild)
    problems = [each["problem"] for each in found["datasets"] if each["problem"]]  # type: ignore[attr-defined]
    assert len(problems) == 1
    assert "derived:" in odfbuild.ok("branch", "show", "pr-1").out
    odfbuild.ok("branch", "delete", "pr-1", "-y")
    assert files(tiny.root / "chains") == begun


def test_gc_keeps_what_branches_name_and_removes_what_none_does(
    tiny: Tiny, odfbuild: Program
) -> None:
    begin(tiny, odfbuild)
    before = files(tiny.root / "chains")
    old = 1_000_000.0
    for each in (tiny.root / "chains").rglob("*"):
        os.utime(each, (old, old))
    odfbuild.ok("gc", "--grace", "0", "-y")
    assert files(tiny.root / "chains") == before
    # The rebuilt history of the branch is let go of by another rebuild there.
    begin(tiny, odfbuild, query=QUERY.replace("value * 10", "value * 50"))
    for each in (tiny.root / "chains").rglob("*"):
        os.utime(each, (old, old))
    assert "derived" in odfbuild.ok("gc", "--grace", "0", "-y").out
    assert len(listed(odfbuild)) == 1
    assert "Removed 0 files" in odfbuild.ok("gc", "--grace", "0", "-y").out
    odfbuild.ok("verify", "--integrity", "-b", "pr-1")


def test_gc_lets_closed_branches_go_after_the_period_of_the_project(
    tiny: Tiny, odfbuild: Program
) -> None:
    begin(tiny, odfbuild)
    for name in ("derived", "reader", "fresh"):
        refs = tiny.root / "chains" / name / "refs"
        shutil.copy(refs / "pr-1", refs / "head")
    odfbuild.ok("gc", "-y")
    assert len(listed(odfbuild)) == 1
    with (tiny.root / "odfbuild.yaml").open("a") as file:
        file.write("  branches:\n    keep: 0s\n")
    said = odfbuild.ok("gc", "--dry-run")
    assert "branch pr-1: closed, 3 datasets" in said.out
    assert len(listed(odfbuild)) == 1
    refused = odfbuild("gc")
    assert "E0334" in refused.err
    assert odfbuild.ok("gc", "-y", "--json").data["branches"] == ["pr-1"]
    assert listed(odfbuild) == []


def test_a_branch_that_another_process_appends_to_is_not_deleted(
    tiny: Tiny, odfbuild: Program
) -> None:
    begin(tiny, odfbuild)
    before = files(tiny.root / "chains")
    with held(tiny.root, "derived"):
        said = odfbuild("branch", "delete", "pr-1", "-y", "--lock-timeout", "0")
        assert said.code == 9
        assert "derived" in said.err
        assert files(tiny.root / "chains") == before
        assert (
            "skipped, another process holds its lock"
            in odfbuild.ok("gc", "-y", "--lock-timeout", "0").out
        )
    odfbuild.ok("branch", "delete", "pr-1", "-y")

"""A dataset gets another name and stays the same dataset."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odfbuild.store.workspace import Workspace
from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """A root, `derived`, and `further`, which derives from that."""
    tiny = Tiny.fresh(tmp_path / "p")
    tiny.derive("further", QUERY, source="derived")
    return tiny


@pytest.fixture
def odfbuild(odfbuild: Program) -> Program:
    """The program in that project, applied."""
    odfbuild.apply()
    return odfbuild


def rename(tiny: Tiny, old: str, new: str, query: str = QUERY) -> None:
    """Give the definition another name, and declare that."""
    (tiny.root / "datasets" / f"{old}.yaml").unlink()
    tiny.derive(new, query)
    config = tiny.root / "odfbuild.yaml"
    config.write_text(config.read_text() + f"  moved:\n    {old}: {new}\n")


def identities(tiny: Tiny) -> dict[str, tuple[str, str]]:
    """Identity and head of each chain."""
    return {
        name: (str(p.dataset_id), str(p.head)) for name, p in tiny.workspace().projections().items()
    }


def test_a_rename_is_planned_and_keeps_identity_and_history(tiny: Tiny, odfbuild: Program) -> None:
    before = identities(tiny)
    rename(tiny, "derived", "tidy")
    tiny.derive("further", QUERY, source="tidy")
    planned = odfbuild.ok("plan")
    assert planned.out == (
        "Plan for tiny: 3 datasets, 1 affected\n\n"
        "  -> tidy  renamed from derived; its chain stays the same\n\n"
        "Plan: 0 to create, 1 to change, 0 to run, 0 to reset, 0 to delete.\n"
    )
    data = odfbuild.ok("plan", "--json").data
    tidy = next(d for d in data["datasets"] if d["name"] == "tidy")
    assert (tidy["renamed_from"], tidy["actions"], tidy["category"]) == (
        "derived",
        ["rename"],
        "metadata",
    )
    assert tidy["expected_head"] == before["derived"][1]
    said = odfbuild.ok("apply", "-y")
    assert "committed  tidy  renamed from derived" in said.out
    after = identities(tiny)
    assert after == {
        "root": before["root"],
        "tidy": before["derived"],
        "further": before["further"],
    }
    assert (tiny.root / "chains" / "tidy" / "info" / "alias").read_text() == "tidy"
    # The declaration may stay.
    assert odfbuild.ok("plan", "--detailed-exitcode").out.startswith("No changes.")
    tiny.arrive(2)
    odfbuild.apply()
    assert tiny.ids("tidy") == tiny.ids("further") == [1, 2, 3, 4]


def test_a_renamed_dataset_may_change_and_run_in_the_same_apply(
    tiny: Tiny, odfbuild: Program
) -> None:
    before = identities(tiny)
    rename(tiny, "derived", "tidy", QUERY.replace("10", "20"))
    tiny.derive("further", QUERY, source="tidy")
    tiny.arrive(2)
    data = {d["name"]: d["actions"] for d in odfbuild.ok("plan", "--json").data["datasets"]}
    assert data == {
        "root": ["run"],
        "tidy": ["rename", "append", "run"],
        "further": ["run"],
    }
    # The second plan remembers what the first one decided.
    assert {d["name"]: d["actions"] for d in odfbuild.ok("plan", "--json").data["datasets"]} == data
    odfbuild.apply()
    assert [r["value"] for r in tiny.records("tidy")] == [10, 20, 30, 80]
    assert identities(tiny)["tidy"][0] == before["derived"][0]


def test_a_saved_plan_renames_once(tiny: Tiny, odfbuild: Program) -> None:
    rename(tiny, "derived", "tidy")
    tiny.derive("further", QUERY, source="tidy")
    odfbuild.ok("plan", "-o", "plan.json")
    assert "tidy  renamed from derived" in odfbuild.ok("show", "plan.json").out
    odfbuild.ok("apply", "plan.json", "-y")
    assert set(identities(tiny)) == {"root", "tidy", "further"}
    odfbuild.ok("apply", "plan.json", "-y")
    assert set(identities(tiny)) == {"root", "tidy", "further"}


def test_without_a_declaration_a_new_name_is_a_new_dataset(tiny: Tiny, odfbuild: Program) -> None:
    (tiny.root / "datasets" / "further.yaml").rename(tiny.root / "datasets" / "f.yaml")
    assert odfbuild.ok("plan").out.startswith("No changes.")
    tiny.derive("last", QUERY, source="derived")
    (tiny.root / "datasets" / "f.yaml").unlink()
    data = odfbuild.ok("plan", "--json").data
    assert {d["name"]: d["actions"] for d in data["datasets"] if d["actions"]} == {
        "last": ["create", "run"]
    }
    assert [d["name"] for d in data["forgotten"]] == ["further"]


@pytest.mark.parametrize(
    ("moved", "message"),
    [
        (
            {"derived": "tidy"},
            "'derived' is declared as renamed to 'tidy', and is still defined",
        ),
        ({"gone": "nowhere"}, "and nothing defines 'nowhere'"),
        ({"gone": "further"}, "'gone' cannot be renamed to 'further': both have a chain"),
        ({"gone": "a b"}, "'a b' is not a dataset name"),
    ],
)
def test_a_rename_that_contradicts_what_is_there_is_refused(
    tiny: Tiny, odfbuild: Program, moved: dict[str, str], message: str
) -> None:
    tiny.derive("gone", QUERY)
    odfbuild.apply()
    (tiny.root / "datasets" / "gone.yaml").unlink()
    config = tiny.root / "odfbuild.yaml"
    config.write_text(config.read_text() + f"  moved: {json.dumps(moved)}\n")
    before = identities(tiny)
    for verb in ("plan", "validate", "apply"):
        said = odfbuild(verb)
        assert said.code == 1
        assert "error[E0350]: " in said.err
        assert message in said.err
        assert "  --> odfbuild.yaml:" in said.err
    assert identities(tiny) == before


def test_a_rename_that_was_killed_half_way_is_done_again(tiny: Tiny, odfbuild: Program) -> None:
    before = identities(tiny)
    (tiny.root / "chains" / "derived" / "info" / "alias").write_text("tidy")
    rename(tiny, "derived", "tidy")
    tiny.derive("further", QUERY, source="tidy")
    odfbuild.apply()
    assert identities(tiny)["tidy"] == before["derived"]


def test_names_are_changed_in_one_step_and_never_over_others(tmp_path: Path, tiny: Tiny) -> None:
    from odfbuild.errors import ChainError, StaleHeadError

    workspace = Workspace(tiny.root / "chains", tmp_path / "keys", tmp_path / "cache")
    with pytest.raises(StaleHeadError):
        workspace.rename("nothing", "something")
    (tiny.root / "chains" / "other").mkdir(parents=True)
    (tiny.root / "chains" / "other" / "notes.txt").write_text("mine")
    (tiny.root / "chains" / "old" / "refs").mkdir(parents=True)
    (tiny.root / "chains" / "old" / "refs" / "head").write_text("f1620" + "0" * 64)
    with pytest.raises(ChainError) as caught:
        workspace.rename("old", "other")
    assert caught.value.code == "E0622"

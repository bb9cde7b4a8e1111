"""A dataset is deleted in two steps: its definition goes, and then its chain, by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    project = Tiny.fresh(tmp_path / "tiny")
    project.derive("second", QUERY, source="derived")
    return project


def undefine(tiny: Tiny, *names: str) -> None:
    for name in names:
        (tiny.root / "datasets" / f"{name}.yaml").unlink()


def files_left(tiny: Tiny, name: str) -> list[Path]:
    return list((tiny.root / "chains").glob(f"{name}/**/*"))


@pytest.fixture
def applied(tiny: Tiny, odfbuild: Program) -> Program:
    odfbuild.apply()
    return odfbuild


def test_without_consent_a_chain_without_definition_stays(tiny: Tiny, applied: Program) -> None:
    undefine(tiny, "second")
    assert "forgotten: its definition is gone" in applied.ok("plan").out
    applied.apply()
    assert tiny.ids("second") == [1, 2, 3]


def test_what_is_allowed_by_name_goes_with_its_files_and_its_key(
    tiny: Tiny, applied: Program
) -> None:
    keys = {each.name for each in (tiny.root / ".odfbuild-keys").iterdir()}
    did = tiny.workspace().projections()["second"].dataset_id
    undefine(tiny, "second")
    said = applied.ok("plan", "--allow", "delete:second")
    assert "  - second  deleted: its chain and its records\n" in said.out
    assert "asked for: 3 records and their history are gone then" in said.out
    assert said.out.endswith("0 to run, 0 to reset, 1 to delete.\n")
    assert tiny.ids("second") == [1, 2, 3]
    done = applied.ok("apply", "-y", "--allow", "delete:second")
    assert "deleted" in done.out
    assert files_left(tiny, "second") == []
    assert keys - {each.name for each in (tiny.root / ".odfbuild-keys").iterdir()} == {
        did.multibase
    }
    assert applied.ok("plan", "--detailed-exitcode").out.startswith("No changes.")
    applied.ok("verify", "--integrity")
    assert "second" not in applied.ok("ls").out


def test_a_plan_with_a_deletion_is_saved_shown_and_applied(tiny: Tiny, applied: Program) -> None:
    undefine(tiny, "second")
    assert applied("plan", "--allow", "delete:second", "-o", "p", "--detailed-exitcode").code == 2
    document = json.loads((tiny.root / "p").read_text())
    assert document["summary"]["delete"] == 1
    assert [(d["name"], d["actions"]) for d in document["datasets"]][-1] == ("second", ["delete"])
    for form in ("--md", "--format=html", "--format=text"):
        assert "deleted: its chain and its records" in applied.ok("show", "p", form).out
    applied.ok("apply", "p", "-y")
    assert files_left(tiny, "second") == []
    assert applied("apply", "p", "-y").code == 5


def test_readers_go_first_and_are_never_left_behind(tiny: Tiny, applied: Program) -> None:
    undefine(tiny, "second", "derived")
    said = applied("plan", "--allow", "delete:derived")
    assert (said.code, "E0392" in said.err, "'second' consumed" in said.err) == (1, True, True)
    plan = applied.ok("plan", "--allow", "delete:derived+", "--json").data
    assert [d["name"] for d in plan["datasets"] if "delete" in d["actions"]] == [
        "second",
        "derived",
    ]
    applied.ok("apply", "-y", "--allow", "delete:derived+")
    assert files_left(tiny, "second") == files_left(tiny, "derived") == []


def test_what_is_defined_or_unknown_is_not_deleted(tiny: Tiny, applied: Program) -> None:
    said = applied("apply", "-y", "--allow", "delete:second")
    assert said.code == 1
    assert "E0391" in said.err
    assert "datasets/second.yaml" in said.err
    undefine(tiny, "derived")
    said = applied("apply", "-y", "--allow", "delete:derived+")  # its reader is still defined
    assert "E0391" in said.err
    said = applied("plan", "--allow", "delete:derivd")
    assert "E0390" in said.err
    assert "did you mean 'derived'?" in said.err
    said = applied("plan", "--allow", "delete:")
    assert said.code == 64
    assert tiny.ids("second") == tiny.ids("derived") == [1, 2, 3]


def test_a_protected_history_is_not_deleted(tiny: Tiny, applied: Program) -> None:
    config = tiny.root / "odfbuild.yaml"
    text = config.read_text()
    config.write_text(text + "  policies:\n    - match: [second]\n      rebuild: refuse\n")
    applied.apply()
    config.write_text(text)
    undefine(tiny, "second")
    said = applied("apply", "-y", "--allow", "delete:second")
    assert "E0339" in said.err
    assert tiny.ids("second") == [1, 2, 3]


def test_a_chain_that_moved_since_the_plan_stays(tiny: Tiny, applied: Program) -> None:
    text = (tiny.root / "datasets" / "second.yaml").read_text()
    undefine(tiny, "second")
    applied.ok("plan", "--allow", "delete:second", "-o", "p")
    (tiny.root / "datasets" / "second.yaml").write_text(text)
    tiny.arrive(2)
    applied.apply()
    undefine(tiny, "second")
    assert applied("apply", "p", "-y").code == 5
    assert tiny.ids("second") == [1, 2, 3, 4]


def test_what_came_to_count_on_it_since_the_plan_keeps_it(tiny: Tiny, applied: Program) -> None:
    undefine(tiny, "second")
    applied.ok("plan", "--allow", "delete:second", "-o", "p")
    tiny.derive("third", QUERY, source="second")
    applied.apply()
    said = applied("apply", "p", "-y")
    assert said.code == 1
    assert "E0392" in said.err
    assert tiny.ids("second") == [1, 2, 3]


def test_a_deletion_that_was_cut_off_is_cleared_away_by_gc_or_by_a_new_dataset(
    tiny: Tiny, applied: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    from odfbuild.store import deletion

    definition = (tiny.root / "datasets" / "second.yaml").read_text()
    kept = shutil.copytree(tiny.root, tiny.root.with_name("kept"), symlinks=True)
    undefine(tiny, "second")

    def cut_off(*_: object) -> None:
        raise SystemExit("killed")

    for mend in ("gc", "create"):
        with monkeypatch.context() as patch:
            patch.setattr(deletion, "clear_unfinished", cut_off)
            with pytest.raises((SystemExit, AssertionError)):
                applied.ok("apply", "-y", "--allow", "delete:second")
        assert "second" not in applied.ok("ls").out
        if mend == "gc":
            applied.ok("gc", "--grace", "0")
            assert files_left(tiny, "second") == []
            shutil.copytree(kept / "chains", tiny.root / "chains", dirs_exist_ok=True)
        else:
            (tiny.root / "datasets" / "second.yaml").write_text(definition)
            applied.apply()
            assert tiny.ids("second") == [1, 2, 3]
            applied.ok("verify", "--integrity")


def test_a_rebuild_never_leaves_a_forgotten_reader_behind(tiny: Tiny, applied: Program) -> None:
    undefine(tiny, "second")
    said = applied("apply", "-y", "--allow", "rebuild:derived+")
    assert said.code == 1
    assert "E0337" in said.err
    assert "help: define it again, or delete it along: --allow delete:second\n" in said.err
    both = ("--allow", "rebuild:derived+", "--allow", "delete:second")
    assert "1 to reset, 1 to delete." in applied.ok("plan", *both).out
    applied.ok("apply", "-y", *both)
    assert files_left(tiny, "second") == []
    assert tiny.ids("derived") == [1, 2, 3]

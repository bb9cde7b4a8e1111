"""A dataset is deleted in two steps: its definition goes, and then its chain, by name."""

from __future__ import annotations

import contextlib
import html
import json
from pathlib import Path
from typing import Any

import pytest

from tests.apply.in_process import Program
from tests.apply.tiny import QUERY, Tiny
from tests.cli.repository import git


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
    assert "orphaned: its definition was removed" in applied.ok("plan").out
    applied.apply()
    assert tiny.ids("second") == [1, 2, 3]


def everything(tiny: Tiny, name: str) -> dict[str, bytes]:
    """All files of a dataset, and what is in them."""
    chain = tiny.root / "chains" / name
    return {str(p.relative_to(chain)): p.read_bytes() for p in chain.rglob("*") if p.is_file()}


def keys_of(tiny: Tiny) -> set[str]:
    return {each.name for each in (tiny.root / ".odfbuild-keys").iterdir()}


def test_nothing_is_deleted_or_rebuilt_without_a_yes(tiny: Tiny, applied: Program) -> None:
    undefine(tiny, "second")
    before = everything(tiny, "second"), everything(tiny, "derived")
    applied.ok("plan", "--allow", "delete:second", "-o", "plan.json")
    for command in (
        ("apply", "--allow", "delete:second"),
        ("apply", "plan.json"),
        ("apply", "--allow", "delete:second", "--json"),
        ("apply", "--allow", "delete:second", "--allow", "rebuild:derived"),
        ("reset", "derived"),
    ):
        said = applied(*command)
        assert said.code == 1
        assert "error[E0334]" in said.err
        assert "help: add --auto-approve" in said.err
    assert (everything(tiny, "second"), everything(tiny, "derived")) == before


def test_what_is_deleted_is_restored_whole_until_gc_empties_the_bin(
    tiny: Tiny, applied: Program
) -> None:
    before, keys = everything(tiny, "second"), keys_of(tiny)
    head = before["refs/head"].decode()
    definition = (tiny.root / "datasets" / "second.yaml").read_text()
    undefine(tiny, "second")
    said = applied.ok("apply", "-y", "--allow", "delete:second")
    assert f"To restore it: odfbuild reset second --to {head} (before `odfbuild gc`)" in said.err
    assert files_left(tiny, "second") == []
    applied.ok("gc", "-y")  # it is too young
    said = applied.ok("reset", "second", "--to", head)
    assert said.out == "Restored 'second', which was deleted.\n"
    assert everything(tiny, "second") == before
    assert keys_of(tiny) == keys
    (tiny.root / "datasets" / "second.yaml").write_text(definition)
    assert applied("plan", "--detailed-exitcode").code == 0
    applied.ok("verify", "--integrity")


def test_the_bin_is_listed_with_the_commands_that_restore(tiny: Tiny, applied: Program) -> None:
    assert applied.ok("ls", "--deleted").out.startswith("The bin is empty")
    head = everything(tiny, "second")["refs/head"].decode()
    undefine(tiny, "second")
    applied.ok("apply", "-y", "--allow", "delete:second")
    assert "second" not in applied.ok("ls").out
    (listed,) = applied.ok("ls", "--deleted", "--json").data
    assert (listed["name"], listed["head"]) == ("second", head)
    assert listed["deleted_at"].startswith("20")
    _, row, help_ = applied.ok("ls", "--deleted").out.splitlines()
    assert help_ == "To restore one: odfbuild reset NAME --to HEAD"
    name, _, short = row.split()
    assert name == "second"
    assert applied.ok("reset", name, "--to", short).out == "Restored 'second', which was deleted.\n"
    assert applied.ok("ls", "--deleted", "--json").data == []
    assert applied("ls", "--deleted", "second").code == 64


def test_a_deleted_dataset_does_not_replace_one_that_has_its_name_now(
    tiny: Tiny, applied: Program
) -> None:
    head = everything(tiny, "second")["refs/head"].decode()
    definition = (tiny.root / "datasets" / "second.yaml").read_text()
    undefine(tiny, "second")
    applied.ok("apply", "-y", "--allow", "delete:second")
    (tiny.root / "datasets" / "second.yaml").write_text(definition)
    applied.apply()
    said = applied("reset", "second", "--to", head, "-y")
    assert (said.code, "error[E0393]" in said.err) == (1, True)


def test_git_does_not_see_the_bin(tiny: Tiny, applied: Program) -> None:
    undefine(tiny, "second")
    applied.ok("apply", "-y", "--allow", "delete:second")
    git(tiny, "init", "-q")
    seen = git(tiny, "status", "--porcelain", "--untracked-files=all")
    assert "chains/derived/refs/head" in seen
    assert ".bin" not in seen


def test_what_is_allowed_by_name_goes_and_its_key_when_the_bin_is_emptied(
    tiny: Tiny, applied: Program
) -> None:
    keys = keys_of(tiny)
    did = tiny.workspace().projections()["second"].dataset_id
    undefine(tiny, "second")
    said = applied.ok("plan", "--allow", "delete:second")
    assert "  - second  deleted: its chain and its records\n" in said.out
    assert "--allow delete is given: 3 records and their history are removed" in said.out
    assert said.out.endswith("0 to run, 0 to reset, 1 to delete.\n")
    assert tiny.ids("second") == [1, 2, 3]
    done = applied.ok("apply", "-y", "--allow", "delete:second")
    assert "deleted" in done.out
    assert files_left(tiny, "second") == []
    assert keys_of(tiny) == keys
    assert "error[E0334]" in applied("gc", "--grace", "0").err
    said = applied.ok("gc", "--grace", "0", "-y")
    assert "  second: 1 deleted dataset (" in said.out
    assert keys - keys_of(tiny) == {did.multibase}
    assert list((tiny.root / "chains" / ".bin").glob("*-*")) == []
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


def test_a_plan_says_which_branches_lose_a_dataset_that_is_deleted(
    tiny: Tiny, applied: Program
) -> None:
    tiny.derive("second", QUERY.replace("10", "7"), source="derived")
    for branch in ("pr-2", "pr-1"):
        applied.ok("apply", "-y", "-b", branch)
    said = "3 records and their history are removed, also from the branches 'pr-1', 'pr-2'"
    undefine(tiny, "second")
    applied.ok("plan", "--allow", "delete:second", "-o", "p")
    plan = json.loads((tiny.root / "p").read_text())
    assert plan["datasets"][-1]["reasons"][0]["message"].endswith(said)
    for form in ("--md", "--format=html", "--format=text"):
        assert said in html.unescape(applied.ok("show", "p", form).out)
    applied.ok("branch", "delete", "pr-2", "-y")
    one = applied.ok("plan", "--allow", "delete:second").out
    assert "are removed, also from the branch 'pr-1'\n" in one
    applied.ok("apply", "-y", "p")
    assert applied("branch", "show", "pr-1").code == 1


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


@pytest.mark.parametrize("step", range(4))
def test_a_deletion_or_restoration_that_is_cut_off_anywhere_loses_nothing(
    tiny: Tiny, applied: Program, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    from odfbuild.store import deleted

    before, keys = everything(tiny, "second"), keys_of(tiny)
    head = before["refs/head"].decode()
    undefine(tiny, "second")

    def cut_off(patch: pytest.MonkeyPatch) -> None:
        """Kill the process at one of the steps that make something durable."""
        left = [step]
        for name in ("make_folder", "sync"):
            original = getattr(deleted, name)

            def counted(*given: Any, original: Any = original) -> None:
                left[0] -= 1
                if left[0] < 0:
                    raise SystemExit("killed")
                original(*given)

            patch.setattr(deleted, name, counted)

    for command in (
        ("apply", "-y", "--allow", "delete:second"),
        ("reset", "second", "--to", head, "-y"),
    ):
        with pytest.MonkeyPatch.context() as patch, contextlib.suppress(SystemExit):
            cut_off(patch)
            applied(*command)
        applied("reset", "second", "--to", head, "-y")
        assert everything(tiny, "second") == before
        assert keys_of(tiny) == keys
        applied.ok("gc", "-y", "--grace", "0")
        assert everything(tiny, "second") == before
        assert keys_of(tiny) == keys


def test_a_rebuild_never_leaves_an_orphaned_reader_behind(tiny: Tiny, applied: Program) -> None:
    undefine(tiny, "second")
    said = applied("apply", "-y", "--allow", "rebuild:derived+")
    assert said.code == 1
    assert "E0337" in said.err
    assert "help: define it again, or delete it too: --allow delete:second\n" in said.err
    both = ("--allow", "rebuild:derived+", "--allow", "delete:second")
    assert "1 to reset, 1 to delete." in applied.ok("plan", *both).out
    applied.ok("apply", "-y", *both)
    assert files_left(tiny, "second") == []
    assert tiny.ids("derived") == [1, 2, 3]

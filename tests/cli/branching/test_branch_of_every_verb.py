"""Every command has a rule for `--branch`: none ignores it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.core import TyperGroup

from odfbuild.cli.branch_rules import RULES, Rule
from odfbuild.cli.verbs import VERBS, Verbs
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny

DOCS = Path(__file__).parents[3] / "docs" / "branches.md"


def commands() -> Iterator[str]:
    """All commands, those of groups with the name of the group."""
    verbs = Verbs()
    for name in VERBS:
        made = verbs[name]
        inner = made.commands if isinstance(made, TyperGroup) else {}
        yield from (f"{name} {each}" for each in inner) if inner else (name,)


def arguments(command: str) -> list[str]:
    """The command with as many arguments as it must have."""
    made = Verbs()[command.split(maxsplit=1)[0]]
    if isinstance(made, TyperGroup):
        made = made.commands[command.split()[1]]
    needed = [
        value
        for each in made.params
        if each.required
        for value in (
            *([] if each.param_type_name == "argument" else [each.opts[0]]),
            "git" if each.opts[0] == "--to" else "root",
        )
    ]
    return [*command.split(), *needed]


def test_every_command_has_a_rule_for_branches() -> None:
    assert sorted(commands()) == sorted(RULES)


def test_the_page_says_of_every_command_what_it_does_in_a_branch() -> None:
    table = re.findall(r"^\| (`.+?) \| (.+?) \|$", DOCS.read_text(), re.MULTILINE)
    told = {command: said for names, said in table for command in re.findall(r"`([^`]+)`", names)}
    firsts = {
        Rule.BEGINS: "work",
        Rule.READS: "read",
        Rule.APPENDS: "append",
        Rule.HEADS: "refuse",
        Rule.WHOLE: "refuse",
        Rule.PROMOTES: "refuse",
        Rule.FILES: "refuse",
    }
    assert sorted(told) == sorted(RULES)
    wrong = {c: s for c, s in told.items() if not s.lower().startswith(firsts[RULES[c]])}
    assert wrong == {}


@pytest.fixture
def program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    return Program(Tiny.fresh(tmp_path / "tiny").root, monkeypatch, capsys)


@pytest.mark.parametrize("command", sorted(c for c in RULES if RULES[c] is not Rule.BEGINS))
def test_a_command_refuses_a_branch_that_there_is_not_or_that_it_cannot_work_in(
    program: Program, command: str
) -> None:
    said = program(*arguments(command), "-b", "nowhere")
    refuses = RULES[command] not in (Rule.READS, Rule.APPENDS)
    assert f"error[{'E1103' if refuses else 'E1102'}]" in said.err
    assert not refuses or f"it {RULES[command].value}" in said.err
    assert said.code == 1


def test_a_command_that_reads_no_datasets_works_where_a_variable_names_a_branch(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODFBUILD_BRANCH", "pr-12")
    assert program("version").code == 0
    said = program("gc")
    assert "error[E1103]" in said.err
    assert "unset ODFBUILD_BRANCH" in said.err
    monkeypatch.setenv("ODFBUILD_BRANCH", "")
    assert program("status").code == 0


def test_the_branch_of_git_is_named_where_a_branch_of_chains_is_refused(program: Program) -> None:
    said = program("git", "commit", "--push", "--branch", "data")
    assert "error[E1103]" in said.err
    assert "--git-branch" in said.err


def test_a_name_with_a_way_out_of_the_folder_is_refused(program: Program) -> None:
    for name in ("pr/..", "../x", "a/../b", ".."):
        said = program("plan", "-b", name)
        assert "error[E1101]" in said.err
        assert said.code == 1


def test_names_of_branches_are_proposed(program: Program) -> None:
    from odfbuild.cli.complete import branches
    from odfbuild.store.workspace import Workspace
    from tests.store.chains import create, info

    root = program.root
    space = Workspace(root / "chains", root / ".odfbuild-keys", root / ".odfbuild", branch="pr-1")
    create(space, "root", info("x"))

    class Asked:
        params = {"directory": str(root)}

        def find_root(self) -> Asked:
            return self

    assert branches(Asked(), "") == ["pr-1"]  # type: ignore[arg-type]

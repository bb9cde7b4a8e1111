"""One spelling for one thing on the command line, in every verb."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer

from odfbuild import Project
from odfbuild.cli.aliases import ALIASES
from odfbuild.cli.defaults import right_spelling
from odfbuild.cli.main import app
from odfbuild.version import __version__
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny

NO_JSON = {
    "convert": "writes the records themselves to standard output",
    "docs serve": "shows pages to browsers until it is stopped",
    "engine serve": "answers coordinators until it is stopped",
    "lsp": "answers an editor, in a protocol of its own",
    "serve": "answers other projects until it is stopped",
    "shell": "is a prompt: `sql` answers one question as JSON",
}
"""Commands that print nothing that a program could read."""


def commands(group: Any, *path: str) -> Iterator[tuple[str, Any]]:
    """All commands that help lists, by their words."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *path, name)
        elif name not in ALIASES:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands(typer.main.get_command(app)))


def names(command: Any) -> set[str]:
    return {name for each in command.params for name in each.opts}


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return Tiny.fresh(tmp_path / "p")


# --- A long option has two dashes ---


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        (["plan", "-out=plan.json"], "--out=plan.json"),
        (["plan", "-out", "plan.json"], "--out"),
        (["plan", "-o=plan.json"], "-o plan.json"),
        (["plan", "-outt=plan.json"], "--out=plan.json"),
        (["plan", "-detailed-exitcode"], "--detailed-exitcode"),
        (["plan", "-json"], "--json"),
        (["plan", "-target=derived"], "--select=derived"),
        (["plan", "-var-file=x.yaml"], "--vars-file=x.yaml"),
        (["plan", "-no-color"], "--no-color"),
        (["-chdir=elsewhere", "plan"], "--directory=elsewhere"),
        (["apply", "-auto-approve"], "--auto-approve"),
        (["apply", "-parallelism=3"], "--jobs=3"),
        (["apply", "-lock-timeout=3s"], "--lock-timeout=3s"),
        (["ls", "-select", "root"], "--select"),
        (["git", "commit", "-message=x"], "--message=x"),
        (["docs", "build", "-out", "x.html"], "--out"),
    ],
)
def test_a_long_option_with_one_dash_is_refused_with_its_right_spelling(
    tiny: Tiny, odfbuild: Program, arguments: list[str], right: str
) -> None:
    before = sorted(tiny.root.rglob("*"))
    said = odfbuild(*arguments)
    assert said.code == 64
    assert f"help: write '{right}'\n" in said.err
    assert sorted(tiny.root.rglob("*")) == before


@pytest.mark.parametrize(
    "arg", ["-vv", "-oplan.json", "-s+root", "-ky", "-j4", "-", "--", "-o", "--out=x", "-sroot"]
)
def test_short_options_and_their_values_stay_what_they_are(arg: str) -> None:
    options = {"-o": True, "--out": True, "-s": True, "--select": True, "-j": True, "--jobs": True}
    assert right_spelling(arg, {**options, "-k": False, "-y": False, "-v": False}) is None


def test_values_of_options_and_words_after_two_dashes_may_begin_with_a_dash(
    odfbuild: Program,
) -> None:
    assert "E0212" in odfbuild("plan", "-s", "-select").err
    assert "E0212" in odfbuild("plan", "--", "-out").err


# --- The version ---


@pytest.mark.parametrize("arguments", [["--version"], ["plan", "--version"]])
def test_version_is_told_outside_of_projects_too(
    tmp_path: Path,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = Program(tmp_path, monkeypatch, capsys).ok(*arguments)
    assert said.out == f"odfbuild {__version__}\n"


# --- Systems ---

_WITHOUT_FCNTL = "import runpy, sys; sys.modules['fcntl'] = None; sys.argv[1:] = ['plan']; "


@pytest.mark.parametrize(
    ("use", "ends"),
    [
        ("runpy.run_module('odfbuild', run_name='__main__')", "odfbuild works on Linux and macOS"),
        ("import odfbuild; odfbuild.Project", "ImportError: odfbuild works on Linux and macOS"),
    ],
)
def test_a_system_without_locks_of_unix_is_told_what_is_supported(use: str, ends: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_FCNTL + use], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(ends)
    assert "WSL" in done.stderr


# --- Consent, JSON and locks ---


def test_consent_has_one_spelling() -> None:
    asking = {name for name, command in COMMANDS.items() if "-y" in names(command)}
    assert asking == {
        *("apply", "branch delete", "erase", "gc", "lock break", "promote", "render", "reset"),
        *("migrate dbt", "migrate definitions", "source drop", "table rebuild"),
    }
    for command in COMMANDS.values():
        assert "--yes" not in names(command)
        assert ("-y" in names(command)) == ("--auto-approve" in names(command))


def test_json_has_one_spelling_in_every_command() -> None:
    without = {name for name, command in COMMANDS.items() if "--json" not in names(command)}
    assert without == NO_JSON.keys()


@pytest.mark.parametrize(
    "arguments",
    [
        "new",
        "new csv more data --dry-run",
        "validate",
        "fmt --check",
        "render",
        "graph",
        "schema",
        "schema Seed",
        "migrate",
        "status",
        "ls",
        "lock list",
        "lock break root",
        "storage status",
        "docs build --single-page -o page.html",
    ],
)
def test_json_is_json(odfbuild: Program, arguments: str) -> None:
    assert json.loads(odfbuild(*arguments.split(), "--json").out) is not None


# --- The form of the output ---


@pytest.mark.parametrize(
    ("form", "arguments", "begins"),
    [
        ("json", "ls", "["),
        ("md", "ls", "NAME"),
        ("md", "plan", "<!-- odfbuild"),
        ("html", "log root", "error"),
        ("dot", "graph", "digraph"),
        ("dot", "status", ""),
        ("openlineage", "validate", "2 datasets"),
        ("yaml", "graph", "root"),
        ("json", "doctor", "{"),
    ],
)
def test_the_variable_for_the_form_concerns_only_verbs_that_have_it(
    odfbuild: Program, monkeypatch: pytest.MonkeyPatch, form: str, arguments: str, begins: str
) -> None:
    monkeypatch.setenv("ODFBUILD_FORMAT", form)
    said = odfbuild(*arguments.split())
    assert (said.out or said.err).startswith(begins)
    assert said.code != 64


def test_a_form_that_no_verb_has_is_refused(
    odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODFBUILD_FORMAT", "jsn")
    said = odfbuild("plan")
    assert said.code == 64
    assert "ODFBUILD_FORMAT: 'jsn' is none of text, json" in said.err
    monkeypatch.setenv("ODFBUILD_FORMAT", "json")
    assert odfbuild("docs", "serve", "--port", "x").out == ""  # it has no form


# --- Selections ---


def test_what_is_selected_may_be_said_without_an_option(tiny: Tiny, odfbuild: Program) -> None:
    assert [d["name"] for d in odfbuild("plan", "+derived", "--json").data["datasets"]] == [
        "root",
        "derived",
    ]
    assert [d["name"] for d in odfbuild("plan", "root", "--json").data["datasets"]] == ["root"]
    assert [d["name"] for d in odfbuild("diff", "derived", "--json").data["datasets"]] == [
        "derived"
    ]


def test_an_argument_of_apply_is_a_saved_plan_or_selects(tiny: Tiny, odfbuild: Program) -> None:
    done = odfbuild.ok("apply", "root", "-y", "--json").data
    assert [d["name"] for d in done["datasets"]] == ["root"]
    odfbuild.ok("plan", "-o", "saved")
    done = odfbuild.ok("apply", "saved", "derived", "-y", "--json").data
    assert [d["name"] for d in done["datasets"]] == ["derived"]
    assert "E0360" in odfbuild("apply", "nothing.json").err
    assert "E0212" in odfbuild("apply", "nothing").err


def every_first_sentence() -> Mapping[str, str]:
    def told(group: Any) -> Iterator[tuple[str, str]]:
        for name, command in group.commands.items():
            yield name, command.get_short_help_str(1000)
            if hasattr(command, "commands"):
                yield from told(command)

    return dict(told(typer.main.get_command(app)))


def test_lists_of_commands_have_whole_sentences(
    odfbuild: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    for sentence in every_first_sentence().values():
        assert sentence.endswith(".")
        assert len(sentence) < 85
    text = odfbuild.ok("--help").out
    assert "..." not in text.partition("Build:")[2]
    headings = [line for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert headings == ["Options:", "Build:", "Look:", "Prove:", "Share:", "Maintain:"]


def test_a_plan_in_python_reads_as_on_the_command_line(tiny: Tiny, odfbuild: Program) -> None:
    plan = Project(tiny.root).plan()
    assert f"{plan!r}\n" == odfbuild.ok("plan").out
    assert str(plan) == repr(plan)

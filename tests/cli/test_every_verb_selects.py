"""Every verb that is about datasets selects them in the same way, with every method."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odfbuild.cli.verbs import VERBS
from tests.apply.in_process import Program, Said, share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import QUERY, Tiny
from tests.cli.repository import git

ROOT, DERIVED, MADE = "root", "derived", "made"
EVERYTHING = {ROOT, DERIVED, MADE}
INFO = "    - kind: SetInfo\n      description: {}\n      keywords: [{}]\n"

SELECTIONS = {
    ("derived",): {DERIVED},
    ("+derived",): {ROOT, DERIVED},
    ("root+", "--exclude", "made"): {ROOT, DERIVED},
    ("@made",): {ROOT, MADE},
    ("root made",): {ROOT, MADE},
    ("m*,kind:derivative",): {MADE},
    ("name:made",): {MADE},
    ("fqn:made",): {MADE},
    ("tag:daily",): {ROOT},
    ("path:datasets/derived.yaml",): {DERIVED},
    ("file:root.yaml",): {ROOT},
    ("template:made",): {MADE},
    ("kind:derivative",): {DERIVED, MADE},
    ("source:*",): {ROOT},
    ("state:forward-only",): {DERIVED},
    ("stale:source_has_news",): {ROOT},
    ("git:HEAD",): {DERIVED},
    ("result:committed",): {ROOT},
    ("selector:mine",): {MADE},
}
"""Selections with each method, and what they select."""


def listed(key: str) -> Callable[[Said], set[str]]:
    """Names in the JSON output, each in an object of the list `key`, or of the output itself."""

    def names(said: Said) -> set[str]:
        found: Any = said.data[key] if key else said.data
        return {each if isinstance(each, str) else each["name"] for each in found}

    return names


def grouped(said: Said) -> set[str]:
    return {name for group in said.data["groups"].values() for name in group}


def garbage(said: Said) -> set[str]:
    # What other processes of this machine left in its temporary folder belongs to no dataset.
    return {each["dataset"] for each in said.data["garbage"] if each["dataset"] is not None}


def words(said: Said) -> set[str]:
    return set(re.findall(r"\b(?:root|derived|made)\b(?=\n|  name| \[|$)", said.out)) & EVERYTHING


def manifests(said: Said) -> set[str]:
    return set(re.findall(r"^  name: (\w+)$", said.out, re.MULTILINE))


def sections(said: Said) -> set[str]:
    return set(re.findall(r'<section id="d-(\w+)">', said.out))


def of_tables(said: Said) -> set[str]:
    return {each["dataset"] for each in said.data["tables"]}


SELECTING: dict[str, tuple[tuple[str, ...], Callable[[Said], set[str]]]] = {
    "lint": (("lint", "--json"), listed("datasets")),
    "render": (("render",), manifests),
    "graph": (("graph",), words),
    "status": (("status", "--json"), grouped),
    "plan": (("plan", "--json"), listed("datasets")),
    "diff": (("diff", "--json"), listed("datasets")),
    "drift": (("drift", "--json"), listed("datasets")),
    "apply": (("apply", "--json", "-y"), listed("datasets")),
    "ls": (("ls", "--json"), listed("")),
    "freshness": (("freshness", "--json"), listed("")),
    "test": (("test", "--json"), listed("datasets")),
    "verify": (("verify", "--integrity", "--json"), listed("datasets")),
    "gc": (("gc", "--dry-run", "--grace", "0", "--json"), garbage),
    "table": (("table", "ls", "--json"), of_tables),
    "storage": (("storage", "status", "--json"), listed("datasets")),
    "push": (("push", "--dry-run", "--json", "--to", "../published"), listed("datasets")),
    "key": (("key", "status", "--json"), listed("")),
    "docs": (("docs", "build", "--single-page", "-o", "-"), sections),
    "passport": (("passport", "--format", "odcs", "--json"), listed("")),
    "engine": (("engine", "deprecate", "--json"), listed("datasets")),
}
"""A command of each verb that selects, and the names of the datasets that its output is about."""

NOT_SELECTING = {
    "init": "there is no project yet",
    "new": "makes one dataset",
    "validate": "only all definitions together are valid",
    "lsp": "answers an editor, about the files that it has open",
    "fmt": "is about files",
    "migrate": "is about files",
    "import": "is about one dataset",
    "show": "shows a plan as it was saved",
    "explain": "is about one dataset",
    "ingest": "is about one dataset",
    "source": "names datasets: a server keeps one slot for each",
    "pull": "selects external datasets: tests/cli/sharing/test_pull_push.py",
    "serve": "rules of the machine say what is served",
    "chains": "moves all chains of a project",
    "erase": "names persons: tests/stewardship",
    "branch": "names branches, not datasets: tests/cli/branching/test_branch_verbs.py",
    "promote": "selects datasets of a branch: tests/apply/chains/test_promote.py",
    "log": "is about one dataset",
    "blame": "is about one dataset",
    "corrections": "is about one dataset",
    "provenance": "is about one dataset",
    "tail": "is about one dataset",
    "reset": "takes back one dataset and those that read it",
    "decode": "is about one object",
    "convert": "is about one file",
    "schema": "is about the protocol",
    "version": "is about the program",
    "doctor": "is about the machine and the whole project",
    "sql": "names datasets in its query",
    "shell": "names datasets in its questions",
    "watermark": "is about one dataset",
    "lock": "is about processes",
    "git": "sets a repository up",
    "ci": "writes one comment",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tiny]:
    """A project in Git where every dataset differs from its chain, each in a way of its own."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("GIT_")]:
            patch.delenv(name)
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
        share(PlainEngine(), patch)
        tiny = Tiny.fresh(tmp_path_factory.mktemp("selects") / "project")
        git(tiny, "init", "-q", "-b", "main")
        config = tiny.root / "odfbuild.yaml"
        config.write_text(
            config.read_text() + "  storage: ../storage\n  selectors: {mine: made}\n"
            "  tables: [{match: ['*'], format: parquet, location: lake}]\n"
            "  checks:\n    - {match: ['*'], notNull: [id]}\n"
        )
        (tiny.root / ".gitignore").write_text("/.odfbuild*\n")
        derived = (tiny.root / "datasets" / "derived.yaml").read_text()
        template = tiny.root / "datasets" / "made.yaml.j2"
        template.write_text("matrix:\n  n: [1]\n---\n" + derived.replace("derived", "made"))
        apply_all(tiny)
        tiny.arrive(2)
        apply_all(tiny, "-s", "root")
        (tiny.root / "data" / "3.csv").write_text("event_time,id,value\n2024-03-01 00:00:00,9,9\n")
        root = tiny.root / "datasets" / "root.yaml"
        root.write_text(root.read_text() + INFO.format("A root", "daily"))
        template.write_text(template.read_text() + INFO.format("Made", "weekly"))
        git(tiny, "add", "-A")
        git(tiny, "commit", "-q", "-m", "All but one")
        tiny.derive("derived", QUERY.replace("10", "20"))
        for name in EVERYTHING:
            (tiny.root / "chains" / name / "data" / ("f1620" + "0" * 64)).write_text("garbage")
        yield tiny


def apply_all(tiny: Tiny, *arguments: str) -> None:
    from odfbuild.cli.main import run

    code = run(["-C", str(tiny.root), "-q", "apply", "-y", "--json", *arguments])
    assert code == 0


@pytest.mark.parametrize("verb", sorted(SELECTING))
def test_a_verb_selects_with_every_method(
    verb: str,
    project: Tiny,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command, names = SELECTING[verb]
    everything = names(Program(copied(project, tmp_path, verb, 0), monkeypatch, capsys)(*command))
    assert everything == (EVERYTHING if verb != "engine" else set())
    wrong = {}
    for number, (selection, expected) in enumerate(SELECTIONS.items(), 1):
        root = copied(project, tmp_path, verb, number)
        program = Program(root, monkeypatch, capsys)
        first, *rest = selection
        option = ("--selector", "mine") if first == "selector:mine" else ("-s", first)
        said = program(*command, *option, *rest)
        found = names(said)
        if found != expected & everything:
            wrong[selection] = (found, said.err)
    assert wrong == {}


def copied(project: Tiny, tmp_path: Path, verb: str, number: int) -> Path:
    """The project itself, or a copy for a verb that changes it."""
    if verb != "apply":
        return project.root
    return Path(shutil.copytree(project.root, tmp_path / str(number)))


def test_a_part_of_a_saved_plan_is_selected_with_every_method(
    project: Tiny,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from odfbuild.cli.options import selection_of
    from odfbuild.project.config import load_config
    from odfbuild.survey.approved import load_plan
    from odfbuild.survey.selectable import selected_of_plan

    Program(project.root, monkeypatch, capsys).ok("plan", "-o", str(tmp_path / "plan.json"))
    plan, config = load_plan(tmp_path / "plan.json").plan, load_config(project.root)
    found = {
        selection: selected_of_plan(
            selection_of([selection[0]], None, list(selection[2:]), None), plan, config
        )
        for selection in SELECTIONS
    }
    assert found == SELECTIONS


@pytest.mark.parametrize("verb", sorted(SELECTING))
def test_a_verb_refuses_a_name_that_is_not_there(
    verb: str, project: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = Program(project.root, monkeypatch, capsys)(*SELECTING[verb][0], "-s", "maid")
    assert (said.code, "error[E0212]" in said.err) == (64, True)
    assert "did you mean 'made'?" in said.err


def test_every_verb_selects_or_is_not_about_several_datasets() -> None:
    assert set(VERBS) == SELECTING.keys() | NOT_SELECTING.keys()
    assert SELECTING.keys().isdisjoint(NOT_SELECTING)

"""What the package promises: its names, their page, their examples, and what it logs."""

from __future__ import annotations

import ast
import doctest
import inspect
import logging
from pathlib import Path

import networkx
import pytest

import odfbuild
from odfbuild import Dataset, Project
from odfbuild.api.reference import digest, python_page
from tests.apply.in_process import share
from tests.apply.plain_engine import PlainEngine
from tests.apply.tiny import Tiny

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    share(PlainEngine(), monkeypatch)
    return Tiny.fresh(tmp_path / "p")


def test_every_public_name_is_there_and_documented() -> None:
    for name in odfbuild.__all__:
        value = getattr(odfbuild, name)
        assert name == "__version__" or (value.__doc__ or "").strip(), name


def test_type_checkers_see_the_names_that_are_exported() -> None:
    stub = ast.parse(Path(odfbuild.__file__).with_suffix(".pyi").read_text())
    seen = {
        (node.module, alias.asname)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == {(module, name) for name, module in vars(odfbuild)["_MODULES"].items()}


def test_the_page_is_the_one_that_follows_from_the_package() -> None:
    assert (ROOT / "docs" / "reference" / "python.md").read_text() == python_page()


def test_the_interface_does_not_change_without_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    newest = changelog.split("\n## ")[1]
    assert f"<!-- Python interface {digest()} -->" in newest, (
        "describe the change of the Python interface under Unreleased, and write there "
        f"<!-- Python interface {digest()} -->"
    )


def test_examples_in_docstrings_give_what_they_show(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny.root)
    names = {**{name: getattr(odfbuild, name) for name in odfbuild.__all__}, "networkx": networkx}
    project = Project()
    order = [Project, Project.plan, Project.graph, Project.apply, Dataset]
    others = [value for _, value in inspect.getmembers(Project, inspect.isfunction)]
    members = [getattr(each, "fget", each) for each in vars(Dataset).values()]
    others += filter(inspect.isfunction, members)
    run = 0
    for value in [*order, *(each for each in others if each not in order)]:
        for example in doctest.DocTestFinder(recurse=False).find(value, globs=names):
            example.globs["project"] = project
            result = doctest.DocTestRunner().run(example)
            assert result.failed == 0, example.name
            run += result.attempted
    assert run >= 14


def test_what_runs_is_logged(tiny: Tiny, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="odfbuild"):
        Project(tiny.root).apply()
    said = [each.getMessage() for each in caplog.records if each.name == "odfbuild.apply"]
    assert said[:2] == ["2 datasets to work on", "root: started"]
    assert said[2].startswith("root: committed 3 records in 4 blocks")

"""Mistakes that only show when data is built: each is reported with its place, chains stay."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.project.write_project import derived_yaml, listing, root_yaml, write_project

pytestmark = pytest.mark.spark

_COMMAND = [sys.executable, "-c", "from odfbuild.cli.main import main; main()"]


@dataclass(frozen=True)
class _Runs:
    """A first run that fails in part, and a second one after definitions have changed."""

    root: Path
    first: subprocess.CompletedProcess[str]
    second: subprocess.CompletedProcess[str]
    before: dict[str, bytes]
    after: dict[str, bytes]


def _odfbuild(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*_COMMAND, *arguments],
        cwd=root,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> _Runs:
    template = "matrix:\n  n: [1]\n---\n" + derived_yaml(
        "templated{{ n }}", "cities", "SELECT event_time,\n  citi FROM src"
    )
    root = write_project(
        tmp_path_factory.mktemp("wrong") / "project",
        {
            "cities.yaml": root_yaml("cities"),
            "ragged.yaml": root_yaml("ragged", glob="data/ragged.txt"),
            "missing.yaml": root_yaml("missing", glob="nowhere/*.csv"),
            "healthy.yaml": derived_yaml("healthy", "cities"),
            "syntax.yaml": derived_yaml(
                "syntax", "cities", "SELECT event_time, id\nFORM src WHERE"
            ),
            "column.yaml": derived_yaml("column", "cities", "SELECT event_time,\n  citi FROM src"),
            "templated.yaml.j2": template,
        },
    )
    (root / "data").mkdir()
    (root / "data" / "a.csv").write_text("id,city\n1,Kyiv\n2,Lisbon\n")
    (root / "data" / "ragged.txt").write_text("id,city\n1,Kyiv\nmany,Lisbon\n")
    first = _odfbuild(root, "apply", "-y")
    before = listing(root / "chains")
    for name in ("ragged", "missing", "syntax", "column"):
        (root / "datasets" / f"{name}.yaml").unlink()
    (root / "datasets" / "templated.yaml.j2").unlink()
    (root / "datasets" / "cities.yaml").write_text(root_yaml("cities", "id STRING, city STRING"))
    second = _odfbuild(root, "apply", "-y")
    return _Runs(root, first, second, before, listing(root / "chains"))


def test_a_healthy_dataset_is_committed_beside_wrong_ones(runs: _Runs) -> None:
    assert runs.first.returncode == 4, runs.first.stderr
    chains = {name.split("/")[0] for name in runs.before}
    assert {"cities", "healthy"} <= chains
    assert chains.isdisjoint({"ragged", "missing", "syntax", "column", "templated1"})


@pytest.mark.parametrize(
    "place",
    [
        "datasets/syntax.yaml:16:16",
        "datasets/column.yaml:16:13",
        "datasets/templated.yaml.j2:19:13",
        "datasets/missing.yaml",
    ],
)
def test_each_mistake_is_shown_in_its_definition(runs: _Runs, place: str) -> None:
    assert place in runs.first.stderr + runs.first.stdout
    assert "Traceback" not in runs.first.stderr


def test_a_missing_column_comes_with_the_one_that_was_meant(runs: _Runs) -> None:
    assert "did you mean 'city'?" in runs.first.stderr


def test_a_malformed_row_names_its_file_and_line(runs: _Runs) -> None:
    shown = runs.first.stderr
    assert "data/ragged.txt:3" in shown
    assert "ragged" in shown


def test_a_committed_column_keeps_its_type(runs: _Runs) -> None:
    assert runs.second.returncode == 1, runs.second.stderr
    assert "datasets/cities.yaml" in runs.second.stderr
    assert "id" in runs.second.stderr
    assert "help:" in runs.second.stderr
    assert runs.after == runs.before

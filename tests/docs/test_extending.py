"""docs/extending.md adds one of each: its changes are made in a copy of the package, and work."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.docs.console import ROOT

PAGE = (ROOT / "docs" / "extending.md").read_text("utf-8")
_FILES = re.findall(r"^```python\n# (odfbuild/\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
_EDITS = re.findall(r"^```diff\n--- (odfbuild/\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

_PROJECT = """\
kind: Project
version: 1
content:
  name: extended
  datasets: datasets
  state: chains
  tables:
    - match: [cities]
      format: arrow
      location: lake
      partitionBy: [city]
"""
_CITIES = """\
kind: DatasetSnapshot
version: 1
content:
  name: cities
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: "data/*.logfmt", order: ByName}
      read: {kind: Logfmt, ddlSchema: [city STRING, degrees STRING]}
      merge: {kind: Distinct}
    - kind: SetContact
      name: Ada
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with the changes of the page, and what is generated from it."""
    root = tmp_path_factory.mktemp("extended")
    # With the times of files, so that what Python compiled of them stays right.
    shutil.copytree(ROOT / "odfbuild", root / "odfbuild")
    for each in ("schemas", "templates", "docs/reference"):
        shutil.copytree(ROOT / each, root / each)
    for name, text in _FILES:
        assert not (root / name).exists()
        (root / name).write_text(text, "utf-8")
    for name, text in _EDITS:
        _edit(root / name, text)
    _run(root, root, "-m", "odfbuild.project.generate")
    return root


def _edit(file: Path, change: str) -> None:
    """Make a change of lines that begin with ` `, `+` and `-`, in parts behind `@@`."""
    text = file.read_text("utf-8")
    for part in change.split("@@\n"):
        lines = part.splitlines(keepends=True)
        before = "".join(each[1:] for each in lines if each[0] != "+")
        after = "".join(each[1:] for each in lines if each[0] != "-")
        assert text.count(before) == 1, f"{before!r} is not once in {file.name}"
        text = text.replace(before, after)
    file.write_text(text, "utf-8")


def _run(root: Path, folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root), "ODFBUILD_RESIDENT": "never"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.spark
def test_a_project_uses_one_of_each(copied: Path, tmp_path: Path) -> None:
    (tmp_path / "odfbuild.yaml").write_text(_PROJECT)
    (tmp_path / "datasets").mkdir()
    definition = tmp_path / "datasets" / "cities.yaml"
    definition.write_text(_CITIES)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "1.logfmt").write_text(
        "city=Bern degrees=21\n\ncity='Sankt Gallen' degrees=19\ncity=Bern degrees=21\n"
    )

    def odfbuild(*words: str) -> str:
        return _run(copied, tmp_path, "-m", "odfbuild", *words)

    assert "up to 3 new records" in odfbuild("plan")
    odfbuild("apply", "-y")
    assert json.loads(odfbuild("heads", "--json")).keys() == {"cities"}
    table = pa.ipc.open_file(tmp_path / "lake" / "cities" / "table.arrow").read_all()
    assert {(each["city"], each["degrees"]) for each in table.to_pylist()} == {
        ("Bern", "21"),
        ("Sankt Gallen", "19"),
    }
    assert "SetContact" in odfbuild("log", "cities")
    assert "No changes" in odfbuild("plan")
    definition.write_text(_CITIES.replace("Ada", "Bob"))
    assert "the contact changed" in odfbuild("explain", "cities")


def test_the_page_shows_each_place_that_its_tables_name() -> None:
    changed = {name.removeprefix("odfbuild/") for name, _ in (*_FILES, *_EDITS)}
    named = set(re.findall(r"^\| `([\w/]+\.py)`", PAGE, re.MULTILINE))
    assert named <= changed


def test_the_changes_pass_the_checks_of_style(copied: Path) -> None:
    names = {str(copied / name) for name, _ in (*_FILES, *_EDITS)}
    config = ("--config", str(ROOT / "pyproject.toml"))
    _run(copied, copied, "-m", "ruff", "check", *config, *sorted(names))

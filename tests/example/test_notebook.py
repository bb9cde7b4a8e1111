"""The notebook of the example runs without a browser and shows what is committed in it."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from tests.example.notebook import NOTEBOOK, executed, outputs
from tests.example.odfbuild_project import ExampleProject

pytestmark = pytest.mark.spark


def test_the_notebook_shows_what_is_committed_in_it(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    built = ExampleProject.applied(tmp_path_factory).copy(tmp_path / "project")
    found, committed = outputs(executed(built.root)), outputs(nbformat.read(NOTEBOOK, as_version=4))
    assert found == committed
    shown = "".join(text for cell in found for text in cell)
    assert "<script" not in shown
    assert shown.count("<svg") == 2
    for text in ("answered by DuckDB", "No changes", "data/flights/2013-0"):
        assert text in shown

"""`descriptions` of odfbuild.yaml: what columns of derivatives hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apply.in_process import Program
from tests.apply.tiny import Tiny


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    return Tiny.fresh(tmp_path / "project")


@pytest.fixture
def odfbuild(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    return Program(tiny.root, monkeypatch, capsys)


def describe(tiny: Tiny, text: str) -> None:
    file = tiny.root / "odfbuild.yaml"
    file.write_text(f"{file.read_text()}  descriptions:\n{text}")


def test_the_page_of_a_derivative_describes_its_columns_and_the_last_entry_wins(
    odfbuild: Program, tiny: Tiny
) -> None:
    describe(
        tiny,
        "    - match: ['*']\n      columns: {value: Any value, id: Number of the order}\n"
        "    - match: [derived]\n      columns: {VALUE: Ten times the value}\n",
    )
    odfbuild.ok("validate")
    odfbuild.ok("docs", "build")
    pages = tiny.root / ".odfbuild" / "site" / "datasets"
    page = (pages / "derived.html").read_text()
    assert "Ten times the value" in page
    assert "Number of the order" in page
    assert "Any value" not in page
    assert "Any value" in (pages / "root.html").read_text()


def test_a_column_or_dataset_that_is_not_there_is_refused_at_its_place(
    odfbuild: Program, tiny: Tiny
) -> None:
    describe(
        tiny,
        "    - match: [derived]\n      columns: {vlaue: Ten times}\n"
        "    - match: [derrived]\n      columns: {value: Ten times}\n",
    )
    said = odfbuild("validate")
    assert said.code == 1
    assert "error[E1220]: no dataset of this entry has a column 'vlaue'" in said.err
    assert "--> odfbuild.yaml:9:17" in said.err
    assert "did you mean 'value'?" in said.err
    assert "error[E0151]: no dataset is called 'derrived'" in said.err

"""Every code of an error is explained, in one place and once."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

import odfbuild
from odfbuild.cli.main import run
from odfbuild.errors import ProjectError
from odfbuild.project.yaml.source import read_documents
from odfbuild.report.error_codes import error_codes, errors_page, is_error_code

PACKAGE = Path(odfbuild.__file__).parent
PAGE = PACKAGE.parent / "docs" / "reference" / "errors.md"
# The code of an error that was given none: nobody meets it.
NONE = "E0000"


def codes_in_use() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        if path.name == "error_codes.py":
            continue
        for code in re.findall(r'"(E[01]\d{3})"', path.read_text()):
            found.setdefault(code, set()).add(path.relative_to(PACKAGE).as_posix())
    found.pop(NONE, None)
    return found


def test_every_code_in_use_is_explained_in_error_codes_yaml() -> None:
    used = codes_in_use()
    assert {code: used[code] for code in used.keys() - error_codes().keys()} == {}


def test_no_entry_explains_a_code_that_nothing_raises() -> None:
    assert error_codes().keys() - codes_in_use().keys() == set()


def test_the_page_of_errors_is_up_to_date() -> None:
    how = "run `python -m odfbuild.report.error_codes > docs/reference/errors.md`"
    assert PAGE.read_text() == errors_page(), how


def test_entries_are_in_order_and_none_is_there_twice() -> None:
    text = (PACKAGE / "report" / "error_codes.yaml").read_text()
    codes = re.findall(r"^(E\d{4}):$", text, re.MULTILINE)
    assert codes == sorted(set(codes))
    assert codes == list(yaml.safe_load(text))


@pytest.mark.parametrize(("text", "is_code"), [("E0101", True), ("e0101", True), ("e1", False)])
def test_a_code_is_told_from_the_name_of_a_dataset(text: str, is_code: bool) -> None:
    assert is_error_code(text) is is_code


def test_explain_prints_the_entry_of_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "e0202"]) == 0
    assert capsys.readouterr().out.startswith("E0202: Unknown input\n\nThe input is neither")
    assert run(["explain", "E0202", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["code"] == "E0202"


def test_a_code_that_is_explained_twice_is_refused() -> None:
    with pytest.raises(ProjectError, match="title"):
        read_documents("E0101:\n  title: One\n  title: Another\n", "error_codes.yaml")
    with pytest.raises(ProjectError, match="E0101"):
        read_documents("E0101:\n  title: One\nE0101:\n  title: Another\n", "error_codes.yaml")

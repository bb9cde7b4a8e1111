"""Code asks for codes of errors by names, and each of these has a text."""

import ast
import re
from pathlib import Path

from odfbuild.errors import Code
from odfbuild.report.error_codes import error_codes

PACKAGE = Path(__file__).parents[2] / "odfbuild"


def test_no_code_is_compared_with_a_literal() -> None:
    found = []
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Compare):
                parts = [each for side in node.comparators for each in ast.walk(side)]
                texts = [each.value for each in parts if isinstance(each, ast.Constant)]
                if any(isinstance(text, str) and re.fullmatch(r"E\d{4}", text) for text in texts):
                    found.append(f"{file.relative_to(PACKAGE)}:{node.lineno}")
    assert found == []


def test_each_name_stands_for_a_code_with_a_text() -> None:
    assert {str(each) for each in Code} <= error_codes().keys()

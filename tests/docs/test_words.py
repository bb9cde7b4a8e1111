"""Documentation, help, messages and module headers keep to the words of the glossary."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    ROOT / "odfbuild" / "report" / "error_codes.yaml",
]
MODULES = sorted((ROOT / "odfbuild").rglob("*.py"))

INSTEAD = {
    r"mend(s|ed|ing)?": "fix, correct, repair",
    r"wish(es|ed)?": "request",
    r"headway": "progress",
    r"manner": "options",
    r"surroundings": "environment",
    r"thaw(s|ed|ing)?": "load",
    r"standing": "status",
    r"forgotten": "orphaned",
    r"unwise": "that may cause problems",
    r"tabulator": "Tab key",
    r"for ever": "permanently",
    r"nobody can be asked": "no terminal",
    r"asks nobody": "read-only",
    r"whom to ask": "owners",
    r"do(es|ne)? (it |them |this |that )?again": "recompute, rebuild, repeat",
    r"begins? anew": "start over, rebuild",
    r"taken? back": "retract, reset",
    r"was under way": "was running",
    r"at a glance": "summary",
    r"came together": "matched",
    r"shall": "must, needs",
    r"strangers?": "untrusted",
    r"look before": "preview",
}
"""Words that a newcomer would have to translate, and what to write instead."""


def said(module: Path) -> Iterator[tuple[int, str]]:
    """What a module says to people: its header and every text of several words."""
    tree = ast.parse(module.read_text("utf-8"))
    header = ast.get_docstring(tree)
    if header:
        yield 1, header
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    for node in texts:
        if isinstance(node.value, str) and " " in node.value and id(node) not in docs:
            yield node.lineno, node.value


def wrong(text: str) -> Iterator[str]:
    """The words in `text` that have a better one; what is quoted as code may be a name."""
    plain = re.sub(r"`[^`]*`", "", text)
    for word, better in INSTEAD.items():
        for found in re.finditer(rf"\b{word}\b", plain, re.IGNORECASE):
            yield f"{found[0]!r}: write {better}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_use_the_words_of_the_glossary(page: Path) -> None:
    lines = enumerate(page.read_text("utf-8").splitlines(), 1)
    assert [f"{page}:{number}: {word}" for number, line in lines for word in wrong(line)] == []


def test_messages_help_and_module_headers_use_the_words_of_the_glossary() -> None:
    found = [
        f"{module.relative_to(ROOT)}:{line}: {word}"
        for module in MODULES
        for line, text in said(module)
        for word in wrong(text)
    ]
    assert found == []


def test_the_glossary_has_at_least_fifty_terms_each_once_and_in_order() -> None:
    rows = re.findall(r"^\| (\S.*?) \| ", (ROOT / "docs" / "glossary.md").read_text("utf-8"), re.M)
    terms = [term.lower() for term in rows if term not in ("term", "---")]
    assert len(terms) >= 50
    assert terms == sorted(set(terms))


@pytest.mark.parametrize(
    ("text", "found"),
    [("Mend it.", True), ("recommend amending", False), ("`state:forgotten`", False)],
)
def test_a_word_is_found_as_a_word_and_outside_of_code(text: str, found: bool) -> None:
    assert any(wrong(text)) is found

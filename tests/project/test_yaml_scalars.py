"""From a character of a value back to the character of the YAML text that it comes from."""

from __future__ import annotations

import pytest

from odfbuild.project.yaml.scalars import offsets_of
from odfbuild.project.yaml.source import compose, locate_in_scalar

TEXTS = {
    "plain": "k: SELECT a FROM b\n",
    "plain on several lines": "k: SELECT a\n  FROM b\n\n  WHERE c\nz: 1\n",
    "single quotes": "k: 'SELECT ''a'' FROM b'\n",
    "single quotes on several lines": "k: 'SELECT a\n  ''x''  FROM b\n\n  c'\n",
    "double quotes": 'k: "SELECT \\"a\\" \\u00e9 \\x41 FROM \\\\ b"\n',
    "double quotes on several lines": 'k: "SELECT a\n  FROM \\\n  b\\n c"\n',
    "literal": "k: |\n  SELECT\n    a\n\n  FROM b\nz: 1\n",
    "literal after blank lines": "k: |-\n\n  SELECT a\n  FROM b",
    "literal with a given depth": "k: |2\n    SELECT a\n   FROM b\n",
    "literal in a list": "- k: |+\n    SELECT a\n    FROM b\n\n",
    "folded": "k: >\n  SELECT a\n  FROM b\n\n  WHERE c\n    = 1\n  d\nz: 1\n",
    "folded and cut": "k: >-\n  SELECT a\n  FROM b\n",
    "beyond ASCII": "# ü\nk: |\n  SELECT 'é😀', a\n  FROM b\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_words_are_found_where_they_stand(text: str) -> None:
    root = compose(text, "f")[0]
    mapping = root.value[0] if root.tag.endswith("seq") else root
    node = mapping.value[0][1]
    offsets = offsets_of(text, node)
    assert len(offsets) == len(node.value) + 1
    assert list(offsets) == sorted(offsets)
    for word in ("SELECT", "a", "FROM", "b", "WHERE", "c"):
        at = node.value.find(word)
        if at >= 0:
            assert text[offsets[at] : offsets[at] + len(word)] == word


def test_line_and_column_of_a_folded_query_are_those_of_the_file() -> None:
    text = "q: >-\n  SELECT a,\n    wrong\n  FROM b\n"
    (node,) = (value for _, value in compose(text, "f")[0].value)
    line = node.value[: node.value.index("wrong")].count("\n") + 1
    column = node.value.index("wrong") - node.value.rfind("\n", 0, node.value.index("wrong"))
    place = locate_in_scalar(text, "f", 0, ("q",), line, column)
    assert (place.line, place.column) == (3, 5)

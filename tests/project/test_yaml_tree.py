"""YAML that programs rewrite keeps everything that people wrote into it."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.odf.yaml_text import dump_yaml
from odfbuild.project.yaml.source import read_documents
from odfbuild.project.yaml.tree import (
    Map,
    Seq,
    UnsupportedYaml,
    lines_of,
    parse,
    plain,
    render,
    tree_of,
)

WRITTEN = """\
# A file that people keep.

---
kind: Thing  # what it is
"quoted key": 'single ''quotes'''
empty:
nothing: ~  # said on purpose
# Above a list
list:  # behind its key
  # above an item
  - one  # behind an item

  - two: 2
    # inside
    three: [a, "b", {c: d}]  # flow
  - - nested
    - list
  - |
    text

      deeper
    # not a comment
unindented:
- a
- {b: 1,
   c: 2}
folded: >-
  some words
  more
many: plain words
  over lines
deep:
  deeper:
    deepest: "a
      b"
  # the last comment of deep
end: 1
# after all
"""


def _again(text: str) -> str:
    """Through the trees, every document written anew."""
    file = parse(text, "x.yaml")
    lines: list[str] = []
    for document in file.documents:
        lines += [*document.before, *lines_of(document.root)]
    return "\n".join([*lines, *file.after]).rstrip("\n") + "\n"


def test_comments_quotes_and_styles_come_out_as_they_were() -> None:
    again = _again(WRITTEN)
    assert read_documents(again, "x.yaml") == read_documents(WRITTEN, "x.yaml")
    # Only indentation may change: of lines that go on.
    expected = WRITTEN.replace("   c: 2}", "  c: 2}")
    assert again == expected
    assert _again(again) == again


def test_documents_that_are_not_edited_keep_every_byte() -> None:
    text = "a:    1\nb:\n        - x\n---\nc: 1   # why\n# end\n"
    file = parse(text, "x.yaml")
    assert render(file) == text
    root = file.documents[1].root
    assert isinstance(root, Map)
    root.put("c", 2)
    assert render(file) == text.replace("c: 1   # why", "c: 2   # why")


def test_edited_collections_leave_their_braces() -> None:
    file = parse("a: {b: 1, c: [2]}\nd: [1]\n", "x.yaml")
    root = file.documents[0].root
    assert isinstance(root, Map)
    inner = root.get("a")
    assert isinstance(inner, Map)
    inner.rename("b", "e")
    assert render(file) == "a:\n  e: 1\n  c: [2]\nd: [1]\n"


@pytest.mark.parametrize(
    "text", ["a: &x 1\nb: *x\n", "a: !!str 1\n", "? a\n: b\n", "a: |2\n   x\n"]
)
def test_what_cannot_be_kept_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedYaml):
        parse(text, "x.yaml")


_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zl", "Zp"]))
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXT | st.sampled_from(["a\nb\n", "a\n\n b", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from("abcdef"), _VALUES, min_size=1), st.sampled_from([0, 1, 2]))
def test_any_data_survives_in_every_style(data: dict[str, Any], style: int) -> None:
    if style == 2:
        text = yaml.safe_dump(data, default_flow_style=True, allow_unicode=True, width=30)
    else:
        text = dump_yaml(data) if style else yaml.safe_dump(data, width=20, allow_unicode=True)
    try:
        expected = read_documents(text, "x.yaml")
        found = _again(text)
    except UnsupportedYaml:
        return
    assert read_documents(found, "x.yaml") == expected
    assert plain(tree_of(data)) == data
    assert read_documents("\n".join([*lines_of(tree_of(data)), ""]), "x.yaml") == [data]


def test_lists_can_be_built() -> None:
    tree = tree_of({"a": [{"b": 1, "c": [1]}, "x", []]})
    assert isinstance(tree, Map)
    assert isinstance(tree.get("a"), Seq)
    assert "\n".join(lines_of(tree)) == dedent("""\
        a:
          - b: 1
            c:
              - 1
          - x
          - []""")

"""The keys of a YAML text are found by its lines, also while it is broken."""

from __future__ import annotations

import pytest

from odfbuild.api.editor.outline import outline_of
from odfbuild.api.editor.sql_parts import sql_parts

TEXT = """\
# A comment: no key.
kind: DatasetSnapshot
content:
  name: a.b
  metadata:
  - kind: SetTransform
    inputs:
      - {datasetRef: c, alias: "d"}
      -   datasetRef: e
    transform:
      query: >-  # folded
        SELECT x: y
        FROM d
      engine: [spark, 1]
"""


def test_paths_lead_through_lists_and_braces() -> None:
    outline = outline_of(TEXT)
    event = ("content", "metadata", 0)
    assert outline.value(0, ("content", "name")) == "a.b"
    assert outline.value(0, (*event, "inputs", 0, "alias")) == "d"
    assert outline.value(0, (*event, "inputs", 1, "datasetRef")) == "e"
    assert outline.value(0, (*event, "transform", "engine", 0)) == "spark"
    assert [each[-1] for each in outline.items(0, (*event, "inputs"))] == [0, 1]
    assert outline.entry(0, ("SELECT x",)) is None


@pytest.mark.parametrize(
    "broken",
    [TEXT.replace("name: a.b", "name: [a.b"), TEXT.replace("kind: D", "kind D"), TEXT + "\t- {"],
)
def test_what_is_broken_hides_nothing_else(broken: str) -> None:
    outline = outline_of(broken)
    assert outline.value(0, ("content", "metadata", 0, "inputs", 1, "datasetRef")) == "e"


def test_documents_are_counted_as_yaml_does() -> None:
    outline = outline_of("# c\n---\na: 1\n---\nb: 2\n...\n---\nc: 3\n")
    assert [(each.document, each.path) for each in outline.entries] == [
        (0, ("a",)),
        (1, ("b",)),
        (2, ("c",)),
    ]


def test_each_character_of_a_query_has_its_place_in_the_file() -> None:
    (part,) = sql_parts(outline_of(TEXT))
    for word in ("SELECT", "FROM", "d"):
        at = part.sql.index(word)
        start = part.offsets[at]
        assert TEXT[start : start + len(word)] == word
        assert part.within(start) == at


def test_expressions_of_templates_are_names_of_the_same_length() -> None:
    text = "content:\n  metadata:\n    - transform:\n        query: |\n          SELECT {{ x }} {% if y %}\n"
    (part,) = sql_parts(outline_of(text))
    assert part.sql.rstrip("\n") == "SELECT _______           "

"""Formatting gives a definition its one form, and never another meaning."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from odfbuild.odf.model import DatasetSnapshot
from odfbuild.odf.yaml_form import from_manifest, to_manifest
from odfbuild.odf.yaml_text import dump_yaml
from odfbuild.project.format import format_text
from odfbuild.project.yaml.source import read_documents
from odfbuild.project.yaml.version_1_1 import other_meaning, text_as_yaml
from tests.odf.values import objects

ROOT = Path(__file__).parents[2]
DEFINITIONS = sorted(
    path
    for folder in ("example_project/datasets", "tests/projects", "templates/init", "tests/project")
    for path in (ROOT / folder).rglob("*.yaml")
)

UNTIDY = """\
# yaml-language-server: $schema=x.json


kind: DatasetSnapshot
content:
    metadata:
    # What it reads
    - merge:
        primaryKey: [id,  "name" ]
        kind: Ledger   # by key
      read:
        # Columns
        schema:
        - 'id BIGINT'   # never null

        - "name STRING"

        # - total DOUBLE
        header: true
        nullValue: 'NA'
        kind: Csv
        # end of read
      kind: SetPollingSource
      fetch: {kind: FilesGlob,path: 'data/*.csv'}
    - description: "No: 'quotes' needed? Yes."
      kind: SetInfo
      keywords:
      - "NO"
      - "1"
      - 'it''s'
    kind: Root
    name: "orders"

version: 1
# the end
"""

TIDY = """\
# yaml-language-server: $schema=x.json

kind: DatasetSnapshot

version: 1
content:
  name: orders
  kind: Root
  metadata:
    # What it reads
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: 'data/*.csv'}
      read:
        kind: Csv
        header: true
        nullValue: NA
        # Columns
        schema:
          - id BIGINT   # never null

          - name STRING

          # - total DOUBLE
        # end of read
      merge:
        kind: Ledger   # by key
        primaryKey: [id, "name"]
    - kind: SetInfo
      description: "No: 'quotes' needed? Yes."
      keywords:
        - "NO"
        - "1"
        - it's
# the end
"""


def test_an_untidy_definition_becomes_a_tidy_one() -> None:
    formatted = format_text(UNTIDY, "a.yaml")
    assert formatted.after == TIDY
    assert formatted.is_changed
    assert "-    metadata:" in formatted.diff
    assert format_text(TIDY, "a.yaml").after == TIDY


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.name)
def test_no_definition_changes_its_meaning(path: Path) -> None:
    text = path.read_text()
    formatted = format_text(text, path.name)
    assert formatted.kept is None
    assert read_documents(formatted.after, "a") == read_documents(text, "a")
    assert format_text(formatted.after, "a").after == formatted.after
    comments = [line.strip() for line in text.splitlines() if line.strip().startswith("#")]
    kept = [line.strip() for line in formatted.after.splitlines() if line.strip().startswith("#")]
    assert sorted(kept) == sorted(comments)


@pytest.mark.parametrize(
    "path", [p for p in DEFINITIONS if "example_project" in str(p)], ids=lambda path: path.name
)
def test_the_example_is_in_form(path: Path) -> None:
    assert not format_text(path.read_text(), path.name).is_changed


_COMMENT = st.sampled_from(["", "# note", "", "#", "# - commented: out"])


@given(objects(DatasetSnapshot), st.sampled_from([2, 4]), st.booleans(), st.data())
def test_any_definition_is_the_same_after_formatting(
    snapshot: DatasetSnapshot, indent: int, canonical: bool, data: st.DataObject
) -> None:
    manifest = to_manifest(snapshot)
    if canonical:
        text = dump_yaml(manifest)
    else:
        shuffled = _shuffled(manifest, data)
        text = yaml.safe_dump(shuffled, sort_keys=False, indent=indent)
        # PyYAML leaves text without quotes that is a number in YAML 1.2, such as 0E0.
        assume(read_documents(text, "a") == [shuffled])
    text = _commented(text, data)
    formatted = format_text(text, "a.yaml")
    assert read_documents(formatted.after, "a") == read_documents(text, "a")
    assert from_manifest("DatasetSnapshot", read_documents(formatted.after, "a")[0]) == snapshot
    again = format_text(formatted.after, "a.yaml")
    assert again.after == formatted.after
    if formatted.kept is None:
        # The order of the specification is that of the event types.
        assert list(_keys(read_documents(formatted.after, "a")[0])) == list(_keys(manifest))


def _keys(data: Any) -> Any:
    if isinstance(data, dict):
        for key, value in data.items():
            yield key
            yield from _keys(value) if key != "extra" else ()
    elif isinstance(data, list):
        for each in data:
            yield from _keys(each)


def _shuffled(value: Any, data: st.DataObject) -> Any:
    if isinstance(value, dict):
        items = data.draw(st.permutations(list(value.items())))
        return {key: _shuffled(each, data) for key, each in items}
    return [_shuffled(each, data) for each in value] if isinstance(value, list) else value


def _commented(text: str, data: st.DataObject) -> str:
    """The text with comments above some lines that begin a key or an item."""
    lines = []
    is_text = False
    for line in text.split("\n"):
        plain = line.lstrip(" ")
        is_text = is_text or any(mark in line for mark in ("|", ">", '"', "'", "{", "["))
        if (
            not is_text
            and plain[:1].isalpha()
            and ":" in plain
            and (comment := data.draw(_COMMENT))
        ):
            lines.append(" " * (len(line) - len(plain)) + comment)
        lines.append(line)
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: &x 1\nb: *x\n", "anchors and aliases"),
        ("a: !!str 1\n", "tags"),
        ("a: |+\n  text\n\n\n\nb: 1\n", "its data would change"),
    ],
)
def test_what_cannot_be_kept_is_left_as_it_is(text: str, why: str) -> None:
    formatted = format_text(text, "a.yaml")
    assert formatted.after == text
    assert why in (formatted.kept or "")


def test_a_query_keeps_its_lines() -> None:
    query = dedent(
        """\
        query:   |
            select  a,b

              from t -- ':'
        engine: spark
        """
    )
    assert format_text(query, "a.yaml").after == (
        "query: |\n  select  a,b\n\n    from t -- ':'\nengine: spark\n"
    )


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
def test_text_is_spelled_so_that_old_and_new_readers_agree(value: str) -> None:
    text = f"a: {text_as_yaml(value)}\n"
    if "\n" not in value:
        assert read_documents(text, "a") == [{"a": value}]
        assert yaml.safe_load(text) == {"a": value}


@pytest.mark.parametrize("text", ["NO", "on", "y", "1:30", "2026-01-31", "1_000", "0777"])
def test_what_old_readers_misread_is_known(text: str) -> None:
    assert other_meaning(text) is not None
    assert other_meaning(f"{text} x") is None

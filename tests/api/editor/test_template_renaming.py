"""Variables and macros of templates: where they are used, and what another name for one changes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfbuild.api.editor.renaming import renamed
from odfbuild.api.editor.session import Session
from odfbuild.api.editor.template_names import template_names
from odfbuild.errors import PlanError
from tests.apply.tiny import Tiny

TEMPLATE = """\
matrix:
  kind: [{{ first }}, b]
  size: [1]
exclude:
  - {kind: b, size: 2}
---
{%- from 'parts.j2' import scaled, other as else_ %}
{% import 'parts.j2' as parts %}
kind: DatasetSnapshot
version: 1
content:
  name: made.{{ kind | lower }}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs:
        - datasetRef: root
          alias: source
      transform:
        kind: Sql
        engine: spark
    - kind: SetInfo
      description: "{{ kind }} times {{factor}}, ${{ env.kind }} {{ parts.scaled('kind', by=factor) }}"
"""
QUERY = """\
{% from 'parts.j2' import scaled %}
SELECT event_time, id, {{ scaled('value', factor) }} AS value, '{{ kind }}' AS kind
FROM source
"""
MACROS = """\
{% macro scaled(column, by=1) %}{{ column }} * {{ by }}{% endmacro %}
{% macro other(factor) %}{{ factor }}{% endmacro %}
"""


@pytest.fixture
def session(tiny: Tiny) -> Session:
    settings = tiny.root / "odfbuild.yaml"
    settings.write_text(settings.read_text() + "  vars:\n    factor: 3\n    first: a\n")
    for file, text in (
        ("datasets/made.yaml.j2", TEMPLATE),
        ("datasets/made.sql.j2", QUERY),
        ("macros/parts.j2", MACROS),
        ("vars/dev.yaml", "factor: 4\n"),
    ):
        (tiny.root / file).parent.mkdir(exist_ok=True)
        (tiny.root / file).write_text(text)
    found = Session(tiny.root.resolve())
    for file in (
        "datasets/made.yaml.j2",
        "datasets/made.sql.j2",
        "macros/parts.j2",
        "odfbuild.yaml",
    ):
        found.holds(f"{found.root}/{file}", (found.root / file).read_text())
    look = found.check()
    found.take(look)
    assert [str(e) + str(e.location) for some in look.errors.values() for e in some] == []
    return found


def rename(session: Session, file: str, words: str, within: int, new: str) -> dict[str, str]:
    """The files that another name for the word changes."""
    view = session.view(f"{session.root}/{file}")
    subject = view.subject_at(view.opened.text.index(words) + within)
    changed: dict[str, str] = {}
    for each in sorted(renamed(view, subject, new), key=lambda e: e.span.start, reverse=True):
        text = changed.get(each.span.file) or (session.root / each.span.file).read_text()
        changed[each.span.file] = text[: each.span.start] + each.text + text[each.span.end :]
    return changed


def test_a_name_of_a_matrix_is_renamed_in_its_template_and_query(session: Session) -> None:
    for file, words in (
        ("datasets/made.sql.j2", "{{ kind"),
        ("datasets/made.yaml.j2", "  kind: ["),
    ):
        changed = rename(session, file, words, 4, "sort")
        assert changed.keys() == {"datasets/made.yaml.j2", "datasets/made.sql.j2"}
        text = changed["datasets/made.yaml.j2"]
        assert "  sort: [{{ first }}, b]" in text
        assert "- {sort: b, size: 2}" in text
        assert "\"{{ sort }} times {{factor}}, ${{ env.kind }} {{ parts.scaled('kind'" in text
        assert "{{ sort | lower }}" in text
        assert "'{{ sort }}' AS kind" in changed["datasets/made.sql.j2"]
        assert text.count("kind: Derivative") == 1


def test_a_macro_is_renamed_wherever_it_is_imported(session: Session) -> None:
    for file, words in (("datasets/made.sql.j2", "scaled("), ("macros/parts.j2", "scaled(")):
        changed = rename(session, file, words, 2, "multiplied")
        assert changed.keys() == {
            "datasets/made.yaml.j2",
            "datasets/made.sql.j2",
            "macros/parts.j2",
        }
        text = changed["datasets/made.yaml.j2"]
        assert "import multiplied, other as else_" in text
        assert "parts.multiplied('kind', by=factor)" in text
        assert "macro multiplied(" in changed["macros/parts.j2"]


def test_a_variable_is_renamed_in_settings_environments_and_templates(session: Session) -> None:
    changed = rename(session, "odfbuild.yaml", "first:", 2, "start")
    assert changed.keys() == {"odfbuild.yaml", "datasets/made.yaml.j2"}
    assert "kind: [{{ start }}, b]" in changed["datasets/made.yaml.j2"]


@pytest.mark.parametrize(
    ("file", "words", "new", "said"),
    [
        ("odfbuild.yaml", "factor:", "times", "this file gives 'factor' a value itself"),
        ("datasets/made.yaml.j2", "{{ kind", "size", "uses the name 'size' already"),
        (
            "datasets/made.yaml.j2",
            "{{ kind",
            "first",
            "made.yaml.j2 uses the name 'first' already",
        ),
        ("datasets/made.yaml.j2", "{{ kind", "new kind", "cannot be a name in a template"),
        ("datasets/made.yaml.j2", "| lower", "upper", "'lower' is no variable or macro"),
        ("macros/parts.j2", "(column", "name", "'column' is no variable or macro"),
    ],
)
def test_what_is_not_certain_is_refused(
    session: Session, file: str, words: str, new: str, said: str
) -> None:
    with pytest.raises(PlanError) as refused:
        rename(session, file, words, 4, new)
    assert said in refused.value.message


def test_a_template_that_is_not_understood_is_named(session: Session) -> None:
    (session.root / "macros/broken.j2").write_text("{% macro %}")
    with pytest.raises(PlanError, match="not understood") as refused:
        rename(session, "odfbuild.yaml", "first:", 2, "start")
    assert refused.value.location.file == "macros/broken.j2"


def test_an_included_file_may_use_a_name_of_the_matrix(session: Session) -> None:
    file = session.root / "datasets/made.yaml.j2"
    session.holds(str(file), file.read_text() + "# {% include 'note.j2' %}\n")
    (session.root / "macros/note.j2").write_text("{{ kind }}")
    with pytest.raises(PlanError, match=re.escape("macros/note.j2, which this template may")):
        rename(session, "datasets/made.yaml.j2", "{{ kind", 4, "sort")


PIECES = ["{{ a }}", "{{- a -}}", " \n ", "{% set b = a %}", "{%- if a is defined %}a{% endif -%}", "text a ",
          "${{ env.a }}", "{# a #}", "{{ b.a | a }}", "{{ f(a, a=a) }}", "{% raw %}{{ a }}{% endraw %}", "'", "{{ 'a' }}"]  # fmt: skip
COUNTS = {"{{ a }}": 1, "{{- a -}}": 1, "{% set b = a %}": 1, "{%- if a is defined %}a{% endif -%}": 1, "{{ f(a, a=a) }}": 2}  # fmt: skip


@given(st.lists(st.sampled_from(PIECES)))
def test_each_name_is_found_at_its_place(pieces: list[str]) -> None:
    text = "".join(pieces)
    names = template_names(text)
    found = list(names.named("a"))
    assert len(found) == sum(COUNTS.get(each, 0) for each in pieces)
    assert all(text[each.start : each.end] == "a" for each in found)

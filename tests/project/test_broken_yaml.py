"""What is told of a text that is no YAML: the line to change, and how it should be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from odfbuild.cli.main import run
from odfbuild.errors import ProjectError
from odfbuild.project.yaml.source import compose, read_documents
from tests.project.write_project import derived_yaml, root_yaml, write_project
from tests.report.golden import assert_golden

BROKEN = [
    ("a: 1\ndescription: Retention«:» customers\n", '`: `.*: description: "Retention: customers"$'),
    ("a:\n  - description: It's «:» here # why\n", '"It\'s : here" # why$'),
    ('a:\n  - b: say "x"«:» y\n', "- b: 'say \"x\": y'$"),
    ("description: Retention«:»\n", '"Retention:"$'),
    ("a: 1\n«<<<<<<<» HEAD\nb: 2\n=======\nb: 3\n>>>>>>> other\n", "merge conflict"),
    (
        "q: |\n  SELECT a\n«<<<<<<<» HEAD\n  FROM b\n=======\n  FROM c\n>>>>>>> x\n",
        "merge conflict",
    ),
    ("t:\n  query: |\n    SELECT a\n  «FROM b»\n  WHERE c\nx: 1\n", "`query`.*by 4 spaces"),
    ("t:\n  query: |\n    SELECT a\n«FROM b»\nWHERE c\n", "by 4 spaces"),
    ("t:\n  query: |\n    SELECT a\n\n  «FROM b -- so: it is»\n  WHERE c\n", "by 4 spaces"),
    ("t:\n  query: |\n      SELECT a\n    «FROM b»\n    WHERE c\n  x: 1\n", "by 6 spaces"),
    ("t:\n  query: |\n  «SELECT a»\n  FROM b\nx: 1\n", "by 4 spaces"),
    ("t:\n  query: |\n    SELECT a,\n  «b::INT»\n    FROM c\n", "by 4 spaces"),
    ("t:\n  - >-\n    one\n   «two»\nx: 1\n", "the text above"),
    ("q: |\n  a: b\n  c\n«d»\ne: 1\n", "`q`"),
    ("a:\n«\t»- b\n", "tabs"),
    ("a:\n  b: 1\n«\t»c: 2\n", "tabs"),
    ("q: |\n  SELECT a\n«\t»FROM b\nz: 1\n", "tabs"),
    ("a:\n  b: 1\n   «c»: 2\n", "by 2 spaces"),
    ("a:\n    b: 1\n  «c: 2»\n", "by 0 or 4 spaces"),
    ("a:\n  - b: 1\n «c: 2»\n", "by 0 or 4 spaces"),
    ("a:\n  - b: 1\n «- c: 2»\n", "by 2 spaces"),
    ('a: «"»abc\nb: 2\n', "quote.*not closed"),
    ("a: «[»1, 2\nb: 2\n", "bracket.*not closed"),
    ("a: 'it'«s»'\nb: 2\n", 'a: "it\'s"$'),
    ("a: [1] «x»\n", 'a: "\\[1\\] x"$'),
    ("a: «*.csv»\n", r'"\*\.csv"$'),
    ("a:\n  b: «@daily»\n", '"@daily"$'),
    ("a: 1\n«b 2»\nc: 3\n", "neither"),
    ("a: 1\n«b:2»\nc: 3\n", "write `b: 2`"),
    ("a: 1\n«b = 2»\nc: 3\n", "write `b: 2`"),
]


def _refused(text: str) -> ProjectError:
    with pytest.raises(ProjectError) as found:
        compose(text, "x.yaml")
    return found.value


@pytest.mark.parametrize(("marked", "said"), BROKEN)
def test_the_line_to_change_is_shown_with_what_to_do(marked: str, said: str) -> None:
    error = _refused(re.sub("[«»]", "", marked))
    before, _, rest = marked.partition("«")
    line, column = before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1
    place = error.location
    assert place is not None
    assert (place.line, place.column, place.length) == (line, column, rest.index("»"))
    assert place.snippet is not None
    assert re.search(said, f"{error.message}. {error.help}"), (error.message, error.help)


@pytest.mark.parametrize("marked", [text for text, _ in BROKEN])
def test_a_line_in_quotes_as_it_is_proposed_is_right(marked: str) -> None:
    text = re.sub("[«»]", "", marked)
    error = _refused(text)
    proposed = re.search(r"in quotes: (.*)$", error.help or "")
    if proposed is None:
        return
    assert error.location is not None
    assert error.location.line is not None
    lines = text.splitlines()
    old = lines[error.location.line - 1]
    lines[error.location.line - 1] = old[: len(old) - len(old.lstrip())] + proposed[1]
    read_documents("\n".join(lines) + "\n", "x.yaml")


@pytest.mark.parametrize(
    "text", ["a: [", "a: {b: c", "- - -\n  x: :\n", "? a\n: b\n  c: d\n", "%\n"]
)
def test_an_error_has_a_line_to_show_where_the_text_ends_too_early(text: str) -> None:
    place = _refused(text).location
    assert place is not None
    assert place.snippet is not None


BAD_QUERY = derived_yaml("d.{{ n }}", "cities", "SELECT event_time, id\nFROM src").replace(
    "          FROM src", "        FROM src\n        WHERE id > 1"
)


def test_broken_templates_tests_and_settings_show_the_wrong_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "a.yaml": root_yaml("cities"),
        "b.yaml.j2": f"matrix:\n  n: [1]\n---\n{BAD_QUERY}",
        "c.yaml.j2": "matrix:\n  what: ['a: b']\n---\nkind: {{ what }}\n",
        "d.yaml.j2": "kind: {{ '[' }}\n",
        "e.yaml": root_yaml("towns") + "    - kind: SetInfo\n      description: Retention: towns\n",
        "f.test.yaml": "kind: UnitTests\n<<<<<<< HEAD\nversion: 1\n",
    }
    root = write_project(tmp_path / "p", files)
    monkeypatch.chdir(root)
    monkeypatch.setenv("NO_COLOR", "1")
    assert run(["validate"]) == 1
    assert_golden("errors/broken-lines.txt", capsys.readouterr().err)
    with (root / "odfbuild.yaml").open("a") as config:
        config.write("  owners:\n    - {match: [x], contact: a: b}\n=======\n>>>>>>> theirs\n")
    assert run(["validate"]) == 1
    told = capsys.readouterr().err
    assert "a merge conflict of Git is not resolved\n  --> odfbuild.yaml:10:1\n" in told


def test_render_shows_what_a_wrong_template_was_rendered_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "a.yaml": root_yaml("cities"),
        "b.yaml.j2": f"matrix:\n  n: [1, 2]\n---\n{BAD_QUERY}",
        "c.yaml.j2": derived_yaml("spelt", "cities").replace("kind: Derivative", "kind: Derivate"),
    }
    root = write_project(tmp_path / "p", files)
    monkeypatch.chdir(root)
    monkeypatch.setenv("NO_COLOR", "1")
    assert run(["render"]) == 1
    shown = capsys.readouterr()
    assert shown.out.startswith("# datasets/a.yaml\nkind: DatasetSnapshot\n")
    assert shown.out.count("kind: DatasetSnapshot") == 1
    assert "\ndatasets/b.yaml.j2 (n=2) was rendered as:\n" in shown.err
    assert "16 |         FROM src\n" in shown.err
    assert "   kind: Derivate\n" in shown.err
    assert run(["render", "spelt"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "b.yaml.j2" not in shown.err
    assert "   kind: Derivate\n" in shown.err

"""What is told to editors, without an editor: lines above definitions, what is unsaved, the cache."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from odfbuild.api.editor.completions import completions
from odfbuild.api.editor.diagnostics import by_file
from odfbuild.api.editor.explanations import explain
from odfbuild.api.editor.lenses import TEST, lenses_of
from odfbuild.api.editor.places import definition, references
from odfbuild.api.editor.renaming import renamed
from odfbuild.api.editor.session import Session
from odfbuild.api.editor.subjects import Dataset, Span
from odfbuild.cli.main import run
from odfbuild.engine.contract import Engine
from tests.api.editor.mistakes import MISTAKES
from tests.apply.in_process import Program, share
from tests.apply.tiny import Tiny
from tests.example.odfbuild_project import ExampleProject


def session_of(tiny: Tiny, *files: str) -> Session:
    found = Session(tiny.root.resolve())
    for file in files:
        path = f"{found.root}/{file}"
        found.holds(path, (found.root / file).read_text())
    found.take(found.check())
    return found


def titles(session: Session, file: str) -> list[str]:
    view = session.view(f"{session.root}/{file}")
    return [each.title for each in lenses_of(view, session.make_plan())]


def test_a_line_above_a_definition_counts_waiting_records(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    session = session_of(tiny, "datasets/root.yaml", "datasets/derived.yaml")
    assert titles(session, "datasets/root.yaml") == ["up to date", "explain"]
    tiny.arrive(2)
    assert titles(session, "datasets/root.yaml") == [
        "up to 2 new records in 1 file (68 bytes)",
        "explain",
    ]
    assert titles(session, "datasets/derived.yaml") == ["up to 2 new records", "explain"]


def test_a_dataset_with_a_chain_is_renamed_with_its_history(tiny: Tiny, odfbuild: Program) -> None:
    odfbuild.apply()
    session = session_of(tiny, "datasets/root.yaml")
    view = session.view(f"{session.root}/datasets/root.yaml")
    edits = renamed(view, Dataset("root", Span("datasets/root.yaml", 0, 0)), "base")
    for each in sorted(edits, key=lambda edit: edit.span.start, reverse=True):
        file = tiny.root / each.span.file
        text = file.read_text()
        file.write_text(text[: each.span.start] + each.text + text[each.span.end :])
    assert "  moved:\n    root: base\n" in (tiny.root / "odfbuild.yaml").read_text()
    assert "-> base  renamed from root" in odfbuild.ok("plan").out


def test_a_name_in_backticks_is_renamed_within_them(tiny: Tiny) -> None:
    file = tiny.root / "datasets/derived.yaml"
    text = file.read_text().replace("          alias: source\n", "")
    file.write_text(text.replace("FROM source", "FROM `root`"))
    session = session_of(tiny, "datasets/root.yaml")
    view = session.view(f"{session.root}/datasets/root.yaml")
    edits = renamed(view, Dataset("root", Span("datasets/root.yaml", 0, 0)), "a.b")
    assert {each.text for each in edits} == {"a.b", "`a.b`"}
    assert len(references(view, "root")) == 3


def test_looking_at_what_is_not_saved_leaves_files_and_caches_as_they_were(tiny: Tiny) -> None:
    session = session_of(tiny, "datasets/derived.yaml")
    kept = {p: p.read_bytes() for p in (tiny.root / ".odfbuild").rglob("definitions.bin")}
    path = f"{session.root}/datasets/derived.yaml"
    saved = session.opened[path]
    session.holds(path, saved.replace("value * 10", "vale * 10"))
    look = session.check()
    assert [each.code for each in look.errors["datasets/derived.yaml"]] == ["E0501"]
    assert {p: p.read_bytes() for p in kept} == kept
    session.holds(path, saved)
    assert session.check().errors == {}


def test_a_look_that_is_over_stops(tiny: Tiny) -> None:
    assert session_of(tiny).check(lambda: True) is None


def test_a_wrong_odfbuild_yaml_is_told_and_what_was_known_stays(tiny: Tiny) -> None:
    session = session_of(tiny, "odfbuild.yaml", "datasets/root.yaml")
    session.holds(f"{session.root}/odfbuild.yaml", "kind: Project\nversion: 1\ncontent: {}\n")
    session.take(session.check())
    assert list(session.errors) == ["odfbuild.yaml"]
    assert session.view(f"{session.root}/datasets/root.yaml") is not None


def test_an_editor_is_told_what_validate_prints(
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = ExampleProject.fresh(tmp_path_factory.mktemp("both") / "example").root.resolve()
    monkeypatch.chdir(root)
    session = Session(root)
    session.take(session.check())
    for file, right, wrong, _ in MISTAKES[::9]:
        saved = (root / file).read_text()
        text = saved.replace(right, wrong.replace("«", "").replace("»", ""), 1)
        session.holds(f"{root}/{file}", text)
        told = [e for each in session.check().errors.values() for e in each]
        (root / file).write_text(text)
        capsys.readouterr()
        assert run(["validate", "--json"]) == 1
        printed = json.loads(capsys.readouterr().out)["errors"]
        (root / file).write_text(saved)
        session.closed(f"{root}/{file}")
        assert by_file(told).keys() == {each["file"] for each in printed}
        assert sorted(
            (e.code, e.message, e.location.line, e.location.column) for e in told
        ) == sorted(
            (each["code"], each["message"], each["line"], each["column"]) for each in printed
        )


def test_macros_count_as_an_editor_holds_them(tiny: Tiny) -> None:
    (tiny.root / "macros").mkdir()
    (tiny.root / "macros/money.j2").write_text("{% macro cents(x) %}{{ x }} * 100{% endmacro %}\n")
    text = (tiny.root / "datasets/derived.yaml").read_text().replace("derived", "paid")
    query = "SELECT event_time, id, {{ cents('value') }} AS value FROM source"
    file = "datasets/paid.yaml.j2"
    text = text.replace("SELECT event_time, id, value * 10 AS value FROM source", query)
    (tiny.root / file).write_text("{% from 'money.j2' import cents %}\n" + text)
    session = session_of(tiny, file, "macros/money.j2")
    assert session.errors == {}
    view = session.view(f"{session.root}/{file}")
    at = view.opened.text.index("cents('")
    assert "cents" in [each.label for each in completions(view, at + 2)[0]]
    found = definition(view, view.subject_at(at))
    assert (found.file, found.end - found.start) == ("macros/money.j2", len("cents"))
    session.holds(
        f"{session.root}/macros/money.j2", "{% macro cents(x) %}{{ x }}x * 1{% endmacro %}"
    )
    look = session.check()
    assert [each.code for each in look.errors[file]] == ["E0501"]
    assert "valuex" in look.errors[file][0].message


def test_a_column_shows_its_description(tiny: Tiny) -> None:
    with (tiny.root / "odfbuild.yaml").open("a") as file:
        file.write(
            '  descriptions:\n    - match: [derived]\n      columns: {value: "Euros, times ten"}\n'
        )
    session = session_of(tiny, "datasets/derived.yaml")
    view = session.view(f"{session.root}/datasets/derived.yaml")
    subject = view.subject_at(view.opened.text.index("AS value") + 4)
    assert "Euros, times ten" in explain(view, subject)


UNIT_TESTS = """\
kind: UnitTests
version: 1
content:
  dataset: derived
  tests:
    - name: values are ten times as large
      given:
        source:
          rows: [{id: 1, value: 7}]
      expect:
        rows: [{id: 1, value: 70}]
"""


@pytest.mark.spark
def test_unit_tests_run_with_text_that_is_not_saved(
    tiny: Tiny, spark_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    share(spark_engine, monkeypatch)
    file = tiny.root / "datasets/derived.test.yaml"
    file.write_text(UNIT_TESTS)
    session = session_of(tiny, "datasets/derived.test.yaml", "datasets/derived.yaml")
    (lens,) = lenses_of(session.view(f"{session.root}/datasets/derived.test.yaml"), None)
    assert (lens.title, lens.command, lens.datasets) == ("run these tests", TEST, ("derived",))
    with closing(session):
        assert "1 passed" in session.tested(lens.datasets)
        path = f"{session.root}/datasets/derived.yaml"
        session.holds(path, session.opened[path].replace("* 10", "* 11"))
        assert "77" in session.tested(lens.datasets)

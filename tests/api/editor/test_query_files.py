"""Queries in files of their own, `NAME.sql` and `NAME.sql.j2`, in the language server."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from tests.api.editor.client import Editor, applied, place
from tests.api.editor.mistakes import AIRPORT, DELAYED, FLIGHTS, LONG_HAUL, SETTINGS, TESTS, WEATHER
from tests.example.odfbuild_project import ExampleProject

SQL = DELAYED.removesuffix("yaml") + "sql"
AIRPORT_SQL = AIRPORT.removesuffix("yaml.j2") + "sql.j2"
WEATHER_SQL = WEATHER.removesuffix("yaml") + "sql"
STATIONS = "datasets/roots/us.iem.weather.yaml"
STORMS = "datasets/weather/nyc.weather.storms.yaml"


def with_query_in_a_file(root: Path, definition: str, file: str) -> None:
    """Move the query of a definition into a file beside it, as people would."""
    text = (root / definition).read_text()
    before, _, after = text.partition("        query: |\n")
    lines = after.splitlines(keepends=True)
    length = next((n for n, line in enumerate(lines) if line[:10].strip()), len(lines))
    (root / definition).write_text(before + "".join(lines[length:]))
    (root / file).write_text(textwrap.dedent("".join(lines[:length])))


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    root = ExampleProject.fresh(tmp_path_factory.mktemp("editor") / "example").root.resolve()
    for definition, file in ((DELAYED, SQL), (AIRPORT, AIRPORT_SQL), (WEATHER, WEATHER_SQL)):
        with_query_in_a_file(root, definition, file)
    found = Editor(root)
    yield found
    found.quit()
    assert found.log == []


@pytest.fixture(autouse=True)
def as_saved(editor: Editor) -> Iterator[None]:
    """Each test leaves files as they are saved."""
    yield
    for file, text in list(editor.texts.items()):
        saved = (editor.root / file).read_bytes().decode()
        if text != saved:
            editor.change(file, saved)


# fmt: off
MISTAKES = [
    (SQL, "arr_delay >= 15", "«arr_dely» >= 15", "E0501"),
    (SQL, "FROM flights", "FROM «flight»", "E0504"),
    (SQL, "WHERE arr_delay", "«WHER» arr_delay", "E0501"),
    (SQL, "carrier,", "«uper»(carrier) AS carrier,", "E0501"),
    (SQL, "carrier,", "«now»() AS carrier,", "E0505"),
    (SQL, "event_time,\n", "", "E0515"),
    (SQL, "dest,", "origin AS carrier,", "E0511"),
    (SQL, "dest,", "\"dest\",", "E0501"),
    (SQL, "flight,", "'é😀' AS odd, «flihgt»,", "E0501"),
    (SQL, "SELECT\n", "SELECT\n  {{ x }},\n", "E0550"),
    (WEATHER_SQL, "w.visib", "w.«visibility»", "E0501"),
    (WEATHER_SQL, "JOIN weather w", "JOIN «wether» w", "E0504"),
    (AIRPORT_SQL, "'{{ origin }}' AS", "'{{ «orign» }}' AS", "E0121"),
    (AIRPORT_SQL, "flight_date,", "«flihgt_date»,", "E0501"),
    (AIRPORT_SQL, "'{{ origin }}' AS", "'{{ origin ' AS", "E0123"),
]
# fmt: on


@pytest.mark.parametrize(("file", "right", "wrong", "code"), MISTAKES)
def test_a_mistake_in_a_query_file_is_told_at_its_range(
    editor: Editor, file: str, right: str, wrong: str, code: str
) -> None:
    editor.open(file)
    saved = editor.texts[file]
    begin = saved.index(right)
    plain = wrong.replace("«", "").replace("»", "")
    text = saved[:begin] + plain + saved[begin + len(right) :]
    found = editor.change(file, text)
    ranges = [each.range for each in found if each.code == code]
    assert ranges, [(each.code, each.message) for each in found]
    if "«" in wrong:
        start = begin + wrong.index("«")
        end = begin + wrong.index("»") - 1
        assert lsp.Range(place(text, start), place(text, end)) in ranges


def test_right_query_files_have_no_diagnostics(editor: Editor) -> None:
    assert [editor.open(file) for file in (SQL, AIRPORT_SQL, WEATHER_SQL)] == [[], [], []]


def test_a_mistake_in_the_definition_is_told_in_the_query_that_it_makes_wrong(
    editor: Editor,
) -> None:
    editor.open(SQL)
    editor.open(DELAYED)
    saved = editor.texts[DELAYED]
    editor.change(DELAYED, saved.replace("alias: flights", "alias: departures"))
    editor.until(SQL, lambda found: [each.code for each in found] == ["E0504"])
    editor.change(DELAYED, saved)
    editor.until(SQL, lambda found: found == [])


def test_columns_and_datasets_are_explained_and_offered(editor: Editor) -> None:
    editor.open(SQL)
    hover = editor.ask("text_document_hover", lsp.HoverParams(**editor.at(SQL, "arr_delay,", 2)))
    assert "us.bts.flights" in hover.contents.value
    hover = editor.ask("text_document_hover", lsp.HoverParams(**editor.at(SQL, "FROM flights", 6)))
    assert hover.contents.value.startswith("**us.bts.flights**")
    editor.change(SQL, editor.texts[SQL].replace("arr_delay >= 15", "arr_"))
    params = lsp.CompletionParams(**editor.at(SQL, "WHERE arr_", 10))
    labels = [each.label for each in editor.ask("text_document_completion", params).items]
    assert {"arr_time", "arr_delay"} < {*labels}
    editor.open(AIRPORT_SQL)
    hover = editor.ask(
        "text_document_hover", lsp.HoverParams(**editor.at(AIRPORT_SQL, "{{ origin", 4))
    )
    assert "`EWR`, `JFK`, `LGA`" in hover.contents.value


def test_names_lead_to_definitions_and_back(editor: Editor) -> None:
    editor.open(SQL)
    found = editor.ask(
        "text_document_definition", lsp.DefinitionParams(**editor.at(SQL, "FROM flights", 6))
    )
    assert found.uri == editor.uri(FLIGHTS)
    editor.open(TESTS)
    storms = editor.open(STORMS)
    assert storms == []
    editor.open(AIRPORT_SQL)
    found = editor.ask(
        "text_document_definition", lsp.DefinitionParams(**editor.at(AIRPORT_SQL, "{{ origin", 4))
    )
    assert (found.uri, found.range.start.line) == (editor.uri(AIRPORT), 2)


def rename(editor: Editor, file: str, words: str, within: int, new: str) -> dict[str, str]:
    """The texts of the files that a renaming changes."""
    editor.open(file)
    params = lsp.RenameParams(new_name=new, **editor.at(file, words, within))
    edits = editor.ask("text_document_rename", params)
    changed = {}
    for uri, each in edits.changes.items():
        path = uri.removeprefix(f"{editor.root.as_uri()}/")
        changed[path] = applied((editor.root / path).read_text(), list(each))
    return changed


def test_columns_are_renamed_in_query_files(editor: Editor) -> None:
    changed = rename(editor, SQL, "lost_in_the_air", 3, "gained")
    assert changed.keys() == {SQL, TESTS}
    assert "arr_delay - dep_delay AS gained" in changed[SQL]
    changed = rename(editor, WEATHER_SQL, "w.visib", 3, "sight")
    assert changed.keys() == {STATIONS, WEATHER_SQL, STORMS}
    assert "w.sight AS visib\n" in changed[WEATHER_SQL]


def test_a_dataset_is_renamed_in_query_files_that_name_it(editor: Editor) -> None:
    changed = rename(editor, FLIGHTS, "us.bts.flights", 3, "us.bts.departures")
    assert {DELAYED, AIRPORT, LONG_HAUL, SETTINGS} < changed.keys()
    assert SQL not in changed  # it says `flights`, which is the alias


def test_lines_above_a_query_tell_what_would_run(editor: Editor) -> None:
    editor.open(SQL)
    editor.save(SQL)
    params = lsp.CodeLensParams(editor.document(SQL))
    titles = ["what would change"]
    while titles == ["what would change"]:  # until the first plan is there
        lenses = editor.ask("text_document_code_lens", params)
        titles = [each.command.title for each in lenses]
    assert titles[0] == "new derivative: SetTransform, SetInfo, then up to 80,789 new records"
    assert lenses[0].range.start == lsp.Position(0, 0)


def test_words_of_a_query_file_have_kinds_for_colours(editor: Editor) -> None:
    editor.open(AIRPORT_SQL)
    answer = editor.ask(
        "text_document_semantic_tokens_full", lsp.SemanticTokensParams(editor.document(AIRPORT_SQL))
    )
    assert len(answer.data) > 50


def test_a_query_of_no_definition_is_told_nothing_about(editor: Editor) -> None:
    file = "datasets/flights/alone.sql"
    (editor.root / file).write_text("SELECT 1\n")
    assert editor.open(file) == []
    params = lsp.HoverParams(**editor.at(file, "SELECT", 1))
    assert editor.ask("text_document_hover", params) is None
    with pytest.raises(JsonRpcException, match="E0383"):
        rename(editor, SQL, "SELECT", 1, "x")


def has_code(code: str, found: list[lsp.Diagnostic]) -> bool:
    return code in {each.code for each in found}


def test_what_lint_finds_in_an_open_file_is_a_warning(editor: Editor) -> None:
    for file, right, wrong, code in (
        (DELAYED, "description: Flights that", "description: NO #", "L010"),
        (
            SQL,
            "WHERE arr_delay",
            "WHERE to_utc_timestamp(event_time, 'Europe/Paris') IS NOT NULL AND arr_delay",
            "L020",
        ),
    ):
        editor.open(file)
        saved = editor.texts[file]
        editor.change(file, saved.replace(right, wrong))
        editor.until(file, partial(has_code, code))
        assert {each.severity for each in editor.last(file)} == {lsp.DiagnosticSeverity.Warning}
        editor.change(file, saved)
        editor.until(file, lambda found: found == [])

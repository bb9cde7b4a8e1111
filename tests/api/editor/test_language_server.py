"""`odfbuild lsp`, asked by a real client over standard input and output."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from tests.api.editor.client import Editor, applied, place
from tests.api.editor.mistakes import (
    AIRPORT,
    DAILY,
    DELAYED,
    DEPARTURES,
    FLIGHTS,
    LONG_HAUL,
    MISTAKES,
    SETTINGS,
    STATIONS,
    TESTS,
    WEATHER,
)
from tests.example.odfbuild_project import ExampleProject

CANCELLED = "datasets/flights/nyc.flights.cancelled.yaml"


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    root = ExampleProject.fresh(tmp_path_factory.mktemp("editor") / "example").root
    found = Editor(root.resolve())
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


@pytest.mark.parametrize(
    ("file", "right", "wrong", "code"),
    MISTAKES,
    ids=[f"{n}-{code}-{Path(file).name}" for n, (file, _, _, code) in enumerate(MISTAKES)],
)
def test_a_mistake_is_told_at_its_range_before_it_is_saved(
    editor: Editor, file: str, right: str, wrong: str, code: str
) -> None:
    editor.open(file)
    saved = editor.texts[file]
    begin = saved.index(right)
    plain = wrong.replace("«", "").replace("»", "")
    text = saved[:begin] + plain + saved[begin + len(right) :]
    found = editor.change(file, text)
    # Circles are found by the look at everything that follows.
    if code == "E0203":
        editor.until(file, lambda wrong: any(each.code == code for each in wrong))
        found = editor.last(file)
    ranges = [each.range for each in found if each.code == code]
    assert ranges, [each.code for each in found]
    if "«" in wrong:
        start = begin + wrong.index("«")
        end = begin + wrong.index("»") - 1
        assert lsp.Range(place(text, start), place(text, end)) in ranges


def test_what_is_right_has_no_diagnostics(editor: Editor) -> None:
    for file in (DELAYED, AIRPORT, TESTS, SETTINGS):
        assert editor.open(file) == []


def test_a_mistake_in_a_file_is_told_in_all_files_that_it_makes_wrong(editor: Editor) -> None:
    editor.open(FLIGHTS)
    text = editor.texts[FLIGHTS]
    editor.change(FLIGHTS, text.replace("            arr_delay,\n", ""))
    editor.until(
        DELAYED, lambda wrong: [each.code for each in wrong] == ["E0501", "E0501", "E0501"]
    )
    editor.change(FLIGHTS, text)
    editor.until(DELAYED, lambda wrong: wrong == [])


def test_only_the_last_of_many_edits_is_looked_at(editor: Editor) -> None:
    editor.open(DELAYED)
    text = editor.texts[DELAYED]
    for number in range(20):
        editor.send(DELAYED, text.replace("arr_delay >= 15", f"arr_delay{number} >= 15"))
    (found,) = editor.diagnostics(DELAYED)
    assert "arr_delay19" in found.message
    versions = [version for uri, version in editor._found if uri == editor.uri(DELAYED)]
    assert len([each for each in versions if each and each > editor.versions[DELAYED] - 19]) <= 3


def test_a_message_has_the_way_out_and_a_fix(editor: Editor) -> None:
    editor.open(DELAYED)
    text = editor.texts[DELAYED].replace("arr_delay >= 15", "arr_dely >= 15")
    (found,) = editor.change(DELAYED, text)
    assert found.message == "no input has a column 'arr_dely'\nhelp: did you mean 'arr_delay'?"
    assert (found.source, found.severity) == ("odfbuild", lsp.DiagnosticSeverity.Error)
    params = lsp.CodeActionParams(
        editor.document(DELAYED), found.range, lsp.CodeActionContext([found])
    )
    (fix,) = editor.ask("text_document_code_action", params)
    assert fix.title == "Write 'arr_delay'"
    (edits,) = fix.edit.changes.values()
    assert editor.change(DELAYED, applied(text, edits)) == []


def test_a_new_file_counts_before_it_is_saved(editor: Editor) -> None:
    file = "datasets/flights/nyc.flights.early.yaml"
    text = (editor.root / DELAYED).read_text().replace("nyc.flights.delayed", "nyc.flights.early")
    assert editor.open(file, text) == []
    editor.open(CANCELLED)
    reads = editor.texts[CANCELLED].replace("us.bts.flights", "nyc.flights.early")
    codes = {each.code for each in editor.change(CANCELLED, reads)}
    assert codes == {"E0501"}  # it is there, and has no column tailnum
    editor.change(CANCELLED, (editor.root / CANCELLED).read_text())
    editor.close(file)


def test_line_breaks_of_windows_change_no_place(editor: Editor) -> None:
    editor.open(DELAYED)
    text = editor.texts[DELAYED].replace("arr_delay >= 15", "arr_dely >= 15")
    (before,) = editor.change(DELAYED, text)
    (after,) = editor.change(DELAYED, text.replace("\n", "\r\n"))
    assert (after.range, after.message) == (before.range, before.message)


# --- Hover ---


def hover(editor: Editor, file: str, words: str, within: int = 0) -> str:
    editor.open(file)
    params = lsp.HoverParams(**editor.at(file, words, within))
    answer = editor.ask("text_document_hover", params)
    return answer.contents.value if answer else ""


def test_a_dataset_shows_what_it_is_what_it_has_and_who_reads_it(editor: Editor) -> None:
    for words, within in (("us.bts.flights", 4), ("FROM flights", 6)):
        text = hover(editor, DELAYED, words, within)
        assert text.startswith("**us.bts.flights**: root dataset, defined in `datasets/roots/")
        assert "Flights that departed from New York City in 2013" in text
        assert "| `arr_delay` | INT |" in text
        assert "`nyc.flights.cancelled`" in text
        assert "not built yet" in text


@pytest.mark.parametrize(
    ("file", "words", "within", "said"),
    [
        (DELAYED, "dep_delay,", 2, "**dep_delay**: INT\n\nColumn of `us.bts.flights`."),
        (WEATHER, "d.airport", 3, "Made from `nyc.departures.ewr.airport`"),
        (DELAYED, "lost_in_the_air", 2, "Made from `us.bts.flights.arr_delay`, `us.bts."),
        (FLIGHTS, "carrier STRING", 2, "**carrier**: STRING\n\nColumn of `us.bts.flights`."),
        (LONG_HAUL, "CAST(distance", 6, "Column of `long_haul` in this query."),
        (DAILY, "COUNT_IF", 2, "**count_if()**: aggregate of Spark SQL, takes 1 argument"),
        (DELAYED, "datasetRef", 2, "Name or DID of a dataset."),
        (DELAYED, "datasetRef", 2, "Open Data Fabric, section TransformInput"),
        (DELAYED, "alias", 2, "Part of TransformInput: An input of a transformation"),
        (FLIGHTS, "merge", 2, "How new data joins the history."),
        (SETTINGS, "partitionBy", 2, "Columns of whose values each combination is a partition"),
        (SETTINGS, "nyc.delays.daily", 2, "derivative dataset, defined in"),
        (TESTS, "expect", 2, "Records that the step adds"),
        (TESTS, "us.bts.flights", 2, "**us.bts.flights**: root dataset"),
        (AIRPORT, "origin | lower", 2, "From the matrix" if False else "from the matrix"),
        (LONG_HAUL, "long_haul_miles", 2, "**long_haul_miles** = `2000`"),
        (AIRPORT, "carrier,", 2, "**carrier**: STRING\n\nColumn of `us.bts.flights`."),
    ],
)
def test_what_stands_under_the_pointer_is_explained(
    editor: Editor, file: str, words: str, within: int, said: str
) -> None:
    assert said in hover(editor, file, words, within)


# --- Completion ---


def complete(
    editor: Editor, file: str, right: str, typed: str
) -> tuple[dict[str, lsp.CompletionItem], str]:
    """What is offered at `|` in `typed`, which stands in place of `right`; and the text."""
    editor.open(file)
    saved = (editor.root / file).read_text()
    begin = saved.index(right)
    text = saved[:begin] + typed.replace("|", "") + saved[begin + len(right) :]
    editor.send(file, text)
    params = lsp.CompletionParams(editor.document(file), place(text, begin + typed.index("|")))
    answer = editor.ask("text_document_completion", params)
    return {each.label: each for each in answer.items}, text


@pytest.mark.parametrize(
    ("file", "right", "typed", "offered", "absent"),
    [
        (DELAYED, "          alias: flights\n", "          a|\n", "alias", "datasetRef"),
        (DELAYED, "        engine: spark\n", "        |\n", "version", "kind"),
        (DELAYED, "    - kind: SetInfo", "    - k|", "kind", "name"),
        (DELAYED, "kind: SetInfo", "kind: |", "SetLicense", "setLicense"),
        (DELAYED, "kind: SetInfo", "kind: Set|", "SetInfo", "AddData"),
        (DELAYED, "kind: Derivative", "kind: |", "Root", "root"),
        (DELAYED, "datasetRef: us.bts.flights", "datasetRef: us.|", "us.faa.planes", "flights"),
        (DELAYED, "engine: spark", "engine: |", "spark", "flink"),
        (FLIGHTS, "order: ByName", "order: |", "ByEventTime", "byName"),
        (FLIGHTS, "        nullValue: NA\n", "        quo|\n", "quote", "header"),
        (FLIGHTS, "          - origin\n    - kind: SetInfo", "          - |\n    - kind: SetInfo", "carrier", "Ledger"),
        (SETTINGS, "format: delta", "format: |", "iceberg", "csv"),
        (SETTINGS, "      partitionBy: [carrier]", "      |", "keep", "format"),
        (SETTINGS, "match: [nyc.delays.daily]", "match: [nyc.|]", "nyc.departures", "flights"),
        (SETTINGS, "partitionBy: [carrier]", "partitionBy: [|]", "delayed", "origin"),
        (TESTS, "dataset: nyc.flights.delayed", "dataset: |", "nyc.departures", "flights"),
        (TESTS, "        us.bts.flights:\n          csv", "        |\n          csv", "flights", "rows"),
        (TESTS, "      expect:\n        rows:\n          - {flight: 2}", "      e|", "expect", "given"),
        (DELAYED, "carrier,", "|,", "carrier", "wind_gust"),
        (DELAYED, "carrier,", "up|,", "upper", "now"),
        (DELAYED, "FROM flights", "FROM |", "flights", "carrier"),
        (DELAYED, "WHERE arr_delay >= 15", "WHERE |", "arr_delay", "temp"),
        (DELAYED, "          WHERE arr_delay >= 15", "          W|", "WHERE", "kind"),
        (WEATHER, "d.carrier,", "w.|,", "wind_gust", "carrier"),
        (WEATHER, "w.origin = d.airport", "w.origin = d.|", "airport", "precip"),
        (LONG_HAUL, "FROM long_haul", "FROM |", "long_haul", "air_time"),
        (LONG_HAUL, "{{ long_haul_miles }}", "{{ | }}", "long_haul_miles", "carrier"),
        (AIRPORT, "'{{ origin }}' AS", "'{{ o| }}' AS", "origin", "upper"),
    ],
)  # fmt: skip
def test_what_may_follow_is_offered(
    editor: Editor, file: str, right: str, typed: str, offered: str, absent: str
) -> None:
    found, _ = complete(editor, file, right, typed)
    assert offered in found, list(found)[:20]
    assert absent not in found


def edit_of(item: lsp.CompletionItem) -> lsp.TextEdit:
    assert isinstance(item.text_edit, lsp.TextEdit)
    return item.text_edit


def test_a_chosen_item_replaces_what_was_begun(editor: Editor) -> None:
    found, text = complete(editor, DELAYED, "datasetRef: us.bts.flights", "datasetRef: us.f|")
    assert "datasetRef: us.faa.planes\n" in applied(text, [edit_of(found["us.faa.planes"])])
    found, text = complete(editor, WEATHER, "w.visib", "w.vi|")
    assert "w.visib\n" in applied(text, [edit_of(found["visib"])])


def test_an_item_is_explained_when_it_is_looked_at(editor: Editor) -> None:
    found, _ = complete(editor, DELAYED, "datasetRef: us.bts.flights", "datasetRef: us.|")
    shown = editor.ask("completion_item_resolve", found["us.faa.planes"])
    assert "**us.faa.planes**: root dataset" in shown.documentation.value
    found, _ = complete(editor, DELAYED, "kind: SetInfo", "kind: |")
    assert "License of the data." in found["SetLicense"].documentation.value


# --- Definition, references, rename ---


@pytest.mark.parametrize(
    ("file", "words", "within", "target", "stands"),
    [
        (DELAYED, "us.bts.flights", 3, FLIGHTS, "us.bts.flights"),
        (DELAYED, "FROM flights", 6, FLIGHTS, "us.bts.flights"),
        (DELAYED, "dep_delay,", 2, FLIGHTS, "dep_delay"),
        (WEATHER, "d.airport", 3, DEPARTURES, "airport"),
        (TESTS, "nyc.flights.delayed", 3, DELAYED, "nyc.flights.delayed"),
        (SETTINGS, "nyc.delays.daily", 3, DAILY, "nyc.delays.daily"),
        (DEPARTURES, "nyc.departures.jfk", 3, AIRPORT,
         "nyc.departures.{{ origin | lower }}"),
        (LONG_HAUL, "long_haul_miles", 3, SETTINGS, "long_haul_miles"),
        (AIRPORT, "origin | lower", 3, AIRPORT, "origin"),
    ],
)  # fmt: skip
def test_a_name_leads_to_its_definition(
    editor: Editor, file: str, words: str, within: int, target: str, stands: str
) -> None:
    editor.open(file)
    params = lsp.DefinitionParams(**editor.at(file, words, within))
    found = editor.ask("text_document_definition", params)
    assert found.uri == editor.uri(target)
    line = (editor.root / target).read_text().splitlines()[found.range.start.line]
    assert line[found.range.start.character : found.range.end.character] == stands


def test_references_are_found_in_definitions_queries_tests_and_settings(editor: Editor) -> None:
    editor.open(DELAYED)
    params = lsp.ReferenceParams(
        lsp.ReferenceContext(include_declaration=True), **editor.at(DELAYED, "us.bts.flights", 3)
    )
    found = editor.ask("text_document_references", params)
    files = {each.uri for each in found}
    named = (FLIGHTS, DELAYED, CANCELLED, AIRPORT, LONG_HAUL, TESTS, SETTINGS)
    assert files == {editor.uri(file) for file in named}


def test_references_of_a_column_are_what_certainly_names_it(editor: Editor) -> None:
    editor.open(DELAYED)
    params = lsp.ReferenceParams(
        lsp.ReferenceContext(include_declaration=True), **editor.at(DELAYED, "arr_delay,", 3)
    )
    found = editor.ask("text_document_references", params)
    lines = [(each.uri, each.range.start.line) for each in found]
    text = (editor.root / DELAYED).read_text().splitlines()
    here = [number for number, line in enumerate(text) if "arr_delay" in line]
    assert [line for uri, line in lines if uri == editor.uri(DELAYED)] == here
    assert editor.uri(FLIGHTS) in dict(lines)


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


def test_a_dataset_is_renamed_wherever_it_is_named(editor: Editor) -> None:
    changed = rename(editor, DELAYED, "us.bts.flights", 3, "us.bts.departures")
    assert changed.keys() == {FLIGHTS, DELAYED, CANCELLED, AIRPORT, LONG_HAUL, TESTS, SETTINGS}
    assert "name: us.bts.departures\n" in changed[FLIGHTS]
    assert "datasetRef: us.bts.departures\n          alias: flights" in changed[DELAYED]
    assert "match: [us.bts.departures]" in changed[SETTINGS]
    assert "FROM flights" in changed[DELAYED]
    assert not any("us.bts.flights" in text for text in changed.values())


def test_a_column_is_renamed_and_readers_keep_their_own(editor: Editor) -> None:
    daily = rename(editor, DELAYED, "lost_in_the_air", 3, "gained")
    assert daily.keys() == {DELAYED, TESTS}
    assert "arr_delay - dep_delay AS gained" in daily[DELAYED]
    assert "flight,gained\n" in daily[TESTS]
    changed = rename(editor, WEATHER, "w.visib", 3, "sight")
    storms = "datasets/weather/nyc.weather.storms.yaml"
    assert changed.keys() == {STATIONS, WEATHER, storms}
    assert "visib AS sight\n" in changed[STATIONS]
    assert "w.sight AS visib\n" in changed[WEATHER]
    assert "sight AS visib\n" in changed[storms]
    assert "OR sight < 0.5\n" in changed[storms]
    tests = "datasets/departures/nyc.departures.weather.test.yaml"
    changed = rename(editor, WEATHER, "w.temp", 3, "degrees")
    assert changed.keys() == {STATIONS, WEATHER, tests}
    assert "origin: EWR, degrees: 39.02}" in changed[tests]
    assert "airport: EWR, temp: 39.02}" in changed[tests]


@pytest.mark.parametrize(
    ("file", "words", "within", "new", "said"),
    [
        (DELAYED, "us.bts.flights", 3, "us_bts", "E0384: 'us_bts' cannot be the name"),
        (DELAYED, "us.bts.flights", 3, "us.faa.planes", "E0384: there is a dataset"),
        (DELAYED, "FROM flights", 6, "x", "E0383: not renamed: 'flights' is what this query"),
        (DEPARTURES, "nyc.departures.jfk", 3, "x",
         "E0383: not renamed: a template makes the name"),
        (DELAYED, "SELECT", 3, "x", "E0383: not renamed: this is no name"),
        (DELAYED, "carrier,", 3, "line", "E0383: not renamed: odfbuild.yaml names a column"),
        (DELAYED, "dest,", 3, "origin", "E0384: 'us.bts.flights' has a column 'origin'"),
        (WEATHER, "d.airport", 3, "port", "E0383: not renamed: it is not certain"),
    ],
)  # fmt: skip
def test_what_cannot_be_renamed_safely_is_refused_with_the_reason(
    editor: Editor, file: str, words: str, within: int, new: str, said: str
) -> None:
    with pytest.raises(JsonRpcException, match="E038") as refused:
        rename(editor, file, words, within, new)
    assert said in str(refused.value)


def test_an_editor_is_told_beforehand_what_is_renamed(editor: Editor) -> None:
    editor.open(DELAYED)
    params = lsp.PrepareRenameParams(**editor.at(DELAYED, "us.bts.flights", 3))
    assert editor.ask("text_document_prepare_rename", params).placeholder == "us.bts.flights"


# --- What is shown ---


def test_the_file_is_formatted_as_fmt_does(editor: Editor) -> None:
    editor.open(DELAYED)
    saved = editor.texts[DELAYED]
    odd = saved.replace("  kind: Derivative\n  metadata:", "  metadata:").replace(
        "WHERE arr_delay >= 15\n", "WHERE arr_delay >= 15\n"
    )
    odd = odd.rstrip() + "\n  kind:   'Derivative'\n"
    editor.change(DELAYED, odd)
    options = lsp.FormattingOptions(tab_size=2, insert_spaces=True)
    params = lsp.DocumentFormattingParams(editor.document(DELAYED), options)
    edits = editor.ask("text_document_formatting", params)
    assert applied(odd, list(edits)) == saved
    editor.change(DELAYED, saved)
    assert editor.ask("text_document_formatting", params) in (None, (), [])


def test_the_outline_shows_datasets_and_their_events(editor: Editor) -> None:
    editor.open(FLIGHTS)
    params = lsp.DocumentSymbolParams(editor.document(FLIGHTS))
    (dataset,) = editor.ask("text_document_document_symbol", params)
    assert (dataset.name, dataset.detail) == ("us.bts.flights", "Root")
    kinds = [each.name for each in dataset.children]
    assert kinds == ["SetPollingSource", "SetInfo", "SetLicense", "SetAttachments"]


def test_words_of_queries_have_kinds_for_colours(editor: Editor) -> None:
    editor.open(AIRPORT)
    answer = editor.ask(
        "text_document_semantic_tokens_full", lsp.SemanticTokensParams(editor.document(AIRPORT))
    )
    legend = editor.capabilities.semantic_tokens_provider.legend.token_types
    lines = editor.texts[AIRPORT].splitlines()
    line = unit = 0
    found = []
    for at in range(0, len(answer.data), 5):
        down, right, length, kind, _ = answer.data[at : at + 5]
        unit = unit + right if down == 0 else right
        line += down
        found.append((lines[line][unit : unit + length], legend[kind]))
    assert ("SELECT", "keyword") in found
    assert ("event_time", "property") in found
    assert ("flights", "class") in found
    assert ("{{ origin }}", "macro") in found
    assert ("'", "string") in found


def test_lines_above_a_definition_tell_what_would_run(editor: Editor) -> None:
    editor.open(DELAYED)
    editor.save(DELAYED)
    params = lsp.CodeLensParams(editor.document(DELAYED))
    titles = ["what would change"]
    while titles == ["what would change"]:  # until the first plan is there
        lenses = editor.ask("text_document_code_lens", params)
        titles = [each.command.title for each in lenses]
    assert titles == [
        "new derivative: SetTransform, SetInfo, then up to 80,789 new records",
        "explain",
    ]
    command = lsp.ExecuteCommandParams("odfbuild.plan", [str(editor.root), "nyc.flights.delayed"])
    text = editor.ask("workspace_execute_command", command)
    assert "nyc.flights.delayed" in text
    assert Path(editor.shown[-1].removeprefix("file://")).read_text() == text
    command = lsp.ExecuteCommandParams(
        "odfbuild.explain", [str(editor.root), "nyc.flights.delayed"]
    )
    assert "nyc.flights.delayed" in editor.ask("workspace_execute_command", command)


@pytest.mark.parametrize(
    ("root", "dataset", "said"),
    [("", "nyc.flights.late", "nyc.flights.late"), ("/nowhere", "x", "no file of a project")],
)
def test_a_command_about_nothing_is_refused(
    editor: Editor, root: str, dataset: str, said: str
) -> None:
    editor.open(DELAYED)
    command = lsp.ExecuteCommandParams("odfbuild.plan", [root or str(editor.root), dataset])
    with pytest.raises(JsonRpcException, match=said):
        editor.ask("workspace_execute_command", command)


def test_positions_are_counted_as_the_editor_asks() -> None:
    """See `test_positions`; that it is agreed on, is asked here."""
    editor = Editor(Path(__file__).parents[3] / "example_project", ("utf-8", "utf-16"))
    try:
        assert editor.capabilities.position_encoding == "utf-8"
        found = editor.open(
            DELAYED,
            (editor.root / DELAYED).read_text().replace("flight,", "'é😀' AS odd, flihgt,"),
        )
        assert [each.range.start.character for each in found] == [
            len("            'é😀' AS odd, ".encode())
        ]
    finally:
        editor.quit()

"""Tables of spreadsheets as a step of `prepare`: Excel and OpenDocument."""

import contextlib
import io
import json
import random
import zipfile
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from odfbuild.errors import EnvironmentProblem, IngestError
from odfbuild.ingest.check import problems_of
from odfbuild.ingest.convert import run as run_module
from odfbuild.ingest.convert.spreadsheet import lines_of
from odfbuild.ingest.convert.words import conversion_of
from odfbuild.ingest.file_kind import refuse_other_kind
from odfbuild.ingest.prepare import check_pipe, prepare
from odfbuild.odf.model import (
    FetchStepUrl,
    MergeStrategyAppend,
    PrepStepPipe,
    ReadStepNdJson,
    SetPollingSource,
)
from tests.ingest.contexts import at
from tests.ingest.workbooks import EMPTY, cell, ods, row, text, xls, xlsx, zipped

PRICES: list[list[Any]] = [["id", "price"], [1, 1.1], [2, 12]]
ODS_PRICES = ods(
    {"Prices": row(text("id"), text("price")) + row(cell("float", "1"), cell("float", "1.1"))}
)


def step(*words: str) -> PrepStepPipe:
    return PrepStepPipe(command=("odfbuild", "convert", "spreadsheet", *words))


def converted(folder: Path, data: bytes, *words: str, **settings) -> list[dict]:
    file = folder / "book"
    file.write_bytes(data)
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    # No program may run: this is none.
    settings = {"pipes": (), **settings}
    found, _ = prepare(
        [step(*words)], file, "book.xlsx", scratch, folder, at(folder, **settings).settings
    )
    return [json.loads(line) for line in found.read_text().splitlines()]


def error_of(folder: Path, data: bytes, *words: str, **settings) -> IngestError:
    with pytest.raises(IngestError) as caught:
        converted(folder, data, *words, **settings)
    assert caught.value.help
    assert str(caught.value.location) == "prepare[0]"
    assert "'book.xlsx'" in caught.value.message
    return caught.value


# --- values ---


def test_cells_of_excel_keep_their_types_and_all_digits(tmp_path):
    values = {
        "whole": (123456789012345, 123456789012345),
        "digits of a float": (1.23e16, 12300000000000000),
        "decimal": (0.1, 0.1),
        "large": (1e300, 1e300),
        "yes": (True, True),
        "no": (False, False),
        "code": ("007", "007"),
        "text": ('ä "x"\n\\', 'ä "x"\n\\'),
        "number as text": ("1.10", "1.10"),
        "day": (date(2024, 2, 29), "2024-02-29"),
        "moment": (datetime(2024, 1, 2, 3, 4, 5, 678000), "2024-01-02T03:04:05.678000"),
        "midnight": (datetime(2024, 1, 2), "2024-01-02T00:00:00"),
        "clock": (time(3, 4, 5), "03:04:05"),
        "duration": (timedelta(hours=36, seconds=1), "36:00:01"),
    }
    data = xlsx({"A": [list(values), [given for given, _ in values.values()]]})
    assert converted(tmp_path, data) == [{name: kept for name, (_, kept) in values.items()}]


def test_cells_of_old_excel_keep_their_types_and_all_digits(tmp_path):
    values = {
        "whole": (123456789012345, "", 123456789012345),
        "decimal": (0.1, "", 0.1),
        "large": (1e300, "", 1e300),
        "percent": (0.125, "0.00%", 0.125),
        "yes": (True, "", True),
        "code": ("007", "", "007"),
        "text": ('ä "x"\n\\', "", 'ä "x"\n\\'),
        "day": (date(2024, 2, 29), "YYYY-MM-DD", "2024-02-29"),
        "moment": (datetime(2024, 1, 2, 3, 4, 5), "YYYY-MM-DD HH:MM:SS", "2024-01-02T03:04:05"),
        "midnight": (datetime(2024, 1, 2), "YYYY-MM-DD HH:MM:SS", "2024-01-02T00:00:00"),
        "clock": (time(3, 4, 5), "HH:MM:SS", "03:04:05"),
        "duration": (1.5 + 1 / 86400, "[h]:mm:ss", "36:00:01"),
    }
    data = xls({"A": [list(values), [given for given, *_ in values.values()]]}, {
        at: form for at, (_, form, _) in enumerate(values.values()) if form
    })  # fmt: skip
    assert converted(tmp_path, data) == [{name: kept for name, (*_, kept) in values.items()}]


def test_formats_in_capital_letters_say_what_a_day_is(tmp_path):
    """LibreOffice writes them so."""
    book = openpyxl.Workbook()
    book.active.append(["day"])
    book.active.append([datetime(2024, 1, 2)])
    book.active["A2"].number_format = r"YYYY\-MM\-DD"
    book.save(tmp_path / "capitals.xlsx")
    data = (tmp_path / "capitals.xlsx").read_bytes()
    assert converted(tmp_path, data) == [{"day": "2024-01-02"}]


def test_old_excel_has_hidden_sheets_empty_cells_and_errors(tmp_path):
    rows: list[list[Any]] = [["id", "note"], [1, ""], [], [2, "#N/A"]]
    data = xls({"Old": [["id"], [7]], "A": rows}, hidden=["Old"])
    assert converted(tmp_path, data, "--errors-as-null") == [{"id": 1}, {"id": 2}]
    assert converted(tmp_path, data, "--sheet", "Old") == [{"id": 7}]
    error = error_of(tmp_path, data)
    assert error.code == "E0478"
    assert "B4 of the sheet 'A' is an error: #N/A" in error.message


def test_old_excel_that_is_encrypted_or_broken_is_told(tmp_path):
    data = xls({"A": PRICES})
    assert error_of(tmp_path, data[:1000]).code == "E0475"
    # What an encrypted .xlsx lies in has the same form, and no workbook.
    error = error_of(tmp_path, data.replace("Workbook".encode("utf-16-le"), b"E\0" * 8))
    assert error.code == "E0475"
    assert "encrypted" in error.message


@pytest.mark.parametrize("seed", range(3))
def test_old_excel_with_other_bytes_is_read_or_refused(seed):
    choice = random.Random(seed)
    data = xls({"A": [["id", "price", "day"], [1, 1.5, date(2024, 1, 1)], [2, "x", True]]})
    for _ in range(150):
        broken = bytearray(data)
        for _ in range(choice.randint(1, 4)):
            broken[choice.randrange(len(broken))] = choice.randrange(256)
        with contextlib.suppress(IngestError):
            list(lines_of(io.BytesIO(bytes(broken)), conversion_of(["spreadsheet"]), 1 << 20))


def test_cells_of_open_document_keep_their_types_and_all_digits(tmp_path):
    cells = {
        "whole": (cell("float", "12345678901234567890"), "12345678901234567890"),
        "decimal": (cell("float", "1.10"), "1.10"),
        "percent": (cell("percentage", "0.125", "12.5%"), "0.125"),
        "money": (cell("currency", "19.99", "€ 19.99"), "19.99"),
        "yes": (cell("boolean", "true"), "true"),
        "code": (text("007"), '"007"'),
        "spaces": (text('a<text:s text:c="3"/>b<text:line-break/>c'), json.dumps("a   b\nc")),
        "comment": (
            '<table:table-cell office:value-type="string"><office:annotation><text:p>no</text:p>'
            "</office:annotation><text:p>x</text:p><text:p>y</text:p></table:table-cell>",
            json.dumps("x\ny"),
        ),
        "day": (cell("date", "2024-02-29"), '"2024-02-29"'),
        "moment": (cell("date", "2024-02-29T01:02:03.5"), '"2024-02-29T01:02:03.5"'),
        "clock": (cell("time", "PT03H04M05.25S"), '"03:04:05.25"'),
    }  # fmt: skip
    data = ods({"A": row(*map(text, cells)) + row(*(each for each, _ in cells.values()))})
    converted(tmp_path, data)
    line = (tmp_path / "scratch" / "prepared-0").read_text()
    assert line == "{" + ",".join(f'"{name}":{kept}' for name, (_, kept) in cells.items()) + "}\n"


def test_empty_cells_are_absent_and_empty_rows_left_out(tmp_path):
    data = xlsx({"A": [[], ["id", "note"], [1, None], [], [None, ""], [2, "x"], []]})
    assert converted(tmp_path, data) == [{"id": 1}, {"id": 2, "note": "x"}]
    one, two = row(cell("float", "1")), row(cell("float", "2"), EMPTY, text("x"))
    many = row(EMPTY, repeated=1048000)
    data = ods({"A": row(EMPTY) + row(text("id"), EMPTY, text("note")) + one + many + two + many})
    assert converted(tmp_path, data) == [{"id": 1}, {"id": 2, "note": "x"}]


def test_repeated_cells_and_rows_are_written_out(tmp_path):
    data = ods({"A": row(*map(text, "abc")) + row(cell("float", "7", repeated=3), repeated=2)})
    assert converted(tmp_path, data) == [{"a": 7, "b": 7, "c": 7}] * 2


# --- where the table is ---


def test_a_sheet_is_found_by_name_and_by_number(tmp_path):
    data = xlsx({"Notes": [["x"], [1]], "Prices": PRICES})
    for words in (("--sheet", "Prices"), ("--sheet=2",)):
        assert converted(tmp_path, data, *words) == [
            {"id": 1, "price": 1.1},
            {"id": 2, "price": 12},
        ]
    error = error_of(tmp_path, data)
    assert error.code == "E0476"
    assert error.notes == ("the sheets are: Notes, Prices",)
    error = error_of(tmp_path, data, "--sheet", "Price")
    assert error.code == "E0476"
    assert "Prices" in error.help


def test_long_lists_of_sheets_are_told_as_a_whole(tmp_path):
    names = [f"Größe {number:02}" for number in range(50)]
    error = error_of(tmp_path, xlsx({each: [["x"]] for each in names}))
    assert error.notes == (f"the sheets are: {', '.join(names)}",)
    assert "50 sheets" in error.message


def test_a_hidden_sheet_does_not_make_the_shown_one_ambiguous(tmp_path):
    data = xlsx({"Prices": PRICES, "Lists": [["x"], [1]]}, hidden=["Lists"])
    assert len(converted(tmp_path, data)) == 2
    assert converted(tmp_path, data, "--sheet", "Lists") == [{"x": 1}]


def test_a_range_leaves_out_what_is_around_the_table(tmp_path):
    head = ["Prices of 2024"]
    rows: list[list[Any]] = [head, [], [None, "id", "price", "remarks"], [None, 1, 1.5, "!"],
            [None, 2, 2.5, "?"], ["total", None, 4]]  # fmt: skip
    data = xlsx({"A": rows})
    for words in ("B3:C5", "$b$3:$c$5"):
        assert converted(tmp_path, data, "--range", words) == [
            {"id": 1, "price": 1.5}, {"id": 2, "price": 2.5}]  # fmt: skip
    assert converted(tmp_path, data, "--range", "B4:C5", "--no-header") == [
        {"B": 1, "C": 1.5}, {"B": 2, "C": 2.5}]  # fmt: skip
    for range_ in ("Z1:Z9", "A100"):
        assert error_of(tmp_path, data, "--range", range_).code == "E0476"


def test_a_table_without_records_gives_none(tmp_path):
    assert converted(tmp_path, xlsx({"A": [["id"]]})) == []
    assert error_of(tmp_path, xlsx({"A": []})).code == "E0476"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([["id", "ID"], [1, 2]], "A1 and B1"),
        ([["id"], [1, 2]], "B2 of the sheet 'A' holds '2'"),
        ([["id", "#N/A"], [1, 2]], "B1 of the sheet 'A'"),
    ],
)
def test_columns_without_a_name_of_their_own_are_refused_with_their_cells(tmp_path, rows, said):
    error = error_of(tmp_path, xlsx({"A": rows}))
    assert error.code == "E0476"
    assert said in error.message


# --- values that cannot be kept ---


def test_mixed_values_are_told_with_the_first_cell_of_each_kind(tmp_path):
    data = xlsx({"A": [["id", "price"], [1, None], [2, 1.5], [3, "n/a"], [4, date(2024, 1, 1)]]})
    error = error_of(tmp_path, data)
    assert error.code == "E0477"
    assert "column 'price' of the sheet 'A' has numbers, as in B3, and text in B4: 'n/a'" in (
        error.message
    )
    assert "--null 'n/a'" in error.help
    assert "B5" in error_of(tmp_path, data, "--null", "n/a").message
    assert [each.get("price") for each in converted(tmp_path, data, "--text", "price")] == [
        None, "1.5", "n/a", "2024-01-01"]  # fmt: skip
    assert [each.get("price") for each in converted(tmp_path, data, "--keep-mixed")] == [
        None, 1.5, "n/a", "2024-01-01"]  # fmt: skip
    error = error_of(tmp_path, data, "--text", "prices")
    assert error.code == "E0476"
    assert "price" in error.help


@pytest.mark.parametrize("form", ["xlsx", "ods"])
def test_cells_with_errors_are_never_taken_for_empty_ones(tmp_path, form):
    broken = cell("string", "", "#N/A", more='table:formula="of:=NA()" calcext:value-type="error"')
    data = (
        xlsx({"A": [["id", "x"], [1, "#N/A"]]})
        if form == "xlsx"
        else ods({"A": row(text("id"), text("x")) + row(cell("float", "1"), broken)})
    )
    error = error_of(tmp_path, data)
    assert error.code == "E0478"
    assert "B2 of the sheet 'A' is an error: #N/A" in error.message
    assert converted(tmp_path, data, "--errors-as-null") == [{"id": 1}]


def test_formulas_without_a_result_are_never_taken_for_empty_cells(tmp_path):
    data = xlsx({"A": [["id", "x"], [1, None], [2, "=A2+1"]]})
    error = error_of(tmp_path, data)
    assert error.code == "E0478"
    assert "B3 of the sheet 'A' is a formula without a result: =A2+1" in error.message
    assert len(converted(tmp_path, data, "--range", "A:A")) == 2


def test_formulas_give_their_results_and_empty_texts_are_empty(tmp_path):
    data = with_sheet(
        xlsx({"A": [["id", "x"], [1, 2]]}),
        '<row r="2"><c r="A2"><f>1+1</f><v>2</v></c><c r="B2" t="str"><f>""</f><v></v></c></row>',
    )
    assert converted(tmp_path, data) == [{"id": 2}]


def with_sheet(data: bytes, second_row: str) -> bytes:
    """A workbook with other XML for the second row of its sheet."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {each: archive.read(each) for each in archive.namelist()}
    name = "xl/worksheets/sheet1.xml"
    before, _, rest = entries[name].decode().partition('<row r="2">')
    entries[name] = (before + second_row + rest.partition("</row>")[2]).encode()
    return zipped(entries)


# --- files that are none ---


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not a spreadsheet"),
        (b"id,price\n1,2\n", "not a spreadsheet"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "not a readable Excel file"),
        (zipped({"a.txt": b"x"}), "holds no spreadsheet"),
        (zipped({"[Content_Types].xml": b"<x/>", "xl/workbook.bin": b""}), "xlsb"),
        (zipped({"[Content_Types].xml": b"<x/>", "xl/workbook.xml": b"<x"}), "not a readable"),
        (zipped({"content.xml": b"<x"}), "not well-formed"),
        (ODS_PRICES[: len(ODS_PRICES) // 2], "not a readable spreadsheet"),
    ],
)  # fmt: skip
def test_what_is_no_spreadsheet_is_told(tmp_path, data, said):
    error = error_of(tmp_path, data)
    assert error.code == "E0475"
    assert said in error.message


def test_entities_are_refused(tmp_path):
    head = '<!DOCTYPE x [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;">]>'
    error = error_of(tmp_path, ods({"A": row(text("&b;"))}, head))
    assert error.code == "E0475"
    assert "document type" in error.message


def test_a_bomb_ends_at_the_limit(tmp_path):
    data = zipped({"[Content_Types].xml": b"<x/>", "xl/workbook.xml": bytes(20_000_000)})
    assert len(data) < 30_000
    error = error_of(tmp_path, data, max_unpacked_bytes=1_000_000)
    assert error.code == "E0479"
    assert "1,000,000 bytes" in error.message


def test_a_sheet_that_takes_too_much_memory_ends_its_process_only(tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "CONVERT_MEMORY", 150 << 20)
    text = f'<c r="A2" t="inlineStr"><is><t>{"x" * 200_000_000}</t></is></c>'
    data = with_sheet(xlsx({"A": [["id"], [1]]}), f'<row r="2">{text}</row>')
    error = error_of(tmp_path, data)
    assert error.code == "E0479"
    assert "150 MiB" in error.message


def test_rows_that_a_small_file_repeats_end_at_the_limit(tmp_path):
    cells = cell("float", "7", repeated=100)
    header = row(*(text(f"c{n}") for n in range(100)))
    error = error_of(
        tmp_path, ods({"A": header + row(cells, repeated=1 << 20)}), max_unpacked_bytes=1_000_000
    )
    assert error.code == "E0409"


# --- as a step of a definition ---


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "does not say what"),
        (["spreadsheets"], "no conversion 'spreadsheets'"),
        (["spreadsheet", "--shet", "A"], "'--shet' is no option"),
        (["spreadsheet", "--sheet"], "'--sheet' has no value"),
        (["spreadsheet", "--sheet", "A", "--sheet", "B"], "'--sheet' is given twice"),
        (["spreadsheet", "--no-header=x"], "takes no value"),
        (["spreadsheet", "--range", "3A"], "'3A' is no range"),
        (["spreadsheet", "--range", "C3:A9"], "has no cells"),
    ],
)
def test_wrong_words_are_found_before_anything_is_fetched(words, said):
    wrong = PrepStepPipe(command=("odfbuild", "convert", *words))
    source = SetPollingSource(
        fetch=FetchStepUrl(url="file:x.xlsx"),
        prepare=(wrong,),
        read=ReadStepNdJson(),
        merge=MergeStrategyAppend(),
    )
    ((path, error),) = problems_of(source)
    assert path == ("prepare", 0, "command")
    assert error.code == "E0474"
    assert said in error.message
    assert error.help


def test_other_commands_of_odfbuild_need_a_permission(tmp_path):
    check_pipe(PrepStepPipe(command=("odfbuild", "version")))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(IngestError) as caught:
        prepare(
            [PrepStepPipe(command=("odfbuild", "version"))],
            tmp_path / "file", "file", tmp_path, tmp_path, at(tmp_path, pipes=()).settings,
        )  # fmt: skip
    assert caught.value.code == "E0172"


def test_nothing_is_imported_from_the_project(tmp_path):
    for name in ("json.py", "zipfile.py", "openpyxl.py", "odfbuild.py"):
        (tmp_path / name).write_text("raise SystemExit('from the project')")
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "zipfile.py").write_text("raise SystemExit('from scratch')")
    assert len(converted(tmp_path, xlsx({"A": PRICES}))) == 2


def test_a_missing_extra_is_named_with_its_command(tmp_path, monkeypatch):
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "openpyxl.py").write_text("raise ImportError('hidden')")
    monkeypatch.setenv("PYTHONPATH", str(hidden))
    with pytest.raises(EnvironmentProblem) as caught:
        converted(tmp_path, xlsx({"A": PRICES}))
    assert caught.value.code == "E0903"
    assert "odfbuild[office]" in caught.value.help
    assert converted(tmp_path, ODS_PRICES) == [{"id": 1, "price": 1.1}]


def test_a_spreadsheet_that_is_read_as_text_is_told_the_step(tmp_path):
    (tmp_path / "x.xlsx").write_bytes(xlsx({"A": PRICES}))
    with pytest.raises(IngestError) as caught:
        refuse_other_kind(tmp_path / "x.xlsx", ReadStepNdJson(), "x.xlsx", "prices")
    assert "odfbuild, convert, spreadsheet" in caught.value.help


def test_a_process_that_ends_in_another_way_is_told_with_what_it_said(tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "_MODULE", "odfbuild.no_such_module")
    error = error_of(tmp_path, ODS_PRICES)
    assert error.code == "E0475"
    assert any("no_such_module" in note for note in error.notes)

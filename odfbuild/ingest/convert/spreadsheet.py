"""A table of a spreadsheet as NDJSON: a record for each row, in types that its cells have.

Nothing is rounded or guessed: numbers keep their digits, dates and times are written as ISO 8601,
empty cells are absent. What cannot be kept is refused, with the cell.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import IO

from odfbuild.errors import IngestError
from odfbuild.ingest.convert.cells import (
    Cell,
    Cells,
    Row,
    Sheets,
    address,
    cells_of,
    column_letters,
)
from odfbuild.ingest.convert.problems import mixed, no_table, too_large, unreadable, without_value
from odfbuild.ingest.convert.words import Conversion
from odfbuild.wording import count, did_you_mean

_CHUNK = 1 << 20
_SHOWN = 40
_OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_NOT_A_WORKBOOK = "give a file in the format .xlsx, .xls or .ods"
_KINDS = {
    "number": "numbers",
    "text": "text",
    "boolean": "truth values",
    "date": "dates",
    "timestamp": "dates with a time",
    "time": "times",
}


def lines_of(source: IO[bytes], wanted: Conversion, most_bytes: int) -> Iterator[str]:
    """The records of the table that is wanted; `source` can be read from any place.

    Raises `IngestError`, also if the file unpacks to more than `most_bytes`.
    """
    book = opened(source, most_bytes)
    sheet = _sheet(book, wanted.one("sheet"))
    return _Table(book.rows(sheet), cells_of(wanted.one("range") or ""), wanted, sheet).lines()


def opened(source: IO[bytes], most_bytes: int) -> Sheets:
    """The workbook in a file. Raises `IngestError` where it is none, or too large."""
    source.seek(0)
    if source.read(len(_OLD)) == _OLD:
        from odfbuild.ingest.convert.xls import Xls

        return Xls(source)
    try:
        archive = zipfile.ZipFile(source)
        _check_size(archive, most_bytes)
        names = set(archive.namelist())
        if "content.xml" in names:
            from odfbuild.ingest.convert.ods import Ods

            return Ods(archive)
        if "[Content_Types].xml" in names and any(each.startswith("xl/") for each in names):
            from odfbuild.ingest.convert.xlsx import Xlsx, has_formulas

            if "xl/workbook.bin" in names:
                raise unreadable("this is a binary Excel file (.xlsb)", "save it as .xlsx")
            return Xlsx(source, has_formulas(archive))
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise _no_workbook(source, error) from None
    raise unreadable("this archive holds no spreadsheet", _NOT_A_WORKBOOK)


def _check_size(archive: zipfile.ZipFile, most_bytes: int) -> None:
    """Unpack everything once: what an archive says of its size may be wrong."""
    size = 0
    for entry in archive.infolist():
        with archive.open(entry) as packed:
            while chunk := packed.read(_CHUNK):
                size += len(chunk)
                if size > most_bytes:
                    raise too_large(
                        f"the spreadsheet unpacks to more than {most_bytes:,} bytes",
                        "raise `ingest.maxUnpackedBytes` in odfbuild.yaml if that much is "
                        "expected; a file made to fill memory looks like this too",
                    )


def _no_workbook(source: IO[bytes], error: Exception) -> IngestError:
    source.seek(0)
    if source.read(2) != b"PK":
        return unreadable("this is not a spreadsheet", _NOT_A_WORKBOOK)
    said = "it is encrypted" if "password" in str(error) else str(error) or type(error).__name__
    return unreadable(f"this is not a readable spreadsheet: {said}", "fetch or save it again")


def _sheet(book: Sheets, wanted: str | None) -> str:
    names = list(book.names)
    shown = [each for each in names if each not in book.hidden]
    if wanted is None:
        if len(shown) == 1:
            return shown[0]
        raise no_table(
            f"the spreadsheet has {count(len(shown), 'sheet')}, and `--sheet` does not say which",
            "name one with --sheet",
            f"the sheets are: {', '.join(names)}",
        )
    if wanted in names:
        return wanted
    if wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        return names[int(wanted) - 1]
    raise no_table(
        f"there is no sheet '{wanted}'",
        did_you_mean(wanted, names, f"the sheets are: {', '.join(names)}"),
    )


class _Table:
    """What is known of a table while its rows are read."""

    def __init__(
        self, rows: Iterator[tuple[int, Row]], cells: Cells, wanted: Conversion, sheet: str
    ) -> None:
        self._rows = rows
        self._cells = cells
        self._wanted = wanted
        self._sheet = sheet
        self._nulls = frozenset(wanted.all("null"))
        self._names: Mapping[int, str] = {}
        self._kinds: dict[int, tuple[str, str]] = {}

    def lines(self) -> Iterator[str]:
        """A line for each record."""
        begun = self._wanted.has("no-header")
        for number, row in self._rows:
            if number > self._cells.last_row:
                break
            if number < self._cells.first_row:
                continue
            inside = {
                at: cell
                for at, cell in row.items()
                if self._cells.first_column <= at <= self._cells.last_column
            }
            if not inside:
                continue
            if begun:
                if record := self._record(number, inside):
                    yield "{" + ",".join(record) + "}\n"
            else:
                self._begin(number, inside)
                begun = True
        if not begun:
            raise no_table(
                f"the sheet '{self._sheet}' has no cells in this range",
                "correct --sheet or --range",
            )

    def _begin(self, number: int, row: Row) -> None:
        names: dict[int, str] = {}
        seen: dict[str, int] = {}
        for at, cell in row.items():
            name = " ".join(cell.text.split())
            where = address(number, at)
            if cell.kind in ("error", "formula") or not name:
                raise no_table(
                    f"{where} of the sheet '{self._sheet}' should name a column, and is "
                    f"'{_short(cell.text)}'",
                    "correct the cell, or name the first row of the table: --range A3:F",
                )
            if name.lower() in seen:
                raise no_table(
                    f"two columns of the sheet '{self._sheet}' are called '{name}': "
                    f"{address(number, seen[name.lower()])} and {where}",
                    "rename one of them, or read fewer columns: --range A3:F",
                )
            seen[name.lower()] = at
            names[at] = name
        known = list(names.values())
        for each in self._wanted.all("text"):
            if each not in known:
                raise no_table(
                    f"'{each}' (--text) is no column of the sheet '{self._sheet}'",
                    did_you_mean(each, known, f"the columns are: {', '.join(known)}"),
                )
        self._names = names

    def _record(self, number: int, row: Row) -> list[str]:
        return [
            f"{json.dumps(self._name(number, at, cell), ensure_ascii=False)}:{value}"
            for at, cell in row.items()
            if (value := self._value(number, at, cell)) is not None
        ]

    def _name(self, number: int, at: int, cell: Cell) -> str:
        if self._wanted.has("no-header"):
            return column_letters(at)
        if at not in self._names:
            raise no_table(
                f"{address(number, at)} of the sheet '{self._sheet}' holds "
                f"'{_short(cell.text)}', but its column has no name",
                "name the column in the first row of the table, or leave it out: --range A3:F",
            )
        return self._names[at]

    def _value(self, number: int, at: int, cell: Cell) -> str | None:
        if cell.text in self._nulls:
            return None
        name = self._name(number, at, cell)
        where = address(number, at)
        if cell.kind == "error":
            if self._wanted.has("errors-as-null"):
                return None
            raise without_value(
                f"{where} of the sheet '{self._sheet}' is an error: {_short(cell.text)}",
                "correct the cell, or read such cells as empty: --errors-as-null",
            )
        if cell.kind == "formula":
            raise without_value(
                f"{where} of the sheet '{self._sheet}' is a formula without a result: "
                f"{_short(cell.text)}",
                "the program that wrote the file did not compute it: open and save it in a "
                "spreadsheet program, or leave the column out with --range",
            )
        if name in self._wanted.all("text"):
            return json.dumps(cell.text, ensure_ascii=False)
        if not self._wanted.has("keep-mixed"):
            self._check_kind(name, where, at, cell)
        if cell.kind in ("number", "boolean"):
            return cell.text
        return json.dumps(cell.text, ensure_ascii=False)

    def _check_kind(self, name: str, where: str, at: int, cell: Cell) -> None:
        kind, first = self._kinds.setdefault(at, (cell.kind, where))
        if kind != cell.kind:
            raise mixed(
                f"column '{name}' of the sheet '{self._sheet}' has {_KINDS[kind]}, as in {first}, "
                f"and {_KINDS[cell.kind]} in {where}: '{_short(cell.text)}'",
                "correct the cell; or say that it means nothing with --null "
                f"'{_short(cell.text)}', read the column as text with --text '{name}', or decide "
                "for each record with --keep-mixed",
            )


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"

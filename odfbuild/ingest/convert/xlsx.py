"""Sheets of an Excel file, a row at a time, by openpyxl.

Faster libraries give cells with errors as empty ones, which nobody could tell from missing values.
"""

from __future__ import annotations

import zipfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from datetime import date, datetime, time, timedelta
from typing import IO, Any

from odfbuild.errors import IngestError, missing_extra
from odfbuild.ingest.convert.cells import MOST_COLUMNS, Cell, Row, clock, number
from odfbuild.ingest.convert.problems import unreadable


class Xlsx:
    """A file with the extension `.xlsx` or `.xlsm`; `formulas`: some of its cells have one."""

    def __init__(self, source: IO[bytes], formulas: bool) -> None:
        try:
            import openpyxl
        except ImportError:
            raise missing_extra("office", "Excel files") from None
        self._source = source
        self._formulas = formulas
        self._load = openpyxl.load_workbook
        self._book = self._opened(data_only=True)
        sheets = self._book.worksheets
        self.names: Sequence[str] = [each.title for each in sheets]
        shown = {each.title for each in sheets if each.sheet_state == "visible"}
        self.hidden = frozenset(self.names) - shown

    def rows(self, sheet: str) -> Iterator[tuple[int, Row]]:
        """The rows of a sheet."""
        with closing(_cells(self._book[sheet])) as values:
            try:
                if not self._formulas:
                    for at, row in enumerate(values, 1):
                        yield at, _row(row)
                    return
                with closing(_cells(self._opened(data_only=False)[sheet])) as texts:
                    for at, (row, text) in enumerate(zip(values, texts, strict=True), 1):
                        yield at, _row(row, text)
            except (IngestError, MemoryError):
                raise
            except Exception as error:  # Whatever a broken file leads to, the library does not say.
                raise _broken(error) from None

    def _opened(self, *, data_only: bool) -> Any:
        self._source.seek(0)
        try:
            return self._load(self._source, read_only=True, data_only=data_only, keep_links=False)
        except MemoryError:
            raise
        except Exception as error:  # as above
            raise _broken(error) from None


def has_formulas(archive: zipfile.ZipFile) -> bool:
    """Whether any cell of a workbook may have a formula."""
    for each in archive.namelist():
        if each.startswith("xl/worksheets/"):
            with archive.open(each) as sheet:
                before = b""
                while chunk := sheet.read(1 << 20):
                    if b"<f>" in before + chunk or b"<f " in before + chunk or b":f>" in chunk:
                        return True
                    before = chunk[-2:]
    return False


def _cells(sheet: Any) -> Generator[Any]:
    sheet.reset_dimensions()  # what the file says of its size may be less than it has
    yield from sheet.iter_rows()


def _row(values: Sequence[Any], texts: Sequence[Any] = ()) -> Row:
    row = {}
    for at, each in enumerate(values[:MOST_COLUMNS]):
        cell = _cell(each)
        # A formula whose result is an empty text says so by its type.
        is_formula = at < len(texts) and texts[at].data_type == "f"
        if cell is None and is_formula and each.data_type == "n":
            cell = Cell("formula", str(texts[at].value))
        if cell is not None:
            row[at + 1] = cell
    return row


def _cell(cell: Any) -> Cell | None:
    value = cell.value
    if value is None or value == "":
        return None
    if cell.data_type == "e":
        return Cell("error", str(value))
    if isinstance(value, str):
        return Cell("text", value)
    if isinstance(value, bool):
        return Cell("boolean", "true" if value else "false")
    if isinstance(value, int):
        return Cell("number", str(value))
    if isinstance(value, float):
        return number(value)
    if isinstance(value, datetime):
        return _moment(value, cell)
    if isinstance(value, date):
        return Cell("date", value.isoformat())
    if isinstance(value, time):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return Cell("time", clock(seconds, value.microsecond))
    if isinstance(value, timedelta):
        return Cell("time", clock(value.days * 86_400 + value.seconds, value.microseconds))
    return Cell("text", str(value))


def _moment(value: datetime, cell: Any) -> Cell:
    """A date where the cell shows one only, and has no time of day."""
    from openpyxl.styles.numbers import is_datetime

    if value.time() == time() and is_datetime(cell.number_format.lower()) == "date":
        return Cell("date", value.date().isoformat())
    return Cell("timestamp", value.isoformat())


def _broken(error: Exception) -> IngestError:
    return unreadable(
        f"this is not a readable Excel file: {str(error) or type(error).__name__}",
        "open it in a spreadsheet program, and save it again as .xlsx",
    )

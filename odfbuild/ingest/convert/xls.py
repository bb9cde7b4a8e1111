"""Sheets of a file of Excel 97 to 2003, by xlrd.

Of the libraries that read these files, it is the one that tells errors and empty cells apart. The
format does not say which cells have formulas, so one without a result is what its cell holds: an
empty text.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from datetime import time
from typing import IO, Any

from odfbuild.errors import IngestError, missing_extra
from odfbuild.ingest.convert.cells import Cell, Row, clock, number
from odfbuild.ingest.convert.problems import unreadable

_DAY_MILLISECONDS = 86_400_000


class Xls:
    """A file with the extension `.xls`."""

    def __init__(self, source: IO[bytes]) -> None:
        try:
            import openpyxl  # noqa: F401
            import xlrd
        except ImportError:
            raise missing_extra("office", "Excel files") from None
        source.seek(0)
        try:
            # It writes to standard output what it wonders about.
            self._book = xlrd.open_workbook(
                file_contents=source.read(),
                formatting_info=True,
                ragged_rows=True,
                logfile=io.StringIO(),  # not standard output, where the records go
            )
        except MemoryError:
            raise
        except Exception as error:  # Whatever a broken file leads to, the library does not say.
            raise _broken(error) from None
        self.names: Sequence[str] = self._book.sheet_names()
        sheets = zip(self.names, self._book.sheets(), strict=True)
        self.hidden = frozenset(name for name, each in sheets if each.visibility)

    def rows(self, sheet: str) -> Iterator[tuple[int, Row]]:
        """The rows of a sheet."""
        cells = self._book.sheet_by_name(sheet)
        for at in range(cells.nrows):
            row = cells.row(at)
            yield at + 1, {n: cell for n, each in enumerate(row, 1) if (cell := self._cell(each))}

    def _cell(self, cell: Any) -> Cell | None:
        import xlrd

        value = cell.value
        if cell.ctype == xlrd.XL_CELL_TEXT:
            return Cell("text", value) if value else None
        if cell.ctype == xlrd.XL_CELL_NUMBER:
            return number(value)
        if cell.ctype == xlrd.XL_CELL_DATE:
            return self._moment(value, cell)
        if cell.ctype == xlrd.XL_CELL_BOOLEAN:
            return Cell("boolean", "true" if value else "false")
        if cell.ctype == xlrd.XL_CELL_ERROR:
            return Cell("error", xlrd.error_text_from_code.get(value, f"error {value}"))
        return None

    def _moment(self, value: float, cell: Any) -> Cell:
        """What the format of the cell makes of a number of days."""
        import xlrd
        from openpyxl.styles.numbers import is_datetime, is_timedelta_format

        form = self._book.format_map[
            self._book.xf_list[cell.xf_index].format_key
        ].format_str.lower()
        if not math.isfinite(value):
            return Cell("error", str(value))
        if is_timedelta_format(form) or (0 <= value < 1 and is_datetime(form) == "time"):
            seconds, millis = divmod(round(value * _DAY_MILLISECONDS), 1000)
            return Cell("time", clock(seconds, millis * 1000))
        try:
            moment = xlrd.xldate_as_datetime(value, self._book.datemode)
        except (OverflowError, ValueError):
            return Cell("error", f"{value} is no day")
        if moment.time() == time() and is_datetime(form) == "date":
            return Cell("date", moment.date().isoformat())
        return Cell("timestamp", moment.isoformat())


def _broken(error: Exception) -> IngestError:
    said = str(error) or type(error).__name__
    if "encrypted" in said or "find workbook" in said:  # An encrypted .xlsx lies in such a file.
        return unreadable(
            "this is an encrypted file, or none of Excel", "remove the password, and save it again"
        )
    return unreadable(
        f"this is not a readable Excel file: {said}",
        "open it in a spreadsheet program, and save it as .xlsx",
    )

"""Cells of a spreadsheet: their names, the range that a table has, and values with their kinds."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Literal, NamedTuple, Protocol

from odfbuild.ingest.convert.problems import wrong
from odfbuild.values import Value

MOST_ROWS, MOST_COLUMNS = 1 << 20, 1 << 14
"""How large sheets are, in Excel and in LibreOffice."""

_LARGEST_WHOLE = 1e38
"""Larger numbers have no place in columns of whole numbers, and are written with an exponent."""
_RANGE = re.compile(r"([A-Z]{1,3})?([1-9][0-9]{0,6})?(?::([A-Z]{1,3})?([1-9][0-9]{0,6})?)?")

Kind = Literal["number", "text", "boolean", "date", "timestamp", "time", "error", "formula"]


class Cell(NamedTuple):
    """A cell that is not empty; `text` spells its value.

    Of an `error` it is its name, and a `formula` is one of which the file holds no result.
    """

    kind: Kind
    text: str


Row = Mapping[int, Cell]
"""The cells of a row that are not empty, by their columns from 1."""


class Sheets(Protocol):
    """A workbook."""

    @property
    def names(self) -> Sequence[str]:
        """The names of its sheets."""

    @property
    def hidden(self) -> frozenset[str]:
        """Those that are not shown."""

    def rows(self, sheet: str) -> Iterator[tuple[int, Row]]:
        """The rows of a sheet with their numbers from 1; empty ones may be left out."""


class Cells(Value):
    """A range of columns and rows, counted from 1, with its ends."""

    first_column: int = 1
    first_row: int = 1
    last_column: int = MOST_COLUMNS
    last_row: int = MOST_ROWS


def cells_of(text: str) -> Cells:
    """The range that a text such as `A3:F` names. Raises `IngestError` E0474."""
    found = _RANGE.fullmatch(text.upper().replace("$", ""))
    if found is None:
        raise wrong(f"'{text}' is no range of cells", "write A3:F, B2:F200, or A3 for all behind")
    left, top, right, bottom = found.groups()
    cells = Cells(
        first_column=column_number(left) if left else 1,
        first_row=int(top or 1),
        last_column=min(column_number(right), MOST_COLUMNS) if right else MOST_COLUMNS,
        last_row=min(int(bottom or MOST_ROWS), MOST_ROWS),
    )
    if cells.first_column > cells.last_column or cells.first_row > cells.last_row:
        raise wrong(f"the range '{text}' has no cells", "write the upper left cell first: A3:F200")
    return cells


def column_number(letters: str) -> int:
    """The number of a column: 1 for A, 27 for AA."""
    number = 0
    for each in letters:
        number = number * 26 + ord(each) - 64
    return number


def column_letters(number: int) -> str:
    """The letters of a column."""
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def address(row: int, column: int) -> str:
    """What a cell is called."""
    return f"{column_letters(column)}{row}"


def number(value: float) -> Cell:
    """A number that a file of Excel has as a floating point one, of which it keeps 15 digits."""
    if not math.isfinite(value):
        return Cell("error", str(value))
    is_whole = value.is_integer() and abs(value) < _LARGEST_WHOLE
    return Cell("number", str(int(Decimal(repr(value)))) if is_whole else repr(value))


def clock(seconds: int, microseconds: int) -> str:
    """A time of day or a duration, in hours, minutes, seconds."""
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    fraction = f".{microseconds:06}".rstrip("0") if microseconds else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"

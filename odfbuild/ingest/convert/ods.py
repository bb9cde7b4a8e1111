"""Sheets of an OpenDocument file, a row at a time.

Each cell says its type, and its value in full digits.
Source: OpenDocument 1.3, part 3, "9.1 Basic Table Model", "19.385 office:value-type".
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cached_property
from typing import IO, TypeGuard

from odfbuild.ingest.convert.cells import MOST_COLUMNS, MOST_ROWS, Cell, Row, clock
from odfbuild.ingest.convert.xml_events import End, Event, Start, xml_events

_TABLE = "urn:oasis:names:tc:opendocument:xmlns:table:1.0 "
_TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0 "
_OFFICE = "urn:oasis:names:tc:opendocument:xmlns:office:1.0 "
_CALC = "urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0 "
_DURATION = re.compile(r"(-?)P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d{1,9}))?S)?)?")
_ERROR = re.compile(r"#[A-Z/0!?]+|Err:\d+")


class Ods:
    """A file with the extension `.ods`."""

    hidden: frozenset[str] = frozenset()

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    @cached_property
    def names(self) -> Sequence[str]:
        """The names of its sheets."""
        with self._content() as content:
            return [
                each.attributes.get(f"{_TABLE}name", "")
                for each in xml_events(content, "the spreadsheet")
                if _is_table(each)
            ]

    def rows(self, sheet: str) -> Iterator[tuple[int, Row]]:
        """The rows of a sheet that are not empty."""
        with self._content() as content:
            events = xml_events(content, "the spreadsheet")
            for each in events:
                if _is_table(each) and each.attributes.get(f"{_TABLE}name") == sheet:
                    yield from _rows(events)
                    return

    def _content(self) -> IO[bytes]:
        return self._archive.open("content.xml")


def _is_table(event: Event) -> TypeGuard[Start]:
    return isinstance(event, Start) and event.name == f"{_TABLE}table"


def _rows(events: Iterator[Event]) -> Iterator[tuple[int, Row]]:
    number = 1
    for each in events:
        if isinstance(each, End) and each.name == f"{_TABLE}table":
            return
        if isinstance(each, Start) and each.name == f"{_TABLE}table-row":
            repeated = _repeated(each, "rows", MOST_ROWS)
            row = _row(events)
            if row:
                for at in range(number, min(number + repeated, MOST_ROWS + 1)):
                    yield at, row
            number += repeated


def _row(events: Iterator[Event]) -> Row:
    row: dict[int, Cell] = {}
    column = 1
    for each in events:
        if isinstance(each, End) and each.name == f"{_TABLE}table-row":
            break
        if isinstance(each, Start) and each.name in _CELLS:
            repeated = _repeated(each, "columns", MOST_COLUMNS)
            cell = _cell(each, _content_of(events, each.name))
            if cell is not None:
                for at in range(column, min(column + repeated, MOST_COLUMNS + 1)):
                    row[at] = cell
            column += repeated
    return row


_CELLS = (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell")


def _repeated(start: Start, what: str, most: int) -> int:
    text = start.attributes.get(f"{_TABLE}number-{what}-repeated", "1")
    return min(int(text), most) if text.isdecimal() and len(text) < 10 else 1


def _content_of(events: Iterator[Event], name: str) -> str:
    """The paragraphs of a cell, up to its end, without comments."""
    paragraphs: list[str] = []
    depth, comment = 0, 0
    for each in events:
        if isinstance(each, str):
            if depth and not comment:
                paragraphs[-1] += each
        elif isinstance(each, End):
            if each.name == name:
                break
            depth -= each.name == f"{_TEXT}p"
            comment -= each.name == f"{_OFFICE}annotation"
        elif each.name == f"{_OFFICE}annotation":
            comment += 1
        elif each.name == f"{_TEXT}p":
            depth += 1
            if not comment:
                paragraphs.append("")
        elif depth and not comment:
            paragraphs[-1] += _sign(each)
    return "\n".join(paragraphs)


def _sign(start: Start) -> str:
    if start.name == f"{_TEXT}s":
        count = start.attributes.get(f"{_TEXT}c", "1")
        return " " * (min(int(count), 10_000) if count.isdecimal() and len(count) < 6 else 1)
    return {f"{_TEXT}tab": "\t", f"{_TEXT}line-break": "\n"}.get(start.name, "")


def _cell(start: Start, content: str) -> Cell | None:
    given = start.attributes
    kind = given.get(f"{_OFFICE}value-type")
    if given.get(f"{_CALC}value-type") == "error":
        return Cell("error", content or "an error")
    formula = f"{_TABLE}formula" in given
    if formula and kind == "string" and _ERROR.fullmatch(content):
        return Cell("error", content)
    if kind is None:
        return Cell("formula", given[f"{_TABLE}formula"]) if formula else None
    if kind == "string":
        text = given.get(f"{_OFFICE}string-value") or content
        return Cell("text", text) if text else None
    if kind == "boolean":
        return Cell("boolean", given.get(f"{_OFFICE}boolean-value", "false"))
    if kind == "date":
        text = given.get(f"{_OFFICE}date-value", "")
        return Cell("timestamp" if "T" in text else "date", text)
    if kind == "time":
        return _time(given.get(f"{_OFFICE}time-value", ""))
    return _number(given.get(f"{_OFFICE}value", ""))


def _number(text: str) -> Cell:
    try:
        value = Decimal(text)
    except ArithmeticError:
        return Cell("error", f"'{text}'")
    if not value.is_finite() or abs(value.adjusted()) > 400:
        return Cell("error", f"'{text}'")
    is_whole = value == value.to_integral_value() and value.adjusted() < 40
    return Cell("number", str(int(value)) if is_whole else str(value))


def _time(text: str) -> Cell:
    found = _DURATION.fullmatch(text)
    if found is None:
        return Cell("error", f"'{text}'")
    days, hours, minutes, seconds = (int(each or 0) for each in found.groups()[1:5])
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    micros = int((found[6] or "0").ljust(9, "0")) // 1000
    return Cell("time", clock(-total if found[1] else total, micros))

"""Workbooks as spreadsheet programs write them."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from xml.sax.saxutils import quoteattr

import openpyxl
import xlwt

_NAMES = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0"'
)


def xlsx(sheets: Mapping[str, Sequence[Sequence[Any]]], hidden: Sequence[str] = ()) -> bytes:
    """An Excel file with these rows; text with `=` is a formula, and `#N/A` an error."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        sheet.sheet_state = "hidden" if name in hidden else "visible"
        for at, row in enumerate(rows, 1):
            for column, value in enumerate(row, 1):
                sheet.cell(at, column, value)
                if isinstance(value, timedelta):
                    sheet.cell(at, column).number_format = "[h]:mm:ss"
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def xls(
    sheets: Mapping[str, Sequence[Sequence[Any]]],
    formats: Mapping[int, str] | None = None,
    hidden: Sequence[str] = (),
) -> bytes:
    """A file of Excel 97 to 2003; `formats` are those of columns, and `#N/A` is an error."""
    book = xlwt.Workbook()
    plain = xlwt.easyxf()
    styles = {at: xlwt.easyxf(num_format_str=each) for at, each in (formats or {}).items()}
    for name, rows in sheets.items():
        sheet = book.add_sheet(name)
        sheet.visibility = int(name in hidden)
        for at, row in enumerate(rows):
            for column, value in enumerate(row):
                if value == "#N/A":
                    sheet.row(at).set_cell_error(column, 0x2A)
                else:
                    sheet.write(at, column, value, styles.get(column, plain) if at else plain)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def ods(sheets: Mapping[str, str], head: str = "") -> bytes:
    """An OpenDocument file whose tables hold this XML."""
    tables = "".join(
        f"<table:table table:name={quoteattr(name)}>{rows}</table:table>"
        for name, rows in sheets.items()
    )
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?>{head}<office:document-content {_NAMES}>'
        f"<office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body>"
        "</office:document-content>"
    )
    return zipped({"mimetype": b"application/vnd.oasis.opendocument.spreadsheet",
                   "content.xml": content.encode()})  # fmt: skip


def row(*cells: str, repeated: int = 1) -> str:
    """A row of an OpenDocument sheet."""
    begin = f'<table:table-row table:number-rows-repeated="{repeated}">'
    return f"{begin}{''.join(cells)}</table:table-row>"


def text(value: str) -> str:
    """A cell with text."""
    return (
        f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'
    )


def cell(kind: str, value: str = "", shown: str = "", repeated: int = 1, more: str = "") -> str:
    """A cell of a type, with its value."""
    name = {"float": "value", "percentage": "value", "currency": "value"}.get(kind, f"{kind}-value")
    return (
        f'<table:table-cell table:number-columns-repeated="{repeated}" {more} '
        f'office:value-type="{kind}" office:{name}="{value}"><text:p>{shown}</text:p>'
        "</table:table-cell>"
    )


EMPTY = "<table:table-cell/>"


def zipped(entries: Mapping[str, bytes]) -> bytes:
    """A ZIP archive."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return file.getvalue()

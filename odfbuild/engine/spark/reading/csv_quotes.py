"""Quoted values of CSV that go on in the next line: refused, or written as one line.

A record is a line, for the reference as for Spark, which would take what follows the opening quote
for the value in silence. Where a project says so, values may hold line breaks (RFC 4180).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import BinaryIO

import numpy as np

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.csv_records import NotRecordsError, Quoting, folded
from odfbuild.engine.spark.reading.source_text import SourceText, shown
from odfbuild.errors import IngestError, Location
from odfbuild.odf.model import ReadStepCsv

_BLOCK = 1 << 20
_NEWLINE = 0x0A


def quote_of(read: ReadStepCsv) -> str | None:
    """The character around values; `None` when the file has none."""
    return '"' if read.quote is None else read.quote or None


def refuse_open_quotes(task: IngestTask, text: SourceText, read: ReadStepCsv) -> None:
    """Raise `IngestError` with the first line that ends inside quotes.

    With an `escape` of its own a quote need not close, so only the form of RFC 4180 is checked.
    """
    quote = quote_of(read)
    if quote is None or read.escape not in (None, quote):
        return
    mark = quote.encode()
    with text.file.open("rb") as source:
        begins = 0
        for block in _blocks(source):
            # Most blocks of most files have no quotes; looking at lines costs fifty times as much.
            if mark in block and _has_odd_line(block, mark):
                _refuse_in(task, text, begins, block, quote, read)
            begins += len(block)


def _has_odd_line(block: bytes, mark: bytes) -> bool:
    """Whether some line has an odd number of `mark`: only these may end inside quotes."""
    if len(mark) > 1:
        return True
    data = np.frombuffer(block, np.uint8)
    marks = np.flatnonzero(data == mark[0])
    ends = np.flatnonzero(data == _NEWLINE)
    return len(marks) % 2 == 1 or bool((np.searchsorted(marks, ends) % 2).any())


def _refuse_in(
    task: IngestTask, text: SourceText, begins: int, block: bytes, quote: str, read: ReadStepCsv
) -> None:
    for number, line in enumerate(block.split(b"\n"), 1):
        if line.count(quote.encode()) & 1 and _is_open(
            line.decode("utf-8", "replace"), quote, read
        ):
            before = _lines_before(text, begins)
            raise _open(task, before + number, line.decode("utf-8", "replace").rstrip("\r\n"))


def _lines_before(text: SourceText, end: int) -> int:
    """Lines of a file up to the byte `end`, which begins one."""
    lines = 0
    with text.file.open("rb") as source:
        while block := source.read(min(_BLOCK, end - source.tell())):
            lines += block.count(b"\n")
    return lines


def _is_open(line: str, quote: str, read: ReadStepCsv) -> bool:
    reader = csv.reader(
        [line.rstrip("\r\n")],
        delimiter=read.separator or ",",
        quotechar=quote,
        strict=True,
    )
    try:
        next(reader, None)
    except csv.Error as error:
        return "unexpected end of data" in str(error)
    return False


def _open(task: IngestTask, line: int, row: str) -> IngestError:
    return IngestError(
        f"line {line} of '{task.source_name}' opens a quote that it does not close",
        code="E0424",
        location=Location(task.source_name, line, None, shown(row)),
        notes=("a record of CSV is one line: values hold no line breaks",),
        help=f"close the quote; or let `ingest.quotedLineBreaks: {{{task.dataset}: read}}` in "
        "odfbuild.yaml read line breaks in quoted values",
        dataset=task.dataset,
    )


def with_empty_rows(task: IngestTask, text: SourceText, read: ReadStepCsv) -> SourceText:
    """`text` with quotes around the first cell of rows in which nothing but separators stands.

    Spark takes such a row of tabs for a blank line, which is no record.
    """
    separator, quote = (read.separator or ",").encode(), (quote_of(read) or "").encode()
    if separator > b" " or not quote:
        return text
    cell = bytes(each for each in range(0x21) if each not in (_NEWLINE, separator[0]))
    row = re.compile(rb"^([%s]*)(?=%s[\x00-\x09\x0b-\x20]*$)" % (cell, separator), re.MULTILINE)
    with text.file.open("rb") as source:
        if not any(map(row.search, _blocks(source))):
            return text
        source.seek(0)
        target = task.scratch / "rows"
        with target.open("wb") as output:
            for block in _blocks(source):
                output.write(row.sub(rb"%s\1%s" % (quote, quote), block))
    return replace(text, file=target)


def _blocks(source: BinaryIO) -> Iterator[bytes]:
    """Whole lines."""
    while block := source.read(_BLOCK) + source.readline():
        yield block


def with_line_breaks(task: IngestTask, text: SourceText, read: ReadStepCsv) -> SourceText:
    """`text` with one record a line, though quoted values hold line breaks.

    Raises `IngestError` with the line of a quote after which nobody can tell where records end.
    """
    signs = Quoting.of(read)
    if signs is None:
        return text
    target = task.scratch / "records"
    try:
        with text.file.open("rb") as source, target.open("wb") as output:
            for block in folded(iter(partial(source.read, _BLOCK), b""), signs):
                output.write(block)
    except NotRecordsError as error:
        raise IngestError(
            f"line {error.line} of '{task.source_name}' {error.what}",
            code="E0424",
            location=Location(task.source_name, error.line),
            notes=(
                "as values may hold line breaks, nothing tells where its record ends",
                f"a quote within a quoted value is written {_within(read)}",
            ),
            help="correct the quotes of that line",
            dataset=task.dataset,
        ) from None
    return SourceText(target, folded=True)


def _within(read: ReadStepCsv) -> str:
    quote = quote_of(read) or ""
    return f"{read.escape}{quote}" if read.escape not in (None, "", quote) else quote * 2

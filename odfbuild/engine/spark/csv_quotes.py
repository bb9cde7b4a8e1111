"""Find quoted values of CSV that go on in the next line.

A record is a line, for the reference as for Spark, which would take what follows the opening quote
for the value in silence.
"""

from __future__ import annotations

import csv

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.source_text import SourceText, shown
from odfbuild.errors import IngestError, Location
from odfbuild.odf.model import ReadStepCsv

_BLOCK = 1 << 20


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
    number = 0
    with text.file.open("rb") as source:
        while block := source.read(_BLOCK) + source.readline():
            # Most blocks of most files have no quotes; looking at lines costs ten times as much.
            if quote.encode() in block:
                _refuse_in(task, block, number, quote, read)
            number += block.count(b"\n")


def _refuse_in(task: IngestTask, block: bytes, before: int, quote: str, read: ReadStepCsv) -> None:
    for number, line in enumerate(block.split(b"\n"), before + 1):
        if line.count(quote.encode()) & 1 and _is_open(
            line.decode("utf-8", "replace"), quote, read
        ):
            raise _open(task, number, line.decode("utf-8", "replace").rstrip("\r\n"))


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
        help="close the quote, or write the file without line breaks in values",
        dataset=task.dataset,
    )

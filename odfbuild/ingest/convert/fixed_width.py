"""Lines whose columns stand at fixed places, as CSV. Blanks around values are left out."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO

from odfbuild.ingest.convert.columns import csv_lines, named_columns, slice_of
from odfbuild.ingest.convert.problems import too_large, unreadable
from odfbuild.ingest.convert.words import Conversion

_LONGEST_LINE = 16 << 20


def lines_of(source: IO[bytes], wanted: Conversion) -> Iterator[str]:
    """A header, and a line for each one that is not blank. Raises `IngestError`."""
    places = named_columns(wanted.all("column"))
    slices = [slice_of(each) for each in places.values()]
    rows = ([line[each].strip() for each in slices] for line in _lines(source, wanted))
    return csv_lines(places, rows)


def _lines(source: IO[bytes], wanted: Conversion) -> Iterator[str]:
    encoding = wanted.one("encoding") or "utf-8-sig"
    skipped = int(wanted.one("skip") or 0)
    number = 0
    text = io.TextIOWrapper(source, encoding=encoding, newline=None)
    try:
        while line := text.readline(_LONGEST_LINE):
            number += 1
            if len(line) == _LONGEST_LINE:
                raise too_large(
                    f"line {number:,} has more than {_LONGEST_LINE:,} characters",
                    "check whether this is text with line breaks",
                )
            if number > skipped and line.strip():
                yield line.rstrip("\n")
    except UnicodeDecodeError as error:
        raise unreadable(
            f"the text behind line {number:,} is not {encoding}: {error.reason}",
            "give the encoding, as in --encoding windows-1252",
        ) from None
    finally:
        text.detach()

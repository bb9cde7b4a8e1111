"""Columns that the words of a conversion name: `id=1-5` in lines, `price=price/@amount` in XML."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence

from odfbuild.ingest.convert.problems import wrong

_PLACE = re.compile(r"([1-9][0-9]{0,5})(?:-([1-9][0-9]{0,5})?)?")
_STEP = re.compile(r"[^/@\s]+")


def named_columns(texts: Sequence[str]) -> dict[str, str]:
    """What stands for each column, by its name. Raises `IngestError` E0474."""
    found: dict[str, str] = {}
    for each in texts:
        name, equals, what = each.partition("=")
        if not equals or not name.strip() or not what:
            raise wrong(f"'{each}' (--column) names no column", "write NAME=WHERE")
        if name.lower() in map(str.lower, found):
            raise wrong(f"the column '{name}' is there twice", "name each column once")
        found[name] = what
    if not found:
        raise wrong("it names no columns", "add --column NAME=WHERE for each column")
    return found


def slice_of(text: str) -> slice:
    """The characters of a line that `1-5`, `7` or `41-` names, counted from 1."""
    found = _PLACE.fullmatch(text)
    begin = int(found[1]) if found else 0
    end = int(found[2]) if found and found[2] else None if text.endswith("-") else begin
    if found is None or (end is not None and end < begin):
        raise wrong(f"'{text}' is no place in a line", "write 1-5, 7, or 41- up to the end")
    return slice(begin - 1, end)


def path_of(text: str) -> str:
    """A path in a record of XML: `name`, `price/amount`, `@id`, `price/@currency`, or `.`."""
    *outer, last = text.split("/")
    steps = [*outer, last.removeprefix("@")]
    if text != "." and not all(map(_STEP.fullmatch, steps)):
        raise wrong(f"'{text}' is no path in a record", "write name, price/amount, @id or .")
    return text


def csv_lines(names: Iterable[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Rows as CSV (RFC 4180), behind a header."""
    written: list[str] = []

    class _Sink:
        def write(self, text: str) -> None:
            written.append(text)

    writer = csv.writer(_Sink(), lineterminator="\n")
    writer.writerow(list(names))
    for row in rows:
        writer.writerow(row)
        yield from written
        written.clear()
    yield from written

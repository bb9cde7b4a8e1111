"""Whether files that declare no columns have the same ones, told without a job for each file.

Spark infers the type of a column from the forms of its values. Where these all have one simple
form, the same in each file, the types are the same, whatever Spark makes of that form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from odfbuild.engine.spark.reading.csv_header import first_row, split
from odfbuild.engine.spark.reading.plain_text import Unclear
from odfbuild.engine.spark.reading.source_text import SourceText
from odfbuild.odf.model import ReadStep, ReadStepCsv

_MOST_BYTES = 8 << 20
"""The size of the largest file that is looked at: a larger one costs more than it saves."""
_CELLS = {
    "whole": re.compile(r"-?(0|[1-9]\d{0,17})", re.ASCII),
    "fraction": re.compile(r"-?(0|[1-9]\d{0,6})\.\d{1,6}", re.ASCII),
    "day": re.compile(r"[12]\d{3}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])", re.ASCII),
    "time": re.compile(
        r"[12]\d{3}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8]) ([01]\d|2[0-3])(:[0-5]\d){2}", re.ASCII
    ),
    "text": re.compile(r"(?!(?i:true|false|nan|inf|infinity)$|[tT]\d)[^\W\d_].*"),
}
_VALUES = {bool: "boolean", int: "whole", float: "fraction", str: "text"}


def have_same_columns(texts: Sequence[SourceText], read: ReadStep) -> bool:
    """Whether all files surely have the columns of the first, by name, order and type."""
    if len(texts) == 1:
        return True
    try:
        first = _forms(texts[0], read)
        return all(_forms(each, read) == first for each in texts[1:])
    except (Unclear, ValueError, RecursionError):
        return False


def _forms(text: SourceText, read: ReadStep) -> list[tuple[str, str]]:
    """The columns of a file in their order, with the form that all their values have."""
    if text.file.stat().st_size > _MOST_BYTES:
        raise Unclear
    found: dict[str, str] = {}
    for row in _cells(text, read) if isinstance(read, ReadStepCsv) else _members(text):
        if len({name for name, _ in row}) < len(row):
            raise Unclear
        for name, form in row:
            if found.setdefault(name, form) != form and form:
                if found[name]:
                    raise Unclear
                found[name] = form
    if not found or not all(found.values()):
        raise Unclear
    return list(found.items())


def _cells(text: SourceText, read: ReadStepCsv) -> Iterator[list[tuple[str, str]]]:
    row = first_row(text, read)
    names = row if read.header else [f"column_{n}" for n in range(1, len(row) + 1)]
    if not read.infer_schema:
        yield [(name, "text") for name in names]
        return
    lines = [line for _, line in text.lines()]
    for line in lines[1:] if read.header else lines:
        cells = split(line, read)
        if len(cells) != len(names):
            raise Unclear
        forms = ["" if cell in ("", read.null_value) else _form_of(cell) for cell in cells]
        yield list(zip(names, forms, strict=True))


def _form_of(cell: str) -> str:
    for form, pattern in _CELLS.items():
        if pattern.fullmatch(cell):
            return form
    raise Unclear


def _members(text: SourceText) -> Iterator[list[tuple[str, str]]]:
    for _, line in text.lines():
        members = json.loads(line, object_pairs_hook=_Pairs, parse_constant=_refuse)
        if not isinstance(members, _Pairs):
            raise Unclear
        yield [(name, _form_of_value(value)) for name, value in members]


def _form_of_value(value: object) -> str:
    """Of an empty text Spark infers nothing, as of null."""
    if value is None or value == "":
        return ""
    form = _VALUES.get(type(value))
    if form is None or (isinstance(value, int) and not -(2**63) <= value < 2**63):
        raise Unclear
    return form


def _refuse(constant: str) -> None:
    raise Unclear


class _Pairs(list[tuple[str, object]]):
    """The members of an object."""

"""The words of a conversion: `[odfbuild, convert, spreadsheet, --sheet, Prices]`. Reads nothing.

They stand in a `Pipe` of `prepare`, which other readers of Open Data Fabric run as the program
that it names; odfbuild recognises them, and runs nothing from the path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from odfbuild.ingest.convert.cells import cells_of
from odfbuild.ingest.convert.columns import named_columns, path_of, slice_of
from odfbuild.ingest.convert.problems import wrong
from odfbuild.values import Value
from odfbuild.wording import did_you_mean

Takes = Literal["nothing", "one", "several"]

KINDS: Mapping[str, Mapping[str, tuple[Takes, str]]] = {
    "spreadsheet": {
        "sheet": ("one", "name of the sheet, or its number from 1"),
        "range": ("one", "cells of the table, such as A3:F or B2:F200"),
        "no-header": ("nothing", "the first row holds values; columns are called A, B, C"),
        "null": ("several", "text that stands for an empty cell"),
        "text": ("several", "column whose values are all written as text"),
        "keep-mixed": ("nothing", "allow numbers, texts and dates in one column"),
        "errors-as-null": ("nothing", "cells with errors, such as #N/A, are empty"),
    },
    "fixed-width": {
        "column": ("several", "name of a column, and its characters from 1: id=1-5, note=41-"),
        "skip": ("one", "number of lines before the first record"),
        "encoding": ("one", "encoding of the text; UTF-8 if it is not given"),
    },
    "xml": {
        "record": ("one", "element that is a record: order, or orders/order"),
        "column": ("several", "name of a column, and its path: id=@id, price=price/amount"),
    },
    "archive": {
        "match": ("one", "pattern of the files that are read; all if it is not given"),
        "same-header": ("nothing", "the first line of each file is the same, and is read once"),
    },
    "avro": {},
    "orc": {},
}
"""The kinds of conversions, and what the options of each one take and mean."""

_BEGIN = ("odfbuild", "convert")


OUTPUTS = {
    "spreadsheet": "NdJson",
    "fixed-width": "Csv",
    "xml": "Csv",
    "avro": "NdJson",
    "orc": "Parquet",
}
"""The read step of what comes of a conversion; that of an archive is that of its files."""


class Conversion(Value):
    """What is converted, and the values of the options that are given, by their names."""

    kind: str
    options: Mapping[str, tuple[str, ...]]

    def has(self, option: str) -> bool:
        """Whether an option is given."""
        return option in self.options

    def all(self, option: str) -> tuple[str, ...]:
        """The values of an option that may be given several times."""
        return self.options.get(option, ())

    def one(self, option: str) -> str | None:
        """The value of an option; `None` where it is not given."""
        return next(iter(self.all(option)), None)


def is_conversion(command: Sequence[str]) -> bool:
    """Whether the command of a pipe is a conversion of odfbuild."""
    return tuple(command[:2]) == _BEGIN


def conversion_of(words: Sequence[str]) -> Conversion:
    """The conversion that `words` behind `odfbuild convert` ask for.

    Raises `IngestError` E0474.
    """
    if not words or words[0] not in KINDS:
        given = words[0] if words else ""
        what = f"there is no conversion '{given}'" if given else "it does not say what to convert"
        raise wrong(what, did_you_mean(given, KINDS, f"use {', '.join(KINDS)}"))
    kind, *rest = words
    known = KINDS[kind]
    options: dict[str, tuple[str, ...]] = {}
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        option = name.removeprefix("--")
        if not name.startswith("--") or option not in known:
            shown = [f"--{each}" for each in known]
            raise wrong(
                f"'{name}' is no option of `{kind}`",
                did_you_mean(name, shown, f"use {', '.join(shown)}"),
            )
        takes = known[option][0]
        if takes == "nothing":
            if equals:
                raise wrong(f"'{name}' takes no value", f"write {name} alone")
        elif not equals:
            if not rest:
                raise wrong(f"'{name}' has no value", f"write {name} VALUE")
            value = rest.pop(0)
        if option in options and takes != "several":
            raise wrong(f"'{name}' is given twice", "give it once")
        options[option] = (*options.get(option, ()), value)
    found = Conversion(kind, options)
    _check(found)
    return found


def _check(conversion: Conversion) -> None:
    match conversion.kind:
        case "spreadsheet":
            cells_of(conversion.one("range") or "")
        case "fixed-width":
            for each in named_columns(conversion.all("column")).values():
                slice_of(each)
            _check_text(conversion)
        case "xml":
            if not all((conversion.one("record") or "").split("/")):
                raise wrong("it does not say which elements are records", "add --record NAME")
            for each in named_columns(conversion.all("column")).values():
                path_of(each)


def _check_text(conversion: Conversion) -> None:
    skip, encoding = conversion.one("skip") or "0", conversion.one("encoding") or "utf-8"
    if not skip.isdecimal() or len(skip) > 9:
        raise wrong(f"'{skip}' (--skip) is no number of lines", "write a whole number")
    try:
        "".encode(encoding)
    except LookupError:
        raise wrong(f"there is no encoding '{encoding}'", "write utf-8 or windows-1252") from None

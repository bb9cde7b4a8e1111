"""Columns in DDL: `name TYPE [NOT NULL]`, the form of `read.ddlSchema`.

Source: metadata reference, `ReadStep`; reference behaviour, DDL types. Column names may be quoted with
backticks or double quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_TOKEN = re.compile(r"\s*(?:`([^`]+)`|\"([^\"]+)\"|([A-Za-z_][\w.]*)|(\d+)|([<>(),:\[\]]))")


class DdlError(ValueError):
    """A column that is not DDL: which (`index`, from 0), where in its text, what was meant."""

    def __init__(
        self, message: str, index: int, offset: int = 0, suggestion: str | None = None
    ) -> None:
        super().__init__(message)
        self.index = index
        self.offset = offset
        self.suggestion = suggestion


def parse_ddl(columns: Sequence[str]) -> pa.Schema:
    """The Arrow schema of DDL columns; raises `DdlError` for the first that is wrong."""
    import pyarrow as pa

    fields = []
    seen: set[str] = set()
    for index, text in enumerate(columns):
        field = _Parser(text, index).column()
        if field.name.lower() in seen:
            raise DdlError(f"column '{field.name}' is there twice", index)
        seen.add(field.name.lower())
        fields.append(field)
    return pa.schema(fields)


class _Parser:
    """Recursive descent over one column."""

    def __init__(self, text: str, index: int) -> None:
        self.text = text
        self.index = index
        self.at = 0

    def column(self) -> pa.Field:
        import pyarrow as pa

        name = self.name()
        kind = self.type()
        required = self.accept("NOT")
        if required and not self.accept("NULL"):
            raise self.error("expected NULL after NOT")
        if not required:
            self.accept("NULL")
        if self.peek():
            raise self.error(f"unexpected '{self.peek()}' behind the type of '{name}'")
        return pa.field(name, kind, nullable=not required)

    def type(self) -> pa.DataType:
        import pyarrow as pa

        start = self.at
        word = self.name().upper()
        if word == "ARRAY":
            kind = self.array()
        elif word == "STRUCT":
            kind = self.struct()
        elif word == "MAP":
            self.expect("<")
            key = self.type()
            self.expect(",")
            value = self.type()
            self.expect(">")
            kind = pa.map_(key, value)
        else:
            kind = self.simple(word, start)
        while self.accept("["):
            self.expect("]")
            kind = pa.list_(kind)
        return kind

    def array(self) -> pa.DataType:
        import pyarrow as pa

        self.expect("<")
        item = self.type()
        self.expect(">")
        return pa.list_(item)

    def struct(self) -> pa.DataType:
        import pyarrow as pa

        self.expect("<")
        members = []
        while True:
            name = self.name()
            self.accept(":")
            kind = self.type()
            required = self.accept("NOT") and self.accept("NULL")
            members.append(pa.field(name, kind, nullable=not required))
            if not self.accept(","):
                break
        self.expect(">")
        return pa.struct(members)

    def simple(self, word: str, start: int) -> pa.DataType:
        if word == "DOUBLE":
            self.accept("PRECISION")
        arguments = self.arguments()
        unsigned = self.accept("UNSIGNED")
        make = _TYPES.get(("UNSIGNED " if unsigned else "") + word)
        if make is None:
            from difflib import get_close_matches

            close = get_close_matches(word, [t for t in _TYPES if " " not in t], n=1)
            raise DdlError(
                f"unknown type '{word}'", self.index, start, close[0] if close else None
            )
        try:
            return make(arguments)
        except (ValueError, IndexError) as error:
            raise DdlError(f"{word}: {error}", self.index, start) from None

    def arguments(self) -> list[int]:
        if not self.accept("("):
            return []
        numbers = [self.number()]
        while self.accept(","):
            numbers.append(self.number())
        self.expect(")")
        return numbers

    # --- Tokens ---

    def peek(self) -> str:
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            return self.text[self.at :].strip()[:1]
        return next(group for group in match.groups() if group is not None)

    def accept(self, word: str) -> bool:
        match = _TOKEN.match(self.text, self.at)
        if match is None or (match.group(3) or match.group(5) or "").upper() != word:
            return False
        self.at = match.end()
        return True

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise self.error(f"expected '{word}'")

    def name(self) -> str:
        match = _TOKEN.match(self.text, self.at)
        if match is None or match.group(4) or match.group(5):
            raise self.error("expected a name")
        self.at = match.end()
        return match.group(1) or match.group(2) or match.group(3)

    def number(self) -> int:
        match = _TOKEN.match(self.text, self.at)
        if match is None or not match.group(4):
            raise self.error("expected a number")
        self.at = match.end()
        return int(match.group(4))

    def error(self, message: str) -> DdlError:
        return DdlError(f"{message} in '{self.text}'", self.index, self.at)


def _plain(name: str) -> Callable[[list[int]], pa.DataType]:
    def make(arguments: list[int]) -> pa.DataType:
        import pyarrow as pa

        if arguments:
            raise ValueError("this type takes no arguments")
        kind: pa.DataType = getattr(pa, name)()
        return kind

    return make


def _text(arguments: list[int]) -> pa.DataType:
    import pyarrow as pa

    return pa.string()  # a length, as in VARCHAR(10), is not part of the Arrow type


def _decimal(arguments: list[int]) -> pa.DataType:
    import pyarrow as pa

    precision = arguments[0] if arguments else 38
    scale = arguments[1] if len(arguments) > 1 else (0 if arguments else 10)
    return pa.decimal128(precision, scale)


def _timestamp(arguments: list[int]) -> pa.DataType:
    import pyarrow as pa

    if arguments and arguments[0] not in (0, 3, 6):
        raise ValueError("precision must be 0, 3 or 6")
    return pa.timestamp("ms", "UTC")


def _time(arguments: list[int]) -> pa.DataType:
    import pyarrow as pa

    return pa.time64("us")


_TYPES: dict[str, Callable[[list[int]], pa.DataType]] = {
    **dict.fromkeys(("BOOLEAN", "BOOL"), _plain("bool_")),
    "TINYINT": _plain("int8"),
    **dict.fromkeys(("SMALLINT", "INT2"), _plain("int16")),
    **dict.fromkeys(("INT", "INTEGER", "INT4"), _plain("int32")),
    **dict.fromkeys(("BIGINT", "INT8"), _plain("int64")),
    "UNSIGNED TINYINT": _plain("uint8"),
    "UNSIGNED SMALLINT": _plain("uint16"),
    **dict.fromkeys(("UNSIGNED INT", "UNSIGNED INTEGER"), _plain("uint32")),
    "UNSIGNED BIGINT": _plain("uint64"),
    **dict.fromkeys(("FLOAT", "REAL", "FLOAT4"), _plain("float32")),
    **dict.fromkeys(("DOUBLE", "FLOAT8"), _plain("float64")),
    **dict.fromkeys(("STRING", "VARCHAR", "TEXT", "CHAR"), _text),
    **dict.fromkeys(("BINARY", "BYTEA"), _plain("binary")),
    **dict.fromkeys(("DECIMAL", "NUMERIC"), _decimal),
    "DATE": _plain("date32"),
    "TIME": _time,
    "TIMESTAMP": _timestamp,
}

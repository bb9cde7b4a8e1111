"""Columns in DDL text, as read steps declare them: `id BIGINT NOT NULL`.

All types of the specification and the spellings that earlier releases of the reference knew. Names
are kept as written; columns may hold nulls unless they say `NOT NULL`. `strict` accepts what the
newest release of the reference does. Sources: Open Data Fabric, "DDL schema"; reference behaviour.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from odfbuild.odf.schema import arrow

if TYPE_CHECKING:
    import pyarrow as pa


class DdlError(ValueError):
    """A column that cannot be read.

    `index` is its place in the list, `offset` where in its text the problem is (both from 0),
    `length` how much of it is concerned, `suggestion` what was probably meant.
    """

    def __init__(
        self, message: str, index: int, offset: int, suggestion: str | None = None, length: int = 1
    ) -> None:
        super().__init__(message)
        self.index = index
        self.offset = offset
        self.suggestion = suggestion
        self.length = length


_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*)
      | (?P<word>[^\W\d][\w$]*)
      | (?P<number>\d+)
      | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
      | (?P<sign>[<>(),:\[\]])""",
    re.VERBOSE,
)

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_MAX_DEPTH = 20
"""The limit for types in types; no block holds a schema with more."""

_ALIASES = {
    "BOOL": "BOOLEAN",
    "INT1": "TINYINT",
    "INT2": "SMALLINT",
    "INTEGER": "INT",
    "INT4": "INT",
    "INT8": "BIGINT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "FLOAT4": "FLOAT",
    "FLOAT8": "DOUBLE",
    "NUMERIC": "DECIMAL",
    "DEC": "DECIMAL",
    "VARCHAR": "STRING",
    "TEXT": "STRING",
    "CHAR": "STRING",
    "BYTEA": "BINARY",
    "VARBINARY": "BINARY",
    "BLOB": "BINARY",
    "TIMESTAMPTZ": "TIMESTAMP",
}
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_PLAIN = {"BOOLEAN": "bool", "FLOAT": "float32", "DATE": "date32", "BINARY": "binary"}
_TYPES = (
    *_BITS,
    "BOOLEAN",
    "FLOAT",
    "DOUBLE",
    "DECIMAL",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "UUID",
    "STRING",
    "BINARY",
    "ARRAY",
    "STRUCT",
    "MAP",
)
_STRICT = {
    "BOOL",
    "BOOLEAN",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL",
    "DATE",
    "TIMESTAMP",
    "STRING",
    "VARCHAR",
    "TEXT",
    "ARRAY",
}


def quoted_name(name: str) -> str:
    """The name of a column as it is written in DDL: in backticks unless it is a plain word."""
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


_WRITTEN = {
    **{f"int{bits}": name for name, bits in _BITS.items()},
    **{f"uint{bits}": f"{name} UNSIGNED" for name, bits in _BITS.items()},
    **{kind: name for name, kind in _PLAIN.items()},
    **dict.fromkeys(arrow.TEXTS, "STRING"),
    **dict.fromkeys(arrow.BYTES, "BINARY"),
    "float64": "DOUBLE",
}
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def ddl_of(kind: arrow.Type) -> str:
    """A type as it is written in DDL, as in `DECIMAL(18, 4)`; Arrow's name where DDL has none.

    For people: how Arrow lays out text, bytes and lists is left out.
    """
    if kind.name in _WRITTEN:
        return _WRITTEN[kind.name]
    if kind.name in arrow.DECIMALS:
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if kind.name == "timestamp" and kind.zone == "UTC":
        return "TIMESTAMP" if kind.unit == "ms" else f"TIMESTAMP({_DIGITS[str(kind.unit)]})"
    if kind.name in arrow.TIMES:
        return f"TIME({_DIGITS[str(kind.unit)]})"
    if kind == arrow.UUID_BYTES:
        return "UUID"
    if kind.name in arrow.LISTS:
        return f"ARRAY<{_ddl_of_part(kind.item)}>"
    if kind.name == "map":
        key, value = kind.fields
        return f"MAP<{ddl_of(key.type)}, {_ddl_of_part(value)}>"
    if kind.name == "struct":
        members = (f"{quoted_name(each.name)}: {_ddl_of_part(each)}" for each in kind.fields)
        return f"STRUCT<{', '.join(members)}>"
    return str(kind)


def ddl_of_both(one: arrow.Type, other: arrow.Type) -> tuple[str, str]:
    """Two types that differ, as `ddl_of` has them; Arrow's names where DDL cannot tell them apart.

    So it is with times in another zone, or without one.
    """
    texts = ddl_of(one), ddl_of(other)
    return texts if texts[0] != texts[1] else (str(one), str(other))


def _ddl_of_part(field: arrow.Field) -> str:
    return ddl_of(field.type) + ("" if field.nullable else " NOT NULL")


def parse_ddl(columns: Sequence[str], *, strict: bool = False) -> pa.Schema:
    """The columns that `read_ddl` finds, as PyArrow holds them."""
    from odfbuild.odf.schema.pyarrow_form import to_pyarrow

    return to_pyarrow(read_ddl(columns, strict=strict))


def read_ddl(columns: Sequence[str], *, strict: bool = False) -> arrow.Schema:
    """Read column declarations; a text may hold several, separated by commas.

    Raises `DdlError`. `TIMESTAMP` is UTC in milliseconds. `strict` follows the reference's newest
    release: fewer types, and DATE and DECIMAL columns are required also without NOT NULL.
    """
    fields: list[arrow.Field] = []
    seen: set[str] = set()
    for index, text in enumerate(columns):
        parser = _Parser(text, index, strict)
        for field, at in parser.columns():
            if field.name in seen:
                raise DdlError(
                    f"column '{field.name}' is declared twice", index, at, None, len(field.name)
                )
            seen.add(field.name)
            fields.append(field)
    return arrow.schema(fields)


class _Parser:
    """Recursive descent over the tokens (kind, text, offset) of one declaration."""

    def __init__(self, text: str, index: int, strict: bool) -> None:
        self.index = index
        self.strict = strict
        self.end = len(text.rstrip())
        self.tokens: list[tuple[str, str, int]] = []
        self.place = 0
        self.depth = 0
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                self.fail(f"unexpected {text[at]!r}", at)
            kind = str(match.lastgroup)
            if kind != "space":
                self.tokens.append((kind, match.group(), at))
            at = match.end()

    def fail(
        self, message: str, offset: int, suggestion: str | None = None, length: int = 1
    ) -> NoReturn:
        raise DdlError(message, self.index, offset, suggestion, length)

    def peek(self) -> tuple[str, str, int]:
        if self.place < len(self.tokens):
            return self.tokens[self.place]
        return "end", "", self.end

    def take(self) -> tuple[str, str, int]:
        token = self.peek()
        self.place += 1
        return token

    def accept(self, text: str) -> bool:
        """Take the next token if it is that sign or, in any letter case, that word."""
        kind, found, _ = self.peek()
        if kind in ("sign", "word") and found.upper() == text:
            self.place += 1
            return True
        return False

    def expect(self, text: str) -> None:
        _, found, at = self.peek()
        if not self.accept(text):
            self.fail(f"expected '{text}', found {self.show(found)}", at, length=len(found) or 1)

    @staticmethod
    def show(found: str) -> str:
        return f"'{found}'" if found else "the end"

    def columns(self) -> list[tuple[arrow.Field, int]]:
        result = [self.column()]
        while self.accept(","):
            if self.peek()[0] == "end":
                break
            result.append(self.column())
        kind, found, at = self.peek()
        if kind != "end":
            options = ("NOT", "NULL", "UNSIGNED")
            close = difflib.get_close_matches(found.upper(), options, 1)
            self.fail(
                f"unsupported after the type: '{found}' (only NOT NULL is)",
                at,
                close[0] if close else None,
                len(found),
            )
        return result

    def column(self) -> tuple[arrow.Field, int]:
        at = self.peek()[2]
        name = self.name()
        kind, required = self.type()
        metadata = arrow.UUID if kind == arrow.UUID_BYTES else None
        return arrow.Field(name, kind, not (self.not_null() or required), metadata), at

    def name(self) -> str:
        kind, text, at = self.take()
        if kind == "quoted":
            mark = text[0]
            return text[1:-1].replace(mark * 2, mark)
        if kind == "word":
            return text
        return self.fail(f"expected the name of a column, found {self.show(text)}", at)

    def not_null(self) -> bool:
        if self.accept("NOT"):
            self.expect("NULL")
            return True
        self.accept("NULL")
        return False

    def type(self) -> tuple[arrow.Type, bool]:
        """The type, and whether it is required even without NOT NULL."""
        kind, text, at = self.take()
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self.fail(f"types are nested more than {_MAX_DEPTH} deep", at)
        if kind != "word":
            self.fail(f"expected a type, found {self.show(text)}", at, length=len(text) or 1)
        word = text.upper()
        name = _ALIASES.get(word, word)
        if name not in _TYPES or (self.strict and word not in _STRICT):
            known = sorted(_STRICT) if self.strict else [*_TYPES, *_ALIASES]
            close = difflib.get_close_matches(word, known, 1, 0.6)
            self.fail(f"unknown type '{text}'", at, close[0] if close else None, len(text))
        result = self.of_name(name, word, at)
        nested = self.depth
        while not self.strict and self.accept("["):
            self.expect("]")
            nested += 1
            if nested > _MAX_DEPTH:
                self.fail(f"types are nested more than {_MAX_DEPTH} deep", at)
            result = arrow.list_of(result)
        self.depth -= 1
        return result, self.strict and name in ("DATE", "DECIMAL")

    def of_name(self, name: str, word: str, at: int) -> arrow.Type:
        if name in _PLAIN:
            return arrow.Type(_PLAIN[name])
        if name in _BITS:
            return self.integer(name)
        match name:
            case "DOUBLE":
                self.accept("PRECISION")
                return arrow.Type("float64")
            case "STRING":
                return self.text(word)
            case "DECIMAL":
                return self.decimal(at)
            case "TIME":
                return self.time(at)
            case "TIMESTAMP":
                return self.timestamp(at)
            case "UUID":
                if self.depth > 1 or self.peek()[1] == "[":
                    self.fail("a UUID is a column of its own", at, "STRING", len(word))
                return arrow.UUID_BYTES
            case "ARRAY":
                self.expect("<")
                item, _ = self.type()
                required = self.not_null()
                self.expect(">")
                return arrow.list_of(item, nullable=not required)
            case "MAP":
                self.expect("<")
                key, _ = self.type()
                self.expect(",")
                value, _ = self.type()
                required = self.not_null()
                self.expect(">")
                return arrow.map_of(key, value, nullable=not required)
        return self.struct()

    def struct(self) -> arrow.Type:
        self.expect("<")
        members: dict[str, arrow.Field] = {}
        while not self.accept(">"):
            if members:
                self.expect(",")
            at = self.peek()[2]
            name = self.name()
            if name in members:
                self.fail(f"field '{name}' is declared twice", at, length=len(name))
            self.accept(":")
            kind, _ = self.type()
            members[name] = arrow.Field(name, kind, nullable=not self.not_null())
        return arrow.struct(list(members.values()))

    def integer(self, name: str) -> arrow.Type:
        unsigned = self.accept("UNSIGNED")
        return arrow.Type(f"{'u' if unsigned else ''}int{_BITS[name]}")

    def text(self, word: str) -> arrow.Type:
        at = self.peek()[2]
        if self.arguments(1):
            if word == "CHAR":
                self.fail("CHAR with a length is not supported", at, "STRING")
            if self.strict:
                self.fail(f"{word} with a length is not supported", at, "STRING")
        return arrow.Type("string")

    def arguments(self, most: int) -> list[int]:
        """Up to `most` numbers in parentheses; empty without parentheses."""
        values: list[int] = []
        if not self.accept("("):
            return values
        while True:
            kind, text, at = self.take()
            if kind != "number" or len(text) > 9:
                self.fail(f"expected a number, found {self.show(text[:40])}", at)
            values.append(int(text))
            if len(values) < most and self.accept(","):
                continue
            self.expect(")")
            return values

    def decimal(self, at: int) -> arrow.Type:
        values = self.arguments(2)
        if self.strict and len(values) < 2:
            self.fail("DECIMAL needs precision and scale", at, "DECIMAL(38, 10)", 7)
        precision, scale = (38, 10) if not values else (values[0], (values[1:] or [0])[0])
        if not 1 <= precision <= 76 or scale > precision:
            self.fail(
                f"no decimal has precision {precision} and scale {scale} "
                "(precision is 1 to 76, scale at most the precision)",
                at,
                length=7,
            )
        return arrow.decimal(precision, scale)

    def digits(self, at: int, default: int) -> str:
        values = self.arguments(1)
        digits = values[0] if values else default
        units = {0: "s", 3: "ms", 6: "us", 9: "ns"}
        if digits not in units:
            self.fail(f"{digits} is not a precision of seconds: 0, 3, 6 or 9", at)
        return units[digits]

    def zone(self) -> None:
        """`WITH TIME ZONE` and the like; columns are UTC in any case."""
        if self.accept("WITH") or self.accept("WITHOUT"):
            self.expect("TIME")
            self.expect("ZONE")

    def time(self, at: int) -> arrow.Type:
        unit = self.digits(at, 9)
        return arrow.time(unit)

    def timestamp(self, at: int) -> arrow.Type:
        unit = self.digits(at, 3)
        if self.strict and unit != "ms":
            self.fail("only TIMESTAMP with milliseconds is supported", at, "TIMESTAMP")
        self.zone()
        return arrow.timestamp(unit)

"""Arrow schemas as plain values, so that planning needs no PyArrow.

`Type.name` is what PyArrow calls the function that makes such a type, without a `_` at the end;
`str` of a type is what PyArrow prints. Source: Arrow `Schema.fbs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = ("float16", "float32", "float64")
DECIMALS = ("decimal32", "decimal64", "decimal128", "decimal256")
TIMES = ("time32", "time64")
TEXTS = ("string", "large_string", "string_view")
BYTES = ("binary", "large_binary", "binary_view")
LISTS = ("list", "large_list", "list_view", "large_list_view")
MOST_DIGITS = {32: 9, 64: 18, 128: 38, 256: 76}
"""That a decimal may have, by its bits."""
UNITS = ("s", "ms", "us", "ns")

_PRINTED = {
    "float16": "halffloat",
    "float32": "float",
    "float64": "double",
    "date32": "date32[day]",
    "date64": "date64[ms]",
}


@dataclass(frozen=True, slots=True, eq=False)
class Type:
    """A type; `size` is the fixed number of bytes or items, `fields` what is inside of it.

    Types are equal as in Arrow: metadata, and how items of lists and maps are called, do not count.
    """

    name: str
    fields: tuple[Field, ...] = ()
    unit: str | None = None
    zone: str | None = None
    precision: int = 0
    scale: int = 0
    size: int = 0
    sorted: bool = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self._meaning() == other._meaning()

    def __hash__(self) -> int:
        return hash(self._meaning())

    def _meaning(self) -> tuple[object, ...]:
        named = self.name == "struct"
        inner = tuple(
            (each.name if named else "", each.nullable, each.type) for each in self.fields
        )
        plain = (self.unit, self.zone, self.precision, self.scale, self.size, self.sorted)
        return (self.name, *plain, inner)

    @property
    def bits(self) -> int:
        """How many bits a number or time has: those that its name ends with."""
        return int("".join(each for each in self.name if each.isdigit()))

    @property
    def item(self) -> Field:
        """What a list holds."""
        return self.fields[0]

    def __str__(self) -> str:
        inner = ", ".join(str(each) for each in self.fields)
        match self.name:
            case "timestamp" if self.zone:
                return f"timestamp[{self.unit}, tz={self.zone}]"
            case "timestamp" | "time32" | "time64" | "duration":
                return f"{self.name}[{self.unit}]"
            case "fixed_size_binary":
                return f"fixed_size_binary[{self.size}]"
            case "fixed_size_list":
                return f"fixed_size_list<{inner}>[{self.size}]"
            case "map":
                return f"map<{', '.join(self._entries())}>"
            case "dictionary":
                index, value = (each.type for each in self.fields)
                return f"dictionary<values={value}, indices={index}, ordered={int(self.sorted)}>"
        if self.name in DECIMALS:
            return f"{self.name}({self.precision}, {self.scale})"
        is_nested = self.fields or self.name == "struct"
        return f"{self.name}<{inner}>" if is_nested else _PRINTED.get(self.name, self.name)

    def _entries(self) -> Iterator[str]:
        for each, usual in zip(self.fields, ("key", "value"), strict=True):
            yield str(each.type) if each.name == usual else f"{each.type} ('{each.name}')"
        if self.sorted:
            yield "keys_sorted"


UUID_BYTES = Type("fixed_size_binary", size=16)
UUID = {b"ARROW:extension:name": b"arrow.uuid"}
"""Metadata of columns of 16 bytes that are UUIDs; the specification's schemas have no such type."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column, a member or an item. Metadata does not count when fields are compared."""

    name: str
    type: Type
    nullable: bool = True
    metadata: Mapping[bytes, bytes] | None = field(default=None, compare=False)

    @property
    def is_uuid(self) -> bool:
        """Whether its 16 bytes are a UUID, as Arrow says it."""
        key, name = next(iter(UUID.items()))
        return self.type == UUID_BYTES and (self.metadata or {}).get(key) == name

    def __str__(self) -> str:
        return f"{self.name}: {self.type}{'' if self.nullable else ' not null'}"


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns in their order."""

    fields: tuple[Field, ...] = ()
    metadata: Mapping[bytes, bytes] | None = field(default=None, compare=False)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [each.name for each in self.fields]

    def field(self, name: str) -> Field:
        """The first column of that name; `KeyError` when there is none."""
        for each in self.fields:
            if each.name == name:
                return each
        raise KeyError(name)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


def schema(fields: Sequence[Field], metadata: Mapping[bytes, bytes] | None = None) -> Schema:
    """A schema of these columns."""
    return Schema(tuple(fields), metadata)


def list_of(item: Type, *, nullable: bool = True, name: str = "list") -> Type:
    """A list whose items are of that type."""
    return Type(name, (Field("item", item, nullable),))


def struct(members: Sequence[Field]) -> Type:
    """A structure with these members."""
    return Type("struct", tuple(members))


def map_of(key: Type, value: Type, *, nullable: bool = True, keys_sorted: bool = False) -> Type:
    """A map; keys are never null."""
    entries = Field("keys", key, nullable=False), Field("values", value, nullable)
    return Type("map", entries, sorted=keys_sorted)


def timestamp(unit: str) -> Type:
    """A point in time, in UTC."""
    return Type("timestamp", unit=unit, zone="UTC")


def time(unit: str) -> Type:
    """A time of day."""
    return Type("time32" if unit in ("s", "ms") else "time64", unit=unit)


def decimal(precision: int, scale: int, bits: int | None = None) -> Type:
    """A decimal of as many bits as its precision asks for, unless they are given."""
    bits = bits or (128 if precision <= 38 else 256)
    return Type(f"decimal{bits}", precision=precision, scale=scale)

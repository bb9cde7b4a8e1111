"""Field descriptions of the protocol's objects, resolved once per class from their annotations.

The codecs and the generators walk these; there is no second list of fields. See `odf.model` for
what each annotation means on the wire.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Any

from odfbuild.odf.identity import DatasetAlias, DatasetId
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.values import Value


class Scalar(Value):
    """A string, bool, number, enum, hash or the like; `wire` names its form in bytes."""

    wire: str
    python: type


class Table(Value):
    """Another object."""

    cls: type


class Union(Value):
    """One of several objects; the tag is the one-based place in `members`."""

    members: tuple[type, ...]


class Vector(Value):
    """A list of items."""

    item: Scalar | Table | Union


FieldType = Scalar | Table | Union | Vector


class Field(Value):
    """A field of an object: Python name, YAML name, first FlatBuffers slot.

    `implied` is what the field means when it is absent; `None` where that is nothing in particular.
    """

    name: str
    key: str
    type: FieldType
    optional: bool
    slot: int
    implied: Any = None


def camel(name: str) -> str:
    """`snake_case` to `camelCase`."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def _fields_of(cls: type) -> tuple[Field, ...]:
    """The fields of an object in slot order."""
    hints = typing.get_type_hints(cls, include_extras=True)
    found = []
    slot = 0
    for declared in dataclasses.fields(cls):
        hint, optional = _strip_optional(hints[declared.name])
        type_ = _classify(hint)
        implied = declared.metadata.get("implied")
        found.append(Field(declared.name, camel(declared.name), type_, optional, slot, implied))
        slot += 2 if isinstance(type_, Union) else 1
    return tuple(found)


def _slot_count(cls: type) -> int:
    """Number of FlatBuffers slots of an object."""
    fields = fields_of(cls)
    if not fields:
        return 0
    return fields[-1].slot + (2 if isinstance(fields[-1].type, Union) else 1)


# Declared by what they take: mypy does not see that classes are hashable.
fields_of: Callable[[type], tuple[Field, ...]] = cache(_fields_of)
slot_count: Callable[[type], int] = cache(_slot_count)


_IDENTITIES = (Multihash, DatasetId, DatasetAlias, Timestamp)


def is_object(cls: Any) -> bool:
    """Whether a class is an object of the protocol, with fields of its own on the wire."""
    return dataclasses.is_dataclass(cls) and cls not in _IDENTITIES


def is_member(cls: Any) -> bool:
    """Whether a class is only ever held as a member of a union."""
    return isinstance(cls, type) and hasattr(cls, "KIND")


def _strip_optional(hint: Any) -> tuple[Any, bool]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        args = typing.get_args(hint)
        kept = tuple(a for a in args if a is not type(None))
        if len(kept) < len(args):
            return (kept[0] if len(kept) == 1 else typing.Union[kept]), True  # noqa: UP007
    return hint, False


def _classify(hint: Any) -> FieldType:
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return Scalar(hint.__metadata__[0], dict if hint.__metadata__[0] == "open_map" else int)
    if origin is tuple:
        item = _classify(typing.get_args(hint)[0])
        if isinstance(item, Vector):
            raise TypeError("the protocol has no vectors of vectors")
        return Vector(item)
    if origin in (typing.Union, types.UnionType):
        args = typing.get_args(hint)
        if set(args) == {DatasetId, DatasetAlias}:
            return Scalar("ref", object)
        return Union(args)
    if is_member(hint):
        return Union((hint,))
    if is_object(hint):
        return Table(typing.cast(type, hint))
    return Scalar(_WIRE[hint] if hint in _WIRE else _enum_wire(hint), hint)


def _enum_wire(hint: Any) -> str:
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "enum16" if hint.__name__ == "TimeUnit" else "enum32"
    raise TypeError(f"no wire form for {hint!r}")


_WIRE: dict[Any, str] = {
    str: "string",
    bool: "bool",
    bytes: "bytes",
    Multihash: "multihash",
    DatasetId: "id",
    DatasetAlias: "alias",
    Timestamp: "timestamp",
}

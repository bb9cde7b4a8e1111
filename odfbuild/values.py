"""Frozen values: `class Point(Value)` has fields, `==`, `hash`, `repr` and no assignment.

They are structs of msgspec, which declares them ten times faster than `dataclass` does, and reads
and writes them without code of ours; a plan declares some 250 such classes before it begins. What
the standard library does with dataclasses (`field`, `replace`, `fields`, `asdict`) works on them.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, Field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

import msgspec

__all__ = ["Value"]

_FIELDS = "__dataclass_fields__"


class _Declared(msgspec.StructMeta):
    """Understands fields that `dataclasses.field` made. `kw_only` holds for classes below, too."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], names: dict[str, Any], **config: Any
    ) -> Any:
        metadata = {}
        for key, given in list(names.items()):
            if isinstance(given, Field):
                metadata[key] = given.metadata
                if given.default_factory is not MISSING:
                    names[key] = msgspec.field(default_factory=given.default_factory)
                elif given.default is not MISSING:
                    names[key] = given.default
                else:
                    del names[key]
        for base in bases:
            metadata = getattr(base, "_metadata", {}) | metadata
            config.setdefault("kw_only", getattr(base, "_by_name", False))
        names |= {"_metadata": metadata, "_by_name": config["kw_only"]}
        return super().__new__(cls, name, bases, names, **config)


class _StandardFields:
    """What the standard library asks a dataclass for, made when it does."""

    def __get__(self, _: object, cls: Any) -> dict[str, Field[Any]]:
        found: dict[str, Field[Any]] | None = vars(cls).get("_standard")
        if found is None:
            found = _standard_fields(cls)
            type.__setattr__(cls, "_standard", found)
        return found


def _standard_fields(cls: Any) -> dict[str, Field[Any]]:
    import inspect

    names, defaults = cls.__struct_fields__, cls.__struct_defaults__
    given = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    types: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        types |= inspect.get_annotations(base)
    declared = []
    for name in names:
        default = given.get(name, msgspec.NODEFAULT)
        metadata = cls._metadata.get(name)
        if default is msgspec.NODEFAULT:
            made = dataclasses.field(metadata=metadata)
        elif hasattr(default, "factory"):
            made = dataclasses.field(default_factory=default.factory, metadata=metadata)
        else:
            made = dataclasses.field(default=default, metadata=metadata)
        declared.append((name, types[name], made))
    like: Any = dataclasses.make_dataclass("_", declared, kw_only=True, eq=False, repr=False)
    fields: dict[str, Field[Any]] = vars(like)[_FIELDS]
    return fields


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
class Value(msgspec.Struct, metaclass=_Declared, frozen=True, array_like=True):
    """A frozen value; `kw_only=True` behind the base class: its fields are given by name."""

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    else:
        __dataclass_fields__ = _StandardFields()
        # `pprint` asks for it, and then prints what `repr` gives.
        __dataclass_params__ = SimpleNamespace(repr=False, eq=True, frozen=True)

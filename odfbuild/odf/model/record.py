"""How objects of the protocol are declared.

`@record` makes the class, `implied` says what an absent field means, the annotations give the
widths of numbers on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, TypeVar, dataclass_transform

U64 = Annotated[int, "u64"]
U32 = Annotated[int, "u32"]
I32 = Annotated[int, "i32"]
I16 = Annotated[int, "i16"]
Extra = Annotated[Mapping[str, Any], "open_map"]

T = TypeVar("T")


def implied(*, default: Any) -> Any:
    """An optional field that means `default` when it is absent; it stays absent when written."""
    return field(default=None, metadata={"implied": default})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(implied,))
def record(cls: type[T]) -> type[T]:
    """A frozen dataclass with slots; all fields are given by name.

    All records share one `==`, hash and `repr`. Made anew for each of eighty classes, as
    `dataclass` does, these took half of the time that each start spends on importing the model.
    """
    shared = {"__eq__": _equal, "__hash__": _hash, "__repr__": _text}
    for name, method in shared.items():
        setattr(cls, name, method)
    return dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)(cls)


def _getter(cls: Any) -> Callable[[Any], Any]:
    names = cls.__slots__
    return attrgetter(*names) if names else lambda _: ()


_values: Callable[[type], Callable[[Any], Any]] = cache(_getter)


def _equal(self: Any, other: object) -> Any:
    cls = self.__class__
    if other.__class__ is not cls:
        return NotImplemented
    values = _values(cls)
    return values(self) == values(other)


def _hash(self: Any) -> int:
    return hash((self.__class__, _values(self.__class__)(self)))


def _text(self: Any) -> str:
    fields = (f"{name}={getattr(self, name)!r}" for name in self.__slots__)
    return f"{self.__class__.__qualname__}({', '.join(fields)})"

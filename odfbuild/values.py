"""`dataclass` for frozen classes with slots, declared in a fifth of the time.

The one of the standard library compiles six methods for each class. A plan declares some 150 such
classes before it begins, and makes objects of few: that was a sixth of its time for ten datasets.
Here all classes share them but `__init__`, which is compiled when it is first called. They do the
same; type checkers see the standard one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool, slots: bool, kw_only: bool = False) -> Callable[[type], type]:
        """As `dataclasses.dataclass`, for `frozen=True, slots=True` only."""
        if not (frozen and slots):
            raise TypeError("take the dataclass of the standard library")

        def declared(cls: type) -> type:
            for name, method in _SHARED.items():
                if name not in vars(cls):
                    setattr(cls, name, method)
            declare = dataclasses.dataclass(
                slots=True, kw_only=kw_only, init=False, eq=False, repr=False
            )
            made = declare(cls)
            made.__init__ = _late_init(made)
            return made

        return declared


def _late_init(cls: Any) -> Callable[..., None]:
    """An `__init__` that puts the right one in its place when it is called."""

    def compile_and_call(self: Any, *values: Any, **named: Any) -> None:
        init = cls.__init__ = _compiled_init(cls)
        init(self, *values, **named)

    return compile_and_call


def _compiled_init(cls: Any) -> Callable[..., None]:
    """The `__init__` that fills the slots of `cls`."""
    names: dict[str, Any] = {"_absent": object()}
    given: list[str] = []
    by_name: list[str] = []
    lines: list[str] = []
    for field in dataclasses.fields(cls):
        name, parameter, value = field.name, field.name, field.name
        if field.default is not dataclasses.MISSING:
            names[f"_default_{name}"] = field.default
            parameter = f"{name}=_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            names[f"_default_{name}"] = field.default_factory
            parameter = f"{name}=_absent"
            value = f"_default_{name}() if {name} is _absent else {name}"
        (by_name if field.kw_only else given).append(parameter)
        names[f"_put_{name}"] = getattr(cls, name).__set__
        lines.append(f"    _put_{name}(self, {value})")
    parameters = ", ".join(["self", *given, *(["*", *by_name] if by_name else [])])
    exec("\n".join([f"def __init__({parameters}):", *lines, "    return None"]), names)
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


@cache
def _compared(cls: Any) -> Callable[[Any], Any]:
    """What gives the values that `==` compares."""
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    return attrgetter(*names) if names else lambda _: ()


def _equal(self: Any, other: Any) -> Any:
    if self is other:
        return True
    if other.__class__ is not self.__class__:
        return NotImplemented
    values = _compared(self.__class__)
    return values(self) == values(other)


def _hash(self: Any) -> int:
    return hash(_compared(self.__class__)(self))


def _text(self: Any) -> str:
    shown = (field.name for field in dataclasses.fields(self) if field.repr)
    fields = (f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{self.__class__.__qualname__}({', '.join(fields)})"


def _no_assignment(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_deletion(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


_SHARED: dict[str, object] = {
    "__eq__": _equal,
    "__hash__": _hash,
    "__repr__": _text,
    "__setattr__": _no_assignment,
    "__delattr__": _no_deletion,
    # For pickling and copying, which would assign otherwise.
    "__getstate__": _state,
    "__setstate__": _restore,
}

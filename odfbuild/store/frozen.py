"""Projections as plain tuples, and projections that are thawed field by field when looked at.

`marshal` reads a plain tuple ten times faster than `pickle` rebuilds objects, and most readers of a
projection look at a few of its fields. The form is private to the cache: `LAYOUT` changes with the
classes, and a cache with another layout is dropped.
"""

from __future__ import annotations

import dataclasses
import hashlib
import marshal
import sys
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from odfbuild.odf import identity, model, multihash, timestamp
from odfbuild.odf.projection import Projection, QueryEra

_TUPLE = -1
_NESTED = frozenset((tuple, dict, list))


def _classes() -> list[type]:
    found = {
        item
        for module in (model, identity, multihash, timestamp)
        for item in vars(module).values()
        if isinstance(item, type) and (dataclasses.is_dataclass(item) or issubclass(item, Enum))
    }
    return [*sorted(found - {Enum}, key=lambda c: c.__name__), QueryEra]


def _names(cls: Any) -> tuple[str, ...]:
    if issubclass(cls, Enum):
        return tuple(cls.__members__)
    return tuple(field.name for field in dataclasses.fields(cls))


_CLASSES = _classes()
_NUMBERS = {cls: number for number, cls in enumerate(_CLASSES)}
_FIELDS = {cls: _names(cls) for cls in _CLASSES if not issubclass(cls, Enum)}
_PROJECTION = _names(Projection)
_POSITION = {name: position for position, name in enumerate(_PROJECTION)}

LAYOUT = hashlib.sha256(
    repr(
        (
            sys.version_info[:2],
            marshal.version,
            [(cls.__name__, _names(cls)) for cls in (*_CLASSES, Projection)],
        )
    ).encode()
).digest()
"""Changes whenever frozen bytes would be understood differently."""


def freeze(projection: Projection) -> bytes:
    """The bytes of a projection."""
    if isinstance(projection, FrozenProjection) and projection.frozen is not None:
        return projection.frozen
    return marshal.dumps(tuple(_plain(getattr(projection, name)) for name in _PROJECTION))


def _plain(value: Any) -> Any:
    cls = type(value)
    if cls is tuple:
        return (_TUPLE, *map(_plain, value))
    fields = _FIELDS.get(cls)
    if fields is not None:
        return (_NUMBERS[cls], *[_plain(getattr(value, name)) for name in fields])
    if isinstance(value, Enum):
        return (_NUMBERS[cls], value.value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if cls is list:
        return [_plain(item) for item in value]
    return value


def _builder(cls: type) -> Callable[[tuple[Any, ...]], Any]:
    if issubclass(cls, Enum):
        return lambda plain: cls(plain[1])
    # Filling slots directly takes half the time of the generated `__init__`, which checks nothing.
    setters = [vars(cls)[name].__set__ for name in _FIELDS[cls]]
    new = cls.__new__

    def build(plain: tuple[Any, ...]) -> Any:
        made = new(cls)
        for fill, value in zip(setters, plain[1:], strict=True):
            fill(made, _thaw(value) if type(value) in _NESTED else value)
        return made

    return build


def _thaw(plain: Any) -> Any:
    cls = type(plain)
    if cls is tuple:
        number = plain[0]
        if number == _TUPLE:
            return tuple(map(_thaw, plain[1:]))
        if number not in _SHARED:
            return _BUILDERS[number](plain)
        try:
            made = _shared.get(plain)
        except TypeError:  # a struct with free-form attributes cannot be looked up
            return _BUILDERS[number](plain)
        if made is None:
            made = _shared[plain] = _BUILDERS[number](plain)
        return made
    if cls is dict:
        return {key: _thaw(item) for key, item in plain.items()}
    if cls is list:
        return [_thaw(item) for item in plain]
    return plain


# Types of columns recur thousands of times in a project; they are immutable and made once.
_SHARED = frozenset(
    number for cls, number in _NUMBERS.items() if cls in typing.get_args(model.DataType)
)
_shared: dict[tuple[Any, ...], Any] = {}

_BUILDERS = [_builder(cls) for cls in _CLASSES]


class FrozenProjection(Projection):
    """A projection from the cache: equal to the one frozen, thawed where it is looked at."""

    __slots__ = ("_plain", "frozen")

    frozen: bytes | None

    @classmethod
    def of(cls, frozen: bytes) -> FrozenProjection:
        """From the bytes that `freeze` gave; they are not looked at yet."""
        self = cls.__new__(cls)
        object.__setattr__(self, "frozen", frozen)
        return self

    def __getattr__(self, name: str) -> Any:
        # Only called for slots that are not filled yet.
        position = _POSITION.get(name)
        if position is None:
            if name == "_plain" and (frozen := self.frozen) is not None:
                plain = marshal.loads(frozen)
                object.__setattr__(self, "_plain", plain)
                return plain
            if name == "frozen":  # made by `replace`, which fills every field
                return None
            raise AttributeError(name)
        value = _thaw(self._plain[position])
        object.__setattr__(self, name, value)
        return value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Projection):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _PROJECTION)

    __hash__ = Projection.__hash__

    def __reduce__(self) -> Any:
        return (FrozenProjection.of, (freeze(self),))

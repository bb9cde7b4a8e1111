"""Objects as plain tuples, and objects that are thawed field by field when they are looked at.

`marshal` reads a plain tuple ten times faster than `pickle` rebuilds objects, runs no code while it
does so, and most readers look at a few fields of what they are given. The form is private to the
caches: the `layout` of a `Form` changes with its classes, and a cache with another one is dropped.
"""

from __future__ import annotations

import dataclasses
import hashlib
import marshal
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from operator import attrgetter
from types import ModuleType
from typing import Any

from odfbuild.odf import identity, model, multihash, timestamp
from odfbuild.odf.chain.projection import Projection, QueryEra

_TUPLE = -1
_NESTED = frozenset((tuple, dict, list))
_LEAVES = frozenset((str, int, bool, float, bytes, type(None)))

Plain = Any
"""What `marshal` writes: numbers, text, bytes, `None`, and tuples, lists and dicts of those."""


class Form:
    """How objects of some dataclasses and enumerations are written as plain values.

    Classes in `shared` are immutable and recur; equal objects of theirs are made once.
    """

    def __init__(self, classes: Iterable[type], shared: Iterable[type] = ()) -> None:
        self.classes = tuple(classes)
        self._numbers = {cls: number for number, cls in enumerate(self.classes)}
        self._fields = {cls: _getter(cls) for cls in self.classes}
        self._enumerations = frozenset(cls for cls in self.classes if issubclass(cls, Enum))
        self._shared = frozenset(self._numbers[cls] for cls in shared)
        self._made: dict[tuple[Any, ...], Any] = {}
        self._builders = [self._builder(cls) for cls in self.classes]

    @property
    def layout(self) -> bytes:
        """32 bytes that change whenever plain values would be understood differently."""
        shapes = [(cls.__name__, names_of(cls)) for cls in self.classes]
        return hashlib.sha256(
            repr((sys.version_info[:2], marshal.version, shapes)).encode()
        ).digest()

    def plain(self, value: Any) -> Plain:
        """`value` as plain values; `marshal` refuses it later when it holds anything else."""
        cls = type(value)
        if cls in _LEAVES:
            return value
        if cls is tuple:
            if not value or _LEAVES.issuperset(map(type, value)):
                return (_TUPLE, *value)
            return (_TUPLE, *self._all(value))
        number = self._numbers.get(cls)
        if number is not None:
            if cls in self._enumerations:
                return (number, value._value_)
            fields = self._fields[cls](value)
            # Most objects hold leaves only: a call for each of them took most of the time.
            return (
                number,
                *(fields if _LEAVES.issuperset(map(type, fields)) else self._all(fields)),
            )
        if cls is dict or isinstance(value, Mapping):
            return {key: self.plain(item) for key, item in value.items()}
        if cls is list:
            return self._all(value)
        return value

    def _all(self, values: Iterable[Any]) -> list[Plain]:
        return [value if type(value) in _LEAVES else self.plain(value) for value in values]

    def thaw(self, plain: Plain) -> Any:
        """The object that `plain` was made from."""
        cls = type(plain)
        if cls is tuple:
            number = plain[0]
            if number == _TUPLE:
                return tuple(map(self.thaw, plain[1:]))
            if number not in self._shared:
                return self._builders[number](plain)
            try:
                made = self._made.get(plain)
            except TypeError:  # a struct with free-form attributes cannot be looked up
                return self._builders[number](plain)
            if made is None:
                made = self._made[plain] = self._builders[number](plain)
            return made
        if cls is dict:
            return {key: self.thaw(item) for key, item in plain.items()}
        if cls is list:
            return [self.thaw(item) for item in plain]
        return plain

    def _builder(self, cls: type) -> Callable[[tuple[Any, ...]], Any]:
        if issubclass(cls, Enum):
            return lambda plain: cls(plain[1])
        # Filling slots directly takes half the time of the generated `__init__`, which checks
        # nothing.
        fillers = setters(cls, *names_of(cls))
        new = cls.__new__
        thaw = self.thaw

        def build(plain: tuple[Any, ...]) -> Any:
            made = new(cls)
            for fill, value in zip(fillers, plain[1:], strict=True):
                fill(made, thaw(value) if type(value) in _NESTED else value)
            return made

        return build


def _getter(cls: type) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the values of all fields of an object."""
    names = ("_value_",) if issubclass(cls, Enum) else names_of(cls)
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda _: ()
    only = attrgetter(*names)
    return lambda value: (only(value),)


def names_of(cls: Any) -> tuple[str, ...]:
    """Names of the fields of a dataclass, or of the members of an enumeration."""
    if issubclass(cls, Enum):
        return tuple(cls.__members__)
    return tuple(field.name for field in dataclasses.fields(cls))


def equality(base: Any) -> Callable[[Any, object], Any]:
    """An `__eq__` for a subclass of a dataclass that is thawed field by field."""
    names = names_of(base)

    def equal(self: Any, other: object) -> Any:
        if not isinstance(other, base):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in names)

    return equal


def setters(cls: type, *names: str) -> tuple[Callable[[Any, Any], None], ...]:
    """What fills these slots of an object of a frozen class, at a third of the usual cost."""
    return tuple(vars(cls)[name].__set__ for name in names)


def classes_in(*modules: ModuleType) -> list[type]:
    """Dataclasses and enumerations that `modules` hold, sorted by name."""
    found = {
        item
        for module in modules
        for item in vars(module).values()
        if isinstance(item, type) and (dataclasses.is_dataclass(item) or issubclass(item, Enum))
    }
    return sorted(found - {Enum}, key=lambda cls: cls.__name__)


PROTOCOL = Form(
    [*classes_in(model, identity, multihash, timestamp), QueryEra],
    # Types of columns recur thousands of times in a project.
    shared=typing.get_args(model.DataType),
)
"""Objects of the metadata reference."""

_PROJECTION = names_of(Projection)
_VALUES = attrgetter(*_PROJECTION)
_POSITION = {name: position for position, name in enumerate(_PROJECTION)}
_APART = frozenset(
    ("polling_source", "push_sources", "transform", "attachments", "info", "schema", "inputs")
)
"""Fields that are most of the bytes, and kept as bytes of their own until they are looked at."""

LAYOUT = hashlib.sha256(PROTOCOL.layout + repr((_PROJECTION, sorted(_APART))).encode()).digest()
"""Changes whenever frozen projections would be understood differently."""


def freeze(projection: Projection) -> bytes | memoryview:
    """The bytes of a projection."""
    if isinstance(projection, FrozenProjection) and projection.frozen is not None:
        return projection.frozen
    fields = zip(_PROJECTION, _VALUES(projection), strict=True)
    # Most fields are leaves: a call for each of them took half of the time.
    return marshal.dumps(
        tuple([value if type(value) in _LEAVES else _plain(name, value) for name, value in fields])
    )


def _plain(name: str, value: Any) -> Plain:
    """A field that is no leaf."""
    plain = PROTOCOL.plain(value)
    return marshal.dumps(plain) if name in _APART else plain


class FrozenProjection(Projection):
    """A projection from the cache: equal to the one frozen, thawed where it is looked at."""

    __slots__ = ("_plain", "frozen")

    frozen: bytes | memoryview | None

    @classmethod
    def of(cls, frozen: bytes | memoryview) -> FrozenProjection:
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
        field = self._plain[position]
        if type(field) is bytes:
            field = marshal.loads(field)
        value = PROTOCOL.thaw(field)
        object.__setattr__(self, name, value)
        return value

    __eq__ = equality(Projection)
    __hash__ = Projection.__hash__

    def __reduce__(self) -> Any:
        return (FrozenProjection.of, (bytes(freeze(self)),))

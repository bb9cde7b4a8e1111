"""Objects as plain tuples, and objects whose fields are loaded when they are looked at.

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
from typing import Any, ClassVar

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

    def dump(self, value: Any) -> Plain:
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
            return {key: self.dump(item) for key, item in value.items()}
        if cls is list:
            return self._all(value)
        return value

    def _all(self, values: Iterable[Any]) -> list[Plain]:
        return [value if type(value) in _LEAVES else self.dump(value) for value in values]

    def load(self, plain: Plain) -> Any:
        """The object that `plain` was made from."""
        cls = type(plain)
        if cls is tuple:
            number = plain[0]
            if number == _TUPLE:
                return tuple(map(self.load, plain[1:]))
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
            return {key: self.load(item) for key, item in plain.items()}
        if cls is list:
            return [self.load(item) for item in plain]
        return plain

    def _builder(self, cls: type) -> Callable[[tuple[Any, ...]], Any]:
        if issubclass(cls, Enum):
            return lambda plain: cls(plain[1])
        # Filling slots directly takes half the time of the generated `__init__`, which checks
        # nothing.
        fillers = setters(cls, *names_of(cls))
        new = cls.__new__
        load = self.load

        def build(plain: tuple[Any, ...]) -> Any:
            made = new(cls)
            for fill, value in zip(fillers, plain[1:], strict=True):
                fill(made, load(value) if type(value) in _NESTED else value)
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


class Deferred:
    """A subclass of a dataclass whose fields are made when they are first looked at.

    `MAKERS` says how, by the names of fields; the slots of these stay empty until then. It equals
    an object of the dataclass with the same values.
    """

    __slots__ = ()
    MAKERS: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}

    def __init_subclass__(cls) -> None:
        base = next(each for each in cls.__mro__ if "__dataclass_fields__" in vars(each))
        names = names_of(base)

        def equal(self: Any, other: object) -> Any:
            if not isinstance(other, base):
                return NotImplemented
            return all(getattr(self, name) == getattr(other, name) for name in names)

        for name, method in (("__eq__", equal), ("__hash__", base.__hash__)):
            setattr(cls, name, method)

    def __getattr__(self, name: str) -> Any:
        # Only called for slots that are empty.
        make = self.MAKERS.get(name)
        if make is None:
            raise AttributeError(name)
        value = make(self)
        object.__setattr__(self, name, value)
        return value


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
_APART = frozenset(
    ("polling_source", "push_sources", "transform", "attachments", "info", "schema", "inputs")
)
"""Fields that are most of the bytes, and kept as bytes of their own until they are looked at."""

LAYOUT = hashlib.sha256(PROTOCOL.layout + repr((_PROJECTION, sorted(_APART))).encode()).digest()
"""Changes whenever kept projections would be understood differently."""


def dump_projection(projection: Projection) -> bytes | memoryview:
    """The bytes of a projection."""
    if isinstance(projection, KeptProjection) and projection.dumped is not None:
        return projection.dumped
    fields = zip(_PROJECTION, _VALUES(projection), strict=True)
    # Most fields are leaves: a call for each of them took half of the time.
    return marshal.dumps(
        tuple([value if type(value) in _LEAVES else _plain(name, value) for name, value in fields])
    )


def _plain(name: str, value: Any) -> Plain:
    """A field that is no leaf."""
    plain = PROTOCOL.dump(value)
    return marshal.dumps(plain) if name in _APART else plain


class KeptProjection(Deferred, Projection):
    """A projection from the cache: equal to the one kept."""

    __slots__ = ("_plain", "dumped")

    dumped: bytes | memoryview | None

    @classmethod
    def of(cls, dumped: bytes | memoryview) -> KeptProjection:
        """From the bytes that `dump_projection` gave; they are not looked at yet."""
        self = cls.__new__(cls)
        object.__setattr__(self, "dumped", dumped)
        return self

    def __reduce__(self) -> Any:
        return (KeptProjection.of, (bytes(dump_projection(self)),))

    def _field(self, position: int) -> Any:
        field = self._plain[position]
        return PROTOCOL.load(marshal.loads(field) if type(field) is bytes else field)


def _field_at(position: int) -> Callable[[KeptProjection], Any]:
    return lambda kept: kept._field(position)


KeptProjection.MAKERS = {
    "_plain": lambda kept: marshal.loads(kept.dumped),
    "dumped": lambda _: None,  # made by `replace`, which fills every field
    **{name: _field_at(position) for position, name in enumerate(_PROJECTION)},
}

"""Copies of frozen objects with some fields changed, for thousands of them."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

_Object = TypeVar("_Object")


def changed(value: _Object, **changes: Any) -> _Object:
    """As `dataclasses.replace`, in a third of the time.

    For classes with slots whose construction only fills their fields.
    """
    cls: Any = type(value)
    made: _Object = cls.__new__(cls)
    for name, get, fill in _slots(cls):
        fill(made, changes[name] if name in changes else get(value))
    return made


@cache
def _slots(cls: Any) -> list[tuple[str, Any, Any]]:
    return [
        (field.name, attrgetter(field.name), vars(cls)[field.name].__set__) for field in fields(cls)
    ]

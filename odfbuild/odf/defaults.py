"""Default values of absent fields.

Values are kept and written as their author wrote them; only where two are compared does an absent
field equal its default. The defaults stand on the types (`implied`). Pure.
Sources: metadata reference; the reference implementation for the order of files.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from odfbuild.odf.introspect import fields_of, is_object

T = TypeVar("T")


def with_defaults(value: T) -> T:
    """`value` with every implied default of it and its parts written out.

    The same object when nothing was absent.
    """
    return _filled(value)  # type: ignore[no-any-return]


def same_meaning(left: object, right: object) -> bool:
    """Whether two values are equal once absent fields have their defaults."""
    return left == right or with_defaults(left) == with_defaults(right)


def _filled(value: Any) -> Any:
    if isinstance(value, tuple):
        filled = tuple([_filled(item) for item in value])
        return filled if any(a is not b for a, b in zip(filled, value, strict=True)) else value
    if not is_object(type(value)):
        return value
    changes = {}
    for field in fields_of(type(value)):
        item = getattr(value, field.name)
        after = field.implied if item is None else _filled(item)
        if after is not item:
            changes[field.name] = after
    return replace(value, **changes) if changes else value

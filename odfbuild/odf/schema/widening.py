"""Types that hold every value of another type, exactly.

A column that has records keeps its type: the specification restricts changes of a schema to new
columns ("Schema Evolution"), and peers read earlier slices by the newest schema or by none. So this
decides only what to suggest. Pure.
"""

from __future__ import annotations

from odfbuild.odf.schema import arrow

_EXACT_BITS = {"float32": 24, "float64": 53}
"""Of the whole numbers that a float holds without gaps."""


def holds_all_of(new: arrow.Type, old: arrow.Type) -> bool:
    """Whether `new` is another type of numbers, and has every value of `old`."""
    if new == old:
        return False
    if old.name in arrow.INTEGERS:
        return _holds_integers(new, old)
    if old.name in arrow.DECIMALS and new.name in arrow.DECIMALS:
        return new.scale >= old.scale and _before_point(new) >= _before_point(old)
    return old.name in arrow.FLOATS and new.name in arrow.FLOATS and new.bits > old.bits


def _holds_integers(new: arrow.Type, old: arrow.Type) -> bool:
    is_signed = old.name in arrow.SIGNED
    if new.name in arrow.DECIMALS:
        return _before_point(new) >= len(str(2 ** (old.bits - is_signed)))
    if new.name in _EXACT_BITS:
        return _EXACT_BITS[new.name] >= old.bits - is_signed
    if new.name in arrow.UNSIGNED:
        return not is_signed and new.bits > old.bits
    return new.name in arrow.SIGNED and new.bits > old.bits


def _before_point(kind: arrow.Type) -> int:
    return kind.precision - kind.scale

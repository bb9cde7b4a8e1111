"""How records differ from those that were expected, whatever their order. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from odfbuild.values import Value

Row = Mapping[str, Any]
"""A record as plain values, by name of column."""

_DIGITS = 12
"""Floating-point numbers that agree in so many digits are the same."""
_COMPARED = 200
"""So many records of either side are paired by what they have in common; others are not."""


class Difference(Value):
    """Expected records that are missing, others that came unexpected, and pairs of both.

    A pair agrees in half of its `columns` or more. `op` is the one that holds operations.
    """

    columns: tuple[str, ...]
    op: str
    missing: tuple[Row, ...] = ()
    unexpected: tuple[Row, ...] = ()
    changed: tuple[tuple[Row, Row], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or self.changed)

    def cells(self, expected: Row, actual: Row) -> tuple[str, ...]:
        """The columns in which a pair differs."""
        return tuple(name for name in self.columns if _key(expected[name]) != _key(actual[name]))


def difference(
    columns: Sequence[str], op: str, expected: Sequence[Row], actual: Sequence[Row]
) -> Difference:
    """Compare records in some columns; each counts as often as it is there."""
    names = tuple(columns)
    left: defaultdict[Any, list[Row]] = defaultdict(list)
    for row in actual:
        left[_record(row, names)].append(row)
    missing = []
    for row in expected:
        same = left[_record(row, names)]
        if same:
            same.pop()
        else:
            missing.append(row)
    # In the order in which they came.
    remaining = {id(row) for rows in left.values() for row in rows}
    unexpected = [row for row in actual if id(row) in remaining]
    return _paired(Difference(names, op, tuple(missing), tuple(unexpected)))


def _paired(found: Difference) -> Difference:
    """The same difference with pairs of records that have most in common."""
    scores = sorted(
        (len(found.cells(found.missing[one], found.unexpected[other])), one, other)
        for one, other in product(
            range(min(_COMPARED, len(found.missing))), range(min(_COMPARED, len(found.unexpected)))
        )
    )
    of: dict[int, int] = {}
    for differing, one, other in scores:
        if differing * 2 > len(found.columns):
            break
        if one not in of and other not in of.values():
            of[one] = other
    return Difference(
        found.columns,
        found.op,
        tuple(row for number, row in enumerate(found.missing) if number not in of),
        tuple(row for number, row in enumerate(found.unexpected) if number not in of.values()),
        tuple((found.missing[one], found.unexpected[of[one]]) for one in sorted(of)),
    )


def _record(row: Row, columns: Sequence[str]) -> Any:
    return tuple(_key(row[name]) for name in columns)


def _key(value: Any) -> Any:
    """What equal values have in common."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return tuple(sorted((name, _key(each)) for name, each in value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(_key, value))
    return value

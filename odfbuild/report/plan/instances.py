"""Instances of one template that are changed, or refused, in the same way are told once. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from odfbuild.errors import Location
from odfbuild.report.forms.rows import Row
from odfbuild.values import Value

_FEW = 20
"""So many different changes of one template are told apart."""
_WORD = re.compile(r"\w+|\W")


class _Leader(Value):
    """The first instance with a change: its values, and the words of its changed lines."""

    name: str
    values: tuple[str, ...]
    words: Sequence[str]


def grouped(rows: Iterable[tuple[Row, Location | None]]) -> Iterator[Row]:
    """Rows, where one that fares as another instance of its template did, refers to it."""
    leaders: dict[tuple[str, bool, int], list[_Leader]] = {}
    for row, place in rows:
        refused = row.refusal is not None
        if place is None or place.instance is None or not (row.events or refused):
            yield row
            continue
        change = _Leader(row.name, _values(place.instance), _words(row))
        known = leaders.setdefault((place.file, refused, len(change.words)), [])
        leader = next((each for each in known if _is_same(each, change)), None)
        if leader is None:
            # Where every instance changes in its own way there is nothing to look for.
            if len(known) < _FEW:
                known.append(change)
            yield row
        else:
            yield replace(row, events=(), refusal=None, same_as=leader.name)


def _values(instance: str) -> tuple[str, ...]:
    return tuple(each.partition("=")[2].lower() for each in instance.split(", "))


def _words(row: Row) -> list[str]:
    if row.refusal is not None:
        error = row.refusal
        return _WORD.findall("\n".join((error.code, error.message, *error.notes, error.help or "")))
    lines = [line for each in row.events for line in (each.kind, *each.diff) if line[0] not in "@ "]
    return _WORD.findall("\n".join(lines))


def _is_same(first: _Leader, second: _Leader) -> bool:
    """Whether the words are the same but for the values of the instances in them."""
    pairs = list(zip(first.values, second.values, strict=False))
    # A value may have several words, a word several values: either way of looking is enough.
    texts = ["".join(each.words).lower() for each in (first, second)]
    for number, (value, other) in enumerate(pairs):
        if value and other:
            texts = [texts[0].replace(value, f"\0{number}"), texts[1].replace(other, f"\0{number}")]
    return texts[0] == texts[1] or all(
        a == b or any(_differ_by(a.lower(), b.lower(), *pair) for pair in pairs)
        for a, b in zip(first.words, second.words, strict=True)
    )


def _differ_by(first: str, second: str, value: str, other: str) -> bool:
    return bool(value) and bool(other) and first.replace(value, "\0") == second.replace(other, "\0")

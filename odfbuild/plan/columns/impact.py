"""What a change upstream does to the columns and records of those that read them.

Follows the columns that are computed in another way from reader to reader, inputs first. A query
that is not understood, or comes too late to be looked into, counts as affected in everything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from odfbuild.odf.model import TransformSql
from odfbuild.plan.columns.lineages import Lineages
from odfbuild.plan.model import ColumnCause, ColumnEffect
from odfbuild.sql.columns.of_query import Names
from odfbuild.sql.lineage import Influence, Lineage, Origin
from odfbuild.values import Value

LOOKED_INTO = 500
"""Queries of readers that are parsed for one plan; whoever comes later counts as affected."""

LISTED = 8
"""Up to so many readers of a change are listed by name."""

_BY = tuple(Influence)


class Reader(Value):
    """A derivative: its query, its inputs by alias, and how to find the columns of both."""

    transform: TransformSql
    inputs: Mapping[str, str]
    columns: Callable[[], Names]
    own: Callable[[], tuple[str, ...]]


class Impact:
    """The effects on datasets so far, by alias in lower case."""

    def __init__(self, lineages: Lineages) -> None:
        self._lineages = lineages
        self._effects: dict[str, ColumnEffect] = {}
        self._looked_into = 0

    def changed(self, name: str, effect: ColumnEffect) -> None:
        """Tell of a dataset whose own definition changed, or that `on_reader` found affected."""
        if effect.changed or effect.records or not effect.known:
            self._effects[name.lower()] = effect

    def __bool__(self) -> bool:
        return bool(self._effects)

    def touches(self, reader: Reader) -> bool:
        """Whether any input of `reader` is affected."""
        return bool(self._affected(reader))

    def on_reader(self, reader: Reader, effect: ColumnEffect | None) -> ColumnEffect | None:
        """What reaches a derivative, joined with the `effect` of its own change if there is one."""
        affected = self._affected(reader)
        if not affected:
            return effect
        effects = {name: self._effects[name.lower()] for name in affected.values()}
        causes = [
            ColumnCause(column=None, by=Influence.RECORDS, input=name)
            for name, each in effects.items()
            if each.records
        ]
        reached: tuple[str, ...] = ()
        if any(each.changed or not each.known for each in effects.values()):
            own = reader.own()
            lineage = self._lineage(reader, effects.values())
            if lineage is not None:
                found = self._by_columns(lineage, affected, own)
                reached = tuple(c for c in own if any(c == cause.column for cause in found))
                causes += found
            else:
                reached = own
                causes += [
                    ColumnCause(column=None, by=Influence.UNKNOWN, input=name) for name in effects
                ]
        if not causes:
            return effect
        base = effect or ColumnEffect()
        return replace(
            base,
            changed=(*base.changed, *(c for c in reached if c not in base.changed + base.added)),
            records=base.records or any(cause.column is None for cause in causes),
            causes=tuple(causes),
        )

    def _affected(self, reader: Reader) -> dict[str, str]:
        """The affected inputs by alias in lower case."""
        if not self._effects:
            return {}
        inputs = reader.inputs.items()
        return {alias.lower(): name for alias, name in inputs if name.lower() in self._effects}

    def _lineage(self, reader: Reader, effects: Iterable[ColumnEffect]) -> Lineage | None:
        if not all(effect.known for effect in effects):
            return None
        self._looked_into += 1
        if self._looked_into > LOOKED_INTO:
            return None
        return self._lineages.of(reader.transform, reader.columns())

    def _by_columns(
        self, lineage: Lineage, affected: Mapping[str, str], own: tuple[str, ...]
    ) -> list[ColumnCause]:
        touched = {
            (alias, column.lower()): (name, column)
            for alias, name in affected.items()
            for column in self._effects[name.lower()].changed
        }
        spelled = {column.lower(): column for column in own}
        found: list[tuple[str | None, Origin]] = [(None, origin) for origin in lineage.records]
        found += [(spelled.get(c, c), o) for c, origins in lineage.columns.items() for o in origins]
        causes = [
            ColumnCause(column=column, by=by, input=name, input_column=its)
            for column, (alias, read, by) in found
            if (alias, read) in touched
            for name, its in [touched[alias, read]]
        ]
        return sorted(
            causes, key=lambda c: (c.column or "", _BY.index(c.by), c.input, str(c.input_column))
        )


class BrokenReaders:
    """Tells with refused changes who reads the columns that they would break."""

    def __init__(self, lineages: Lineages) -> None:
        self._impact = Impact(lineages)
        self._refused: dict[str, tuple[str, ...]] = {}
        """The datasets whose refused change reaches one, by its name in lower case."""
        self._told: defaultdict[str, list[str]] = defaultdict(list)

    def __bool__(self) -> bool:
        return bool(self._refused)

    def refused(self, name: str, columns: tuple[str, ...]) -> None:
        """A change that would break these columns of a dataset was refused."""
        if columns:
            self._refused[name.lower()] = (name,)
            self._impact.changed(name, ColumnEffect(changed=columns))

    def reach(self, name: str, reader: Reader) -> None:
        """Remember what the refused changes would have meant for a reader."""
        effect = self._impact.on_reader(reader, None)
        if effect is None:
            return
        self._impact.changed(name, effect)
        inputs = dict.fromkeys(cause.input.lower() for cause in effect.causes)
        refused = dict.fromkeys(each for i in inputs for each in self._refused[i])
        self._refused[name.lower()] = tuple(refused)
        for each in refused:
            self._told[each].append(f"affects {name}: {describe(effect.causes)}")

    def notes(self, name: str) -> tuple[str, ...]:
        """The datasets that the refused change of a dataset would have affected."""
        told = self._told.get(name, [])
        return (*told[:LISTED], *(["affects more datasets"] if len(told) > LISTED else []))


def describe(causes: Iterable[ColumnCause]) -> str:
    """What is reached, and how: columns first, then what decides records, as in `a (copy)`."""
    return ", ".join(_described(causes))


def _described(causes: Iterable[ColumnCause]) -> Iterator[str]:
    """Columns with how they are reached; those that decide records last, once."""
    by_column: dict[str, list[str]] = {}
    deciding: list[str] = []
    for cause in causes:
        if cause.by is Influence.UNKNOWN:
            yield "everything, because its query cannot be analysed"
            return
        ways = by_column.setdefault(cause.column, []) if cause.column is not None else deciding
        if cause.by.value not in ways:
            ways.append(cause.by.value)
    yield from (f"{column} ({', '.join(ways)})" for column, ways in by_column.items())
    if deciding:
        ways = [way for way in deciding if way != Influence.RECORDS.value]
        yield f"records ({', '.join(ways)})" if ways else "records"

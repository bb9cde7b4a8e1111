"""What a change upstream does to the columns and records of those that read them.

Follows the columns that are computed in another way from reader to reader, inputs first. A query
that is not understood, or comes too late to be looked into, counts as affected in everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from odfbuild.odf.model import TransformSql
from odfbuild.plan.lineage import Lineage, Lineages, Names, Origin
from odfbuild.plan.model import ColumnCause, ColumnEffect, Influence

LOOKED_INTO = 500
"""Queries of readers that are parsed for one plan; whoever comes later counts as affected."""

_BY = tuple(Influence)


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

    def touches(self, names: Iterable[str]) -> bool:
        """Whether any of these datasets is affected."""
        return bool(self._effects) and any(name.lower() in self._effects for name in names)

    def on_reader(
        self,
        transform: TransformSql,
        inputs: Mapping[str, str],
        columns: Callable[[], Names],
        own: tuple[str, ...],
        effect: ColumnEffect | None,
    ) -> ColumnEffect | None:
        """What reaches a derivative, joined with the `effect` of its own change if there is one.

        `inputs` are the datasets by alias, `columns` finds the names of theirs, `own` are those of
        the derivative.
        """
        affected = {alias.lower(): name for alias, name in inputs.items() if self.touches([name])}
        causes = [
            ColumnCause(column=None, by=Influence.RECORDS, input=name)
            for name in affected.values()
            if self._effects[name.lower()].records
        ]
        lineage: Lineage | None = None
        reached = own
        if self._can_be_told(affected.values()):
            lineage = self._lineages.of(transform, columns())
        if lineage is not None:
            found = self._by_columns(lineage, affected, own)
            reached = tuple(c for c in own if any(c == cause.column for cause in found))
            causes += found
        else:
            causes += [
                ColumnCause(column=None, by=Influence.UNKNOWN, input=name)
                for name in affected.values()
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

    def _can_be_told(self, names: Iterable[str]) -> bool:
        if not all(self._effects[name.lower()].known for name in names):
            return False
        self._looked_into += 1
        return self._looked_into <= LOOKED_INTO

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

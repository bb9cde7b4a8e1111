"""The columns that datasets will have once a plan is carried out, inputs first.

Only datasets whose columns a change touches are looked into; of all others the committed schema
holds, and costs nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import AddPushSource, DatasetSnapshot, SetPollingSource, SetTransform
from odfbuild.plan.changes.diff import Diff
from odfbuild.plan.columns.evolution import (
    UNCHANGED,
    Evolution,
    committed_columns,
    query_evolution,
    source_evolution,
)
from odfbuild.plan.columns.impact import BrokenReaders, Impact, Reader
from odfbuild.plan.columns.lineages import Lineages
from odfbuild.plan.model import EventChange
from odfbuild.plan.places import Place
from odfbuild.sql.columns.of_query import Columns, Names


class ColumnsAhead:
    """Follows changed columns through a project.

    `states` are the committed chains by alias in lower case, `alias_of` names the dataset behind a
    reference.
    """

    def __init__(
        self,
        states: Mapping[str, Projection],
        alias_of: Callable[[str], str],
        lineages: Lineages,
    ) -> None:
        self._states = states
        self._alias_of = alias_of
        self._changed: dict[str, Columns | None] = {}
        self._impact = Impact(lineages)
        self.broken = BrokenReaders(lineages)

    def follow(
        self, snapshot: DatasetSnapshot, state: Projection | None, difference: Diff, place: Place
    ) -> Evolution:
        """What happens to the columns of a dataset whose inputs were followed already."""
        if state is None or state.schema is None:
            return UNCHANGED
        name = str(snapshot.name)
        transform = state.transform
        if transform is not None and self.broken:
            self.broken.reach(name, self._reader(transform, None, state))
        if difference.refusal is not None:
            return UNCHANGED
        evolution = UNCHANGED
        for change in difference.changes:
            found = self._by_change(snapshot, change, state, place)
            evolution = evolution if found == UNCHANGED else found
            if evolution.refusal is not None:
                self.broken.refused(name, evolution.broken)
                return evolution
            if isinstance(change.after, SetTransform):
                transform = change.after
        if evolution == UNCHANGED and self._changed and transform is not None:
            evolution = self._by_inputs(snapshot, transform, state, place)
        effect = evolution.effect
        if transform is not None and (effect is None or effect.known):
            evolution = self._by_impact(transform, state, evolution)
        return evolution

    def settle(self, name: str, evolution: Evolution) -> None:
        """What `follow` found is going to happen: readers that come later are told."""
        effect = evolution.effect
        if effect is None:
            return
        if effect.added or not effect.known:
            self._changed[name.lower()] = evolution.columns
        self._impact.changed(name, effect)

    def _by_impact(
        self, transform: SetTransform, state: Projection, evolution: Evolution
    ) -> Evolution:
        """What comes from columns of inputs that are computed in another way."""
        reader = self._reader(transform, evolution.columns, state)
        if not self._impact.touches(reader):
            return evolution
        return replace(evolution, effect=self._impact.on_reader(reader, evolution.effect))

    def _reader(
        self, transform: SetTransform, columns: Columns | None, state: Projection
    ) -> Reader:
        return Reader(
            transform.transform,
            {
                each.alias or name: name
                for each in transform.inputs
                for name in [self._alias_of(str(each.dataset_ref))]
            },
            lambda: _names(self._of_inputs(transform)),
            lambda: tuple(c.name for c in columns or committed_columns(state) or ()),
        )

    def _by_change(
        self, snapshot: DatasetSnapshot, change: EventChange, state: Projection, place: Place
    ) -> Evolution:
        before, after = change.before, change.after
        match after:
            case SetPollingSource() | AddPushSource():
                source = before if isinstance(before, SetPollingSource | AddPushSource) else None
                return source_evolution(snapshot, source, after, state, place)
            case SetTransform():
                transform = before if isinstance(before, SetTransform) else None
                inputs = self._of_inputs(after)
                return query_evolution(snapshot, transform, after, state, inputs, place)
        return UNCHANGED

    def _by_inputs(
        self, snapshot: DatasetSnapshot, transform: SetTransform, state: Projection, place: Place
    ) -> Evolution:
        """A query that stays the same gives more columns when its inputs do."""
        names = [self._alias_of(str(each.dataset_ref)).lower() for each in transform.inputs]
        if self._changed.keys().isdisjoint(names):
            return UNCHANGED
        inputs = self._of_inputs(transform)
        evolution = query_evolution(snapshot, transform, transform, state, inputs, place)
        return evolution if evolution.effect and evolution.effect.added else UNCHANGED

    def of(self, name: str) -> Columns | None:
        """The columns that a dataset which was followed already will have, as far as known."""
        folded = name.lower()
        state = self._states.get(folded)
        if folded in self._changed or state is None:
            return self._changed.get(folded)
        return committed_columns(state)

    def coming(self, name: str) -> object:
        """What stands for the columns of a dataset that are about to change; `None`: they stay."""
        folded = name.lower()
        return (self._changed[folded],) if folded in self._changed else None

    def _of_inputs(self, transform: SetTransform) -> dict[str, Columns | None]:
        names = [self._alias_of(str(each.dataset_ref)) for each in transform.inputs]
        return {
            each.alias or name: self.of(name)
            for each, name in zip(transform.inputs, names, strict=True)
        }


def _names(inputs: Mapping[str, Columns | None]) -> Names:
    return {
        alias: None if columns is None else tuple(column.name for column in columns)
        for alias, columns in inputs.items()
    }

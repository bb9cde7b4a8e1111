"""Which queries a plan looks at: those of definitions that are new or changed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial

from odfbuild.errors import OdfbuildError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import MetadataEvent
from odfbuild.plan.changes.diff import Diff
from odfbuild.plan.columns.known import KnownColumns
from odfbuild.plan.columns.of_query import Columns
from odfbuild.plan.columns_ahead import ColumnsAhead
from odfbuild.plan.inputs import PlanInputs
from odfbuild.plan.places import Place
from odfbuild.plan.queries.subjects import Shaping, errors_in, subjects_of
from odfbuild.plan.right_queries import MOST_NEW, QueryKeys, new_of
from odfbuild.project.model import Definition


class ChangedQueries:
    """Looks at queries of one dataset after the other, inputs first."""

    def __init__(self, given: PlanInputs, columns: ColumnsAhead) -> None:
        self._given = given
        self._columns = columns

    def refused(
        self, definition: Definition, state: Projection | None, difference: Diff, place: Place
    ) -> tuple[OdfbuildError, ...]:
        """What is certainly wrong with the queries that a definition brings."""
        right = self._given.memory.right
        if right is None or (state is None and not self._looks_at_new):
            return ()
        events = [each.after for each in difference.changes] if state is not None else None
        if events is not None and not any(isinstance(each, Shaping) for each in events):
            return ()
        return right.errors(
            self._keys.of(definition.folded), partial(self._look, definition, events, place)
        )

    def _look(
        self, definition: Definition, events: Sequence[MetadataEvent | None] | None, place: Place
    ) -> tuple[OdfbuildError, ...]:
        snapshot, name = definition.snapshot, definition.name
        looked_at = snapshot.metadata if events is None else events
        vocab = self._known.vocabulary(name)
        subjects = subjects_of(name, looked_at, self._relation, vocab)
        return errors_in(snapshot, subjects, place)

    def _relation(self, reference: str) -> Columns | None:
        name = self._given.identities.alias(reference)
        return self._columns.of(name) or self._known.relation(name)

    @cached_property
    def _keys(self) -> QueryKeys:
        given = self._given
        return QueryKeys(given.definitions, given.memory.heads, given.engines)

    @cached_property
    def _known(self) -> KnownColumns:
        return KnownColumns(self._given.definitions, self._given.identities.states)

    @cached_property
    def _looks_at_new(self) -> bool:
        return new_of(self._given.definitions, self._given.identities.states) <= MOST_NEW

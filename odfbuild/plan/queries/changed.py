"""Which queries a plan looks at: those of definitions that are new or changed."""

from __future__ import annotations

from functools import cached_property

from odfbuild.errors import OdfbuildError
from odfbuild.odf.chain.projection import Projection
from odfbuild.plan.changes.diff import Diff
from odfbuild.plan.columns.known import KnownColumns
from odfbuild.plan.columns.of_query import Columns
from odfbuild.plan.columns_ahead import ColumnsAhead
from odfbuild.plan.inputs import PlanInputs
from odfbuild.plan.places import Place
from odfbuild.plan.queries.subjects import errors_in, key_of, subjects_of
from odfbuild.plan.right_queries import MOST_NEW, new_of
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
        snapshot = definition.snapshot
        events = snapshot.metadata if state is None else [each.after for each in difference.changes]
        vocab = self._known.vocabulary(definition.name)
        subjects = tuple(subjects_of(definition.name, events, self._relation, vocab))
        if not subjects:
            return ()
        return right.errors(key_of(subjects), lambda: errors_in(snapshot, subjects, place))

    def _relation(self, reference: str) -> Columns | None:
        name = self._given.identities.alias(reference)
        return self._columns.of(name) or self._known.relation(name)

    @cached_property
    def _known(self) -> KnownColumns:
        return KnownColumns(self._given.definitions, self._given.identities.states)

    @cached_property
    def _looks_at_new(self) -> bool:
        return new_of(self._given.definitions, self._given.identities.states) <= MOST_NEW

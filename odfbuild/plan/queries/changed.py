"""Select the queries that a plan checks: those of new or changed definitions, and of checks."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import cached_property, partial
from itertools import islice

from odfbuild.errors import OdfbuildError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import MetadataEvent
from odfbuild.plan.changes.diff import Diff
from odfbuild.plan.columns.known import KnownColumns
from odfbuild.plan.columns_ahead import ColumnsAhead
from odfbuild.plan.inputs import PlanInputs
from odfbuild.plan.places import Place
from odfbuild.plan.queries.subjects import Shaping, accepted_texts, errors_in, subjects_of
from odfbuild.plan.right_queries import MOST_NEW, QueryKeys, new_of
from odfbuild.project.model import Definition
from odfbuild.project.settings.by_name import matching
from odfbuild.project.settings.checks import checks_of
from odfbuild.records.checks import Asked
from odfbuild.sql.columns.of_query import Columns


class ChangedQueries:
    """Looks at queries of one dataset after the other, inputs first."""

    def __init__(self, given: PlanInputs, columns: ColumnsAhead) -> None:
        self._given = given
        self._project = given.facts.project
        self._memory = given.facts.memory
        self._columns = columns

    def refused(
        self, definition: Definition, state: Projection | None, difference: Diff, place: Place
    ) -> tuple[OdfbuildError, ...]:
        """What is certainly wrong with the queries that a definition brings."""
        right = self._memory.right
        if right is None or (state is None and not self._looks_at_new):
            return ()
        events = [each.after for each in difference.changes] if state is not None else None
        if events is not None and not any(isinstance(each, Shaping) for each in events):
            return ()
        inputs = map(self._given.identities.alias, definition.inputs)
        coming = [(each, self._columns.coming(each)) for each in inputs]
        key = self._keys.of_change(definition.folded, coming)
        accepted = partial(accepted_texts, definition, state, right.accepted)
        return right.errors(key, partial(self._look, definition, events, place, accepted))

    def failing(
        self, definition: Definition, state: Projection | None, difference: Diff
    ) -> tuple[OdfbuildError, ...]:
        """What is certainly wrong with the checks of a dataset.

        Where very many have some, those of new and changed definitions are looked at.
        """
        given = self._given
        if not self._project.config.checks or self._memory.right is None:
            return ()
        is_new = self._looks_at_new if state is None else bool(difference.changes)
        if not (is_new or self._few_are_checked):
            return ()
        asked = checks_of(self._project.config.checks, definition.name)
        if not asked:
            return ()
        key = self._keys.of_checks(definition.folded, asked, complete=not given.faults)
        return self._memory.right.errors(key, partial(self._look_at_checks, definition, asked))

    def _look_at_checks(
        self, definition: Definition, asked: Sequence[Asked]
    ) -> tuple[OdfbuildError, ...]:
        from odfbuild.plan.queries.checks import wrong_checks

        found = []
        names = None if self._given.faults else self._names
        for _, error in wrong_checks(definition.name, asked, self._known, names):
            found.append(error.at(self._given.facts.place_of_check(error)))
        return tuple(found)

    @cached_property
    def _names(self) -> frozenset[str]:
        defined = (each.folded for each in self._project.definitions)
        return frozenset((*defined, *self._given.identities.states))

    @cached_property
    def _few_are_checked(self) -> bool:
        checks = self._project.config.checks
        checked = (
            each
            for each in self._project.definitions
            if any(matching(entry, each.name) is not None for entry in checks)
        )
        return sum(1 for _ in islice(checked, MOST_NEW + 1)) <= MOST_NEW

    def _look(
        self,
        definition: Definition,
        events: Sequence[MetadataEvent | None] | None,
        place: Place,
        accepted: Callable[[], Container[str]],
    ) -> tuple[OdfbuildError, ...]:
        snapshot, name = definition.snapshot, definition.name
        looked_at = snapshot.metadata if events is None else events
        vocab = self._known.vocabulary(name)
        subjects = subjects_of(name, looked_at, self._relation, vocab, self._project.config.engines)
        return errors_in(snapshot, subjects, place, accepted())

    def _relation(self, reference: str) -> Columns | None:
        name = self._given.identities.alias(reference)
        return self._columns.of(name) or self._known.relation(name)

    @cached_property
    def _keys(self) -> QueryKeys:
        given = self._given
        alias_of = given.identities.alias
        return QueryKeys(
            self._project.definitions, self._memory.heads, self._project.config.engines, alias_of
        )

    @cached_property
    def _known(self) -> KnownColumns:
        return KnownColumns(self._project.definitions, self._given.identities.states)

    @cached_property
    def _looks_at_new(self) -> bool:
        return new_of(self._project.definitions, self._given.identities.states) <= MOST_NEW

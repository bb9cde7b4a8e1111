"""Methods that check committed data: verification, checks of records, proofs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, overload

from odfbuild.api.base import Base
from odfbuild.extras import needs_engine
from odfbuild.survey.names import block_in

if TYPE_CHECKING:
    from odfbuild.apply.unit_tests.run import Outcome
    from odfbuild.inspect.verify.check import Verdict
    from odfbuild.records.audit import Violation
    from odfbuild.store.transfer import StoredObject


class Checking(Base):
    """Questions to what is committed."""

    @needs_engine
    def verify(
        self,
        *datasets: str,
        integrity: bool = False,
        logical: bool = False,
        since: str | None = None,
        sample: int | None = None,
        full: bool = False,
        recursive: bool = False,
    ) -> Verdict:
        """Check datasets (default: all) for integrity, and derivatives for reproducibility.

        With `integrity`, no step is recomputed and no engine is started. `since` is the end of a
        hash of a block, for one dataset; at most `sample` steps of each dataset are recomputed;
        with `full` each step is computed over all records, not only the last one with each query;
        `recursive` also verifies all upstream datasets. Published tables are compared, too.
        `signatures` of the result tell who vouches for which dataset. Without names, derivatives of
        others whose inputs are not here are not findings, but `unchecked`.

        >>> project.verify(integrity=True).findings
        ()
        """
        from odfbuild.inspect.verify.check import verify
        from odfbuild.inspect.verify.reproduce import Extent, upstream

        workspace = self.workspace()
        names = self._named(workspace, datasets)
        if recursive:
            names = upstream(workspace, names)
        if since is not None and len(names) != 1:
            raise ValueError("since needs exactly one dataset")
        after = block_in(workspace.dataset(names[0]), since) if since else None
        config = self.config()
        verdict = verify(
            workspace,
            names,
            logical=logical,
            extent=Extent(since=after, sample=sample, full=full),
            factory=None if integrity else self._start_engine,
            all_of_project=not (datasets or recursive),
            settings=config.engine,
        )
        if not config.tables:
            return verdict
        from odfbuild.inspect.tables import with_tables

        return with_tables(verdict, config, workspace, names, records=not integrity)

    @overload
    def test(
        self, *datasets: str, unit: Literal[False] = False
    ) -> dict[str, tuple[Violation, ...]]: ...
    @overload
    def test(self, *datasets: str, unit: Literal[True]) -> tuple[Outcome, ...]: ...
    @needs_engine
    def test(
        self, *datasets: str, unit: bool = False
    ) -> dict[str, tuple[Violation, ...]] | tuple[Outcome, ...]:
        """What committed records do not keep to, by dataset (default: all that have checks).

        With `unit`, run the unit tests of queries of these datasets (default: all) instead: an
        outcome each, with `passed`, and the `difference` or `error` of one that failed.
        """
        if unit:
            return self._unit_test(datasets)
        from odfbuild.apply.audit import Audits
        from odfbuild.engine.lazy import LazyEngine

        config, workspace = self.config(), self.workspace()
        with LazyEngine(self._start_engine) as engine:
            audits = Audits(config.root, config.checks, workspace, engine.get)
            return audits.committed(self._named(workspace, datasets))

    def _unit_test(self, datasets: Sequence[str]) -> tuple[Outcome, ...]:
        from odfbuild.apply.unit_tests.run import unit_test
        from odfbuild.engine.lazy import LazyEngine
        from odfbuild.plan.graph.selection import Selection
        from odfbuild.survey.survey import choose

        selection = Selection(select=tuple(datasets))
        chosen = choose(self._folder, selection, self._given)[0] if datasets else None
        with LazyEngine(self._start_engine) as engine:
            return unit_test(self._folder, self._given, chosen, engine.get)

    def objects(self, *datasets: str) -> tuple[StoredObject, ...]:
        """Which objects of datasets (default: all) are in their folders, which in the storage.

        `PlanError` E0373 when the project has no storage.
        """
        from odfbuild.store.transfer import survey

        workspace = self.workspace()
        return survey(workspace, self._named(workspace, datasets))

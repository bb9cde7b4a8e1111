"""Build a plan from the decisions about all datasets of a project.

Pure: definitions, projections of chains and facts about sources come in, a frozen `Plan` goes out.
The same input gives an equal plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from odfbuild.errors import CheckError, Location, OdfbuildError
from odfbuild.ingest.facts import SourceFacts
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import DatasetKind
from odfbuild.plan.inputs import (
    NOTHING_BY_POLICY,
    ByPolicy,
    ChainIdentities,
    Others,
    PlanInputs,
)
from odfbuild.plan.memory import Memory
from odfbuild.plan.model import (
    Action,
    DatasetPlan,
    PinnedDataset,
    Plan,
    Publication,
    Reason,
    ReasonCode,
)
from odfbuild.plan.places import FileOnly, Place
from odfbuild.plan.slices import SliceIndex
from odfbuild.project.model import Config, Definition, Project
from odfbuild.python_gc import paused_collector

if TYPE_CHECKING:
    from odfbuild.plan.decide import Decider
    from odfbuild.store.branches import Limit


def _raised(_: str, error: Exception) -> OdfbuildError:
    raise error


class Order(Protocol):
    """The part of a graph that planning needs."""

    @property
    def order(self) -> Sequence[str]:
        """Aliases of all defined datasets, inputs first."""
        ...

    @property
    def checks(self) -> Mapping[str, tuple[str, ...]]:
        """What the checks of datasets refer to."""
        ...


def build_plan(
    project: Project,
    graph: Order,
    projections: Mapping[str, Projection],
    facts: Mapping[str, SourceFacts],
    slice_index: SliceIndex,
    refusals: Mapping[str, OdfbuildError] | None = None,
    left_out: Collection[str] = (),
    rebuilt: Collection[str] = (),
    deleted: Mapping[str, Sequence[str]] | None = None,
    place_of: Callable[[Definition], Place] = FileOnly,
    memory: Memory | None = None,
    engine_version: str = "",
    due: Collection[str] = (),
    corrected: Collection[str] = (),
    faults: Mapping[str, OdfbuildError] | None = None,
    unforeseen: Callable[[str, Exception], OdfbuildError] = _raised,
    place_of_check: Callable[[CheckError], Location | None] = lambda _: None,
    others: Others | None = None,
    by_policy: ByPolicy = NOTHING_BY_POLICY,
    takes_all: str = "",
    unlimited: Collection[str] = (),
) -> Plan:
    """Plan a whole project.

    `projections` are the committed chains by alias, `facts` what is known about the polling sources
    of root datasets by alias (absent: not looked at), `slice_index` answers for those inputs that
    moved, `refusals` are sources that cannot be ingested by alias, and why. Breaking changes do
    not raise: they are refusals of single datasets in the plan, with the place that `place_of`
    knows for them. Datasets that are `left_out` stay as they are, and their readers are planned
    accordingly; those that are `rebuilt` (in lower case, as `to_rebuild` gives them) begin anew,
    those that are `corrected` (by `to_correct`) follow a changed query now, and chains that are
    `deleted` (in the order of `to_delete`, with the branches that they are in) go. Settings can ask
    for the same (`by_policy`). `takes_all` says why changelogs are computed over all records, if
    they are; datasets that are `unlimited` may read more than policies let them.
    `engine_version` is the release that would compute: another one than recorded is said, and no
    reason to run. `due` are roots whose watermark the clock moves. `memory` gives what was decided
    last time and learns what is decided now. What is wrong with datasets (`faults`, by name: also
    of definitions and chains that cannot be read) refuses these, and those that need them; so does
    what comes `unforeseen` while one is decided. `place_of_check` knows where checks are declared.
    `others` tells which datasets belong to others.
    """
    declared = others.declared if others else {}
    faults = {n: e for n, e in (faults or {}).items() if n not in left_out}
    rebuilt = frozenset(rebuilt) | by_policy.rebuilt.keys()
    identities = ChainIdentities(projections)
    if any(each.folded not in identities.states for each in project.definitions):
        from odfbuild.plan.changes.lost import lost_chains

        folder = project.config.state.name
        faults = {**lost_chains(project.definitions, identities, rebuilt, folder), **faults}
    planner = _Planner(
        PlanInputs(
            identities,
            facts,
            slice_index,
            refusals or {},
            frozenset(name.lower() for name in left_out),
            rebuilt,
            place_of,
            memory or Memory({}, {}),
            project.config.policies,
            project.config.engines,
            engine_version,
            {name.lower(): error for name, error in faults.items()} | dict(by_policy.refused),
            unforeseen,
            frozenset(due),
            frozenset(corrected) | by_policy.corrected.keys(),
            project.definitions,
            project.config.checks,
            place_of_check,
            _unpinned(declared, projections, faults),
            by_policy,
            takes_all,
            frozenset(unlimited),
        )
    )
    definitions = {definition.name: definition for definition in project.definitions}
    order = [n for n in graph.order if n not in left_out] if left_out else graph.order
    defined = {name.lower() for name in order}
    unplanned = {name: faults[name] for name in sorted(faults) if name.lower() not in defined}
    with paused_collector():
        planned = planner.finished([planner.plan(definitions[name]) for name in order])
    if graph.checks:
        planned = [_with_checks(each, graph.checks) for each in planned]
    planned += [planner.refuse(name, error) for name, error in unplanned.items()]
    without = {
        name: projections[name]
        for name in projections
        if name.lower() not in planner.decided and name not in left_out
    }
    gone = [(name, without.pop(name), branches) for name, branches in (deleted or {}).items()]
    pinned: tuple[PinnedDataset, ...] = ()
    if others and (without or declared or left_out):
        from odfbuild.plan.external import pinned_datasets

        read = {name for each in planned for name in each.inputs} if left_out else set()
        chains = without | {n: projections[n] for n in read.intersection(left_out, projections)}
        shown = {n: ref for n, ref in declared.items() if n not in unplanned}
        pinned = pinned_datasets(shown, chains, others.pulled_from, set(left_out) - read)
        for each in pinned:
            without.pop(each.name, None)
    if without:
        from odfbuild.plan.changes.orphaned import orphaned

        planned += orphaned(without, planned)
    if gone:
        # All that decides about changes would be imported by every plan: a tenth of its time.
        from odfbuild.plan.changes.delete import as_deletion

        planned += [as_deletion(*each) for each in gone]
    published: tuple[Publication, ...] = ()
    if project.config.publish:
        from odfbuild.plan.external import publications

        published = publications(planned, project.config.publish)
    return Plan(
        project=project.config.name,
        env=project.config.env,
        datasets=tuple(planned),
        complete=not left_out,
        external=pinned,
        publications=published,
    )


def takes_all(config: Config, limit: Limit | None) -> str:
    """Why changelogs are always computed over all records here; empty where they are not."""
    if limit is not None:
        return "it reads a part of its inputs in this branch"
    return "a server of Spark Connect computes it" if config.engine.remote else ""


def _with_checks(dataset: DatasetPlan, checks: Mapping[str, tuple[str, ...]]) -> DatasetPlan:
    """A dataset, and what it waits for because its checks refer to it, if anything happens."""
    if dataset.name not in checks or not dataset.actions:
        return dataset
    return replace(dataset, checked_against=checks[dataset.name])


def _unpinned(
    declared: Mapping[str, str],
    projections: Mapping[str, Projection],
    faults: Mapping[str, OdfbuildError],
) -> frozenset[str]:
    """What is declared and has no chain, by name in lower case."""
    if not declared:
        return frozenset()
    known = {name.lower() for name in (*projections, *faults)}
    return frozenset(map(str.lower, declared)) - known


class _Planner:
    """Takes over the decisions of the last plan that still hold, and has the others made."""

    def __init__(self, given: PlanInputs) -> None:
        self._given = given
        self.decided: set[str] = set()

    def plan(self, definition: Definition) -> DatasetPlan:
        """The plan of one dataset whose inputs are planned already."""
        self.decided.add(definition.folded)
        memory = self._given.memory
        inputs = definition.inputs and self._given.identities.aliases(definition.inputs)
        if definition.folded in self._given.faults:
            return self._decider.refuse(definition, inputs, self._given.faults[definition.folded])
        recalled = memory.recall(definition, inputs)
        if recalled is not None:
            return recalled
        try:
            made, outlook = self._decider.decide(definition, inputs)
        except Exception as error:  # a defect of ours must not take the other datasets down
            wrong = self._given.unforeseen(definition.name, error)
            return self._decider.refuse(definition, inputs, wrong)
        memory.learn(definition, inputs, made, outlook)
        return made

    def refuse(self, name: str, error: OdfbuildError) -> DatasetPlan:
        """The plan of what has no definition that can be used."""
        self.decided.add(name.lower())
        state = self._given.identities.states.get(name.lower())
        return DatasetPlan(
            name=name,
            kind=state.kind if state else DatasetKind.Root,
            id=state.dataset_id if state else None,
            expected_head=state.head if state else None,
            actions=(Action.REFUSE,),
            reasons=(Reason(code=ReasonCode.FAULTY, message=error.message),),
            location=error.location,
            refusal=error,
        )

    def finished(self, planned: list[DatasetPlan]) -> list[DatasetPlan]:
        """All plans, once the last one is made."""
        decided = "_decider" in vars(self)
        return self._decider.finished(planned) if decided else planned

    @cached_property
    def _decider(self) -> Decider:
        from odfbuild.plan.decide import Decider

        return Decider(self._given)

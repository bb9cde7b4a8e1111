"""Build a plan from the decisions about all datasets of a project.

Pure: definitions, projections of chains and facts about sources come in, a frozen `Plan` goes out.
The same input gives an equal plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from odfbuild.errors import OdfbuildError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import DatasetKind
from odfbuild.plan.inputs import Asked, ChainIdentities, PlanFacts, PlanInputs
from odfbuild.plan.model import (
    Action,
    DatasetPlan,
    PinnedDataset,
    Plan,
    Publication,
    Reason,
    ReasonCode,
)
from odfbuild.project.model import Config, Definition
from odfbuild.python_gc import paused_collector

if TYPE_CHECKING:
    from odfbuild.plan.decide import Decider
    from odfbuild.store.branches import Limit


NOTHING_ASKED = Asked()


def build_plan(facts: PlanFacts, asked: Asked = NOTHING_ASKED) -> Plan:
    """Plan a whole project.

    Breaking changes do not raise: they are refusals of single datasets in the plan. What is wrong
    with a dataset refuses that one, and those that need it.
    """
    project, graph, projections = facts.project, facts.graph, facts.projections
    left_out, by_policy = asked.left_out, asked.by_policy
    others = facts.others
    declared = others.declared if others else {}
    faults = {n: e for n, e in facts.faults.items() if n not in left_out}
    rebuilt = frozenset(asked.rebuilt) | by_policy.rebuilt.keys()
    identities = ChainIdentities(projections)
    if any(each.folded not in identities.states for each in project.definitions):
        from odfbuild.plan.changes.lost import lost_chains

        folder = project.config.state.name
        faults = {**lost_chains(project.definitions, identities, rebuilt, folder), **faults}
    planner = _Planner(
        PlanInputs(
            facts=facts,
            identities=identities,
            left_out=frozenset(name.lower() for name in left_out),
            rebuilt=rebuilt,
            corrected=frozenset(asked.corrected) | by_policy.corrected.keys(),
            faults={name.lower(): error for name, error in faults.items()}
            | dict(by_policy.refused),
            unpinned=_unpinned(declared, projections, faults),
            by_policy=by_policy,
            unlimited=frozenset(asked.unlimited),
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
    gone = [(name, without.pop(name), branches) for name, branches in asked.deleted.items()]
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
        memory = self._given.facts.memory
        inputs = definition.inputs and self._given.identities.aliases(definition.inputs)
        if definition.folded in self._given.faults:
            return self._decider.refuse(definition, inputs, self._given.faults[definition.folded])
        recalled = memory.recall(definition, inputs)
        if recalled is not None:
            return recalled
        try:
            made, outlook = self._decider.decide(definition, inputs)
        except Exception as error:  # a defect of ours must not take the other datasets down
            wrong = self._given.facts.unforeseen(definition.name, error)
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

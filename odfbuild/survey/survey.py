"""Read the project, its chains and its local sources, and make the plan.

Reads files only: no JVM, no network. Writes nothing but the cache.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.engine.release import engine_version
from odfbuild.errors import CheckError, Location, OdfbuildError
from odfbuild.exchange.repositories.fetch_on_demand import workspace_of
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import DatasetKind, SetTransform
from odfbuild.odf.timestamp import Timestamp
from odfbuild.plan.build import build_plan, takes_all
from odfbuild.plan.changes.renames import renamed, with_renames
from odfbuild.plan.graph.build import find_graph
from odfbuild.plan.graph.dag import Graph
from odfbuild.plan.inputs import NOTHING_BY_POLICY, Asked, Others, PlanFacts
from odfbuild.plan.memory import Memory
from odfbuild.plan.model import Action, DatasetPlan, Plan
from odfbuild.plan.slices import ChainSlices
from odfbuild.project.git.repository import has_notes
from odfbuild.project.load import read_project
from odfbuild.project.model import Config, Definition, Project, has_windows
from odfbuild.project.overrides import NO_OVERRIDES, Overrides
from odfbuild.project.settings.watermarks import rule_of
from odfbuild.python_gc import paused_collector
from odfbuild.store.corrections import Corrections, kept_corrections
from odfbuild.store.workspace import Workspace
from odfbuild.survey.contracts import refused_by_contracts
from odfbuild.survey.decision_cache import KnownOrder, NoDrift, remembered
from odfbuild.survey.definitions import renames_of
from odfbuild.survey.faults import check_all_are_known, fault_of, faults_of
from odfbuild.survey.sources import Probed, probe_all
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.odf.model import MetadataBlock
    from odfbuild.odf.multihash import Multihash
    from odfbuild.plan.changes.consent import Consent
    from odfbuild.plan.drift import ChainDrift
    from odfbuild.plan.graph.selection import Selection
    from odfbuild.plan.places import Place
    from odfbuild.store.branches import Limit
    from odfbuild.store.dataset import DatasetStore
    from odfbuild.survey.branch_part import BranchPart
    from odfbuild.survey.query_policy import QueryPolicy

_BUSY = {Action.RUN, Action.POLL, Action.APPEND}


class Survey(Value):
    """A project as it is now, and the plan that follows from it.

    `projections` have the names that datasets will have, `renames` give the present ones of those
    that are to be renamed. `faults` are why datasets could not be planned at all, by name.
    """

    project: Project
    graph: Graph
    workspace: Workspace
    projections: Mapping[str, Projection]
    plan: Plan
    renames: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[str, OdfbuildError] = field(default_factory=dict)

    def locate(self, dataset: str, error: OdfbuildError) -> OdfbuildError:
        """`error` with its place in a query turned into the place in the project's files."""
        from odfbuild.survey.locate import locate

        return locate(self.project, dataset, error)


class PlanRequest(Value, kw_only=True):
    """What is asked of a plan beside what is there.

    `fetch_uncacheable`: also read sources again that give nothing to compare with. `refresh`: ask
    web servers for new versions, and repositories for new blocks; uses the network. `rebuilds` are
    datasets to be computed again, `corrections` changelogs that are to follow their query now,
    `deletions` chains without a definition that are to go, `forward` datasets whose changed query
    holds for new records only, whatever the settings say, `rewrites` tables that may be written
    anew although somebody else changed them, `reads` datasets that may read more than policies let
    them, `withdrawals` datasets whose old records may go. With `of_branch` a plan in a branch is
    about what the branch changes, unless it is about a selection; under a `limit` derivatives read
    part of their inputs.
    """

    selection: Selection | None = None
    fetch_uncacheable: bool = False
    refresh: bool = False
    rebuilds: tuple[Consent, ...] = ()
    corrections: tuple[Consent, ...] = ()
    deletions: tuple[Consent, ...] = ()
    forward: tuple[Consent, ...] = ()
    rewrites: tuple[str, ...] = ()
    reads: tuple[Consent, ...] = ()
    withdrawals: tuple[str, ...] = ()
    of_branch: bool = False
    limit: Limit | None = None

    def __bool__(self) -> bool:
        asked = self.selection or self.fetch_uncacheable or self.refresh
        return bool(asked or self.consents or self.deletions or self.reads)

    @property
    def consents(self) -> tuple[Consent, ...]:
        """What options say about the records of datasets whose query changed."""
        return (*self.rebuilds, *self.corrections, *self.forward)


def survey(
    start: Path | None, plan_request: PlanRequest | None = None, given: Overrides = NO_OVERRIDES
) -> Survey:
    """Read everything that a plan depends on; plan what is selected.

    Raises `Errors` when the project is wrong, `GraphError` for a wrong selection, `PlanError` for
    a rebuild or a deletion that cannot be.
    """
    with paused_collector():
        return _survey(start, PlanRequest() if plan_request is None else plan_request, given)


def _with_news(found: Survey) -> Survey:
    """The same, with what repositories say now of the datasets of others in the plan."""
    from odfbuild.exchange.repositories.refresh import news_of

    names = {each.name for each in found.plan.external}
    if not names:
        return replace(found, plan=replace(found.plan, news=()))
    project = found.project
    news = news_of(project.config, project.definitions, found.workspace, names)
    return replace(found, plan=replace(found.plan, news=news))


def choose(
    start: Path | None, selection: Selection, given: Overrides = NO_OVERRIDES
) -> tuple[frozenset[str], Survey]:
    """Names of the selected datasets, and the whole project that they were selected from."""
    found = survey(start, given=given)
    return _chosen(found, selection), found


def _chosen(found: Survey, selection: Selection) -> frozenset[str]:
    from odfbuild.survey.selectable import selected

    return selected(selection, found.project, found.graph, found.projections, lambda: found.plan)


def _survey(start: Path | None, plan_request: PlanRequest, given: Overrides) -> Survey:
    project = read_project(start, given)
    workspace = workspace_of(project.config)
    heads: Mapping[str, bytes]
    heads, held = workspace.resolved()
    chains = workspace.projections_at(heads)
    renames = renames_of(project, heads)
    # From here on all is looked at as if datasets had their new names already.
    heads = renamed(heads, renames)
    unforeseen = partial(fault_of, project.config.cache, "planning")
    with remembered(project.config, heads) as memory:
        damaged: Mapping[str, OdfbuildError] = {}
        if renames or chains.have_twins or not memory.knows_heads:
            damaged = chains.faults()  # so that all that is wrong with chains is told at once
        if damaged:
            chains = chains.without(damaged)
        projections: Mapping[str, Projection] = renamed(chains, renames)
        graph = find_graph(project, projections, KnownOrder(project.config), damaged)
        faults = faults_of(project, graph, renamed(damaged, renames))
        if project.config.personal:
            from odfbuild.survey.personal import personal_faults

            faults |= personal_faults(project, projections, faults, memory.lineages)
        slices = ChainSlices(projections, _BlockReader(workspace, renames).read)
        probed = probe_all(project, workspace, project.definitions, projections, memory)
        due = _due_by_clock(project, project.definitions, projections)
        for definition in due.values():
            memory.watched(definition, None)  # what follows from the clock is not remembered
        places = partial(_place_of, project)
        others = Others(_external(project), partial(_pulled_from, workspace))
        facts = PlanFacts(
            project=project,
            graph=graph,
            projections=projections,
            slices=slices,
            sources=probed.facts,
            refusals=probed.refusals,
            faults={**refused_by_contracts(project, graph.order, projections, faults), **faults},
            due=due,
            others=others,
            engine_version=engine_version(),
            takes_all=takes_all(project.config, plan_request.limit),
            memory=memory,
            corrections=partial(_corrections, workspace, renames),
            place_of=places,
            place_of_check=partial(_place_of_check, project.config),
            unforeseen=unforeseen,
        )
        plan = build_plan(facts)
        for each in plan.datasets:
            _ = each.mode  # so that it is kept: whoever shows the plan asks for it
    plan = with_renames(plan, renames)
    found = Survey(project, graph, workspace, projections, plan, renames, faults)
    policy = _query_policy(plan_request, found)
    if policy is not None:
        found, probed = _by_policy(found, policy, facts)
    branch = _branch_part(plan_request, found, held)
    if plan_request or branch is not None:
        known = {*graph.order, *projections, *faults, *others.declared}
        found, probed = _as_asked(found, plan_request, branch, policy, known, facts)
    plan = _with_drift(_with_places(found.plan, project), found, heads)
    plan = _with_windows(plan, found, slices)
    if probed.unread:
        plan = replace(plan, drift=_by_dataset((*plan.drift, *probed.unread)))
    plan = _with_retention(plan, found, plan_request.withdrawals)
    found = replace(found, plan=_with_tables(plan, found, plan_request.rewrites))
    return _with_news(found) if plan_request.refresh else found


def _anew(facts: PlanFacts) -> PlanFacts:
    """For what settings and options change: that is said of this plan only."""
    memory = facts.memory
    return replace(facts, memory=Memory({}, {}, memory.lineages, memory.right))


def _by_policy(found: Survey, policy: QueryPolicy, facts: PlanFacts) -> tuple[Survey, Probed]:
    """The plan with what `onQueryChange` makes of changed queries."""
    project, fresh = found.project, _anew(facts)
    probed = probe_all(
        project, found.workspace, project.definitions, found.projections, fresh.memory
    )
    fresh = replace(fresh, sources=probed.facts, refusals=probed.refusals)
    plan = build_plan(fresh, Asked(by_policy=policy.settled()))
    return replace(found, plan=with_renames(plan, found.renames)), probed


def _as_asked(
    found: Survey,
    plan_request: PlanRequest,
    branch: BranchPart | None,
    policy: QueryPolicy | None,
    known: Collection[str],
    facts: PlanFacts,
) -> tuple[Survey, Probed]:
    """The plan of what is selected, with what options let happen.

    What an option leaves out or asks for changes what readers are planned to do, this once.
    """
    project, workspace, projections = found.project, found.workspace, found.projections
    chosen = _chosen(found, plan_request.selection) if plan_request.selection else known
    if branch is not None:
        chosen = branch.chosen(chosen)
    left_out = {*known}.difference(chosen)
    selected = [each for each in project.definitions if each.name in chosen]
    fresh = _anew(facts)
    probed = probe_all(
        project,
        workspace,
        selected,
        projections,
        fresh.memory,
        plan_request.fetch_uncacheable,
    )
    if plan_request.refresh:
        from odfbuild.survey.servers import told_by_servers

        probed.facts.update(told_by_servers(project, selected, projections, probed.facts))
    if branch is not None:
        probed.refusals.update(branch.refusals(selected))
    rebuilt, deleted, corrected = _asked_for(plan_request, found, left_out)
    from odfbuild.plan.changes.limits import check_reads

    asked = Asked(
        left_out=left_out,
        rebuilt=rebuilt,
        corrected=corrected,
        deleted={name: workspace.branches_of(name) for name in deleted},
        unlimited=check_reads(plan_request.reads, project.definitions),
        by_policy=policy.settled(left_out, deleted) if policy else NOTHING_BY_POLICY,
    )
    plan = build_plan(replace(fresh, sources=probed.facts, refusals=probed.refusals), asked)
    plan = with_renames(replace(plan, pins=_pins(plan, projections)), found.renames)
    if branch is not None:
        plan = branch.described(plan, projections)
    return replace(found, plan=plan), probed


def _with_tables(plan: Plan, found: Survey, rewrites: Sequence[str]) -> Plan:
    """The plan with what apply does with published tables; a branch publishes none."""
    config = found.project.config
    if config.branch is not None or not (config.tables or rewrites):
        return plan
    from odfbuild.exchange.tables.planned import with_tables
    from odfbuild.plan.columns.known import KnownColumns

    states = found.projections
    known = partial(KnownColumns, found.project.definitions, states, found.faults)
    return with_tables(plan, config, found.workspace, states, rewrites, known)


def _with_retention(plan: Plan, found: Survey, allowed: Sequence[str]) -> Plan:
    """The plan with what is older than it is kept."""
    config = found.project.config
    if not (config.retain or allowed):
        return plan
    from odfbuild.survey.retention import due_withdrawals

    states = found.projections
    return replace(plan, retention=due_withdrawals(config, found.workspace, plan, states, allowed))


def _branch_part(
    plan_request: PlanRequest, found: Survey, held: Collection[str]
) -> BranchPart | None:
    """What a plan in a branch is about; `None`: none is asked for."""
    name = found.project.config.branch
    if name is None and plan_request.limit is not None:
        from odfbuild.survey.branch_part import no_branch

        raise no_branch(plan_request.limit)
    if name is None or not plan_request.of_branch:
        return None
    from odfbuild.survey.branch_part import branch_part, check_limit, no_deletions

    if plan_request.deletions:
        raise no_deletions(name)
    named = (*plan_request.rebuilds, *plan_request.corrections)
    selected = bool(plan_request.selection)
    limit = plan_request.limit
    check_limit(name, held, found.workspace.dataset, limit)
    return branch_part(
        name, found.plan, found.graph, held, named, is_selected=selected, limit=limit
    )


def _asked_for(
    plan_request: PlanRequest, found: Survey, left_out: Collection[str]
) -> tuple[frozenset[str], tuple[str, ...], frozenset[str]]:
    """The datasets that options let rebuild, delete and correct; raises where that cannot be."""
    if not (plan_request.consents or plan_request.deletions):
        return frozenset(), (), frozenset()  # who reads what takes all chains to tell
    from odfbuild.plan.changes.correct import to_correct
    from odfbuild.plan.changes.delete import to_delete
    from odfbuild.plan.changes.on_query_change import check_forward
    from odfbuild.plan.changes.rebuild import to_rebuild
    from odfbuild.survey.protection import check_unprotected

    project, projections = found.project, found.projections
    check_forward(
        plan_request.forward,
        (*plan_request.rebuilds, *plan_request.corrections),
        project.definitions,
    )
    if plan_request.deletions:
        check_all_are_known(project)
    deleted = to_delete(plan_request.deletions, project.definitions, projections, left_out)
    rebuilt = to_rebuild(plan_request.rebuilds, project.definitions, projections, left_out, deleted)
    engines = project.config.engines
    corrected = to_correct(plan_request.corrections, project.definitions, left_out, engines)
    lying = {new.lower(): old for new, old in found.renames.items()}
    for name in (*sorted(rebuilt), *deleted):
        check_unprotected(project.config, found.workspace, name, lying.get(name, name))
    return rebuilt, deleted, corrected


def _query_policy(plan_request: PlanRequest, found: Survey) -> QueryPolicy | None:
    """What `onQueryChange` wants; `None`: nothing, or options say it of all changed queries."""
    policies = found.project.config.policies
    if all(each.on_query_change is None for each in policies):
        return None
    from odfbuild.survey.query_policy import query_policy

    return query_policy(
        found.plan,
        found.project,
        found.workspace,
        found.projections,
        found.renames,
        plan_request.consents,
    )


def _by_dataset(drift: Iterable[ChainDrift]) -> tuple[ChainDrift, ...]:
    return tuple(sorted(drift, key=lambda each: each.dataset))


def _external(project: Project) -> dict[str, str]:
    """References of the datasets of others that settings or definitions name, by name here."""
    config = project.config
    if not (config.external or config.repositories):
        return {}
    from odfbuild.exchange.repositories.external import declared_datasets

    return {each.name: str(each) for each in declared_datasets(config, project.definitions)}


def _pulled_from(workspace: Workspace, name: str) -> str | None:
    """Where a chain without a definition was pulled from."""
    from odfbuild.exchange.repositories.external import pulled_from

    reference = pulled_from(workspace.dataset(name))
    return None if reference is None else str(reference)


def _place_of(project: Project, definition: Definition) -> Place:
    from odfbuild.project.locate import DefinitionPlace

    return DefinitionPlace(project, definition)


def _place_of_check(config: Config, error: CheckError) -> Location:
    from odfbuild.survey.settings import place_of_check

    return place_of_check(config, error)


def _due_by_clock(
    project: Project, definitions: Sequence[Definition], chains: Mapping[str, Projection]
) -> dict[str, Definition]:
    """The roots whose watermark is behind what `nowMinus` says, by name."""
    rules = project.config.watermarks
    if not any(rule.now_minus is not None for rule in rules):
        return {}
    now = Timestamp.now()
    aliases = {name.lower(): name for name in chains}
    found = {}
    for each in definitions:
        chain = chains.get(aliases.get(each.folded, ""))
        rule = rule_of(rules, each.name)
        if rule.now_minus is None or chain is None or chain.kind is not DatasetKind.Root:
            continue
        if rule.is_due(chain, now):
            found[each.name] = each
    return found


def _with_places(plan: Plan, project: Project) -> Plan:
    """The plan with the places of all changes to datasets that exist.

    Asks datasets first for what is cheap to know: plans of 10 000 new ones pass through here.
    """
    changed = [
        dataset
        for dataset in plan.datasets
        if (Action.APPEND in dataset.actions or dataset.refusal is not None)
        and dataset.expected_head is not None
    ]
    if not changed:
        return plan
    from odfbuild.survey.places import with_places

    return with_places(plan, changed, project)


def _had_windows(dataset: DatasetPlan) -> bool:
    """Whether a changed query replaces one with windows."""
    return any(
        isinstance(each.before, SetTransform) and has_windows(each.before.transform)
        for each in dataset.changes
    )


def _with_windows(plan: Plan, found: Survey, slices: ChainSlices) -> Plan:
    """The plan with what data that is here tells of records and windows."""
    if not found.projections:
        return plan
    windowed = {each.name for each in found.project.definitions if each.inputs and each.windowed}
    busy = [
        each
        for each in plan.datasets
        if not _BUSY.isdisjoint(each.actions) and (each.name in windowed or _had_windows(each))
    ]
    if not busy:
        return plan
    from odfbuild.plan.inputs import States
    from odfbuild.survey.windows import Chains, window_records

    def store_of(name: str) -> DatasetStore:
        return found.workspace.dataset(found.renames.get(name, name))

    chains = Chains(States(found.projections), slices, store_of)
    return replace(plan, windows=window_records(busy, chains))


def _with_drift(plan: Plan, found: Survey, heads: Mapping[str, bytes]) -> Plan:
    """The plan with the drift that it tells by itself, or that notes in Git tell.

    Asking Git takes as long as the rest of a plan, so it is remembered when there was none.
    """
    config = found.project.config
    nothing: NoDrift | None = None
    if plan.applyable:
        if not has_notes(config.root):
            return plan
        nothing = NoDrift.of(plan, heads, config)
        if nothing is not None and nothing.is_known:
            return plan
    from odfbuild.survey.chain_drift import drift_of_plan

    drift = drift_of_plan(plan, found.project, found.workspace, found.projections)
    if nothing is not None and not drift:
        nothing.remember()
    return replace(plan, drift=drift)


def _pins(
    plan: Plan, projections: Mapping[str, Projection]
) -> tuple[tuple[str, Multihash | None], ...]:
    """Heads of inputs that were not selected."""
    aliases = {name.lower(): name for name in projections}
    inside = {dataset.name for dataset in plan.datasets} | {each.name for each in plan.external}
    outside = {name for dataset in plan.datasets for name in dataset.inputs} - inside
    found = ((name, aliases.get(name.lower())) for name in sorted(outside))
    return tuple((name, projections[alias].head if alias else None) for name, alias in found)


def _corrections(
    workspace: Workspace, renames: Mapping[str, str], dataset: str
) -> Corrections | None:
    """What is kept of a dataset, unless some of it was withdrawn or erased."""
    name = renames.get(dataset, dataset)
    return (
        None
        if workspace.dataset(name).statements()
        else kept_corrections(workspace.side_cars(name))
    )


class _BlockReader:
    """Reads blocks of any dataset, opening each dataset once."""

    def __init__(self, workspace: Workspace, renames: Mapping[str, str]) -> None:
        self._workspace = workspace
        self._renames = renames

    def read(self, dataset: str, block: Multihash) -> MetadataBlock:
        return self._workspace.dataset(self._renames.get(dataset, dataset)).read_block(block)

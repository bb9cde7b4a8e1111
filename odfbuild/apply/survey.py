"""Look before deciding: read the project, its chains and its local sources, and make the plan.

Reads files only: no JVM, no network. Writes nothing but the cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odfbuild.apply.places import with_places
from odfbuild.apply.protection import check_unprotected
from odfbuild.engine.release import engine_version
from odfbuild.errors import IngestError, Location, OdfbuildError
from odfbuild.graph.build import Graph, build_graph
from odfbuild.ingest.facts import SourceFacts
from odfbuild.ingest.probe import probe
from odfbuild.ingest.resume import polling_state, reason_to_rest
from odfbuild.ingest.watch import NOTHING_TO_WATCH, completed, look, looks_the_same
from odfbuild.odf.model import SetPollingSource
from odfbuild.odf.projection import Projection
from odfbuild.plan.build import build_plan
from odfbuild.plan.lineage import Lineages
from odfbuild.plan.memory import LAYOUT, Memory
from odfbuild.plan.model import Plan
from odfbuild.plan.rebuild import Rebuild, to_rebuild
from odfbuild.plan.renames import pending_renames, renamed, with_renames
from odfbuild.plan.slices import ChainSlices
from odfbuild.project.given import NOTHING_GIVEN, Given
from odfbuild.project.load import load_project
from odfbuild.project.locate import DefinitionPlace
from odfbuild.project.model import Config, Definition, Project
from odfbuild.project.repository import has_notes
from odfbuild.store.collector import paused_collector
from odfbuild.store.disposable import code_stamp, read_disposable, write_disposable
from odfbuild.store.workspace import Workspace

if TYPE_CHECKING:
    from odfbuild.graph.selection import Selection
    from odfbuild.odf.model import MetadataBlock
    from odfbuild.odf.multihash import Multihash


@dataclass(frozen=True, slots=True)
class Survey:
    """A project as it is now, and the plan that follows from it.

    `projections` have the names that datasets will have, `renames` give the present ones of those
    that are to be renamed.
    """

    project: Project
    graph: Graph
    workspace: Workspace
    projections: Mapping[str, Projection]
    plan: Plan
    renames: Mapping[str, str] = field(default_factory=dict)

    def locate(self, dataset: str, error: OdfbuildError) -> OdfbuildError:
        """`error` with its place in a query turned into the place in the project's files."""
        from odfbuild.apply.locate import locate

        return locate(self.project, dataset, error)


@dataclass(frozen=True, slots=True)
class Definitions:
    """A project whose definitions were checked, and its chains."""

    project: Project
    graph: Graph
    workspace: Workspace
    projections: Mapping[str, Projection]


def read_definitions(start: Path | None, given: Given = NOTHING_GIVEN) -> Definitions:
    """The project around `start`; raises `Errors` with all problems."""
    project = load_project(start, given)
    workspace = _workspace(project)
    projections = workspace.projections()
    graph = build_graph(project, renamed(projections, renames_of(project, projections)))
    return Definitions(project, graph, workspace, projections)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What is asked of a plan beside what is there.

    `fetch_uncacheable`: also read sources again that give nothing to compare with. `rebuilds` are
    datasets to be computed again.
    """

    selection: Selection | None = None
    fetch_uncacheable: bool = False
    rebuilds: tuple[Rebuild, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.selection or self.fetch_uncacheable or self.rebuilds)


def survey(
    start: Path | None, wishes: Wishes | None = None, given: Given = NOTHING_GIVEN
) -> Survey:
    """Read everything that a plan depends on; plan what is selected.

    Raises `Errors` when the project is wrong, `GraphError` for a wrong selection, `PlanError` for
    a rebuild that cannot be.
    """
    with paused_collector():
        return _survey(start, wishes or Wishes(), given)


def choose(
    start: Path | None, selection: Selection, given: Given = NOTHING_GIVEN
) -> tuple[frozenset[str], Survey]:
    """Names of the selected datasets, and the whole project that they were selected from."""
    found = survey(start, given=given)
    return _chosen(found, selection), found


def _chosen(found: Survey, selection: Selection) -> frozenset[str]:
    from odfbuild.apply.catalogue import selected

    return selected(selection, found.project, found.graph, found.projections, lambda: found.plan)


def _survey(start: Path | None, wishes: Wishes, given: Given) -> Survey:
    project = load_project(start, given)
    workspace = _workspace(project)
    heads = workspace.heads()
    projections = workspace.projections_at(heads)
    renames = renames_of(project, projections)
    # From here on all is looked at as if datasets had their new names already.
    heads, projections = renamed(heads, renames), renamed(projections, renames)
    graph = build_graph(project, projections)
    slices = ChainSlices(projections, _BlockReader(workspace, renames).read)
    with remembered(project.config, heads) as memory:
        facts, refusals = _probe_all(project, project.definitions, projections, memory)
        places = partial(DefinitionPlace, project)
        plan = build_plan(
            project,
            graph,
            projections,
            facts,
            slices,
            refusals,
            engine_version=engine_version(),
            place_of=places,
            memory=memory,
        )
    found = Survey(project, graph, workspace, projections, with_renames(plan, renames), renames)
    if wishes:
        known = {*graph.order, *projections}
        chosen = _chosen(found, wishes.selection) if wishes.selection else known
        left_out = known - chosen
        # What an option leaves out or asks for changes what readers are planned to do, this once.
        selected = [each for each in project.definitions if each.name in chosen]
        fresh = Memory({}, {}, memory.lineages)
        facts, refusals = _probe_all(
            project, selected, projections, fresh, wishes.fetch_uncacheable
        )
        rebuilt = to_rebuild(wishes.rebuilds, project.definitions, projections, left_out)
        lying = {new.lower(): old for new, old in renames.items()}
        for name in sorted(rebuilt):
            check_unprotected(project.config, workspace, name, lying.get(name, name))
        plan = build_plan(
            project,
            graph,
            projections,
            facts,
            slices,
            refusals,
            left_out,
            rebuilt,
            places,
            fresh,
            engine_version(),
        )
        plan = with_renames(replace(plan, pins=_pins(plan, projections)), renames)
        found = replace(found, plan=plan)
    return replace(found, plan=_with_drift(with_places(found.plan, project), found))


def _with_drift(plan: Plan, found: Survey) -> Plan:
    """The plan with the drift that it tells by itself, or that notes in Git tell."""
    if all(each.refusal is None for each in plan.datasets) and not has_notes(
        found.project.config.root
    ):
        return plan
    from odfbuild.apply.drift import drift_of_plan

    return replace(
        plan, drift=drift_of_plan(plan, found.project, found.workspace, found.projections)
    )


def renames_of(project: Project, chains: Collection[str]) -> dict[str, str]:
    """Present names, by new ones, of the datasets that are to be renamed."""
    if not project.config.moved:
        return {}
    return pending_renames(project.config.moved, [d.name for d in project.definitions], chains)


def _pins(
    plan: Plan, projections: Mapping[str, Projection]
) -> tuple[tuple[str, Multihash | None], ...]:
    """Heads of inputs that were not selected."""
    heads = {name.lower(): projection.head for name, projection in projections.items()}
    inside = {dataset.name for dataset in plan.datasets}
    outside = {name for dataset in plan.datasets for name in dataset.inputs} - inside
    return tuple((name, heads.get(name.lower())) for name in sorted(outside))


def _workspace(project: Project) -> Workspace:
    config = project.config
    return config.workspace()


@contextmanager
def remembered(config: Config, heads: Mapping[str, bytes]) -> Iterator[Memory]:
    """The decisions of the last plan; those of this one are kept unless it fails."""
    file = config.cache / "decisions.bin"
    settings = hashlib.sha256(repr(config).encode()).digest()
    stamp = b"odfbuild decisions 1\n" + code_stamp() + LAYOUT + settings
    stamp += engine_version().encode()
    lineages = _Lineages(config.cache / "lineages.bin")
    memory = Memory(
        read_disposable(file, stamp) or {},
        {name.lower(): text for name, text in heads.items()},
        Lineages(lineages.load),
    )
    yield memory
    if memory.is_changed:
        write_disposable(file, stamp, memory.kept)
    if memory.lineages.is_changed:
        lineages.save(memory.lineages.kept)


@dataclass(frozen=True, slots=True)
class _Lineages:
    """The file of what was told about columns of queries; opened only when something is asked."""

    file: Path

    def load(self) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = read_disposable(self.file, self._stamp())
        return found

    def save(self, kept: Mapping[str, Any]) -> None:
        write_disposable(self.file, self._stamp(), dict(kept))

    def _stamp(self) -> bytes:
        from importlib.metadata import version

        return b"odfbuild lineages 1\n" + code_stamp() + version("sqlglot").encode()


def _probe_all(
    project: Project,
    definitions: Iterable[Definition],
    projections: Mapping[str, Projection],
    memory: Memory,
    fetch_uncacheable: bool = False,
) -> tuple[dict[str, SourceFacts], dict[str, OdfbuildError]]:
    """What is known of each polling source, and why those that cannot be ingested cannot.

    A source that looks as it did when the last plan was made is not probed again.
    """
    root = str(project.config.root)
    states = {name.lower(): projection for name, projection in projections.items()}
    facts: dict[str, SourceFacts] = {}
    refusals: dict[str, OdfbuildError] = {}
    for definition in definitions:
        seen = memory.watch(definition)
        if seen is not None and looks_the_same(seen, root):
            memory.watched(definition, seen)
            continue
        name = definition.name
        source, index = _polling_source(definition)
        if source is None:
            memory.watched(definition, NOTHING_TO_WATCH)
            continue
        memory.watched(definition, None)
        chain = states.get(name.lower())
        reason = reason_to_rest(source.fetch, chain, fetch_uncacheable)
        if reason is not None:
            facts[name] = SourceFacts("unchanged", message=reason)
            memory.watched(definition, NOTHING_TO_WATCH)
            continue
        try:
            seen = look(source, root)
            facts[name] = probe(source, polling_state(chain), project.config.root)
        except IngestError as error:
            error.location = error.location or _event_place(project, definition, index)
            refusals[name] = error
        else:
            memory.watched(definition, completed(seen, facts[name], root))
    return facts, refusals


def _polling_source(definition: Definition) -> tuple[SetPollingSource | None, int]:
    for index, event in enumerate(definition.snapshot.metadata):
        if isinstance(event, SetPollingSource):
            return event, index
    return None, 0


def _event_place(project: Project, definition: Definition, index: int) -> Location:
    from odfbuild.project.locate import locate_path

    return locate_path(project, definition, ("metadata", index))


class _BlockReader:
    """Reads blocks of any dataset, opening each dataset once."""

    def __init__(self, workspace: Workspace, renames: Mapping[str, str]) -> None:
        self._workspace = workspace
        self._renames = renames

    def read(self, dataset: str, block: Multihash) -> MetadataBlock:
        return self._workspace.dataset(self._renames.get(dataset, dataset)).read_block(block)

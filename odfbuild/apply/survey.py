"""Look before deciding: read the project, its chains and its local sources, and make the plan.

Reads files only: no JVM, no network. Writes nothing but the cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.errors import IngestError, Location, OdfbuildError
from odfbuild.graph.build import Graph, build_graph
from odfbuild.ingest.facts import SourceFacts
from odfbuild.ingest.probe import probe
from odfbuild.ingest.supported import unsupported_steps
from odfbuild.odf.model import SetPollingSource
from odfbuild.odf.projection import Projection
from odfbuild.plan.build import build_plan
from odfbuild.plan.model import Plan
from odfbuild.plan.slices import ChainSlices
from odfbuild.project.load import load_project
from odfbuild.project.locate import DefinitionPlace
from odfbuild.project.model import Definition, Project
from odfbuild.store.collector import paused_collector
from odfbuild.store.workspace import Workspace

if TYPE_CHECKING:
    from odfbuild.graph.selection import Selection
    from odfbuild.odf.model import MetadataBlock
    from odfbuild.odf.multihash import Multihash


@dataclass(frozen=True, slots=True)
class Survey:
    """A project as it is now, and the plan that follows from it."""

    project: Project
    graph: Graph
    workspace: Workspace
    projections: Mapping[str, Projection]
    plan: Plan

    def locate(self, dataset: str, error: OdfbuildError) -> OdfbuildError:
        """`error` with its place in a query turned into the place in the project's files."""
        from odfbuild.apply.locate import locate

        return locate(self.project, dataset, error)


def read_definitions(
    start: Path | None,
) -> tuple[Project, Workspace, Mapping[str, Projection]]:
    """The project around `start`, checked, and its chains; raises `Errors` with all problems."""
    project, workspace, projections, _ = _read(start)
    return project, workspace, projections


def survey(start: Path | None, selection: Selection | None = None) -> Survey:
    """Read everything that a plan depends on; plan what is selected.

    Raises `Errors` when the project is wrong, `GraphError` for a wrong selection.
    """
    with paused_collector():
        return _survey(start, selection)


def choose(start: Path | None, selection: Selection) -> tuple[frozenset[str], Survey]:
    """Names of the selected datasets, and the whole project that they were selected from."""
    found = survey(start)
    return _chosen(found, selection), found


def _chosen(found: Survey, selection: Selection) -> frozenset[str]:
    from odfbuild.apply.catalogue import selected

    return selected(selection, found.project, found.graph, found.projections, lambda: found.plan)


def _survey(start: Path | None, selection: Selection | None) -> Survey:
    project, workspace, projections, graph = _read(start)
    slices = ChainSlices(
        {name: projection.head for name, projection in projections.items()},
        _BlockReader(workspace).read,
    )
    facts, refusals = _probe_all(project, projections)
    places = partial(DefinitionPlace, project)
    plan = build_plan(project, graph, projections, facts, slices, refusals, place_of=places)
    found = Survey(project, graph, workspace, projections, plan)
    if not selection:
        return found
    left_out = {*graph.order, *projections} - _chosen(found, selection)
    plan = build_plan(
        project, graph, projections, facts, slices, refusals, left_out, place_of=places
    )
    return replace(found, plan=plan)


def _read(
    start: Path | None,
) -> tuple[Project, Workspace, Mapping[str, Projection], Graph]:
    project = load_project(start)
    config = project.config
    workspace = Workspace(config.state, config.keys, config.cache)
    projections = workspace.projections()
    ids = {name: projection.dataset_id for name, projection in projections.items()}
    return project, workspace, projections, build_graph(project, ids)


def _probe_all(
    project: Project, projections: Mapping[str, Projection]
) -> tuple[dict[str, SourceFacts], dict[str, OdfbuildError]]:
    """What is known of each polling source, and why those that cannot be ingested cannot."""
    states = {name.lower(): projection.source_state for name, projection in projections.items()}
    facts: dict[str, SourceFacts] = {}
    refusals: dict[str, OdfbuildError] = {}
    for definition in project.definitions:
        name = definition.name
        for index, event in enumerate(definition.snapshot.metadata):
            if not isinstance(event, SetPollingSource):
                continue
            missing = unsupported_steps(event)
            if missing:
                refusals[name] = _unsupported(project, definition, index, missing)
                continue
            try:
                facts[name] = probe(event, states.get(name.lower()), project.config.root)
            except IngestError as error:
                error.location = error.location or _event_place(project, definition, index)
                refusals[name] = error
    return facts, refusals


def _unsupported(
    project: Project, definition: Definition, index: int, steps: list[tuple[str, str]]
) -> IngestError:
    path, message = steps[0]
    return IngestError(
        message,
        code="E0410",
        location=_event_place(project, definition, index, path.split("[", maxsplit=1)[0]),
        notes=tuple(sentence for _, sentence in steps[1:]),
        help="docs/datasets.md lists the kinds that are",
        dataset=definition.name,
    )


def _event_place(
    project: Project, definition: Definition, index: int, *path: str | int
) -> Location:
    from odfbuild.project.locate import locate_path

    return locate_path(project, definition, ("metadata", index, *path))


class _BlockReader:
    """Reads blocks of any dataset, opening each dataset once."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def read(self, dataset: str, block: Multihash) -> MetadataBlock:
        return self._workspace.dataset(dataset).read_block(block)

"""A project whose definitions were read and checked, beside its chains; nothing is planned."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path

from odfbuild.graph.build import build_graph
from odfbuild.graph.dag import Graph
from odfbuild.odf.chain.projection import Projection
from odfbuild.plan.changes.renames import pending_renames, renamed
from odfbuild.project.config import place_in_config
from odfbuild.project.load import load_project
from odfbuild.project.model import Project
from odfbuild.project.overrides import NO_OVERRIDES, Overrides
from odfbuild.store.workspace import Workspace
from odfbuild.survey.decision_cache import KnownOrder
from odfbuild.values import dataclass


@dataclass(frozen=True, slots=True)
class Definitions:
    """A project whose definitions were checked, and its chains."""

    project: Project
    graph: Graph
    workspace: Workspace
    projections: Mapping[str, Projection]


def read_definitions(start: Path | None, given: Overrides = NO_OVERRIDES) -> Definitions:
    """The project around `start`; raises `Errors` with all problems."""
    project = load_project(start, given)
    workspace = project.config.workspace()
    projections = workspace.projections_at(workspace.heads())
    projections.read()
    chains = renamed(projections, renames_of(project, projections))
    graph = build_graph(project, chains, KnownOrder(project.config))
    return Definitions(project, graph, workspace, projections)


def renames_of(project: Project, chains: Collection[str]) -> dict[str, str]:
    """Present names, by new ones, of the datasets that are to be renamed."""
    if not project.config.moved:
        return {}
    place_of = partial(place_in_config, project.config.root, "content", "moved")
    names = [definition.name for definition in project.definitions]
    return pending_renames(project.config.moved, names, chains, place_of)

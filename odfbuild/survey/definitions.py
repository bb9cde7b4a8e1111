"""A project whose definitions were read and checked, beside its chains; nothing is planned."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.errors import OdfbuildError, as_one, in_order
from odfbuild.exchange.repositories.fetch_on_demand import workspace_of
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import DatasetKind
from odfbuild.plan.changes.renames import pending_renames, renamed
from odfbuild.plan.graph.build import build_graph, find_graph
from odfbuild.plan.graph.dag import Graph
from odfbuild.project.config import place_in_config
from odfbuild.project.load import load_project, read_project
from odfbuild.project.model import Definition, Project
from odfbuild.project.overrides import NO_OVERRIDES, Overrides
from odfbuild.store.workspace import Workspace
from odfbuild.survey.decision_cache import KnownOrder
from odfbuild.survey.faults import all_faults
from odfbuild.values import Value

if TYPE_CHECKING:
    from odfbuild.plan.columns.known import KnownColumns


class Definitions(Value, dict=True):
    """A project whose definitions were checked, and its chains.

    `wrong` has all errors of datasets by name; the project has only the others.
    """

    project: Project
    graph: Graph
    workspace: Workspace
    projections: Mapping[str, Projection]
    wrong: Mapping[str, Sequence[OdfbuildError]] = field(default_factory=dict)

    @cached_property
    def by_name(self) -> Mapping[str, Definition]:
        """The definitions that are right, by name in lower case."""
        return {each.folded: each for each in self.project.definitions}

    @cached_property
    def by_file(self) -> Mapping[str, tuple[Definition, ...]]:
        """The same by the file that they stand in, in its order."""
        found: dict[str, list[Definition]] = {}
        for each in self.project.definitions:
            found.setdefault(each.file, []).append(each)
        return {file: tuple(some) for file, some in found.items()}

    @property
    def faults(self) -> dict[str, OdfbuildError]:
        """One error for each wrong dataset, which tells the others in its notes."""
        return {name: as_one(errors, name) for name, errors in self.wrong.items()}

    @property
    def errors(self) -> list[OdfbuildError]:
        """All that is wrong with datasets, one by one, in order of place."""
        found = (each for errors in self.wrong.values() for each in errors)
        # All datasets of a cycle have the same error.
        return in_order({id(each): each for each in found}.values())

    @property
    def all_are_known(self) -> bool:
        """Whether it is known of each file which datasets it defines."""
        return all(each.name is not None for each in self.project.wrong)

    def columns(self) -> KnownColumns:
        """The columns that queries can use; of wrong datasets, none are known."""
        from odfbuild.plan.columns.known import KnownColumns

        return KnownColumns(self.by_name, self.projections, self.wrong)

    def external(self) -> frozenset[str]:
        """Names here of the datasets of others, pulled or only named."""
        from odfbuild.exchange.repositories.external import external_datasets

        found = external_datasets(self.project.config, self.project.definitions, self.workspace)
        spelt = {name.lower(): name for name in self.projections}
        return frozenset(spelt.get(folded, each.name) for folded, each in found.items())

    def kind_of(self, name: str) -> DatasetKind | None:
        """The kind of a dataset that has a chain."""
        state = self.projections.get(name)
        return state.kind if state else None

    def faults_of(self, chosen: Container[str] | None) -> list[OdfbuildError]:
        """What is wrong with the chosen datasets (`None`: all)."""
        return [each for name, each in self.faults.items() if chosen is None or name in chosen]


def read_definitions(start: Path | None, given: Overrides = NO_OVERRIDES) -> Definitions:
    """The project around `start`; raises `Errors` with all problems."""
    project = load_project(start, given)
    workspace = workspace_of(project.config)
    projections = workspace.projections_at(workspace.heads())
    projections.read()
    chains = renamed(projections, renames_of(project, projections))
    graph = build_graph(project, chains, KnownOrder(project.config))
    return Definitions(project, graph, workspace, projections)


def look_at_definitions(start: Path | None, given: Overrides = NO_OVERRIDES) -> Definitions:
    """The same for what does as much as it can: what is wrong is in `wrong`, and left out."""
    project = read_project(start, given)
    workspace = workspace_of(project.config)
    chains = workspace.projections_at(workspace.heads())
    damaged = chains.faults()
    projections = chains.without(damaged)
    renames = renames_of(project, chains)
    order = KnownOrder(project.config)
    graph = find_graph(project, renamed(projections, renames), order, damaged)
    wrong = all_faults(project, graph, renamed(damaged, renames))
    if wrong:
        folded = {name.lower() for name in wrong}
        right = tuple(each for each in project.definitions if each.folded not in folded)
        project = replace(project, definitions=right)
    return Definitions(project, graph, workspace, projections, wrong)


def renames_of(project: Project, chains: Collection[str]) -> dict[str, str]:
    """Present names, by new ones, of the datasets that are to be renamed."""
    if not project.config.moved:
        return {}
    place_of = partial(place_in_config, project.config.root, "content", "moved")
    names = [definition.name for definition in project.definitions]
    names += [wrong.name for wrong in project.wrong if wrong.name]
    return pending_renames(project.config.moved, names, chains, place_of)

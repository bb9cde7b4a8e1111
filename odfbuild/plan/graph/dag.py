"""The graph of datasets: a directed acyclic graph of NetworkX, made when it is first asked.

An edge leads from an input to the dataset that reads it. A plan where no dataset gained or lost an
input knows the order from before, and is spared the import of NetworkX, a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from odfbuild.displayed import Displayed

if TYPE_CHECKING:
    from networkx import DiGraph

    from odfbuild.errors import OdfbuildError
    from odfbuild.project.model import Definition


class CircleError(ValueError):
    """Datasets depend on each other in a circle, so they have no order."""


class Graph(Displayed):
    """Defined datasets and their inputs, by alias.

    `inputs` may name datasets that have a chain but no definition; these are nodes, too. `checks`
    are the defined datasets that the checks of one refer to: it comes after them, and reads nothing
    of them. `faults` say why some datasets have no place in it; what is wrong with their inputs is
    left out.
    """

    def __init__(
        self,
        inputs: Mapping[str, tuple[str, ...]],
        definitions: Mapping[str, Definition] | None = None,
        order: tuple[str, ...] | None = None,
        faults: Mapping[str, Sequence[OdfbuildError]] | None = None,
        checks: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.inputs = inputs
        self.checks = checks or {}
        self.faults = faults or {}
        self._definitions = definitions or {}
        self._order = order

    @cached_property
    def dag(self) -> DiGraph[str]:
        """Nodes are names; their attribute `definition` is `None` where there is only a chain."""
        dag = dag_of(self.inputs)
        for name, attributes in dag.nodes.items():
            attributes["definition"] = self._definitions.get(name.lower())
        return dag

    @cached_property
    def waits_for(self) -> Mapping[str, tuple[str, ...]]:
        """What each defined dataset comes after: its inputs, and what its checks refer to."""
        return joined(self.inputs, self.checks)

    @property
    def order(self) -> tuple[str, ...]:
        """Defined datasets, inputs first; raises `CircleError`."""
        if self._order is None:
            # Without what nodes tell: a graph refers to itself, and would keep all definitions.
            dag = dag_of(self.waits_for)
            defined = len(dag) == len(self.inputs)
            layers = generations(dag if defined else dag.subgraph(self.inputs))
            self._order = tuple(name for layer in layers for name in layer)
        return self._order

    @cached_property
    def readers(self) -> Mapping[str, tuple[str, ...]]:
        """Who reads a dataset, sorted; those that nobody reads are not in it."""
        read = ((name, sorted(self.dag.successors(name))) for name in self.dag)
        return {name: tuple(found) for name, found in read if found}

    def roots(self, name: str) -> list[str]:
        """What a dataset derives from and that derives from nothing itself, sorted."""
        if name not in self.dag:
            return []
        from networkx import ancestors

        return sorted(each for each in ancestors(self.dag, name) if not self.dag.in_degree(each))


def joined(
    inputs: Mapping[str, tuple[str, ...]], checks: Mapping[str, tuple[str, ...]]
) -> Mapping[str, tuple[str, ...]]:
    """Inputs of datasets, with what their checks refer to behind them."""
    if not checks:
        return inputs
    both = {name: (*found, *checks.get(name, ())) for name, found in inputs.items()}
    return {name: tuple(dict.fromkeys(found)) for name, found in both.items()}


def dag_of(inputs: Mapping[str, Iterable[str]]) -> DiGraph[str]:
    """The graph in which each dataset comes after its inputs."""
    from networkx import DiGraph

    dag: DiGraph[str] = DiGraph()
    dag.add_nodes_from(inputs)
    dag.add_edges_from((each, name) for name, found in inputs.items() for each in found)
    return dag


def generations(dag: DiGraph[str]) -> list[list[str]]:
    """Names layer by layer, alphabetical within a layer; raises `CircleError`."""
    from networkx import NetworkXUnfeasible, topological_generations

    try:
        return [sorted(layer) for layer in topological_generations(dag)]
    except NetworkXUnfeasible:
        raise CircleError from None


def reach(dag: DiGraph[str], names: Iterable[str], steps: int | None) -> set[str]:
    """`names`, and all that follows from them in so many steps; `None`: in any number."""
    from networkx import bfs_layers

    layers = bfs_layers(dag, [name for name in names if name in dag])
    return {
        name for layer in islice(layers, None if steps is None else steps + 1) for name in layer
    }

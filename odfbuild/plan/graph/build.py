"""Build the graph of datasets from definitions, and report all errors."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from odfbuild.errors import Code, Errors, GraphError, Location, OdfbuildError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import SetTransform
from odfbuild.plan.graph.dag import CircleError, Graph, dag_of, joined
from odfbuild.project.model import Definition, Project
from odfbuild.project.settings.checks import referred_to
from odfbuild.wording import closest, did_you_mean

if TYPE_CHECKING:
    from networkx import DiGraph

Inputs = Mapping[str, tuple[str, ...]]
"""Names of the inputs of each defined dataset."""

Faults = dict[str, list[OdfbuildError]]
"""What keeps datasets from having a place in the graph, by name."""


class Orders(Protocol):
    """Orders of datasets that were found before, by the inputs that they follow from."""

    def get(self, inputs: Inputs) -> tuple[str, ...] | None:
        """The order of these datasets; `None` when it is not known."""
        ...

    def put(self, inputs: Inputs, order: tuple[str, ...]) -> None:
        """Remember an order."""
        ...


def build_graph(
    project: Project, committed: Mapping[str, Projection], known: Orders | None = None
) -> Graph:
    """The graph of a project; `committed` are the chains that exist, by alias.

    Where `known` has the order of these datasets, NetworkX is not imported. Raises `Errors` with
    duplicate names, unknown inputs and cycles, all at once.
    """
    graph = find_graph(project, committed, known)
    if graph.faults:
        errors = [error for found in graph.faults.values() for error in found]
        # All datasets of a cycle have the same fault.
        raise Errors({id(each): each for each in errors}.values())
    return graph


def find_graph(
    project: Project,
    committed: Mapping[str, Projection],
    known: Orders | None = None,
    damaged: Collection[str] = (),
) -> Graph:
    """The graph of all that has a place in it, and why the rest has none.

    `known` as above; `damaged` are aliases of chains that exist and cannot be read.
    """
    faults: Faults = {}
    by_name: dict[str, Definition] = {}
    for definition in project.definitions:
        first = by_name.setdefault(definition.folded, definition)
        if first is not definition:
            error = _duplicate(project, first, definition)
            faults.setdefault(first.name, []).append(error)
    if project.config.repositories or project.config.external:
        from odfbuild.project.references import taken_name

        for definition in by_name.values():
            taken = taken_name(definition.name, project.config)
            if taken is not None:
                error = _taken(project, definition, taken)
                faults.setdefault(definition.name, []).append(error)
    inputs = _inputs(project, by_name, committed, damaged, faults)
    checks = _checks(project, by_name, inputs)
    both = joined(inputs, checks)
    graph = Graph(inputs, by_name, known.get(both) if known else None, faults, checks)
    try:
        order = graph.order
    except CircleError:
        inputs = dict(inputs)
        for name, error in _cycles(project, by_name, graph.dag):
            faults.setdefault(name, []).append(error)
            inputs[name] = ()
        for name, error in _cycles_of_checks(project, inputs, checks):
            faults.setdefault(name, []).append(error)
            del checks[name]
        return Graph(inputs, by_name, None, faults, checks)
    if known:
        known.put(both, order)
    return graph


def _checks(
    project: Project, by_name: Mapping[str, Definition], inputs: Inputs
) -> dict[str, tuple[str, ...]]:
    """The defined datasets that checks refer to, by the name of the dataset that they are of.

    Inputs of a dataset are not among them.
    """
    declared = [each for each in project.config.checks if each.relationships]
    found: dict[str, tuple[str, ...]] = {}
    for definition in by_name.values() if declared else ():
        others = (by_name.get(each.lower()) for each in referred_to(declared, definition.name))
        known = dict.fromkeys(each.name for each in others if each is not None)
        names = tuple(each for each in known if each not in inputs[definition.name])
        if names:
            found[definition.name] = names
    return found


def _cycles_of_checks(
    project: Project, inputs: Inputs, checks: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, GraphError]]:
    """Each dataset with a check that refers to what waits for it, with the error about that."""
    import networkx

    dag = dag_of(joined(inputs, checks))
    for group in map(set, networkx.strongly_connected_components(dag)):
        for name in sorted(group & checks.keys()) if len(group) > 1 else ():
            other = next((each for each in checks[name] if each in group), None)
            if other is None:
                continue
            path = networkx.shortest_path(dag.subgraph(group), name, other)
            error = GraphError(
                f"a check of '{name}' refers to '{other}', which waits for it: "
                f"{' → '.join([*path, name])}",
                code=Code.CIRCULAR_CHECK,
                location=_place_of_check(project, name, other),
                help=f"check the same in '{other}', or in a dataset that reads both",
                dataset=name,
            )
            yield name, error


def _place_of_check(project: Project, name: str, other: str) -> Location:
    from odfbuild.project.config import place_in_config

    path = next(
        path
        for to, path in referred_to(project.config.checks, name).items()
        if to.lower() == other.lower()
    )
    return place_in_config(project.config.root, "content", "checks", *path)


def _inputs(
    project: Project,
    by_name: Mapping[str, Definition],
    committed: Mapping[str, Projection],
    damaged: Collection[str],
    faults: Faults,
) -> Inputs:
    """Names of the inputs of each definition; `faults` gets those that nothing is called."""
    external = project.config.external
    aliases = {name.lower(): name for name in (*damaged, *external, *committed)}
    aliases.update({each.name.lower(): each.name for each in project.wrong if each.name})
    aliases.update({folded: definition.name for folded, definition in by_name.items()})
    names_by_id: dict[str, str] | None = None
    inputs: dict[str, tuple[str, ...]] = {}
    for definition in by_name.values():
        found = []
        for number, ref in enumerate(definition.inputs):
            name = aliases.get(ref)
            if name is None and ref.startswith("did:"):
                if names_by_id is None:
                    names_by_id = {
                        str(state.dataset_id): aliases[name.lower()]
                        for name, state in committed.items()
                    }
                name = names_by_id.get(ref)
            elif name is None:
                name = aliases.get(ref.lower()) or _external(ref, project)
            if name is None:
                error = _unknown(project, definition, ref, number, aliases)
                faults.setdefault(definition.name, []).append(error)
            else:
                found.append(name)
        inputs[definition.name] = tuple(found)
    return inputs


def _external(ref: str, project: Project) -> str | None:
    """The name of a dataset of others that nobody pulled yet; `None`: `ref` means none."""
    if not project.config.repositories:
        return None
    from odfbuild.project.references import input_here

    return input_here(ref, project.config)


def _taken(project: Project, definition: Definition, why: str) -> GraphError:
    return GraphError(
        f"no dataset of this project can be called '{definition.name}': {why}",
        code="E1065",
        location=_place(project, definition, ("name",)),
        help="rename one of them",
        dataset=definition.name,
    )


def _duplicate(project: Project, first: Definition, second: Definition) -> GraphError:
    called = case = ""
    if first.name != second.name:
        called, case = f", '{first.name}',", "; case does not count in names of datasets"
    return GraphError(
        f"dataset '{second.name}' is defined twice",
        code="E0201",
        location=_place(project, second, ("name",)),
        notes=(f"the first one{called} is at {_place(project, first, ('name',))}{case}",),
        help="rename or remove one of them",
        dataset=second.name,
    )


def _unknown(
    project: Project,
    definition: Definition,
    ref: str,
    number: int,
    aliases: Mapping[str, str],
) -> GraphError:
    if definition.portal_of is not None:
        return _unknown_origin(project, definition, ref, aliases)
    metadata = definition.snapshot.metadata
    index = max(i for i, event in enumerate(metadata) if isinstance(event, SetTransform))
    path = ("metadata", index, "inputs", number, "datasetRef")
    define = "define that dataset, or remove the input"
    prefix, slash, rest = ref.partition("/")
    repository = closest(prefix, project.config.repositories) if slash else None
    if repository is not None:
        define = f"did you mean '{repository}/{rest}'?"
    elif slash:
        define += f"; if '{prefix}' is a repository, add it to `repositories` in odfbuild.yaml"
    unread = [each.file for each in project.wrong if each.name is None]
    return GraphError(
        f"unknown input '{ref}' of '{definition.name}'",
        code="E0202",
        location=_place(project, definition, path),
        notes=(f"it may be defined in {unread[0]}, which cannot be read",) if unread else (),
        help=did_you_mean(ref, aliases.values(), define),
        dataset=definition.name,
    )


def _unknown_origin(
    project: Project, definition: Definition, ref: str, aliases: Mapping[str, str]
) -> GraphError:
    from odfbuild.project.portals import place_of_portal

    names = [each.name.lower() for each in project.config.portals]
    return GraphError(
        f"the portal '{definition.name}' follows '{ref}', which is no dataset",
        code="E0202",
        location=place_of_portal(project.config, names.index(definition.folded), "of"),
        help=did_you_mean(ref, aliases.values(), "define that dataset, or remove the portal"),
        dataset=definition.name,
    )


def _cycles(
    project: Project, by_name: Mapping[str, Definition], dag: DiGraph[str]
) -> Iterator[tuple[str, GraphError]]:
    """Each dataset that is part of a cycle, with the error about it."""
    import networkx

    for group in sorted(map(sorted, networkx.strongly_connected_components(dag))):
        if len(group) == 1 and not dag.has_edge(group[0], group[0]):
            continue
        path = [edge[0] for edge in networkx.find_cycle(dag.subgraph(group), group[0])]
        first = path[0]
        error = GraphError(
            f"circular dependency between datasets: {' → '.join([*path, first])}",
            code=Code.CIRCULAR,
            location=_place(project, by_name[first.lower()], ("name",)),
            help="remove one of these inputs",
            dataset=first,
        )
        yield from ((name, error) for name in group)


def _place(project: Project, definition: Definition, path: tuple[str | int, ...]) -> Location:
    from odfbuild.project.locate import locate_path

    return locate_path(project, definition, path)

"""Build the graph of datasets from definitions; report everything that keeps it from being one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from odfbuild.errors import Errors, GraphError, Location, OdfbuildError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import SetTransform
from odfbuild.project.model import Definition, Project
from odfbuild.values import dataclass
from odfbuild.wording import did_you_mean


@dataclass(frozen=True, slots=True)
class Graph:
    """Defined datasets and their inputs, by alias.

    `order` lists defined datasets with inputs first; `inputs` may name datasets that have a chain
    but no definition.
    """

    order: tuple[str, ...]
    inputs: Mapping[str, tuple[str, ...]]
    readers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def build_graph(project: Project, committed: Mapping[str, Projection]) -> Graph:
    """The graph of a project; `committed` are the chains that exist, by alias.

    Raises `Errors` with duplicate names, unknown inputs and cycles, all at once.
    """
    errors: list[OdfbuildError] = []
    by_name: dict[str, Definition] = {}
    for definition in project.definitions:
        first = by_name.setdefault(definition.folded, definition)
        if first is not definition:
            errors.append(_duplicate(project, first, definition))
    aliases = {name.lower(): name for name in committed}
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
                name = aliases.get(ref.lower())
            if name is None:
                errors.append(_unknown(project, definition, ref, number, aliases))
            else:
                found.append(name)
        inputs[definition.name] = tuple(found)
    readers = _readers(inputs)
    order, rest = _sort(inputs, readers)
    if rest:
        errors.extend(_cycles(project, by_name, inputs, rest))
    if errors:
        raise Errors(errors)
    return Graph(order, inputs, readers)


def _sort(
    inputs: Mapping[str, tuple[str, ...]], readers: Mapping[str, tuple[str, ...]]
) -> tuple[tuple[str, ...], set[str]]:
    """Names layer by layer, alphabetical within a layer, and those that are part of a cycle."""
    waiting = dict.fromkeys(inputs, 0)
    for name, found in readers.items():
        if name in inputs:
            for reader in found:
                waiting[reader] += 1
    layer = sorted([name for name, missing in waiting.items() if not missing])
    order: list[str] = []
    while layer:
        order += layer
        ready = []
        for name in layer:
            for reader in readers.get(name, ()):
                waiting[reader] -= 1
                if not waiting[reader]:
                    ready.append(reader)
        layer = sorted(ready)
    return tuple(order), set(inputs) - set(order)


def _readers(inputs: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    readers: dict[str, list[str]] = {}
    for name, found in inputs.items():
        for each in found if len(found) < 2 else dict.fromkeys(found):
            readers.setdefault(each, []).append(name)
    return {name: tuple(sorted(found)) for name, found in readers.items()}


def _duplicate(project: Project, first: Definition, second: Definition) -> GraphError:
    return GraphError(
        f"dataset '{second.name}' is defined twice",
        code="E0201",
        location=_place(project, second, ("name",)),
        notes=(f"the first one is at {_place(project, first, ('name',))}",),
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
    metadata = definition.snapshot.metadata
    index = max(i for i, event in enumerate(metadata) if isinstance(event, SetTransform))
    path = ("metadata", index, "inputs", number, "datasetRef")
    return GraphError(
        f"unknown input '{ref}' of '{definition.name}'",
        code="E0202",
        location=_place(project, definition, path),
        help=did_you_mean(ref, aliases.values(), "define that dataset, or remove the input"),
        dataset=definition.name,
    )


def _cycles(
    project: Project,
    by_name: Mapping[str, Definition],
    inputs: Mapping[str, tuple[str, ...]],
    names: set[str],
) -> list[GraphError]:
    import networkx

    graph = networkx.DiGraph(
        (each, name) for name in sorted(names) for each in inputs[name] if each in names
    )
    errors = []
    for group in sorted(map(sorted, networkx.strongly_connected_components(graph))):
        if len(group) == 1 and not graph.has_edge(group[0], group[0]):
            continue
        path = [edge[0] for edge in networkx.find_cycle(graph.subgraph(group), group[0])]
        first = path[0]
        errors.append(
            GraphError(
                f"datasets depend on each other in a circle: {' → '.join([*path, first])}",
                code="E0203",
                location=_place(project, by_name[first.lower()], ("name",)),
                help="remove one of these inputs",
                dataset=first,
            )
        )
    return errors


def _place(project: Project, definition: Definition, path: tuple[str | int, ...]) -> Location:
    from odfbuild.project.locate import locate_path

    return locate_path(project, definition, path)

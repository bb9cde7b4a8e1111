"""A graph of datasets as a tree for people, and as DOT and Mermaid for pictures. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from graphlib import TopologicalSorter
from typing import Any

from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import DatasetKind
from odfbuild.project.tables import Table
from odfbuild.values import Value


class GraphView(Value, kw_only=True):
    """Datasets with their kinds, inputs first, and what each of them reads.

    `checks` are what their checks refer to. Those that belong to others are `external`; of what
    kind one is that nobody pulled is not known. `tables` are published from datasets.
    """

    kinds: Mapping[str, DatasetKind | None]
    inputs: Mapping[str, Sequence[str]]
    checks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    external: Collection[str] = ()
    tables: Sequence[Table] = ()

    def edges(self) -> Iterator[tuple[str, str]]:
        """Pairs of an input and its reader."""
        for name in self.kinds:
            for each in dict.fromkeys(self.inputs.get(name, ())):
                if each in self.kinds:
                    yield each, name

    def references(self) -> Iterator[tuple[str, str]]:
        """Pairs of a dataset and one whose checks refer to it."""
        for name in self.kinds:
            for each in self.checks.get(name, ()):
                if each in self.kinds:
                    yield each, name


def view_of_chains(states: Mapping[str, Projection]) -> GraphView:
    """The graph that chains tell of, by name; inputs that are not among them are left out."""
    names = {state.dataset_id: name for name, state in states.items()}
    inputs = {
        name: [names[ref] for ref in _references(states[name]) if ref in names]
        for name in sorted(states)
    }
    sorter = TopologicalSorter(inputs)
    sorter.prepare()
    kinds: dict[str, DatasetKind | None] = {}
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        kinds |= {name: states[name].kind for name in ready}
        sorter.done(*ready)
    return GraphView(kinds=kinds, inputs=inputs)


def _references(state: Projection) -> Iterator[DatasetId]:
    for each in state.transform.inputs if state.transform is not None else ():
        if isinstance(each.dataset_ref, DatasetId):
            yield each.dataset_ref


def graph_to_data(graph: GraphView) -> list[dict[str, Any]]:
    """Each dataset, inputs first, with its kind and what it reads."""
    return [
        {
            "name": name,
            "kind": kind.value if kind else None,
            "inputs": [a for a, b in graph.edges() if b == name],
            **_references_of(name, graph),
            "external": name in graph.external,
            **_tables_of(name, graph),
        }
        for name, kind in graph.kinds.items()
    ]


def _references_of(name: str, graph: GraphView) -> dict[str, Any]:
    """What the checks of a dataset refer to, if they do."""
    found = [a for a, b in graph.references() if b == name]
    return {"checked_against": found} if found else {}


def _tables_of(name: str, graph: GraphView) -> dict[str, Any]:
    """The tables of a dataset, where the graph has any."""
    found = [
        {"name": each.name, "format": each.format} for each in graph.tables if each.dataset == name
    ]
    return {"tables": found} if graph.tables else {}


def _label(table: Table) -> str:
    return f"table {table.name} ({table.format})"


def render_tree(graph: GraphView) -> str:
    """Each dataset that reads no other one here, with its readers below; each is told once."""
    readers: dict[str, list[str]] = {}
    derived = set()
    for source, reader in graph.edges():
        readers.setdefault(source, []).append(reader)
        derived.add(reader)
    for source, other in graph.references():
        readers.setdefault(source, []).append(f"check of {other}")
    for table in graph.tables:
        readers.setdefault(table.dataset, []).append(_label(table))
    told: set[str] = set()
    lines: list[str] = []
    for name in graph.kinds:
        if name not in derived:
            lines.append(f"{name} (external)" if name in graph.external else name)
            lines += _below(name, "", readers, told)
    return "\n".join(lines) if lines else "There are no datasets."


def _below(
    name: str, margin: str, readers: Mapping[str, Sequence[str]], told: set[str]
) -> Iterator[str]:
    # With a stack of its own: graphs may be deeper than Python lets functions call themselves.
    stack = [(margin, reader, last) for reader, last in _reversed(readers.get(name, ()))]
    while stack:
        margin, reader, last = stack.pop()
        again = " (its readers are above)" if reader in told and readers.get(reader) else ""
        yield f"{margin}{'└─' if last else '├─'} {reader}{again}"
        if reader not in told:
            told.add(reader)
            deeper = margin + ("   " if last else "│  ")
            stack += [(deeper, each, end) for each, end in _reversed(readers.get(reader, ()))]


def _reversed(names: Sequence[str]) -> list[tuple[str, bool]]:
    """Names, last first, each with whether it is the last."""
    return [(name, index == len(names) - 1) for index, name in enumerate(names)][::-1]


def render_dot(graph: GraphView) -> str:
    """The graph in the language of Graphviz."""
    lines = ["digraph odfbuild {", "  rankdir=LR;", '  node [shape=box, fontname="sans-serif"];']
    for name, kind in graph.kinds.items():
        look = ["shape=cylinder"] if kind is DatasetKind.Root else []
        look += ["style=dashed"] if name in graph.external else []
        attributes = f" [{', '.join(look)}]" if look else ""
        lines.append(f"  {_quoted(name)}{attributes};")
    lines += [f"  {_quoted(_label(each))} [shape=folder];" for each in graph.tables]
    edges = [*graph.edges(), *((each.dataset, _label(each)) for each in graph.tables)]
    lines += [f"  {_quoted(source)} -> {_quoted(reader)};" for source, reader in edges]
    lines += [
        f'  {_quoted(source)} -> {_quoted(other)} [style=dashed, label="check"];'
        for source, other in graph.references()
    ]
    return "\n".join([*lines, "}"])


def render_mermaid(graph: GraphView) -> str:
    """The graph as a Mermaid flowchart, which Git forges draw in Markdown."""
    ids = {name: f"d{number}" for number, name in enumerate(graph.kinds)}
    lines = ["flowchart LR"]
    for name, kind in graph.kinds.items():
        left, right = ("[(", ")]") if kind is DatasetKind.Root else ("[", "]")
        lines.append(f"  {ids[name]}{left}{_quoted(name)}{right}")
    lines += [f"  {ids[source]} --> {ids[reader]}" for source, reader in graph.edges()]
    lines += [f"  {ids[source]} -. check .-> {ids[other]}" for source, other in graph.references()]
    for number, table in enumerate(graph.tables):
        lines.append(f"  t{number}[/{_quoted(_label(table))}/]")
        lines.append(f"  {ids[table.dataset]} --> t{number}")
    dashed = [ids[name] for name in graph.kinds if name in graph.external]
    lines += [f"  style {','.join(dashed)} stroke-dasharray: 4"] if dashed else []
    return "\n".join(lines)


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)

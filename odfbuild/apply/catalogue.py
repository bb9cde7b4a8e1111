"""What the selection grammar can ask about a project: names, files, keywords, states, reasons."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from odfbuild.graph.selection import Catalogue, Matcher, Selection, labelled, paths_of, select
from odfbuild.odf.model import DatasetKind, SetInfo
from odfbuild.plan.document import category
from odfbuild.plan.model import Action, DatasetPlan, Plan, ReasonCode
from odfbuild.project.load import TEMPLATE_SUFFIX

if TYPE_CHECKING:
    from odfbuild.graph.build import Graph
    from odfbuild.odf.projection import Projection
    from odfbuild.project.model import Definition, Project

STATES = (
    *("new", "modified", "cosmetic", "forgotten", "refused"),
    *("metadata", "additive", "forward-only", "breaking", "rebuild"),
)
"""Values of `state:`; `modified` is any change to the definition of a dataset that exists."""


def selected(
    selection: Selection,
    project: Project,
    graph: Graph,
    projections: Mapping[str, Projection],
    plan: Callable[[], Plan],
) -> frozenset[str]:
    """Names of the selected datasets; `plan` makes the whole plan if a method asks for it."""
    catalogue = _catalogue(project, graph, projections, plan)
    return select(catalogue, selection)


def _catalogue(
    project: Project,
    graph: Graph,
    projections: Mapping[str, Projection],
    plan: Callable[[], Plan],
) -> Catalogue:
    definitions = {definition.name: definition for definition in project.definitions}
    committed = {n.lower(): n for n in projections} | {n.lower(): n for n in definitions}
    names = sorted(committed.values())
    spelt = {name: (name,) for name in names}
    roots = {n: (n,) for n, d in definitions.items() if d.snapshot.kind is DatasetKind.Root}
    kinds = {name: _kind(name, definitions, projections) for name in names}
    return Catalogue(
        names=names,
        inputs=graph.inputs,
        readers=graph.readers,
        selectors=project.config.selectors,
        methods={
            "name": labelled("name", spelt),
            "fqn": labelled("name", spelt),
            "source": labelled("source", roots),
            "kind": labelled("kind", kinds, ("root", "derivative")),
            "tag": _lazily(
                lambda: labelled("tag", {n: _keywords(d) for n, d in definitions.items()})
            ),
            "path": _path(definitions),
            "file": labelled(
                "file", {n: (d.file.rpartition("/")[2],) for n, d in definitions.items()}
            ),
            "template": labelled("template", {n: _template(d) for n, d in definitions.items()}),
            "state": _lazily(lambda: labelled("state", _states(plan()), STATES)),
            "stale": _lazily(
                lambda: labelled("reason", _reasons(plan()), [code.value for code in ReasonCode])
            ),
        },
    )


def _lazily(make: Callable[[], Matcher]) -> Matcher:
    """A matcher that is made when it is first asked."""

    def match(value: str) -> Collection[str]:
        return make()(value)

    return match


def _path(definitions: Mapping[str, Definition]) -> Matcher:
    match = labelled("path", {n: paths_of(d.file) for n, d in definitions.items()})
    return lambda value: match(value.removeprefix("./").rstrip("/"))


def _kind(
    name: str, definitions: Mapping[str, Definition], projections: Mapping[str, Projection]
) -> tuple[str]:
    definition = definitions.get(name)
    kind = definition.snapshot.kind if definition else projections[name].kind
    return (kind.name.lower(),)


def _keywords(definition: Definition) -> Collection[str]:
    """What people call tags is `keywords` of the metadata reference."""
    for event in definition.snapshot.metadata:
        if isinstance(event, SetInfo):
            return event.keywords or ()
    return ()


def _template(definition: Definition) -> Collection[str]:
    file = definition.file
    if not file.endswith(TEMPLATE_SUFFIX):
        return ()
    name = file.rpartition("/")[2]
    return (file, name, name.removesuffix(TEMPLATE_SUFFIX))


def _states(plan: Plan) -> dict[str, list[str]]:
    found = {}
    for dataset in plan.datasets:
        kind = category(dataset)
        labels = [kind] if kind else []
        if kind not in (None, "new", "cosmetic"):
            labels.append("modified")
        if Action.FORGET in dataset.actions:
            labels.append("forgotten")
        if dataset.refusal is not None:
            labels.append("refused")
        found[dataset.name] = labels
    return found


def _reasons(plan: Plan) -> dict[str, list[str]]:
    """Why datasets run, of those that do."""
    return {d.name: [reason.code.value for reason in d.reasons] for d in plan.datasets if _runs(d)}


def _runs(dataset: DatasetPlan) -> bool:
    return bool({Action.CREATE, Action.RUN, Action.POLL} & set(dataset.actions))

"""Properties of datasets for selections: names, files, keywords, states, reasons."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from odfbuild.errors import GraphError
from odfbuild.odf.model import DatasetKind, SetInfo
from odfbuild.plan.changes.classify import category
from odfbuild.plan.graph.selection import Matcher, Selectable, Selection, labelled, paths_of, select
from odfbuild.plan.model import Action, DatasetPlan, Plan, ReasonCode
from odfbuild.project.source import TEMPLATE_SUFFIX
from odfbuild.values import Value
from odfbuild.wording import named

if TYPE_CHECKING:
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.plan.graph.dag import Graph
    from odfbuild.project.model import Config, Definition, Project

STATES = (
    *("new", "modified", "cosmetic", "orphaned", "refused"),
    *("metadata", "additive", "forward-only", "breaking", "rebuild"),
)
"""Values of `state:`; `modified` is any change to the definition of a dataset that exists."""


class _Facts(Value, kw_only=True):
    """What is known of datasets, by name, without their plans.

    `files` are those of defined ones. Kinds and keywords are looked up when somebody asks: most
    selections do not, and nor does what selects nothing in particular.
    """

    names: Collection[str]
    files: Mapping[str, str]
    kinds: Callable[[], Mapping[str, DatasetKind]]
    keywords: Callable[[], Mapping[str, Collection[str]]]


def selected(
    selection: Selection,
    project: Project,
    graph: Graph,
    projections: Mapping[str, Projection],
    plan: Callable[[], Plan],
) -> frozenset[str]:
    """Names of the selected datasets; `plan` makes the whole plan if a method asks for it."""
    defined = {d.name: d for d in project.definitions}
    folded = {name.lower() for name in defined}
    others = [name for name in projections if name.lower() not in folded]
    # Of a definition or chain that cannot be read, no more than name and file is known.
    refused = [d for d in plan().datasets if d.refusal is not None and d.name not in defined]
    wrong = {d.name: d.location.file if d.location else "" for d in refused}
    unpinned = [each.name for each in plan().external if each.head is None]
    facts = _Facts(
        names=dict.fromkeys((*defined, *others, *wrong, *unpinned)),
        files={**{name: d.file for name, d in defined.items()}, **wrong},
        kinds=lambda: {
            **{name: d.snapshot.kind for name, d in defined.items()},
            **{name: projections[name].kind for name in others},
        },
        keywords=lambda: {name: _keywords(d) for name, d in defined.items()},
    )
    selectors = project.config.selectors
    found = _catalogue(facts, graph.waits_for, selectors, plan)
    return select(_with_history(found, project.config), selection)


def selected_of_plan(selection: Selection, plan: Plan, config: Config) -> frozenset[str]:
    """Names of the selected datasets of a saved plan.

    Their keywords are those that the plan appends, or those of the chains.
    """
    chains = config.workspace().readable() if _asks_for_tags(selection, config) else {}
    facts = _Facts(
        names=plan.names,
        files={d.name: d.location.file for d in plan.datasets if d.location},
        kinds=lambda: {d.name: d.kind for d in plan.datasets},
        keywords=lambda: {
            d.name: _planned_keywords(d, chains.get(d.renamed_from or d.name))
            for d in plan.datasets
        },
    )
    inputs = {d.name: (*d.inputs, *d.checked_against) for d in plan.datasets}
    catalogue = _catalogue(facts, inputs, config.selectors, lambda: plan)
    try:
        return select(_with_history(catalogue, config), selection)
    except GraphError as error:
        raise error.changed(notes=(f"only the plan is searched: {named(plan.names)}",)) from None


def _catalogue(
    facts: _Facts,
    inputs: Mapping[str, Sequence[str]],
    selectors: Mapping[str, str],
    plan: Callable[[], Plan],
) -> Selectable:
    files = facts.files
    name = _lazily(lambda: labelled("name", {name: (name,) for name in facts.names}))
    return Selectable(
        names=sorted(facts.names),
        inputs=inputs,
        selectors=selectors,
        resolve=lambda text: plan().called(text),
        methods={
            "name": name,
            "fqn": name,
            "source": _lazily(
                lambda: labelled(
                    "source",
                    {n: (n,) for n, kind in facts.kinds().items() if kind is DatasetKind.Root},
                )
            ),
            "kind": _lazily(
                lambda: labelled(
                    "kind",
                    {n: (kind.name,) for n, kind in facts.kinds().items()},
                    ("Root", "Derivative"),
                )
            ),
            "tag": _lazily(lambda: labelled("tag", facts.keywords())),
            "path": _path(files),
            "file": _lazily(
                lambda: labelled("file", {n: (f.rpartition("/")[2],) for n, f in files.items()})
            ),
            "template": _lazily(
                lambda: labelled("template", {n: _template(f) for n, f in files.items()})
            ),
            "state": _lazily(lambda: labelled("state", _states(plan()), STATES)),
            "stale": _lazily(
                lambda: labelled("reason", _reasons(plan()), [code.value for code in ReasonCode])
            ),
        },
    )


def _with_history(found: Selectable, config: Config) -> Selectable:
    """The catalogue with what Git and the log of runs tell."""
    methods = {
        **found.methods,
        "git": _changed_since(config),
        "result": _lazily(lambda: labelled("result", _last_results(config), _RESULTS)),
    }
    return replace(found, methods=methods)


def _lazily(make: Callable[[], Matcher]) -> Matcher:
    """A matcher that is made when it is first asked."""
    made = cache(make)

    def match(value: str) -> Collection[str]:
        return made()(value)

    return match


def _changed_since(config: Config) -> Matcher:
    def match(revision: str) -> Collection[str]:
        from odfbuild.survey.compare import changed_since

        return changed_since(config, revision)

    return match


_RESULTS = ("committed", "noop", "skipped", "failed", "lost", "interrupted")


def _last_results(config: Config) -> dict[str, tuple[str, ...]]:
    """How each dataset ended in the last run."""
    from odfbuild.survey.runs import runs_in

    runs = runs_in(config.cache, config.branch)
    return {n: (d["status"],) for n, d in runs[-1].datasets.items()} if runs else {}


def _path(files: Mapping[str, str]) -> Matcher:
    match = _lazily(lambda: labelled("path", {n: paths_of(f) for n, f in files.items()}))
    return lambda value: match(value.removeprefix("./").rstrip("/"))


def _keywords(definition: Definition) -> Collection[str]:
    """What people call tags is `keywords` of the metadata reference."""
    for event in definition.snapshot.metadata:
        if isinstance(event, SetInfo):
            return event.keywords or ()
    return ()


def _asks_for_tags(selection: Selection, config: Config) -> bool:
    """Whether keywords can matter; chains are read for nothing else."""
    texts = (*selection.select, *selection.exclude, *config.selectors.values())
    return any("tag:" in text for text in texts)


def _planned_keywords(dataset: DatasetPlan, chain: Projection | None) -> Collection[str]:
    planned = [c.after for c in dataset.changes if isinstance(c.after, SetInfo)]
    info = planned[-1] if planned else chain.info if chain else None
    return info.keywords or () if info else ()


def _template(file: str) -> Collection[str]:
    if not file.endswith(TEMPLATE_SUFFIX):
        return ()
    name = file.rpartition("/")[2]
    return (file, name, name.removesuffix(TEMPLATE_SUFFIX))


def _states(plan: Plan) -> dict[str, list[str]]:
    found = {}
    for dataset in plan.datasets:
        kind = category(dataset)
        labels: list[str] = [kind] if kind else []
        if kind not in (None, "new", "cosmetic"):
            labels.append("modified")
        if Action.FORGET in dataset.actions:
            labels.append("orphaned")
        if dataset.refusal is not None:
            labels.append("refused")
        found[dataset.name] = labels
    return found


def _reasons(plan: Plan) -> dict[str, list[str]]:
    """Why datasets run, of those that do."""
    return {d.name: [reason.code.value for reason in d.reasons] for d in plan.datasets if _runs(d)}


def _runs(dataset: DatasetPlan) -> bool:
    return bool({Action.CREATE, Action.RUN, Action.POLL} & set(dataset.actions))

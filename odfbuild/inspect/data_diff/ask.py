"""Compare the records of several datasets; a fault of one of them is told, and the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.engine.lazy import LazyEngine
from odfbuild.errors import EnvironmentProblem, OdfbuildError, RecordsError
from odfbuild.extras import require_engine
from odfbuild.inspect.data_diff.model import Comparison, DataDiff
from odfbuild.inspect.data_diff.states import diff_states, keys_of
from odfbuild.store.as_of import PointInTime, states_at
from odfbuild.store.cache import project
from odfbuild.survey.faults import fault_of
from odfbuild.wording import named

if TYPE_CHECKING:
    from odfbuild.engine.contract import EngineFactory
    from odfbuild.inspect.data_diff.queries import ChangedQuery
    from odfbuild.project.model import Config
    from odfbuild.store.workspace import Workspace
    from odfbuild.survey.survey import Survey


def between_moments(
    config: Config,
    workspace: Workspace,
    names: Sequence[str],
    moments: tuple[PointInTime, PointInTime | None],
    labels: tuple[str, str],
    key: Sequence[str] = (),
) -> Comparison:
    """The records of datasets at two moments (`None`: now), called `labels`."""
    first, second = moments
    then = states_at(workspace, first, names)
    now = workspace.projections(names) if second is None else states_at(workspace, second, names)

    def of(name: str) -> DataDiff | None:
        old, new = then.get(name), now.get(name)
        keys = keys_of(config, name, new or old, key)
        return diff_states(workspace, name, old, new, labels, keys)

    return _each(workspace.cache, names, labels, of)


def with_branch(
    config: Config,
    workspace: Workspace,
    names: Iterable[str] | None = None,
    key: Sequence[str] = (),
) -> Comparison:
    """The records of what a branch has computed, and those on the head; of all of it by default.

    `workspace` is that of the branch. Raises `BranchError` E1102 for a branch that is not there.
    """
    branch = workspace.branch
    assert branch is not None, "asked for with a branch"
    workspace.check_branch()
    there = workspace.branches()[branch]
    chosen = None if names is None else set(names)
    labels = ("head", branch)

    def of(name: str) -> DataDiff | None:
        store, known = workspace.dataset(name), there[name]
        head = store.main_head()
        old = None if head is None else project(store, head, None)
        new = project(store, known.head, None)
        found = diff_states(workspace, name, old, new, labels, keys_of(config, name, new, key))
        if found is None:
            return None
        notes = []
        if known.limit is not None:
            notes.append(f"the branch was computed over part of its inputs ({known.limit})")
        if head != known.base:
            notes.append("the head moved since the branch left it")
        return replace(found, notes=(*found.notes, *notes))

    return _each(
        workspace.cache, [name for name in there if chosen is None or name in chosen], labels, of
    )


def with_chains(
    found: Survey,
    queries: Sequence[ChangedQuery],
    factory: EngineFactory,
    key: Sequence[str] = (),
) -> Comparison:
    """What changed queries do to records; computed by an engine that is started for it."""
    if queries:
        require_engine("computing changed queries")
    from odfbuild.inspect.data_diff.queries import diff_query

    by_name = {each.dataset: each for each in queries}

    def of(name: str) -> DataDiff:
        query = by_name[name]
        if query.missing:
            raise RecordsError(
                f"'{name}' cannot be computed: {named(query.missing)} has no records yet",
                code="E1222",
                dataset=name,
                help="apply the inputs first, or build all of it in a branch: "
                "`odfbuild apply --branch NAME`",
            )
        try:
            return diff_query(found, query, engine.get, key)
        except OdfbuildError as error:
            raise found.locate(name, error) from None

    with LazyEngine(factory) as engine:
        return _each(found.workspace.cache, list(by_name), ("chains", "changed queries"), of)


def _each(
    cache: Path,
    names: Sequence[str],
    labels: tuple[str, str],
    of: Callable[[str], DataDiff | None],
) -> Comparison:
    diffs, same, errors = [], [], []
    for name in names:
        try:
            found = of(name)
        except EnvironmentProblem:
            raise  # it would stop the others, too
        except Exception as error:  # whatever is wrong with one, the others are compared
            errors.append(fault_of(cache, "comparing", name, error))
            continue
        if found is not None and found.differs:
            diffs.append(found)
        else:
            same.append(name)
    return Comparison(
        old=labels[0], new=labels[1], diffs=tuple(diffs), same=tuple(same), errors=tuple(errors)
    )

"""Collect the content of the data catalogue from files, chains and Git."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from odfbuild.errors import OdfbuildError, PlanError
from odfbuild.odf.model import MetadataBlock, SetInfo, SetLicense
from odfbuild.odf.multihash import Multihash
from odfbuild.project.git.notes import CommitInfo, last_changes
from odfbuild.project.git.repository import inside, repository
from odfbuild.project.settings.checks import checks_of
from odfbuild.project.settings.owners import owners_of
from odfbuild.survey.faults import fault_of
from odfbuild.survey.runs import LastResult, last_results
from odfbuild.survey.survey import Survey

if TYPE_CHECKING:
    from odfbuild.odf.chain.projection import Projection
    from odfbuild.project.model import Config, Definition

Event = TypeVar("Event", SetInfo, SetLicense)

NEWEST = 20
"""So many blocks of each history are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a dataset, with its type in the words of Arrow."""

    name: str
    type: str
    required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A dataset. What it does not have (chain, definition, Git) is `None` or empty.

    `roots` are those that it derives from, however far. `owners` are whom to ask, `changed` the
    commit that last changed the file of its definition. `history` are the newest blocks, newest
    first. `fault` is why no more can be told.
    """

    name: str
    definition: Definition | None
    state: Projection | None
    inputs: tuple[str, ...]
    readers: tuple[str, ...]
    roots: tuple[str, ...]
    info: SetInfo | None
    license: SetLicense | None
    columns: tuple[Column, ...]
    checks: tuple[str, ...]
    history: tuple[tuple[Multihash, MetadataBlock], ...]
    owners: tuple[str, ...]
    changed: CommitInfo | None
    last: LastResult | None
    fault: OdfbuildError | None = None


def pages(found: Survey, names: Sequence[str]) -> tuple[Page, ...]:
    """The pages of these datasets, in their order; links lead to others of them only."""
    config = found.project.config
    definitions = {each.name: each for each in found.project.definitions}
    changes, results = _changes(config), last_results(config.cache, config.branch)
    wanted = set(names)

    def page(name: str, fault: OdfbuildError | None) -> Page:
        definition = definitions.get(name)
        state = found.projections.get(name) if fault is None else None
        return Page(
            name=name,
            definition=definition,
            state=state,
            inputs=tuple(n for n in found.graph.inputs.get(name, ()) if n in wanted),
            readers=tuple(n for n in found.graph.readers.get(name, ()) if n in wanted),
            roots=tuple(n for n in found.graph.roots(name) if n in wanted),
            info=_said(SetInfo, definition, state.info if state else None),
            license=_said(SetLicense, definition, state.license if state else None),
            columns=_columns(state),
            checks=tuple(str(each.check) for each in checks_of(config.checks, name)),
            history=_history(found, name) if state else (),
            owners=owners_of(config.owners, name),
            changed=changes.get(definition.file) if definition else None,
            last=results.get(name),
            fault=fault or found.faults.get(name),
        )

    def whole(name: str) -> Page:
        try:
            return page(name, None)
        except Exception as error:  # whatever is wrong with one, the others have their pages
            return page(name, fault_of(config.cache, "looking at", name, error))

    return tuple(map(whole, names))


def _said(
    kind: type[Event], definition: Definition | None, committed: Event | None
) -> Event | None:
    """What the definition says, and else the chain."""
    events = definition.snapshot.metadata if definition else ()
    return next((event for event in events if isinstance(event, kind)), committed)


def _columns(state: Projection | None) -> tuple[Column, ...]:
    if state is None or state.schema is None:
        return ()
    from odfbuild.odf.schema.arrow_form import read_schema

    return tuple(
        Column(name=field.name, type=str(field.type), required=not field.nullable)
        for field in read_schema(state.schema)
    )


def _history(found: Survey, name: str) -> tuple[tuple[Multihash, MetadataBlock], ...]:
    state = found.projections.get(name)
    if state is None:
        return ()
    store = found.workspace.dataset(found.renames.get(name, name))
    return tuple(islice(store.walk(state.head), NEWEST))


def _changes(config: Config) -> Mapping[str, CommitInfo]:
    """The commit that last changed each file of definitions, by its path in the project."""
    try:
        with repository(config.root, "nobody is known to own anything") as repo:
            top = inside(repo, config.root)
            folder = inside(repo, config.datasets)
            if top is None or folder is None:
                return {}
            prefix = "" if top == "." else f"{top}/"
            changes = last_changes(repo, folder)
            return {path.removeprefix(prefix): commit for path, commit in changes.items()}
    except PlanError:
        return {}

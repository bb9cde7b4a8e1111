"""Compare definitions: two Git revisions, or the files and the chains."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from odfbuild.errors import OdfbuildError, PlanError
from odfbuild.exchange.repositories.external import origin
from odfbuild.odf.chain.projection import Projection
from odfbuild.plan.changes.committed import committed_counterpart, committed_snapshot
from odfbuild.plan.changes.definitions import (
    ChangeKind,
    DefinitionChange,
    EventDifference,
    compare_definitions,
)
from odfbuild.plan.model import EventChange
from odfbuild.project.git.at_revision import sides
from odfbuild.project.model import Config, Definition, Project, WrongDefinition
from odfbuild.project.overrides import NO_OVERRIDES, Overrides
from odfbuild.survey.definitions import Definitions, look_at_definitions
from odfbuild.survey.places import PlaceFinder
from odfbuild.values import Value


class Comparison(Value):
    """What differs, and by name why datasets could not be compared."""

    changes: tuple[DefinitionChange, ...]
    faults: Mapping[str, OdfbuildError] = field(default_factory=dict)

    def faults_of(self, chosen: Container[str] | None) -> list[OdfbuildError]:
        """What is wrong with the chosen datasets (`None`: all), each thing once."""
        found = (each for name, each in self.faults.items() if chosen is None or name in chosen)
        return list({(each.code, each.location, each.message): each for each in found}.values())


def compare_revisions(config: Config, old: str, new: str | None) -> Comparison:
    """What differs from revision `old` to `new`; `None` is the files as they are now."""
    with sides(config, old, new) as both:
        faults = _faults_at(old, both.before.wrong)
        if new is None:
            faults |= {each.label: each.refusal for each in both.after.wrong}
        else:
            faults |= _faults_at(new, both.after.wrong)
        changes = compare_definitions(
            both.before.definitions, both.after.definitions, both.after.config.moved
        )
        unread = {
            ChangeKind.ADDED: _unread(both.before.wrong, faults),
            ChangeKind.REMOVED: _unread(both.after.wrong, faults),
        }
        return _told(_with_places(changes, both.after), both.after.config, faults, unread)


def compare_with_chains(
    start: Path | None,
    given: Overrides = NO_OVERRIDES,
    then: Mapping[str, Projection] | None = None,
) -> Comparison:
    """What the definitions of now say and the chains do not say yet, or did not say `then`."""
    return compare_chains(look_at_definitions(start, given), then)


def compare_chains(now: Definitions, then: Mapping[str, Projection] | None = None) -> Comparison:
    """The same for definitions that were read."""
    changes = differences(now.project, now.projections if then is None else then)
    changes = tuple(each for each in changes if not _is_of_others(each, now))
    unread = {ChangeKind.REMOVED: _unread(now.project.wrong, now.faults)}
    return _told(changes, now.project.config, now.faults, unread)


def _is_of_others(change: DefinitionChange, now: Definitions) -> bool:
    """Whether a chain that nothing defines is one that was pulled."""
    if change.kind is not ChangeKind.REMOVED:
        return False
    return origin(now.workspace.dataset(change.name), now.project.config) is not None


def _faults_at(revision: str, wrong: Sequence[WrongDefinition]) -> dict[str, OdfbuildError]:
    listed = [f"{e.location}: {e.message}" for each in wrong for e in each.errors]
    error = PlanError(
        f"the definitions at the revision '{revision}' are wrong",
        code="E0342",
        notes=tuple(listed[:5]),
        help="compare with a revision at which `odfbuild validate` passes",
    )
    return {each.label: error for each in wrong}


def _unread(
    wrong: Sequence[WrongDefinition], faults: Mapping[str, OdfbuildError]
) -> OdfbuildError | None:
    """What is wrong with a file that may define anything; `None` when all files were read."""
    return next((faults[each.label] for each in wrong if each.name is None), None)


def _told(
    changes: tuple[DefinitionChange, ...],
    config: Config,
    faults: Mapping[str, OdfbuildError],
    unread: Mapping[ChangeKind, OdfbuildError | None],
) -> Comparison:
    """Only what is sure: nothing of wrong definitions, and of what a file may have that is."""
    wrong = {name.lower() for name in faults}
    renames = {old.lower(): new.lower() for old, new in config.moved.items()}
    sure, found = [], dict(faults)
    for change in changes:
        name = change.present_name.lower()
        if not wrong.isdisjoint((change.name.lower(), name, renames.get(name, name))):
            continue
        error = unread.get(change.kind)
        if error is None:
            sure.append(change)
        else:
            found[change.name] = error
    return Comparison(tuple(sure), found)


def differences(
    project: Project, projections: Mapping[str, Projection]
) -> tuple[DefinitionChange, ...]:
    """What the definitions of a project say and those chains do not."""
    before = _committed_definitions(project, projections)
    changes = compare_definitions(before, project.definitions, project.config.moved)
    # A chain lies elsewhere than its definition: that is no move.
    found = tuple(change for change in changes if change.kind is not ChangeKind.MOVED)
    return _with_places(found, project)


def _committed_definitions(
    project: Project, projections: Mapping[str, Projection]
) -> Iterator[Definition]:
    """What each chain says, as far as its definition (under the next name, too) can change it."""
    state = os.path.relpath(project.config.state, project.config.root)
    aliases = {projection.dataset_id: name for name, projection in projections.items()}
    defined = {definition.name.lower(): definition for definition in project.definitions}
    renames = {old.lower(): new.lower() for old, new in project.config.moved.items()}
    for name, projection in projections.items():
        folded = name.lower()
        definition = defined.get(folded) or defined.get(renames.get(folded, folded))
        if definition is None:
            snapshot = committed_snapshot(name, projection, aliases)
        else:
            snapshot = committed_counterpart(name, projection, aliases, definition.snapshot)
        yield Definition(content=snapshot, file=f"{state}/{name}")


def changed_since(config: Config, revision: str) -> frozenset[str]:
    """Names of the datasets that are new, changed or renamed since a revision, or may be."""
    kinds = (ChangeKind.ADDED, ChangeKind.CHANGED, ChangeKind.RENAMED)
    found = compare_revisions(config, revision, None)
    return frozenset(change.name for change in found.changes if change.kind in kinds) | {
        *found.faults
    }


def _with_places(
    changes: tuple[DefinitionChange, ...], project: Project
) -> tuple[DefinitionChange, ...]:
    finder = PlaceFinder(project)

    def placed(name: str, each: EventDifference) -> EventDifference:
        if each.after is None:
            return each
        change = EventChange(before=each.before, after=each.after)
        return replace(each, location=finder.find(name, change))

    return tuple(
        change
        if change.before is None
        else replace(change, events=tuple(placed(change.name, each) for each in change.events))
        for change in changes
    )

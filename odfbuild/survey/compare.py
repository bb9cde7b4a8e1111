"""Look at definitions side by side: two revisions in Git, or the files and the chains."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

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
from odfbuild.project.model import Config, Definition, Project
from odfbuild.project.overrides import NO_OVERRIDES, Overrides
from odfbuild.survey.definitions import read_definitions
from odfbuild.survey.places import PlaceFinder


def compare_revisions(config: Config, old: str, new: str | None) -> tuple[DefinitionChange, ...]:
    """What differs from revision `old` to `new`; `None` is the files as they are now."""
    with sides(config, old, new) as both:
        changes = compare_definitions(
            both.before.definitions, both.after.definitions, both.after.config.moved
        )
        return _with_places(changes, both.after)


def compare_with_chains(
    start: Path | None,
    given: Overrides = NO_OVERRIDES,
    then: Mapping[str, Projection] | None = None,
) -> tuple[DefinitionChange, ...]:
    """What the definitions of now say and the chains do not say yet, or did not say `then`."""
    now = read_definitions(start, given)
    return differences(now.project, now.projections if then is None else then)


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
        yield Definition(snapshot=snapshot, file=f"{state}/{name}")


def changed_since(config: Config, revision: str) -> frozenset[str]:
    """Names of the datasets that are new, changed or renamed since a revision."""
    kinds = (ChangeKind.ADDED, ChangeKind.CHANGED, ChangeKind.RENAMED)
    changes = compare_revisions(config, revision, None)
    return frozenset(change.name for change in changes if change.kind in kinds)


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

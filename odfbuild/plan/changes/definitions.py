"""What differs between two sets of definitions, such as two revisions of a project.

A dataset is the same one when its name is, or when a rename is declared; in which file it is
defined does not matter. Reads no files, looks at no chains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from odfbuild.errors import Location
from odfbuild.odf.model import (
    AddPushSource,
    DisablePollingSource,
    DisablePushSource,
    MetadataEvent,
    SetPollingSource,
)
from odfbuild.plan.changes.equality import EventMatch, compare
from odfbuild.project.model import Definition
from odfbuild.values import Value


class ChangeKind(Enum):
    """What became of a definition; `COSMETIC` is white space and comments in SQL."""

    ADDED = "added"
    CHANGED = "changed"
    RENAMED = "renamed"
    REMOVED = "removed"
    COSMETIC = "cosmetic"
    MOVED = "moved"


class EventDifference(Value, kw_only=True):
    """An event of a definition that differs; `None` where it is not there.

    `location` is where the definition says `after`, as exactly as it was looked up.
    """

    before: MetadataEvent | None
    after: MetadataEvent | None
    location: Location | None = None


class DefinitionChange(Value, kw_only=True):
    """A dataset whose definition differs; `before` or `after` is `None` where it has none.

    A renamed one may have `events` that differ, too. A moved one is only defined elsewhere.
    """

    name: str
    kind: ChangeKind
    before: Definition | None
    after: Definition | None
    events: tuple[EventDifference, ...] = ()

    @property
    def present_name(self) -> str:
        """The name that the dataset has before a rename."""
        return self.name if self.before is None else self.before.name


def compare_definitions(
    before: Iterable[Definition], after: Iterable[Definition], renames: Mapping[str, str]
) -> tuple[DefinitionChange, ...]:
    """All differences, in the order of `after`, then those that are gone.

    `renames` gives new names by old ones; a rename counts where the old name is gone and the new
    one has come.
    """
    old = {definition.name.lower(): definition for definition in before}
    new = {definition.name.lower(): definition for definition in after}
    origins = {
        to.lower(): origin.lower()
        for origin, to in renames.items()
        if origin.lower() in old
        and origin.lower() not in new
        and to.lower() in new
        and to.lower() not in old
    }
    found = []
    for folded, definition in new.items():
        change = _change(old.get(origins.get(folded, folded)), definition, folded in origins)
        if change is not None:
            found.append(change)
    gone = set(old) - set(new) - set(origins.values())
    return (*found, *(_gone(definition) for folded, definition in old.items() if folded in gone))


def _change(before: Definition | None, after: Definition, renamed: bool) -> DefinitionChange | None:
    if before is None:
        events = [EventDifference(before=None, after=e) for e in after.snapshot.metadata]
        return _made(ChangeKind.ADDED, None, after, events)
    events, cosmetic = _events(before.snapshot.metadata, after.snapshot.metadata)
    if renamed:
        return _made(ChangeKind.RENAMED, before, after, events)
    if events or before.snapshot.kind is not after.snapshot.kind:
        return _made(ChangeKind.CHANGED, before, after, events)
    if cosmetic:
        return _made(ChangeKind.COSMETIC, before, after, ())
    moved = (before.file, before.instance) != (after.file, after.instance)
    return _made(ChangeKind.MOVED, before, after, ()) if moved else None


def _made(
    kind: ChangeKind,
    before: Definition | None,
    after: Definition,
    events: Sequence[EventDifference],
) -> DefinitionChange:
    return DefinitionChange(
        name=after.name, kind=kind, before=before, after=after, events=tuple(events)
    )


def _gone(definition: Definition) -> DefinitionChange:
    return DefinitionChange(
        name=definition.name, kind=ChangeKind.REMOVED, before=definition, after=None
    )


def _events(
    before: Sequence[MetadataEvent], after: Sequence[MetadataEvent]
) -> tuple[list[EventDifference], bool]:
    """Events that differ, and whether others differ in white space and comments."""
    old, new = (
        {slot_of(event): event for event in before},
        {slot_of(event): event for event in after},
    )
    different, cosmetic = [], False
    for slot, event in new.items():
        base = old.get(slot)
        likeness = EventMatch.DIFFERENT if base is None else compare(base, event)
        if likeness is EventMatch.DIFFERENT:
            different.append(EventDifference(before=base, after=event))
        cosmetic = cosmetic or likeness is EventMatch.COSMETIC
    gone = [event for slot, event in old.items() if slot not in new]
    different += [EventDifference(before=event, after=None) for event in gone]
    return different, cosmetic


def slot_of(event: MetadataEvent) -> tuple[type, str | None]:
    """Of each slot only one event can be in force; one that disables a source takes its slot."""
    match event:
        case DisablePollingSource():
            return SetPollingSource, None
        case AddPushSource() | DisablePushSource():
            return AddPushSource, event.source_name
    return type(event), None

"""Merge the definitions of two histories of a dataset that went apart.

What only one side changed since the common state holds. What both changed in the same way holds,
too; in different ways it is a conflict. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from odfbuild.odf.chain.projection import DESCRIPTIONS, Projection
from odfbuild.odf.model import (
    DisablePollingSource,
    DisablePushSource,
    MetadataEvent,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
)
from odfbuild.plan.changes.equality import EventMatch, compare, unpinned
from odfbuild.plan.model import EventChange
from odfbuild.values import Value

_Slots = dict[str, MetadataEvent]

_PUSH = "the push source "
_NAMES = {
    "polling_source": "the polling source",
    "transform": "the transformation",
    "vocab": "the vocabulary",
    **{field: event.CALLED for event, field in DESCRIPTIONS.items()},
}
_SCHEMA = "the schema"


class Merged(Value, kw_only=True):
    """What two sides come to.

    `conflicts` names what both changed differently. `on_theirs` are the events that bring our
    changes to them, `on_ours` those that bring theirs to us; `definition` is all of the result.
    """

    conflicts: tuple[str, ...] = ()
    on_theirs: tuple[EventChange, ...] = ()
    on_ours: tuple[EventChange, ...] = ()
    definition: tuple[EventChange, ...] = ()


def merge(before: Projection | None, theirs: Projection | None, ours: Projection) -> Merged:
    """Merge `ours` with `theirs`, both of which continue `before` (`None`: nothing).

    Schemas follow from records as much as from definitions: they never conflict. Where both sides
    have another one, each keeps its own, and the next records extend it.
    """
    old, their, our = _slots(before), _slots(theirs), _slots(ours)
    if theirs is None:
        return Merged(definition=tuple(EventChange(before=None, after=e) for e in our.values()))
    result: _Slots = {}
    conflicts = []
    for name in dict.fromkeys((*our, *their, *old)):
        a, b = our.get(name), their.get(name)
        if _same(a, b) or _same(b, old.get(name)):
            kept = a
        elif _same(a, old.get(name)) or name == _SCHEMA:
            kept = b
        else:
            conflicts.append(name)
            continue
        if kept is not None:
            result[name] = kept
    on_ours = [each for each in _changes(our, result) if not isinstance(each.after, SetDataSchema)]
    return Merged(
        conflicts=tuple(conflicts),
        on_theirs=tuple(_changes(their, result)),
        on_ours=tuple(on_ours),
        definition=tuple(EventChange(before=None, after=e) for e in result.values()),
    )


def _slots(state: Projection | None) -> _Slots:
    """What is in force, by what it is called."""
    if state is None:
        return {}
    found: _Slots = {}
    for field, name in _NAMES.items():
        event = getattr(state, field)
        if isinstance(event, SetTransform):
            event = unpinned(event)
        if event is not None:
            found[name] = event
    found |= {f"{_PUSH}{name}": source for name, source in state.push_sources.items()}
    # Behind what it follows from.
    return found if state.schema is None else {**found, _SCHEMA: state.schema}


def _same(a: MetadataEvent | None, b: MetadataEvent | None) -> bool:
    if a is None or b is None:
        return a is b
    return compare(a, b) is not EventMatch.DIFFERENT


def _changes(now: _Slots, wanted: _Slots) -> Iterator[EventChange]:
    """The events that lead from one to the other; a source that goes makes room for another."""
    for name, event in now.items():
        if name in wanted:
            continue
        if isinstance(event, SetPollingSource):
            yield EventChange(before=event, after=DisablePollingSource())
        elif name.startswith(_PUSH):
            yield EventChange(
                before=event, after=DisablePushSource(source_name=name.removeprefix(_PUSH))
            )
    for name, event in wanted.items():
        if not _same(event, now.get(name)):
            yield EventChange(before=now.get(name), after=event)

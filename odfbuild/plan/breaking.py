"""Changes that a history does not survive: refused, with the ways out.

A chain only grows, and its rules bind later blocks to earlier ones. What is refused here would
either be rejected by those rules or leave records that contradict their definition.
"""

from __future__ import annotations

from collections.abc import Sequence

from odfbuild.errors import Location, PlanError
from odfbuild.odf.model import (
    AddPushSource,
    DatasetSnapshot,
    MergeStrategy,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
    SetVocab,
    TransformInput,
)
from odfbuild.odf.projection import Projection
from odfbuild.plan.model import EventChange

_WAYS_OUT = (
    "undo the change, or give the dataset a new name: it then starts a new history, "
    "and the old one stays as it is"
)


def source_conflict(
    snapshot: DatasetSnapshot, projection: Projection | None, location: Location | None
) -> PlanError | None:
    """Polling and pushing exclude each other in one chain; `None` when they do not meet."""
    polling, pushing = False, False
    for event in snapshot.metadata:
        polling = polling or isinstance(event, SetPollingSource)
        pushing = pushing or isinstance(event, AddPushSource)
    if polling and pushing:
        problem = "has a polling source and push sources, and a chain allows only one kind"
    elif polling and projection is not None and projection.push_sources:
        names = ", ".join(sorted(projection.push_sources))
        problem = f"cannot be polled: its chain has push sources ({names})"
    elif pushing and projection is not None and projection.polling_source is not None:
        problem = "cannot be pushed to: its chain has a polling source"
    else:
        return None
    return PlanError(
        f"'{snapshot.name}' {problem}",
        code="E0305",
        location=location,
        help=_WAYS_OUT if projection else "keep one of the two",
        dataset=str(snapshot.name),
    )


def breaking_change(
    snapshot: DatasetSnapshot,
    projection: Projection,
    changes: Sequence[EventChange],
    location: Location | None,
) -> PlanError | None:
    """The first breaking change, the others among its notes; `None` when all can be appended."""
    found = _kind(snapshot, projection)
    if not found:
        for change in changes:
            found += _of_event(change, projection)
    if not found:
        return None
    code, problem, notes = found[0]
    notes += tuple(text for _, text, more in found[1:] for text in (f"also: {text}", *more))
    return PlanError(
        f"'{snapshot.name}' cannot be changed: {problem}",
        code=code,
        location=location,
        notes=notes,
        help=_WAYS_OUT,
        dataset=str(snapshot.name),
    )


_Found = list[tuple[str, str, tuple[str, ...]]]


def _kind(snapshot: DatasetSnapshot, projection: Projection) -> _Found:
    if snapshot.kind is projection.kind:
        return []
    was, now = projection.kind.name.lower(), snapshot.kind.name.lower()
    return [("E0312", f"it is a {was} dataset in its chain and {now} in the definition", ())]


def _of_event(change: EventChange, projection: Projection) -> _Found:
    before, after = change.before, change.after
    has_data = projection.last_offset is not None
    match before, after:
        case SetTransform(), SetTransform() if projection.ever_ran:
            return _inputs(before, after)
        case SetPollingSource() | AddPushSource(), SetPollingSource() | AddPushSource() if has_data:
            return _merge(before.merge, after.merge)
        case _, SetVocab() if has_data:
            return [
                (
                    "E0304",
                    "its system columns would be renamed under existing records",
                    (f"{projection.records} records have the old names",),
                )
            ]
        case SetDataSchema(), SetDataSchema() if has_data:
            return [("E0309", "its schema is fixed by the records that exist", ())]
    return []


def _inputs(before: SetTransform, after: SetTransform) -> _Found:
    old, new = before.inputs, after.inputs
    if [i.dataset_ref for i in old] == [i.dataset_ref for i in new]:
        return []
    notes = (
        f"committed inputs: {_names(old)}",
        f"defined inputs: {_names(new)}",
        "every transaction must list the inputs of the one before, in the same order",
    )
    return [("E0302", "its list of inputs differs from the one that made its records", notes)]


def _names(inputs: tuple[TransformInput, ...]) -> str:
    return ", ".join(i.alias or str(i.dataset_ref) for i in inputs)


def _merge(before: MergeStrategy, after: MergeStrategy) -> _Found:
    old, new = describe_merge(before), describe_merge(after)
    if old == new:
        return []
    problem = "records that were merged one way cannot be continued another way"
    return [("E0303", problem, (f"committed: {old}", f"defined: {new}"))]


def describe_merge(merge: MergeStrategy) -> str:
    """Kind and primary key, as in `Ledger by id, day`."""
    key = getattr(merge, "primary_key", None)
    return f"{merge.KIND} by {', '.join(key)}" if key else merge.KIND

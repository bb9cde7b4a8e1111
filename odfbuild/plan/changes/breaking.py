"""Breaking changes: refused, with help.

A chain only grows, and its rules bind later blocks to earlier ones. What is refused here would
either be rejected by those rules or leave records that contradict their definition.
"""

from __future__ import annotations

from collections.abc import Sequence

from odfbuild.errors import PlanError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.model import (
    AddPushSource,
    DatasetKind,
    DatasetSnapshot,
    MergeStrategy,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
    SetVocab,
    TransformInput,
)
from odfbuild.odf.schema.attributes import only_redescribes
from odfbuild.plan.model import EventChange
from odfbuild.plan.places import Path, Place, path_of
from odfbuild.values import Value


def source_conflict(snapshot: DatasetSnapshot, place: Place) -> PlanError | None:
    """Polling and pushing exclude each other in one definition; `None` when they do not meet."""
    polling: SetPollingSource | None = None
    pushing: AddPushSource | None = None
    for event in snapshot.metadata:
        if isinstance(event, SetPollingSource):
            polling = event
        elif isinstance(event, AddPushSource):
            pushing = event
    if polling is None or pushing is None:
        return None
    return PlanError(
        f"'{snapshot.name}' has a polling source and push sources, and a chain allows only one "
        "kind at a time",
        code="E0305",
        location=place.of(path_of(snapshot, pushing)),
        help="keep one of the two",
        dataset=str(snapshot.name),
    )


def breaking_change(
    snapshot: DatasetSnapshot,
    projection: Projection,
    changes: Sequence[EventChange],
    place: Place,
) -> PlanError | None:
    """The first breaking change, the others among its notes; `None` when all can be appended."""
    found = _kind(snapshot, projection)
    if not found:
        for change in changes:
            found += _of_event(change, projection, path_of(snapshot, change.after))
    if not found:
        return None
    first = found[0]
    also = tuple(text for each in found[1:] for text in (f"also: {each.problem}", *each.notes))
    return PlanError(
        f"'{snapshot.name}' cannot be changed: {first.problem}",
        code=first.code,
        location=place.of(first.path),
        notes=first.notes + also,
        help=_ways_out(snapshot, projection),
        dataset=str(snapshot.name),
    )


class _Found(Value):
    """A change that breaks something: the code of its error, what, where, and evidence."""

    code: str
    problem: str
    path: Path
    notes: tuple[str, ...] = ()


def _kind(snapshot: DatasetSnapshot, projection: Projection) -> list[_Found]:
    if snapshot.kind is projection.kind:
        return []
    was, now = projection.kind.name.lower(), snapshot.kind.name.lower()
    problem = f"it is a {was} dataset in its chain and {now} in the definition"
    return [_Found("E0312", problem, ("kind",))]


def _of_event(change: EventChange, projection: Projection, path: Path) -> list[_Found]:
    before, after = change.before, change.after
    has_data = projection.last_offset is not None
    match before, after:
        case SetTransform(), SetTransform() if projection.ever_ran:
            return _inputs(before, after, (*path, "inputs"))
        case SetPollingSource() | AddPushSource(), SetPollingSource() | AddPushSource() if has_data:
            return _merge(before.merge, after.merge, (*path, "merge"))
        case _, SetVocab() if has_data:
            problem = "the system columns of existing records would be renamed"
            return [
                _Found(
                    "E0304", problem, path, (f"{projection.records} records have the old names",)
                )
            ]
        case SetDataSchema(), SetDataSchema() if has_data and not only_redescribes(before, after):
            note = "only descriptions and other attributes of its columns may change here"
            return [_Found("E0309", "its schema is fixed by existing records", path, (note,))]
    return []


def _inputs(before: SetTransform, after: SetTransform, path: Path) -> list[_Found]:
    """Inputs may come behind those that there are, and go from the end: peers match by position."""
    old, new = before.inputs, after.inputs
    if all(a.dataset_ref == b.dataset_ref for a, b in zip(old, new, strict=False)):
        return []
    # Another dataset may have come under the alias of the old one.
    full = _names(old) == _names(new)
    notes = (
        f"committed inputs: {_names(old, full=full)}",
        f"defined inputs: {_names(new, full=full)}",
        "every transaction goes on where the one before stopped, input by input, in their order; "
        "inputs can be added, and the last ones removed",
    )
    problem = "an input that is not the last one was removed or replaced"
    return [_Found("E0315", problem, path, notes)]


def _ways_out(snapshot: DatasetSnapshot, projection: Projection) -> str:
    new_name = "give the dataset a new name: it starts a new history, and the old dataset stays"
    if DatasetKind.Root in (snapshot.kind, projection.kind):
        return f"undo the change, or {new_name} as it is"
    again = f"rebuild it from the start: --allow rebuild:{snapshot.name}+"
    return f"undo the change, {new_name}, or {again}"


def _names(inputs: tuple[TransformInput, ...], *, full: bool = False) -> str:
    return ", ".join(
        f"{i.alias} = {i.dataset_ref}" if full else i.alias or str(i.dataset_ref) for i in inputs
    )


def _merge(before: MergeStrategy, after: MergeStrategy, path: Path) -> list[_Found]:
    old, new = describe_merge(before), describe_merge(after)
    if old == new:
        return []
    problem = "the merge strategy cannot change once there are records"
    return [_Found("E0303", problem, path, (f"committed: {old}", f"defined: {new}"))]


def describe_merge(merge: MergeStrategy) -> str:
    """Kind and primary key, as in `Ledger by id, day`."""
    return f"{merge.KIND} by {', '.join(merge.key)}" if merge.key else merge.KIND

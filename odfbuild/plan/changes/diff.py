"""The events that a definition adds to its chain.

Input: a definition in normal form and the projection of the committed chain. Output: the events to
append with the reasons for them, or a refusal when the change would break the history. An event
kind that the definition does not mention is left alone. Reads no files, runs no queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from odfbuild.errors import PlanError
from odfbuild.odf.chain.projection import IN_FORCE, Projection, QueryEra
from odfbuild.odf.identity import DatasetAlias, DatasetId, DatasetRef
from odfbuild.odf.model import (
    AddPushSource,
    DataSchema,
    DatasetKind,
    DatasetSnapshot,
    Description,
    DisablePollingSource,
    DisablePushSource,
    MetadataEvent,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
    SetVocab,
    TransformInput,
)
from odfbuild.odf.schema.attributes import redescribed
from odfbuild.plan.changes.breaking import breaking_change, source_conflict
from odfbuild.plan.changes.chain_rules import broken_rule
from odfbuild.plan.changes.equality import EventMatch, compare, unpinned
from odfbuild.plan.model import EventChange, Reason, ReasonCode
from odfbuild.plan.places import Place, path_of
from odfbuild.sql.forecast import expected_mode
from odfbuild.sql.mode import Mode
from odfbuild.values import Value

Identities = Mapping[str, DatasetId]
"""DIDs by alias in lower case, of every dataset that has a chain."""

_CODES: dict[type, tuple[ReasonCode, str]] = {
    SetPollingSource: (ReasonCode.SOURCE_CHANGED, "the polling source changed"),
    AddPushSource: (ReasonCode.SOURCE_CHANGED, "a push source changed"),
    DisablePollingSource: (ReasonCode.SOURCE_CHANGED, "the polling source was removed"),
    DisablePushSource: (ReasonCode.SOURCE_CHANGED, "a push source was removed"),
    SetTransform: (ReasonCode.TRANSFORM_CHANGED, "the transformation changed"),
    SetVocab: (ReasonCode.VOCAB_CHANGED, "the names of system columns changed"),
    SetDataSchema: (ReasonCode.SCHEMA_CHANGED, "the declared schema changed"),
}


def reason_of(event: MetadataEvent) -> tuple[ReasonCode, str]:
    """The reason that an event to append is, and its words."""
    if isinstance(event, Description):
        return ReasonCode.INFO_CHANGED, f"{event.CALLED} changed"
    return _CODES[type(event)]


class Diff(Value):
    """Events to append, why, and the refusal if there is one (then there are no events).

    When a changed query goes forward over a history, `records_under_old_query` and `eras` tell what
    stays, or `records_to_correct` how much the next step compares with what the new query gives.
    """

    changes: tuple[EventChange, ...] = ()
    reasons: tuple[Reason, ...] = ()
    refusal: PlanError | None = None
    records_under_old_query: int | None = None
    records_to_correct: int | None = None
    eras: tuple[QueryEra, ...] = ()


NO_DIFFERENCE = Diff()


def resolve(ref: DatasetRef, ids: Identities) -> DatasetRef:
    """The DID behind an alias where there is a chain, the alias itself where there is none."""
    if isinstance(ref, DatasetAlias):
        return ids.get(ref.folded, ref)
    return ref


def diff(
    snapshot: DatasetSnapshot,
    projection: Projection | None,
    ids: Identities,
    place: Place,
) -> Diff:
    """Compare a definition with its chain; without a chain everything is new."""
    difference = (
        Diff(
            changes=tuple(
                EventChange(before=None, after=_resolved(event, ids))
                for event in _latest(snapshot.metadata)
            )
        )
        if projection is None
        else _diff_committed(snapshot, projection, ids, place)
    )
    if difference == NO_DIFFERENCE or difference.refusal is not None:
        return difference
    refusal = source_conflict(snapshot, place) or _against_the_rules(
        snapshot, difference, projection, place
    )
    return difference if refusal is None else refused(refusal)


def changes_query(snapshot: DatasetSnapshot, projection: Projection, ids: Identities) -> bool:
    """Whether a definition has another transformation than its chain, be it possible or not."""
    changes, _ = _changes(snapshot, projection, ids)
    return any(isinstance(each.after, SetTransform) for each in changes)


def _diff_committed(
    snapshot: DatasetSnapshot, projection: Projection, ids: Identities, place: Place
) -> Diff:
    if projection.kind is not snapshot.kind:
        changes = [EventChange(before=None, after=e) for e in snapshot.metadata]
        cosmetic: list[MetadataEvent] = []
    else:
        changes, cosmetic = _changes(snapshot, projection, ids)
        if not changes and not cosmetic:
            return NO_DIFFERENCE
    refusal = breaking_change(snapshot, projection, changes, place)
    if refusal is not None:
        return refused(refusal)
    described = described_otherwise(snapshot, projection, changes)
    if described is not None:
        changes.append(described)
    difference = Diff(changes=tuple(changes), reasons=_reasons(changes, cosmetic, projection))
    query = next((c.after for c in changes if isinstance(c.after, SetTransform)), None)
    if query is None or projection.last_offset is None:
        return difference
    if expected_mode(query.transform).mode is Mode.CHANGELOG:
        return replace(difference, records_to_correct=projection.records)
    return replace(difference, records_under_old_query=projection.records, eras=projection.eras)


def _against_the_rules(
    snapshot: DatasetSnapshot, difference: Diff, projection: Projection | None, place: Place
) -> PlanError | None:
    events = [change.after for change in difference.changes]
    broken = broken_rule(events, projection)
    if broken is None:
        return None
    event, rule = broken
    return PlanError(
        f"{event.KIND} cannot be appended to '{snapshot.name}': {rule.message}",
        code=rule.code,
        location=place.of(path_of(snapshot, event)),
        notes=rule.notes,
        help=rule.help or "correct this part of the definition",
        dataset=str(snapshot.name),
    )


def _changes(
    snapshot: DatasetSnapshot, projection: Projection, ids: Identities
) -> tuple[list[EventChange], list[MetadataEvent]]:
    changes: list[EventChange] = []
    cosmetic: list[MetadataEvent] = []
    for event in _latest(snapshot.metadata):
        before = committed(event, projection)
        if before == event:
            continue
        after = _resolved(event, ids)
        if isinstance(after, SetTransform) and projection.inputs:
            after = _in_order_of(projection, after)
        if before == after:
            continue
        # An absent vocabulary is the default one, not a missing event.
        base = SetVocab() if before is None and isinstance(after, SetVocab) else before
        likeness = EventMatch.DIFFERENT if base is None else compare(base, after)
        if likeness is EventMatch.DIFFERENT:
            changes.append(EventChange(before=before, after=after))
        elif likeness is EventMatch.COSMETIC:
            cosmetic.append(after)
    if snapshot.kind is DatasetKind.Root:
        # A source that goes makes room for the one that comes.
        changes = _removed_sources(snapshot, projection) + changes
    return changes, cosmetic


def committed(event: MetadataEvent, projection: Projection) -> MetadataEvent | None:
    """The event of the same kind (and push source) that is in force at the head.

    Without the release of the engine, unless `event` asks for one: apply wrote it down.
    """
    if isinstance(event, AddPushSource):
        return projection.push_sources.get(event.source_name)
    found: MetadataEvent | None = getattr(projection, IN_FORCE[type(event)])
    if isinstance(event, SetTransform) and isinstance(found, SetTransform):
        return unpinned(found, event)
    return found


def _latest(events: tuple[MetadataEvent, ...]) -> tuple[MetadataEvent, ...]:
    """The last event of each kind, in the order of the definition."""
    if len(events) < 2:
        return events
    last = {(type(e), getattr(e, "source_name", None)): e for e in events}
    return events if len(last) == len(events) else tuple(last.values())


def _resolved(event: MetadataEvent, ids: Identities) -> MetadataEvent:
    if not isinstance(event, SetTransform):
        return event
    inputs = tuple(_resolved_input(declared, ids) for declared in event.inputs)
    return event if inputs == event.inputs else replace(event, inputs=inputs)


def _in_order_of(projection: Projection, event: SetTransform) -> SetTransform:
    """The event with its inputs in the order in which they were consumed, new ones behind them.

    Queries know inputs by their names; peers match them by position from one step to the next.
    """
    places = {each.dataset_id: n for n, each in enumerate(projection.consumed)}
    inputs = sorted(
        event.inputs,
        key=lambda each: places.get(each.dataset_ref, len(places)),  # type: ignore[arg-type]
    )
    return replace(event, inputs=tuple(inputs))


def _resolved_input(declared: TransformInput, ids: Identities) -> TransformInput:
    ref = resolve(declared.dataset_ref, ids)
    if declared.alias and ref is declared.dataset_ref:
        return declared
    return TransformInput(dataset_ref=ref, alias=declared.alias or str(declared.dataset_ref))


def _removed_sources(snapshot: DatasetSnapshot, projection: Projection) -> list[EventChange]:
    gone: list[EventChange] = []
    polling = projection.polling_source
    if polling is not None and not any(
        isinstance(event, SetPollingSource) for event in snapshot.metadata
    ):
        gone.append(EventChange(before=polling, after=DisablePollingSource()))
    if projection.push_sources:
        kept = {e.source_name for e in snapshot.metadata if isinstance(e, AddPushSource)}
        gone.extend(
            EventChange(before=source, after=DisablePushSource(source_name=name))
            for name, source in projection.push_sources.items()
            if name not in kept
        )
    return gone


def _reasons(
    changes: list[EventChange], cosmetic: list[MetadataEvent], projection: Projection
) -> tuple[Reason, ...]:
    reasons = []
    for change in changes:
        code, message = reason_of(change.after)
        reasons.append(Reason(code=code, message=message))
        if isinstance(change.before, SetTransform) and isinstance(change.after, SetTransform):
            reasons += _input_reasons(change.before, change.after, projection)
    for event in cosmetic:
        reasons.append(
            Reason(
                code=ReasonCode.COSMETIC,
                message=f"the SQL of {event.KIND} differs only in white space or comments",
            )
        )
    return tuple(reasons)


def _input_reasons(
    before: SetTransform, after: SetTransform, projection: Projection
) -> Iterator[Reason]:
    """Inputs that come and go, once there was a first step."""
    left = {each.dataset_id: each for each in projection.inputs}
    old = {each.dataset_ref: each for each in before.inputs}
    new = {each.dataset_ref: each for each in after.inputs}
    for ref, each in new.items() if left else ():
        if ref not in old:
            known = left.get(ref) if isinstance(ref, DatasetId) else None
            start = "where reading stopped" if known else "its beginning"
            yield Reason(
                code=ReasonCode.INPUT_ADDED,
                message=f"{each.alias or ref} is a new input, read from {start}",
                input=each.alias,
            )
    for ref, each in old.items() if left else ():
        if ref not in new:
            yield Reason(
                code=ReasonCode.INPUT_REMOVED,
                message=f"{each.alias or ref} is no longer an input; records that were read from "
                "it stay",
                input=each.alias,
            )


def refused(refusal: PlanError) -> Diff:
    """No difference but the refusal of one."""
    reason = Reason(code=ReasonCode.BREAKING, message=refusal.message)
    return Diff(reasons=(reason,), refusal=refusal)


def described_otherwise(
    snapshot: DatasetSnapshot, projection: Projection, changes: Sequence[EventChange]
) -> EventChange | None:
    """The schema to append for sources among `changes`; `None` when they describe it as before.

    A `SetDataSchema` in the definition goes before what a source says, and columns that come from
    a query are described by none. A source that is new describes only columns that are.
    """
    committed = projection.schema
    if committed is None or any(isinstance(e, SetDataSchema) for e in snapshot.metadata):
        return None
    present = committed
    for change in changes:
        if change.before is not None:
            now = _attributes(change.before), _attributes(change.after)
            if now != (None, None):
                present = redescribed(present, *now) or present
    return None if present is committed else EventChange(before=committed, after=present)


def _attributes(event: MetadataEvent) -> DataSchema | None:
    """The schema in which a source may describe its columns: DDL has no attributes."""
    if not isinstance(event, SetPollingSource | AddPushSource) or event.preprocess is not None:
        return None
    return event.read.schema

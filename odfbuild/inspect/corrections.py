"""Corrections since a time: corrected, retracted and late records of a dataset.

Reads only records committed since, without an engine. Source: Open Data Fabric, "Retractions and
corrections".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from odfbuild.errors import PlanError
from odfbuild.odf.chain.projection import Projection
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.vocabulary import vocabulary_of
from odfbuild.records.facts import Fact, facts_in, rows_at
from odfbuild.store.as_of import PointInTime, states_at
from odfbuild.store.committed import Committed, files_of
from odfbuild.store.workspace import Workspace
from odfbuild.values import Value


class RecordChange(StrEnum):
    """What became of a record, or how it came."""

    CORRECTED = "corrected"
    RETRACTED = "retracted"
    LATE = "late"


class Correction(Value):
    """A record as it was (`None`: it came late) and as it is (`None`: it was retracted).

    `event_time` is that of the record as it was, or of a late one its own.
    """

    fate: RecordChange
    event_time: Timestamp
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Corrections(Value, kw_only=True):
    """What happened between two states of a dataset, by event time.

    A record came late when it is of a time before `boundary`: the watermark that there was then,
    or without one the time itself.
    """

    dataset: str
    then: Projection
    now: Projection
    boundary: Timestamp
    found: tuple[Correction, ...]


def corrections(workspace: Workspace, name: str, since: PointInTime) -> Corrections:
    """What became of the records that a dataset had at a time, and what it should have had then.

    `PlanError` E0662 when it did not exist then.
    """
    now = workspace.projection(name)
    then = states_at(workspace, since, [name]).get(name)
    if now is None or then is None:
        raise PlanError(
            f"'{name}' did not exist at {since}",
            code="E0662",
            dataset=name,
            help=f"`odfbuild log {name}` shows when it began",
        )
    boundary = then.watermark or since.time
    slices = Committed(workspace.dataset(name), now.head).slices(then.head)
    found = sorted(_found(files_of(slices), now, boundary), key=lambda each: each.event_time.millis)
    return Corrections(dataset=name, then=then, now=now, boundary=boundary, found=tuple(found))


def _found(files: Sequence[Path], now: Projection, boundary: Timestamp) -> Iterator[Correction]:
    vocab = vocabulary_of(now.vocab)
    facts = facts_in(files, vocab)
    for fact in facts.moved:
        correction = _of(fact, boundary)
        if correction is not None:
            yield correction
    for form in rows_at(files, vocab, facts.still, boundary.millis):
        yield Correction(RecordChange.LATE, Timestamp.from_millis(form.millis), None, form.values)


def _of(fact: Fact, boundary: Timestamp) -> Correction | None:
    """What a fact that was corrected or retracted since is now, as far as it matters then."""
    first, last = fact.forms[0], fact.forms[-1]
    time = Timestamp.from_millis(first.millis)
    if first.offset is not None:  # it was not known then
        if fact.retracted or last.millis > boundary.millis:
            return None
        return Correction(RecordChange.LATE, Timestamp.from_millis(last.millis), None, last.values)
    if fact.retracted:
        return Correction(RecordChange.RETRACTED, time, first.values, None)
    if first.values == last.values:
        return None  # it says again what it said then
    return Correction(RecordChange.CORRECTED, time, first.values, last.values)

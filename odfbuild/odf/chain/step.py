"""The input of one step of a transformation, and its output watermark.

Plan, apply and verify share this decision. Pure: chains come in as lists of blocks. Sources: Open
Data Fabric, "Derivative Transformations" (batch step), "Watermark", `ExecuteTransformInput`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from enum import IntEnum
from itertools import pairwise
from math import inf

from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import (
    AddData,
    DataSlice,
    ExecuteTransform,
    ExecuteTransformInput,
    MetadataBlock,
    OffsetInterval,
    SetDataSchema,
    SetVocab,
)
from odfbuild.odf.model.messages import Watermark
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp
from odfbuild.values import Value

Link = tuple[Multihash, MetadataBlock]
PromisedSlice = tuple[DataSlice, Timestamp | None]
"""A slice, and the watermark that held just before it came: earlier records in it came late."""


class Interval(Value):
    """Blocks of a chain after some block, oldest first, and the watermark that held before them."""

    links: tuple[Link, ...]
    watermark_before: Timestamp | None

    @property
    def slices(self) -> tuple[DataSlice, ...]:
        """All slices that the blocks added."""
        return tuple(e.new_data for _, e in _data_events(self.links) if e.new_data)

    @property
    def promised_slices(self) -> tuple[PromisedSlice, ...]:
        """All slices that the blocks added, each with the watermark before it."""
        found = []
        promised = self.watermark_before
        for _, event in _data_events(self.links):
            if event.new_data is not None:
                found.append((event.new_data, promised))
            if _is_later(event.new_watermark, promised):
                promised = event.new_watermark
        return tuple(found)

    @property
    def moves_watermark(self) -> bool:
        """Whether some block promises more than was promised before them all."""
        return _is_later(_latest(_watermarks(self.links)), self.watermark_before)


def interval_between(
    head: Multihash,
    after: Multihash | None,
    read: Callable[[Multihash], MetadataBlock],
) -> Interval | None:
    """The blocks `(after, head]`, from the seed on without `after`.

    `None` when `after` is not in the history of `head`. Reads each of them, and on to the newest
    older block with data.
    """
    links: list[Link] = []
    at: Multihash | None = head
    while at != after:
        if at is None:
            return None
        block = read(at)
        links.append((at, block))
        at = block.prev_block_hash
    links.reverse()
    while at is not None:
        block = read(at)
        if isinstance(block.event, AddData | ExecuteTransform):
            return Interval(tuple(links), block.event.new_watermark)
        at = block.prev_block_hash
    return Interval(tuple(links), None)


class InputStep(Value, kw_only=True):
    """What one step reads of one input.

    Blocks `(prev_block, new_block]` and records `(prev_offset, new_offset]`, both half open, `None`
    where there is nothing before or nothing new. `promised_slices` hold these records, `watermarks`
    are those that the blocks set, oldest first, `watermark` is the last one known at their end.
    `complete` is false when a change of the input's schema ends the step before the input's head.
    """

    dataset_id: DatasetId
    prev_block: Multihash | None = None
    new_block: Multihash | None = None
    prev_offset: int | None = None
    new_offset: int | None = None
    promised_slices: tuple[PromisedSlice, ...] = ()
    watermarks: tuple[Watermark, ...] = ()
    watermark_before: Timestamp | None = None
    complete: bool = True

    @property
    def slices(self) -> tuple[DataSlice, ...]:
        """The slices that hold the records to read."""
        return tuple(data for data, _ in self.promised_slices)

    @property
    def block(self) -> Multihash | None:
        """The last block that is consumed when the step is done."""
        return self.new_block or self.prev_block

    @property
    def watermark(self) -> Timestamp | None:
        """The last watermark known when the step is done."""
        reached = _latest(self.watermarks)
        return reached if _is_later(reached, self.watermark_before) else self.watermark_before

    @property
    def offset_interval(self) -> OffsetInterval | None:
        """The records to read, both ends included."""
        if self.new_offset is None:
            return None
        first = 0 if self.prev_offset is None else self.prev_offset + 1
        return OffsetInterval(start=first, end=self.new_offset)

    @property
    def advances(self) -> bool:
        """Whether there are records to read or more is promised than before.

        Blocks that bring neither, such as a changed description, are no reason for a step.
        """
        return self.new_offset is not None or _is_later(self.watermark, self.watermark_before)

    def as_event(self) -> ExecuteTransformInput:
        """The step as the block of the derivative records it."""
        return ExecuteTransformInput(
            dataset_id=self.dataset_id,
            prev_block_hash=self.prev_block,
            new_block_hash=self.new_block,
            prev_offset=self.prev_offset,
            new_offset=self.new_offset,
        )


class Unread(Value):
    """An input before a step: what it gained, and whether any of it was read before."""

    interval: Interval
    is_new: bool


class Closeness(IntEnum):
    """Where a step ends before the newest blocks of its inputs."""

    FREE = 0
    """Nowhere: no windows read the result, or none that could tell."""
    LATE = 1
    """Before a block with records that came late."""
    EVERY = 2
    """Before every block with data."""


IsLate = Callable[[int, DataSlice, Timestamp], bool]
"""Whether a slice of the input with that number has records before a watermark."""


def one_step(
    inputs: Sequence[Unread],
    promised: Timestamp | None,
    closeness: Closeness,
    is_late: IsLate,
) -> tuple[int, ...]:
    """How many blocks of each input the next step reads, so that it hides no late records.

    Blocks are read in the order of the watermarks before them, which does not depend on when they
    were committed. The step ends before a block with records that came behind what the result
    promises by then, or before any with data. `promised` is the watermark of the result before the
    step. A step ends with the schema of an input, as for `next_step`.
    """
    whole = tuple(len(each.interval.links) for each in inputs)
    if closeness is Closeness.FREE:
        return whole
    parts = [_Part(each) for each in inputs]
    while waiting := [part for part in parts if part.waits]:
        following = min(waiting, key=_reached)
        if following.end is None:  # another schema comes, which is for the next step
            return tuple(part.taken for part in parts)
        now = output_watermark(promised, [part.reached for part in parts])
        ends = closeness is Closeness.EVERY
        if not ends and following.data is not None and now is not None and now != promised:
            ends = is_late(parts.index(following), following.data, now)
        if ends and any(part.advanced for part in parts):
            return tuple(part.taken for part in parts)
        following.take(following.end)
    return whole


class _Part:
    """How much of an input a step takes, block by block with data."""

    def __init__(self, unread: Unread) -> None:
        all_links = unread.interval.links
        self._links = _one_schema(all_links)
        self._goes_on = len(self._links) < len(all_links)
        self._ends = [n for n, link in enumerate(self._links, 1) if _is_data(link[1])]
        self.taken = 0
        self.reached = unread.interval.watermark_before
        self.advanced = False
        if unread.is_new:  # its schema has to be known at the end of the step
            events = [block.event for _, block in self._links]
            schema = next((n for n, e in enumerate(events) if isinstance(e, SetDataSchema)), -1)
            ends = (end for end in self._ends if end > schema)
            self.take(next(ends, len(self._links)))

    @property
    def end(self) -> int | None:
        """Where the next block with data ends; `None` when there is none of the same schema."""
        return next((end for end in self._ends if end > self.taken), None)

    @property
    def waits(self) -> bool:
        return self.end is not None or self._goes_on

    @property
    def data(self) -> DataSlice | None:
        """What the next block with data brings."""
        event = self._links[(self.end or 0) - 1][1].event
        return event.new_data if isinstance(event, AddData | ExecuteTransform) else None

    def take(self, end: int) -> None:
        part = Interval(tuple(self._links[self.taken : end]), self.reached)
        self.advanced |= bool(part.slices) or part.moves_watermark
        if part.moves_watermark:
            self.reached = _latest(_watermarks(part.links))
        self.taken = end


def _reached(part: _Part) -> int | float:
    return -inf if part.reached is None else part.reached.ns


def next_step(
    dataset_id: DatasetId, consumed: ExecuteTransformInput | None, interval: Interval
) -> InputStep:
    """The step behind `consumed`, the input as the last step left it (`None`: never read).

    `interval` is what the input gained since. A step reads records of one schema: it ends before
    the first block that changes schema or vocabulary of the input behind records that it reads.
    """
    links = _one_schema(interval.links)
    slices = Interval(tuple(links), interval.watermark_before).promised_slices
    return InputStep(
        dataset_id=dataset_id,
        prev_block=consumed.new_block_hash if consumed else None,
        new_block=links[-1][0] if links else None,
        prev_offset=consumed.new_offset if consumed else None,
        new_offset=slices[-1][0].offset_interval.end if slices else None,
        promised_slices=slices,
        watermarks=_watermarks(links),
        watermark_before=interval.watermark_before,
        complete=len(links) == len(interval.links),
    )


def in_pieces(step: InputStep, interval: Interval, most_bytes: int) -> tuple[InputStep, ...]:
    """`step` as steps one after the other, of which each reads slices of up to `most_bytes`.

    Or one slice. `interval` are the blocks of `step`. What follows the last slice is for the last.
    """
    links = interval.links
    ends: list[int] = []
    taken = 0
    for end, (_, block) in enumerate(links):
        event = block.event
        if isinstance(event, AddData | ExecuteTransform) and event.new_data is not None:
            if taken and taken + event.new_data.size > most_bytes:
                ends.append(end)
                taken = 0
            taken += event.new_data.size
    pieces: list[InputStep] = []
    before = step
    for start, end in pairwise((0, *ends, len(links))):
        part = Interval(links[start:end], before.watermark if pieces else step.watermark_before)
        slices = part.promised_slices
        before = replace(
            step,
            prev_block=before.new_block if pieces else step.prev_block,
            new_block=links[end - 1][0],
            prev_offset=before.new_offset if pieces else step.prev_offset,
            new_offset=slices[-1][0].offset_interval.end,
            promised_slices=slices,
            watermarks=_watermarks(part.links),
            watermark_before=part.watermark_before,
        )
        pieces.append(before)
    return tuple(pieces)


def recorded_step(recorded: ExecuteTransformInput, interval: Interval) -> InputStep:
    """The step that a block recorded; `interval` lies between the blocks that it names."""
    first = 0 if recorded.prev_offset is None else recorded.prev_offset + 1
    last = -1 if recorded.new_offset is None else recorded.new_offset
    return InputStep(
        dataset_id=recorded.dataset_id,
        prev_block=recorded.prev_block_hash,
        new_block=recorded.new_block_hash,
        prev_offset=recorded.prev_offset,
        new_offset=recorded.new_offset,
        promised_slices=tuple(
            (data, promised)
            for data, promised in interval.promised_slices
            if data.offset_interval.start <= last and data.offset_interval.end >= first
        ),
        watermarks=_watermarks(interval.links),
        watermark_before=interval.watermark_before,
    )


def is_due(steps: Iterable[InputStep], *, has_schema: bool) -> bool:
    """Whether a derivative has a step to do: an input advanced, or its schema is not known yet."""
    return not has_schema or any(step.advances for step in steps)


def output_watermark(
    previous: Timestamp | None, inputs: Iterable[Timestamp | None]
) -> Timestamp | None:
    """The minimum over all inputs of their last watermark, never below the previous one.

    While an input has none, nothing can be promised, and the previous one stays.
    """
    known = []
    for watermark in inputs:
        if watermark is None:
            return previous
        known.append(watermark)
    lowest = min(known)
    return lowest if previous is None else max(previous, lowest)


def told_watermark(
    previous: Timestamp | None, told: Timestamp | None, inputs: Iterable[Timestamp | None]
) -> tuple[Timestamp | None, str]:
    """The watermark after a step for which an engine told one, and what was wrong with that.

    It never falls below the previous one, and never promises more than all inputs do. An engine may
    tell none, or one that is too low, because it knows only the inputs with news.
    """
    most = output_watermark(previous, inputs)
    if told is None or told == previous:
        return previous, ""
    if previous is not None and told < previous:
        return (
            previous,
            f"its engine's watermark {told} is before the previous one: {previous} holds",
        )
    if most is None or told > most:
        text = f"its engine's watermark {told} promises more than the inputs do"
        return most, f"{text}: {most or 'none'} holds"
    return told, ""


def _is_data(block: MetadataBlock) -> bool:
    return isinstance(block.event, AddData | ExecuteTransform)


def _one_schema(links: Sequence[Link]) -> Sequence[Link]:
    has_records = False
    for number, (_, block) in enumerate(links):
        match block.event:
            case AddData() | ExecuteTransform() as event:
                has_records = has_records or event.new_data is not None
            case SetDataSchema() | SetVocab() if has_records:
                return links[:number]
    return links


def _data_events(
    links: Iterable[Link],
) -> Iterable[tuple[MetadataBlock, AddData | ExecuteTransform]]:
    for _, block in links:
        if isinstance(block.event, AddData | ExecuteTransform):
            yield block, block.event


def _watermarks(links: Iterable[Link]) -> tuple[Watermark, ...]:
    return tuple(
        Watermark(system_time=block.system_time, event_time=event.new_watermark)
        for block, event in _data_events(links)
        if event.new_watermark is not None
    )


def _latest(watermarks: Sequence[Watermark]) -> Timestamp | None:
    return max((w.event_time for w in watermarks), default=None)


def _is_later(new: Timestamp | None, old: Timestamp | None) -> bool:
    return new is not None and (old is None or new > old)

"""New messages of a topic, such as `kafka://broker:9092/orders?key=id`, as lines of JSON.

A run reads up to the ends that it sees at its start: partition by partition, each in the order of
its offsets, so that the same ends give the same records. The state is the next offset of each
partition and the id of the cluster; it is committed with the records, which makes them come exactly
once. Many messages are several slices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from odfbuild.ingest.fetch.context import FetchContext
from odfbuild.ingest.fetch.event_time import event_time_of
from odfbuild.ingest.fetch.kafka.address import named, tombstones_of, wanted
from odfbuild.ingest.fetch.kafka.consumer import Topic, open_topic
from odfbuild.ingest.fetch.kafka.problems import another_topic, gap
from odfbuild.ingest.fetch.kafka.records import Lines
from odfbuild.ingest.fetch.result import ETAG, Fetched, etag
from odfbuild.odf.model import FetchStepUrl, SourceState
from odfbuild.values import Value

_MOST_BYTES = 64 << 20
"""A slice has no more than that of messages, however few they are."""
_OPERATION = "op"
_STATE = re.compile(r"(\S+)((?: \d+:\d+)*)")


def fetch_kafka(
    step: FetchStepUrl, url: str, state: SourceState | None, context: FetchContext
) -> Iterator[Fetched]:
    """Yield new messages, in one file for each slice. Raises `OdfbuildError`."""
    asked, shown = wanted(url, step.url), named(step.url)
    known = None if context.moved or state is None or state.kind != ETAG else state.value
    lines = Lines(
        asked,
        context.root,
        shown,
        tombstones=tombstones_of(asked, context.merge),
        operation=context.columns[-1] if context.columns else _OPERATION,
        keeps_bad=context.settings.skips_bad_records(context.dataset),
    )
    event_time = event_time_of(
        step.event_time, modified=None, default=None, now=context.now, name=shown
    )
    with open_topic(asked, context.settings, context.root, shown) as topic:
        bounds = topic.bounds()
        offsets = _begin(topic.cluster, bounds, known, shown, skips_gaps=asked.skips_gaps)
        for file in _slices(topic, bounds, offsets, lines, context):
            new = Positions(topic.cluster, offsets).state()
            if file is not None:
                yield Fetched(file, etag(new), event_time, shown)
                known = new
            elif new != known:
                note = "the topic has no new records"
                yield Fetched(None, etag(new), event_time, shown, note=note)


def _begin(
    cluster: str,
    bounds: Mapping[int, tuple[int, int]],
    known: str | None,
    shown: str,
    *,
    skips_gaps: bool,
) -> dict[int, int]:
    """The next offset of each partition; of a new one its first."""
    offsets = {partition: low for partition, (low, _) in bounds.items()}
    if known is None:
        return offsets
    positions = parse_positions(known)
    if positions is None:
        raise another_topic(shown, f"the chain has '{known[:40]}' as its state")
    if positions.cluster != cluster:
        why = f"it is in the cluster '{cluster}', and was in '{positions.cluster}'"
        raise another_topic(shown, why)
    for partition, position in positions.offsets.items():
        if partition not in bounds:
            raise another_topic(shown, f"it has no partition {partition} any more")
        low, high = bounds[partition]
        if position > high:
            why = f"partition {partition} ends at {high}, and was read up to {position}"
            raise another_topic(shown, why)
        if position < low and not skips_gaps:
            raise gap(shown, partition, position, low)
        offsets[partition] = max(position, low)
    return offsets


def _slices(
    topic: Topic,
    bounds: Mapping[int, tuple[int, int]],
    offsets: dict[int, int],
    lines: Lines,
    context: FetchContext,
) -> Iterator[Path | None]:
    """Files with records up to the ends; `offsets` are moved along.

    `None` comes last where messages gave no records, or there are none.
    """
    number = records = size = 0
    file = context.scratch / f"messages-{number}.ndjson"
    opened = file.open("wb")
    try:
        for partition, (_, end) in bounds.items():
            if offsets[partition] >= end:
                continue
            for message in topic.messages(partition, offsets[partition], end):
                for line in lines.of(message):
                    opened.write(line + b"\n")
                    records += 1
                    size += len(line)
                offsets[partition] = topic.position
                if records >= context.settings.target_records or size >= _MOST_BYTES:
                    opened.close()
                    yield file
                    file.unlink(missing_ok=True)
                    number, records, size = number + 1, 0, 0
                    file = context.scratch / f"messages-{number}.ndjson"
                    opened = file.open("wb")
            # What a compaction or an aborted transaction left no message of is read, too.
            offsets[partition] = topic.position
    finally:
        opened.close()
    yield file if records else None


class Positions(Value):
    """The next offset to read, by partition, in the cluster with that id."""

    cluster: str
    offsets: Mapping[int, int]

    def state(self) -> str:
        """As it is recorded in the chain, such as `MkU3OEVB 0:15 1:7`."""
        pairs = [f"{each}:{self.offsets[each]}" for each in sorted(self.offsets)]
        return " ".join([self.cluster, *pairs])


def parse_positions(text: str) -> Positions | None:
    """The positions that a chain recorded; `None`: it is no such state."""
    found = _STATE.fullmatch(text)
    if found is None:
        return None
    pairs = (each.split(":") for each in found[2].split())
    return Positions(found[1], {int(partition): int(offset) for partition, offset in pairs})

"""A step that is cut into pieces reads what it read whole, and each piece is a step."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from odfbuild.odf.chain.step import InputStep, Interval, Link, in_pieces, next_step
from odfbuild.odf.identity import DatasetId
from odfbuild.odf.model import (
    AddData,
    DataSlice,
    ExecuteTransformInput,
    MetadataBlock,
    OffsetInterval,
    SetInfo,
)
from odfbuild.odf.multihash import Multihash
from odfbuild.odf.timestamp import Timestamp

DATASET = DatasetId(bytes(32))
BEFORE = ExecuteTransformInput(
    dataset_id=DATASET, new_block_hash=Multihash.sha3_256(b"before"), new_offset=9
)

blocks = st.lists(
    st.tuples(st.none() | st.integers(1, 5), st.integers(1, 100), st.none() | st.integers(1, 9)),
    min_size=1,
)
"""Of each block: records, bytes and watermark; without records and watermark, a description."""


def links(drawn: list[tuple[int | None, int, int | None]]) -> list[Link]:
    found = []
    offset = 10
    for number, (records, size, watermark) in enumerate(drawn):
        hash = Multihash.sha3_256(b"%d" % number)
        data = None
        if records is not None:
            interval = OffsetInterval(start=offset, end=offset + records - 1)
            data = DataSlice(
                logical_hash=hash, physical_hash=hash, offset_interval=interval, size=size
            )
            offset += records
        promised = Timestamp(watermark) if watermark is not None else None
        event = (
            SetInfo()
            if data is None and promised is None
            else AddData(new_data=data, new_watermark=promised)
        )
        block = MetadataBlock(
            system_time=Timestamp(0), prev_block_hash=None, sequence_number=number, event=event
        )
        found.append((hash, block))
    return found


@given(blocks, st.integers(1, 200))
def test_pieces_follow_each_other_and_read_what_the_step_reads(
    drawn: list[tuple[int | None, int, int | None]], most: int
) -> None:
    interval = Interval(tuple(links(drawn)), Timestamp(3))
    step = next_step(DATASET, BEFORE, interval)
    assume(step.slices)  # others are not cut
    pieces = in_pieces(step, interval, most)
    assert [each for piece in pieces for each in piece.promised_slices] == [*step.promised_slices]
    assert [each for piece in pieces for each in piece.watermarks] == [*step.watermarks]
    assert (pieces[-1].new_block, pieces[-1].watermark) == (step.new_block, step.watermark)
    for piece in pieces:
        assert len(piece.slices) <= 1 or sum(each.size for each in piece.slices) <= most
    assert_each_is_a_step_of_its_own(pieces, interval)


def assert_each_is_a_step_of_its_own(pieces: tuple[InputStep, ...], interval: Interval) -> None:
    consumed, at, watermark = BEFORE, 0, interval.watermark_before
    for piece in pieces:
        end = 1 + [hash for hash, _ in interval.links].index(piece.new_block)
        part = Interval(interval.links[at:end], watermark)
        assert piece == next_step(DATASET, consumed, part)
        consumed, at, watermark = piece.as_event(), end, piece.watermark

"""Any event keeps its value as bytes and as YAML; any bytes give a block or an error."""

import struct
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import flatbuffers
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odfbuild.odf import registry as catalogue
from odfbuild.odf.flatbuffers.form import (
    MalformedBlock,
    UnsupportedVersion,
    block_hash,
    decode_block,
    decode_message,
    encode_block,
    encode_message,
    manifest_version,
)
from odfbuild.odf.flatbuffers.reader import decode_place
from odfbuild.odf.model import DataType, DataTypeMap, MetadataBlock, MetadataEvent, SetInfo
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.yaml_form import from_data, to_data
from odfbuild.odf.yaml_text import dump_yaml
from odfbuild.project.yaml.source import read_documents
from tests.odf.values import objects

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
BLOCK = MetadataBlock(
    system_time=Timestamp(1_600_000_000_123_456_789),
    sequence_number=7,
    event=SetInfo(description="Flights", keywords=("air", "New York")),
)


@pytest.mark.parametrize("of_day", [86_400, 2**32 - 1])
def test_a_second_that_no_day_has_is_refused(of_day: int) -> None:
    plain = MetadataBlock(system_time=Timestamp(0), sequence_number=1, event=SetInfo())
    data = encode_block(plain)
    epoch = struct.pack("<iHxxII", 1970, 1, 0, 0)
    assert data.count(epoch) == 1
    with pytest.raises(MalformedBlock, match="timestamp"):
        decode_block(data.replace(epoch, struct.pack("<iHxxII", 1970, 1, of_day, 0)))


@settings(deadline=None, suppress_health_check=SLOW, max_examples=300)
@given(objects(MetadataBlock), st.sampled_from([2, 3]))
def test_any_block_is_read_back_from_its_bytes(block: MetadataBlock, version: int) -> None:
    data = encode_block(block, version)
    assert decode_block(data) == block
    assert decode_place(data) == (block.sequence_number, block.prev_block_hash)
    assert manifest_version(data) == version


@pytest.mark.parametrize("kind", MetadataEvent.__args__, ids=lambda kind: kind.__name__)
@settings(deadline=None, suppress_health_check=SLOW, max_examples=30)
@given(st.data())
def test_any_event_stays_the_same_from_yaml_through_bytes_to_yaml(kind: Any, data: Any) -> None:
    event = data.draw(objects(kind))
    text = dump_yaml(to_data(event))
    (plain,) = read_documents(text, "a.yaml")
    block = MetadataBlock(
        system_time=Timestamp(0), sequence_number=0, event=from_data(MetadataEvent, plain)
    )
    version = data.draw(st.sampled_from([2, 3]))
    after = decode_block(encode_block(block, version)).event
    assert after == event
    assert dump_yaml(to_data(after)) == text


@pytest.mark.parametrize("kind", catalogue.objects().values(), ids=lambda kind: kind.__name__)
@settings(deadline=None, suppress_health_check=SLOW, max_examples=20)
@given(st.data())
def test_any_object_is_read_back_from_yaml_and_from_bytes(kind: Any, data: Any) -> None:
    value = data.draw(objects(kind))
    assert from_data(kind, *read_documents(dump_yaml(to_data(value)), "a.yaml")) == value
    encoded = encode_message(value)
    assert decode_message(kind, encoded) == value
    assert encode_message(decode_message(kind, encoded)) == encoded


@settings(deadline=None)
@given(st.text(st.characters(min_codepoint=32, max_codepoint=126) | st.just("\n"), max_size=12))
def test_text_is_read_back_from_canonical_yaml(text: str) -> None:
    document = {"x": text, "y": [text]}
    assert read_documents(dump_yaml(document), "a.yaml") == [document]


@pytest.mark.parametrize("text", ["yes", "no", "on", "1_000", "012", "2020-01-01", "~", "1e3", ""])
def test_words_that_look_like_other_types_stay_text(text: str) -> None:
    assert read_documents(dump_yaml({"x": text}), "a.yaml") == [{"x": text}]


@pytest.mark.parametrize(
    ("year", "ordinal", "nanos"), [(9999, 366, 0), (2023, 366, 0), (2023, 1, 10**9), (0, 1, 0)]
)
def test_a_day_that_no_year_has_is_refused(year: int, ordinal: int, nanos: int) -> None:
    plain = MetadataBlock(system_time=Timestamp(0), sequence_number=1, event=SetInfo())
    data = encode_block(plain)
    epoch = struct.pack("<iHxxII", 1970, 1, 0, 0)
    assert data.count(epoch) == 1
    with pytest.raises(MalformedBlock, match="timestamp"):
        decode_block(data.replace(epoch, struct.pack("<iHxxII", year, ordinal, 0, nanos)))


@settings(deadline=None, suppress_health_check=SLOW, max_examples=300)
@given(objects(MetadataBlock), st.sampled_from([2, 3]), st.data())
def test_a_flipped_bit_anywhere_in_any_block_is_detected_by_its_hash(
    block: MetadataBlock, version: int, data: Any
) -> None:
    whole = encode_block(block, version)
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    damaged = bytearray(whole)
    damaged[bit // 8] ^= 1 << bit % 8
    assert block_hash(bytes(damaged)) != block_hash(whole)
    _read_or_refuse(bytes(damaged))


@settings(deadline=None, suppress_health_check=SLOW, max_examples=300)
@given(
    objects(MetadataBlock),
    st.sampled_from([2, 3]),
    st.lists(st.tuples(st.integers(0, 2**16), st.binary(min_size=1, max_size=8)), max_size=6),
    st.integers(0, 2**16),
)
def test_a_block_with_any_bytes_overwritten_or_cut_off_is_read_or_refused(
    block: MetadataBlock, version: int, overwritten: list[tuple[int, bytes]], cut: int
) -> None:
    data = bytearray(encode_block(block, version))
    for at, new in overwritten:
        place = at % len(data)
        data[place : place + len(new)] = new
    _read_or_refuse(bytes(data[: max(1, cut % (2 * len(data)))]))


def test_one_text_named_again_and_again_costs_neither_time_nor_memory() -> None:
    builder = flatbuffers.Builder()
    text = builder.CreateString("x" * 100_000)
    builder.StartVector(4, 250_000, 4)
    for _ in range(250_000):
        builder.PrependUOffsetTRelative(text)
    keywords = builder.EndVector()
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(1, keywords, 0)
    builder.Finish(builder.EndObject())
    data = bytes(builder.Output())
    with _little_memory(100_000_000), pytest.raises(MalformedBlock, match="more items than"):
        decode_message(SetInfo, data)


def test_types_in_types_that_all_lead_to_the_same_place_are_refused_at_once() -> None:
    builder = flatbuffers.Builder()
    tags = {member.KIND: number for number, member in enumerate(DataType.__args__, 1)}
    builder.StartObject(0)
    inner, tag = builder.EndObject(), tags["Bool"]
    for _ in range(60):
        builder.StartObject(5)
        for slot in (0, 2):
            builder.PrependUint8Slot(slot, tag, 0)
            builder.PrependUOffsetTRelativeSlot(slot + 1, inner, 0)
        inner, tag = builder.EndObject(), tags["Map"]
    builder.Finish(inner)
    with _little_memory(1_000_000), pytest.raises(MalformedBlock, match="more items than"):
        decode_message(DataTypeMap, bytes(builder.Output()))


@given(st.binary(max_size=400))
def test_random_bytes_are_read_or_refused(data: bytes) -> None:
    _read_or_refuse(data)


@given(st.integers(0, 100), st.sampled_from([0, 1, 4, 0x7FFFFFFF, 0xFFFFFFFF]))
def test_offsets_and_lengths_that_lead_outside_are_refused(at: int, number: int) -> None:
    data = bytearray(encode_block(BLOCK))
    data[at : at + 4] = number.to_bytes(4, "little")
    _read_or_refuse(bytes(data))


@pytest.mark.parametrize("length", range(0, len(encode_block(BLOCK)), 7))
def test_a_block_that_is_cut_off_is_refused(length: int) -> None:
    with pytest.raises(MalformedBlock):
        decode_block(encode_block(BLOCK)[:length])


def test_a_manifest_version_of_the_future_is_refused_by_name() -> None:
    data = encode_block(BLOCK)
    where = next(
        at
        for at in range(len(data))
        if data[at] == 3
        and manifest_version(data[:at] + b"\x09" + data[at + 1 :]) == 9  # the version's byte
    )
    with pytest.raises(UnsupportedVersion, match="9"):
        decode_block(data[:where] + b"\x09" + data[where + 1 :])


def _read_or_refuse(data: bytes) -> None:
    started = time.process_time()
    block = None
    with _little_memory(1_000_000 + 1_000 * len(data)), suppress(MalformedBlock):
        block = decode_block(data)
    with suppress(MalformedBlock):
        decode_place(data)
    assert block is None or isinstance(block, MetadataBlock)
    assert time.process_time() - started < 10


@contextmanager
def _little_memory(most: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()

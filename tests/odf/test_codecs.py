"""Any event keeps its value as bytes and as YAML; any bytes give a block or an error."""

import struct
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odfbuild.odf.flatbuffers_form import (
    MalformedBlock,
    UnsupportedVersion,
    block_hash,
    decode_block,
    encode_block,
    manifest_version,
)
from odfbuild.odf.model import MetadataBlock, MetadataEvent, SetInfo
from odfbuild.odf.timestamp import Timestamp
from odfbuild.odf.yaml_form import dump_yaml, from_data, to_data
from odfbuild.project.yaml_source import read_documents
from tests.odf.values import events, objects

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
BLOCK = MetadataBlock(
    system_time=Timestamp(1_600_000_000_123_456_789),
    sequence_number=7,
    event=SetInfo(description="Flights", keywords=("air", "New York")),
)


@settings(deadline=None, suppress_health_check=SLOW, max_examples=300)
@given(objects(MetadataBlock), st.sampled_from([2, 3]))
def test_any_block_is_read_back_from_its_bytes(block: MetadataBlock, version: int) -> None:
    data = encode_block(block, version)
    assert decode_block(data) == block
    assert manifest_version(data) == version


@settings(deadline=None, suppress_health_check=SLOW, max_examples=300)
@given(events())
def test_any_event_is_read_back_from_its_yaml(event: Any) -> None:
    data = to_data(event)
    assert from_data(MetadataEvent, data) == event
    assert to_data(from_data(MetadataEvent, data)) == data


@settings(deadline=None, suppress_health_check=SLOW, max_examples=200)
@given(events())
def test_yaml_and_bytes_of_an_event_agree(event: Any) -> None:
    from_yaml = from_data(MetadataEvent, to_data(event))
    block = MetadataBlock(system_time=Timestamp(0), sequence_number=0, event=from_yaml)
    assert to_data(decode_block(encode_block(block)).event) == to_data(event)


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


@given(st.integers(0, 8 * len(encode_block(BLOCK)) - 1))
def test_a_flipped_bit_changes_the_hash_and_never_crashes_the_reader(bit: int) -> None:
    data = bytearray(encode_block(BLOCK))
    data[bit // 8] ^= 1 << bit % 8
    assert block_hash(bytes(data)) != block_hash(encode_block(BLOCK))
    _read_or_refuse(bytes(data))


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
    try:
        block = decode_block(data)
    except MalformedBlock:
        block = None
    assert block is None or isinstance(block, MetadataBlock)
    assert time.process_time() - started < 1

"""Messages of the engine protocol, as bytes that other programs wrote and read."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odfbuild.engine.process.wire import (
    EXECUTE_RAW_QUERY,
    EXECUTE_TRANSFORM,
    MalformedMessage,
    enveloped,
    unwrapped,
)
from odfbuild.odf.model.data import OffsetInterval
from odfbuild.odf.model.messages import (
    RawQueryRequest,
    RawQueryResponseRoot,
    RawQueryResponseSuccess,
    TransformRequest,
    TransformResponse,
    TransformResponseInternalError,
    TransformResponseInvalidQuery,
    TransformResponseProgress,
    TransformResponseRoot,
    TransformResponseSuccess,
)
from odfbuild.odf.model.transform import TransformSql
from odfbuild.odf.timestamp import Timestamp
from tests.odf.values import objects

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

# Written by the stock builder of FlatBuffers and read back by flatc 2.0.8.
GOLDEN: dict[str, TransformResponse] = {
    "0c00000008000c000b000400080000000c000000000000010400040004000000": TransformResponseProgress(),
    "0c00000008000a0009000400080000000c000000000206000800040006000000080000000400040004000000": (
        TransformResponseSuccess(new_offset_interval=OffsetInterval(start=0, end=0))
    ),
    "0c00000008000c000b000400080000000c000000000000020400040004000000": TransformResponseSuccess(),
    "0c00000008000c000b0004000800000010000000000000020800140000000400080000000208000002000000"
    "c0a8000000000000": TransformResponseSuccess(
        new_watermark=Timestamp.parse("2050-01-02T12:00:00Z")
    ),
    "0c00000008000a0009000400080000000c000000000306000800040006000000040000000300000062616400": (
        TransformResponseInvalidQuery(message="bad")
    ),
    "0c00000008000a0009000400080000000c000000000406000800040006000000040000000300000062616400": (
        TransformResponseInternalError(message="bad")
    ),
}


REQUEST = RawQueryRequest(
    input_data_paths=("/opt/engine/in/input.parquet",),
    transform=TransformSql(engine="spark", query="select * from input"),
    output_data_path="/opt/engine/out/output.parquet",
)


@pytest.mark.parametrize("written", GOLDEN, ids=lambda text: text[-24:])
def test_answers_of_other_programs_are_read(written: str) -> None:
    data = enveloped(bytes.fromhex(written))
    assert EXECUTE_TRANSFORM.decode_response(data) == GOLDEN[written]
    response = GOLDEN[written]
    assert EXECUTE_TRANSFORM.decode_response(EXECUTE_TRANSFORM.encode_response(response)) == (
        response
    )


def test_success_of_a_raw_query_without_records_has_the_same_bytes_as_one_without_an_interval():
    written = next(text for text, value in GOLDEN.items() if value == TransformResponseSuccess())
    read = EXECUTE_RAW_QUERY.decode_response(enveloped(bytes.fromhex(written)))
    assert read == RawQueryResponseSuccess(num_records=0)
    assert EXECUTE_RAW_QUERY.encode_response(read) == EXECUTE_TRANSFORM.encode_response(
        TransformResponseSuccess()
    )


def test_the_envelope_is_a_field_of_bytes_with_the_number_1() -> None:
    assert enveloped(b"x" * 300) == b"\x0a\xac\x02" + b"x" * 300
    assert enveloped(b"") == b""
    assert unwrapped(b"") == b""


def test_unknown_fields_of_the_envelope_are_skipped() -> None:
    # Field 2 as a number, 3 as eight bytes, 4 as bytes, 5 as four bytes; the last field 1 counts.
    others = b"\x10\x96\x01" + b"\x19" + b"8" * 8 + b"\x22\x03abc" + b"\x2d" + b"4" * 4
    assert unwrapped(b"\x0a\x01a" + others + b"\x0a\x02bc") == b"bc"


@pytest.mark.parametrize(
    "data", [b"\x0a", b"\x0a\x05abc", b"\x0b", b"\x09123", b"\xff" * 11, b"\x10\x80"]
)
def test_an_envelope_that_is_cut_off_or_of_another_kind_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        unwrapped(data)


@pytest.mark.parametrize("call", [EXECUTE_TRANSFORM, EXECUTE_RAW_QUERY], ids=lambda call: call.name)
@settings(deadline=None, suppress_health_check=SLOW, max_examples=60)
@given(st.data())
def test_any_message_is_read_back(call, data) -> None:
    root = TransformResponseRoot if call is EXECUTE_TRANSFORM else RawQueryResponseRoot
    response = data.draw(objects(root)).value
    assert call.decode_response(call.encode_response(response)) == response
    request = data.draw(objects(call.request))
    read = call.decode_request(call.encode_request(request))
    # Names of system columns are written in full; with them all is as it was.
    assert call.encode_request(read) == call.encode_request(request)


@settings(deadline=None, suppress_health_check=SLOW)
@given(objects(TransformRequest))
def test_names_of_system_columns_are_never_absent(request: TransformRequest) -> None:
    read = EXECUTE_TRANSFORM.decode_request(EXECUTE_TRANSFORM.encode_request(request))
    for written, vocab in [
        (request.vocab, read.vocab),
        *(
            (before.vocab, after.vocab)
            for before, after in zip(request.query_inputs, read.query_inputs, strict=True)
        ),
    ]:
        for name, implied in [
            ("offset_column", "offset"),
            ("operation_type_column", "op"),
            ("system_time_column", "system_time"),
            ("event_time_column", "event_time"),
        ]:
            expected = getattr(written, name)
            assert getattr(vocab, name) == (implied if expected is None else expected)


@pytest.mark.parametrize("name", ["transform", "output_data_path"])
def test_an_absent_field_that_is_required_is_named(name: str) -> None:
    without = replace(REQUEST, **{name: None})
    key = {"transform": "transform", "output_data_path": "outputDataPath"}[name]
    with pytest.raises(MalformedMessage, match=f"^RawQueryRequest has no {key}$"):
        EXECUTE_RAW_QUERY.decode_request(EXECUTE_RAW_QUERY.encode_request(without))


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=120))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    for decode in (
        EXECUTE_TRANSFORM.decode_request,
        EXECUTE_TRANSFORM.decode_response,
        EXECUTE_RAW_QUERY.decode_request,
        EXECUTE_RAW_QUERY.decode_response,
    ):
        for bytes_ in (data, enveloped(data)):
            try:
                decode(bytes_)
            except MalformedMessage:
                continue


def test_changed_bytes_of_answers_are_an_answer_or_refused() -> None:
    chance = random.Random(7)
    for _ in range(20_000):
        data = bytearray.fromhex(chance.choice(list(GOLDEN)))
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.choice([0, 1, 2, 4, 9, 255])
        try:
            EXECUTE_TRANSFORM.decode_response(enveloped(bytes(data)))
        except MalformedMessage:
            continue


def test_a_request_with_fifty_thousand_slices_is_read() -> None:
    paths = tuple(f"/opt/engine/in/f1620{number:064d}" for number in range(50_000))
    request = replace(REQUEST, input_data_paths=paths)
    data = EXECUTE_RAW_QUERY.encode_request(request)
    assert len(data) > 4 * 1024 * 1024
    assert EXECUTE_RAW_QUERY.decode_request(data) == request

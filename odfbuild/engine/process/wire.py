"""What a coordinator and an engine say to each other, as bytes of gRPC.

The messages are those of `odf.model.messages`, in FlatBuffers, in an envelope of Protocol Buffers
that has one field. A `Call` is a method of the service, with the four functions that gRPC needs.
Sources: Open Data Fabric, "Engine Protocol"; the envelope and the ports as peers have them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from odfbuild.odf.flatbuffers.form import MalformedBlock, decode_message, encode_message
from odfbuild.odf.introspect import fields_of
from odfbuild.odf.model.messages import (
    DatasetVocabulary,
    RawQueryRequest,
    RawQueryResponse,
    RawQueryResponseRoot,
    TransformRequest,
    TransformResponse,
    TransformResponseRoot,
)

SERVICE = "engine.Engine"
PORT = 2884
"""Where engines of peers listen."""
SPECIFIED_PORT = 5544
"""Where the specification says that they listen."""
SOCKET_VARIABLE = "ODF_ENGINE_SOCKET"
"""Names the unix socket on which an engine is to listen."""

CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", -1),  # 40 000 slices are more than the usual 4 MiB
    ("grpc.enable_http_proxy", 0),  # gRPC would ask one even for this machine
    ("grpc.so_reuseport", 0),  # else a second server gets a part of the calls
)
"""How both sides use gRPC."""


class MalformedMessage(ValueError):
    """Bytes that are not the message that they should be."""


Request = TypeVar("Request")
Response = TypeVar("Response")


@dataclass(frozen=True, slots=True)
class Call(Generic[Request, Response]):
    """A method of the service: a request, then a stream of responses."""

    name: str
    request: type[Request]
    _root: Callable[..., Any]

    @property
    def path(self) -> str:
        """The method as gRPC calls it."""
        return f"/{SERVICE}/{self.name}"

    def encode_request(self, request: Request) -> bytes:
        """The bytes of a request; names of system columns are written in full."""
        return enveloped(encode_message(_with_vocabularies(request)))

    def decode_request(self, data: bytes) -> Request:
        """Read a request; `MalformedMessage` for anything else."""
        return _decoded(self.request, data)

    def encode_response(self, response: Response) -> bytes:
        """The bytes of a response."""
        return enveloped(encode_message(self._root(value=response)))

    def decode_response(self, data: bytes) -> Response:
        """Read a response; `MalformedMessage` for anything else."""
        found: Response = _decoded(self._root, data).value  # type: ignore[arg-type]
        return found


EXECUTE_TRANSFORM: Call[TransformRequest, TransformResponse] = Call(
    "ExecuteTransform", TransformRequest, TransformResponseRoot
)
EXECUTE_RAW_QUERY: Call[RawQueryRequest, RawQueryResponse] = Call(
    "ExecuteRawQuery", RawQueryRequest, RawQueryResponseRoot
)


def named(vocab: DatasetVocabulary) -> DatasetVocabulary:
    """The vocabulary with all of its names: peers take none as absent."""
    return replace(
        vocab,
        **{
            each.name: each.implied
            for each in fields_of(DatasetVocabulary)
            if getattr(vocab, each.name) is None
        },
    )


_Message = TypeVar("_Message")


def _with_vocabularies(message: _Message) -> _Message:
    """The message, with all names in each vocabulary that it holds."""
    if not isinstance(message, TransformRequest):
        return message
    inputs = tuple(replace(each, vocab=named(each.vocab)) for each in message.query_inputs)
    return replace(message, vocab=named(message.vocab), query_inputs=inputs)


def _decoded(kind: type[_Message], data: bytes) -> _Message:
    try:
        return decode_message(kind, unwrapped(data))
    except MalformedBlock as error:
        raise MalformedMessage(str(error)) from None


# --- The envelope: a message of Protocol Buffers with field 1, of bytes ---

_FIELD = 0x0A
_BYTES, _FIXED = 2, {1: 8, 5: 4}


def enveloped(content: bytes) -> bytes:
    """The envelope around `content`; nothing is an empty one."""
    return bytes([_FIELD]) + _varint(len(content)) + content if content else b""


def unwrapped(data: bytes) -> bytes:
    """What is in an envelope; unknown fields are skipped, and the last of several counts."""
    content, at = b"", 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        kind = tag & 7
        if kind == 0:
            end = _read_varint(data, at)[1]
        elif kind == _BYTES:
            length, at = _read_varint(data, at)
            end = at + length
        elif kind in _FIXED:
            end = at + _FIXED[kind]
        else:
            raise MalformedMessage(f"the envelope has a field of kind {kind}")
        if end > len(data):
            raise MalformedMessage("the envelope ends in the middle of a field")
        if tag == _FIELD:
            content = data[at:end]
        at = end
    return content


def _varint(number: int) -> bytes:
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise MalformedMessage("the envelope ends in the middle of a number")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
    raise MalformedMessage("the envelope has a number of more than ten bytes")

"""Messages of the Smart Transfer Protocol: which there are, and their JSON.

A message carries no name: its place in the dialogue tells its type. We write what the reference
implementation writes (snake_case, `{"Ok": …}` or `{"Err": …}` around replies, bytes as a list of
integers), and read besides what the specification publishes (camelCase, base64) and replies of
older peers, which have no envelope. Unknown fields are ignored.
Sources: RFC-008; Open Data Fabric, AsyncAPI of the protocol; reference behaviour, "messages".
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, field, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from odfbuild.exchange.repositories.accept import objects_in, records_of
from odfbuild.exchange.repositories.contract import ObjectFile, RawBlock
from odfbuild.odf.flatbuffers.reader import decode_block
from odfbuild.odf.introspect import camel
from odfbuild.odf.multihash import Multihash
from odfbuild.store.storage import ObjectKind
from odfbuild.values import Value

VERSION = 1
"""The version of the protocol, which the header `x-odf-smtp-version` has."""

VERSION_HEADER = "x-odf-smtp-version"
MAX_MESSAGE = 64 << 20
"""Bytes of a message that peers take, at most."""

MAX_FRAME = 15 << 20
"""Bytes of a frame that we send; peers take 16 MiB."""

T = TypeVar("T")


class Malformed(ValueError):
    """Text that is not the message that is due."""


# --- Parts of messages ---


class TransferPlan(Value):
    """How much a transfer is; duplicates among objects count."""

    num_blocks: int
    num_objects: int
    num_records: int = 0
    bytes_in_raw_blocks: int = 0
    bytes_in_raw_objects: int = 0

    @classmethod
    def of(cls, blocks: Sequence[RawBlock]) -> TransferPlan:
        """How much a transfer of blocks is."""
        links = [(each.hash, decode_block(each.data)) for each in blocks]
        objects = [each for _, block in links for each in objects_in(block)]
        return cls(
            num_blocks=len(blocks),
            num_objects=len(objects),
            num_records=records_of(links),
            bytes_in_raw_blocks=sum(len(each.data) for each in blocks),
            bytes_in_raw_objects=sum(each.size for each in objects),
        )


class MetadataBatch(Value):
    """Blocks, oldest first, in a tar archive."""

    num_blocks: int = field(metadata={"also": "objectsCount"})
    payload: bytes
    media_type: str = "application/tar+gzip"
    encoding: str = "raw"


class ObjectReference(Value):
    """An object by its kind and hash."""

    object_type: Literal["DataSlice", "Checkpoint"]
    physical_hash: Multihash
    size: int = 0

    @classmethod
    def of(cls, file: ObjectFile) -> ObjectReference:
        """The reference to an object of a dataset."""
        return cls("DataSlice" if file.kind == "data" else "Checkpoint", file.hash, file.size)

    @property
    def key(self) -> tuple[ObjectKind, Multihash]:
        """Which object it is."""
        return "data" if self.object_type == "DataSlice" else "checkpoints", self.physical_hash


class Header(Value):
    """A header to send with a request for an object."""

    name: str
    value: str


class TransferUrl(Value):
    """Where an object is fetched from or sent to."""

    url: str
    headers: tuple[Header, ...] = ()
    expires_at: str | None = None


class PullStrategy(Value):
    """How an object is fetched."""

    object_file: ObjectReference
    download_from: TransferUrl
    pull_strategy: Literal["HttpDownload"] = "HttpDownload"


class PushStrategy(Value):
    """How an object is sent, or that it is there already."""

    object_file: ObjectReference
    push_strategy: Literal["SkipUpload", "HttpUpload"]
    upload_to: TransferUrl | None = None


# --- Pull ---


class PullRequest(Value):
    """Ask for the blocks of `(begin_after, stop_at]`."""

    begin_after: Multihash | None = None
    stop_at: Multihash | None = None
    force_update_if_diverged: bool = False


class PullResponse(Value):
    """What would come."""

    transfer_plan: TransferPlan = field(metadata={"also": "sizeEstimation"})


class Nothing(Value):
    """A message without content."""


class PullMetadataResponse(Value):
    """The blocks."""

    blocks: MetadataBatch


class PullObjectsRequest(Value):
    """Ask where objects are fetched from."""

    object_files: tuple[ObjectReference, ...]


class PullObjectsResponse(Value):
    """Where each of them is, in the same order."""

    object_transfer_strategies: tuple[PullStrategy, ...]


# --- Push ---


class PushRequest(Value):
    """Offer blocks that go on from `current_head`."""

    transfer_plan: TransferPlan = field(metadata={"also": "sizeEstimation"})
    current_head: Multihash | None = None
    force_update_if_diverged: bool = False
    visibility_for_created_dataset: Literal["Private", "Public", "private", "public"] = "Private"


class PushMetadataRequest(Value):
    """The blocks."""

    new_blocks: MetadataBatch


class PushObjectsRequest(Value):
    """Ask where objects are to be sent; `is_truncated`: more are asked for after these."""

    object_files: tuple[ObjectReference, ...]
    is_truncated: bool = False


class PushObjectsResponse(Value):
    """Where each of them is to be sent, in the same order."""

    object_transfer_strategies: tuple[PushStrategy, ...]


class Uploading(Value):
    """How many objects have been sent; `None`: all of them."""

    sent: int | None

    @classmethod
    def parse(cls, data: Any) -> Uploading:
        """From the JSON of the message."""
        details = data.get("details") if isinstance(data, dict) else None
        if details == "Complete":
            return cls(None)
        running = details.get("Running") if isinstance(details, dict) else None
        sent = running.get("uploaded_objects_count") if isinstance(running, dict) else None
        if not isinstance(sent, int):
            raise Malformed("it is no report of uploads")
        return cls(sent)

    def plain(self) -> Any:
        """As JSON has it."""
        running = {"Running": {"uploaded_objects_count": self.sent}}
        return {"details": "Complete" if self.sent is None else running}


class PushComplete(Value):
    """All was sent: commit it. `info`: files of the dataset as base64, which only we send."""

    info: Mapping[str, str] = field(default_factory=dict)


# --- Refusals ---


class InvalidInterval(Value):
    """`tail` is not in the history of `head`."""

    head: Multihash
    tail: Multihash


class InvalidHead(Value):
    """The dataset has another head: `expected_head` is the server's, `actual_head` the client's."""

    actual_head: Multihash | None = None
    expected_head: Multihash | None = None


class SeedBlockOverwriteRestricted(Value):
    """A dataset of another identity or kind must not replace this one."""


class RefCollision(Value):
    """The server has this identity under another name."""

    dataset_id: str


class NameCollision(Value):
    """The server has another dataset of this name."""

    dataset_alias: str


class Internal(Value):
    """Anything else; `phase` says of which flow and step."""

    phase: Mapping[str, Any]
    error_message: str


Failure = (
    InvalidInterval
    | InvalidHead
    | SeedBlockOverwriteRestricted
    | RefCollision
    | NameCollision
    | Internal
)
_FAILURES: Mapping[str, type[Any]] = {each.__name__: each for each in get_args(Failure)}


class Refused(Exception):
    """The peer answered with a failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(type(failure).__name__)
        self.failure = failure


# --- JSON ---


def write(message: Any) -> str:
    """The JSON of a message."""
    return json.dumps(_plain(message), separators=(",", ":"))


def write_ok(message: Any) -> str:
    """The JSON of a reply in its envelope."""
    return json.dumps({"Ok": _plain(message)}, separators=(",", ":"))


def write_failure(failure: Failure) -> str:
    """The JSON of a refusal in its envelope."""
    name = type(failure).__name__
    return json.dumps({"Err": {name: _plain(failure)}}, separators=(",", ":"))


def read(form: type[T], text: str) -> T:
    """A message; `Malformed` when it is none of that type."""
    return cast(T, _value(form, _parsed(text), "the message"))


def read_reply(form: type[T], text: str) -> T:
    """A reply, with or without an envelope. `Refused` for a failure, `Malformed` for neither."""
    data = _parsed(text)
    if isinstance(data, dict) and "Err" in data:
        raise Refused(_failure(data["Err"]))
    if isinstance(data, dict) and isinstance(data.get("errorDetails"), dict):
        details = data["errorDetails"]
        raise Refused(Internal({}, f"{details.get('errorCode')}: {details.get('description')}"))
    enveloped = isinstance(data, dict) and "Ok" in data
    return cast(T, _value(form, data["Ok"] if enveloped else data, "the reply"))


def _failure(data: Any) -> Failure:
    if not isinstance(data, dict) or len(data) != 1:
        raise Malformed("it is an error without a name")
    [(name, content)] = data.items()
    form = _FAILURES.get(name)
    if form is None:
        return Internal({}, str(name)[:200])
    failure: Failure = _value(form, content, name)
    return failure


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Malformed("it is not JSON") from None


def _plain(value: Any) -> Any:
    if isinstance(value, Uploading):
        return value.plain()
    if isinstance(value, Multihash):
        return str(value)
    if is_dataclass(value):
        found = ((each.name, getattr(value, each.name)) for each in fields(value))
        return {name: _plain(part) for name, part in found if part != {}}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return list(value) if isinstance(value, bytes) else value


@cache
def _fields(form: type[Any]) -> tuple[tuple[Field[Any], Any], ...]:
    hints = get_type_hints(form)
    return tuple((each, hints[each.name]) for each in fields(form))


def _value(form: Any, data: Any, where: str) -> Any:
    if form is Uploading:
        return Uploading.parse(data)
    if is_dataclass(form) and form is not Multihash:
        return _object(form, data, where)
    origin, inner = get_origin(form), get_args(form)
    if origin in (Union, UnionType):
        return None if data is None else _value(inner[0], data, where)
    if origin is tuple:
        if not isinstance(data, list):
            raise Malformed(f"{where} is no list")
        return tuple(_value(inner[0], each, where) for each in data)
    if origin is Literal:
        if data not in inner:
            raise Malformed(f"{where} is none of {', '.join(inner)}")
        return data
    return _leaf(form, data, where)


def _leaf(form: Any, data: Any, where: str) -> Any:
    if form is Multihash:
        try:
            return Multihash.parse(data)
        except (ValueError, TypeError, AttributeError):
            raise Malformed(f"{where} is no hash") from None
    if form is bytes:
        return _bytes(data, where)
    wanted = dict if get_origin(form) is Mapping else form
    if not isinstance(data, wanted) or (form is int and isinstance(data, bool)):
        raise Malformed(f"{where} has another type")
    if form is int and not 0 <= cast(int, data) < 1 << 64:
        raise Malformed(f"{where} is out of range")
    return data


def _bytes(data: Any, where: str) -> bytes:
    try:
        if isinstance(data, str):
            return base64.b64decode(data, validate=True)
        if isinstance(data, list):
            return bytes(data)
    except (ValueError, TypeError, binascii.Error):
        pass
    raise Malformed(f"{where} is neither a list of bytes nor base64")


def _object(form: Any, data: Any, where: str) -> Any:
    if not isinstance(data, dict):
        raise Malformed(f"{where} is no object")
    found = {}
    for each, hint in _fields(form):
        names = (each.name, camel(each.name), each.metadata.get("also"))
        name = next((name for name in names if name in data), None)
        if name is not None and not (data[name] is None and each.default is not MISSING):
            found[each.name] = _value(hint, data[name], each.name)
        elif each.default is MISSING and each.default_factory is MISSING:
            raise Malformed(f"{where} lacks {each.name}")
    return form(**found)

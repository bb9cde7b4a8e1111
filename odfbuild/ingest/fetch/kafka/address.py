"""The address of a topic, such as `kafka://broker-1:9092,broker-2:9092/orders?key=id`.

All parameters are ours: how messages become records, what becomes of those that are none, and how
to connect. Reads nothing.
"""

from __future__ import annotations

import re
from typing import Literal, cast
from urllib.parse import parse_qsl, unquote

from odfbuild.errors import InDefinition, IngestError
from odfbuild.odf.model import MergeStrategy, MergeStrategyUpsertStream, ReadStep, ReadStepNdJson
from odfbuild.values import Value
from odfbuild.wording import did_you_mean

Format = Literal["json", "ndjson", "avro", "protobuf"]
Tombstones = Literal["retract", "skip", "fail"]

_CHOICES = {
    "format": ("json", "ndjson", "avro", "protobuf"),
    "keyFormat": ("text", "json"),
    "tombstones": ("retract", "skip", "fail"),
    "gaps": ("fail", "skip"),
    "tls": ("on", "off"),
    "sasl": ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
}
"""Parameters with a few values; the first is the default."""
_COLUMNS = ("key", "partition", "offset", "timestamp", "headers")
"""Parameters that name a column for something beside the value of a message."""
_FILES = ("schemas", "ca", "certificate", "certificateKey")
_KNOWN = (*_CHOICES, *_COLUMNS, *_FILES, "message")
_SCHEMAS = {"avro": "NUMBER.avsc", "protobuf": "NUMBER.desc"}
"""Formats that need schemas, and the names of files with these."""
_PREFIX = "kafka://"
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_BROKER = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")


class Wanted(Value, kw_only=True):
    """What an address asks for. `columns` are names of columns by what they hold.

    `tombstones` is `None` where the merge strategy decides; `message` is the type of all messages
    of Protobuf that do not begin with a number.
    """

    brokers: str
    topic: str
    user: str | None = None
    password: str | None = None
    format: Format = "json"
    columns: dict[str, str]
    key_is_json: bool = False
    tombstones: Tombstones | None = None
    skips_gaps: bool = False
    tls: bool = False
    sasl: str = "PLAIN"
    files: dict[str, str]
    message: str | None = None


def is_kafka(url: str) -> bool:
    """Whether `url` is the address of a topic, as far as its scheme tells."""
    return url[: len(_PREFIX)].lower() == _PREFIX


def wanted(url: str, shown: str) -> Wanted:
    """What `url` asks for, which messages may show as `shown`. Raises `IngestError` E0446."""
    place, _, query = url[len(_PREFIX) :].partition("?")
    host, _, topic = place.partition("/")
    login, at, brokers = host.rpartition("@")
    if "${{" not in brokers and not all(map(_BROKER.fullmatch, brokers.split(","))):
        raise _wrong(shown, "it names no brokers", "write kafka://HOST:9092,HOST:9092/TOPIC")
    if "${{" not in topic and not _TOPIC.fullmatch(topic):
        raise _wrong(shown, "it names no topic", "write kafka://HOST:9092/TOPIC")
    user, _, password = login.partition(":")
    if at and not (user and password):
        raise _wrong(shown, "it has a user or a password only", "write user:${{ env.NAME }}@HOST")
    given = _parameters(query, shown)
    _check_schemas(given, shown)
    if given.get("tombstones") == "retract" and not ("key" in given or "keyFormat" in given):
        raise _no_key(shown)
    if ("certificate" in given) != ("certificateKey" in given):
        raise _wrong(
            shown, "a certificate needs its key", "give `certificate` and `certificateKey`"
        )
    if "sasl" in given and not at:
        raise _wrong(shown, "`sasl` needs a login", "write user:${{ env.NAME }}@HOST")
    tls = given.get("tls") == "on"
    if not tls and any(name in given for name in ("ca", "certificate")):
        raise _wrong(shown, "certificates are for TLS", "add tls=on")
    return Wanted(
        brokers=brokers,
        topic=topic,
        user=unquote(user) if at else None,
        password=unquote(password) if at else None,
        format=cast(Format, given.get("format", "json")),
        columns={name: given[name] for name in _COLUMNS if name in given},
        key_is_json=given.get("keyFormat") == "json",
        tombstones=cast("Tombstones | None", given.get("tombstones")),
        skips_gaps=given.get("gaps") == "skip",
        tls=tls,
        sasl=given.get("sasl", "PLAIN"),
        files={name: given[name] for name in _FILES if name in given},
        message=given.get("message"),
    )


def named(url: str) -> str:
    """An address as messages name it: without login and parameters."""
    place = url[len(_PREFIX) :].partition("?")[0]
    host, slash, topic = place.partition("/")
    return f"{_PREFIX}{host.rpartition('@')[2]}{slash}{topic}"


def topic_of(url: str) -> str:
    """What tells a source from others: brokers come and go, and the state knows the cluster."""
    return f"{_PREFIX}/{url[len(_PREFIX) :].partition('?')[0].partition('/')[2]}"


def tombstones_of(asked: Wanted, merge: MergeStrategy | None) -> Tombstones:
    """What becomes of messages without a value."""
    if asked.tombstones is not None:
        return asked.tombstones
    has_key = "key" in asked.columns or asked.key_is_json
    return "retract" if isinstance(merge, MergeStrategyUpsertStream) and has_key else "fail"


def check_reading(asked: Wanted, read: ReadStep, merge: MergeStrategy, shown: str) -> None:
    """Raise `IngestError` E0447 where messages are read or merged as something else."""
    if not isinstance(read, ReadStepNdJson):
        raise IngestError(
            f"messages come as NdJson, which `read: {{kind: {read.KIND}}}` cannot read",
            code="E0447",
            location=InDefinition.of("read", "kind"),
            help="use `read: {kind: NdJson}`",
        )
    if merge.KIND in ("Snapshot", "ChangelogStream"):
        raise IngestError(
            f"`merge: {{kind: {merge.KIND}}}` does not fit the messages of {named(shown)}",
            code="E0447",
            location=InDefinition.of("merge", "kind"),
            notes=(
                "Snapshot takes what a run reads for the whole current state, and ChangelogStream "
                "needs both sides of each change; a run reads new messages only",
            ),
            help="use `merge: {kind: UpsertStream}` with a key, `{kind: Ledger}` or "
            "`{kind: Append}`",
        )
    if asked.tombstones == "retract" and not isinstance(merge, MergeStrategyUpsertStream):
        raise IngestError(
            f"`merge: {{kind: {merge.KIND}}}` cannot retract what a tombstone is about",
            code="E0447",
            location=InDefinition.of("fetch", "url"),
            help="use `merge: {kind: UpsertStream}`, or `tombstones=skip`",
        )


def _parameters(text: str, shown: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        if name not in _KNOWN:
            help = did_you_mean(name, _KNOWN, f"use {', '.join(_KNOWN)}")
            raise _wrong(shown, f"'{name}' is no parameter of such an address", help)
        if name in given:
            raise _wrong(shown, f"it has '{name}' twice", "write it once")
        choices = _CHOICES.get(name, ())
        if not value or (choices and value not in choices):
            help = f"use one of {', '.join(choices)}" if choices else "give it a value"
            raise _wrong(shown, f"`{name}` is '{value}'", help)
        given[name] = value
    columns = [given[name] for name in _COLUMNS if name in given]
    if len({*columns}) < len(columns):
        raise _wrong(shown, "two parameters name one column", "give each a column of its own")
    return given


def _check_schemas(given: dict[str, str], shown: str) -> None:
    """Schemas belong to formats that need them."""
    format = given.get("format", "json")
    if "message" in given and format != "protobuf":
        raise _wrong(shown, "`message` is a type of Protobuf", "add format=protobuf")
    if format in _SCHEMAS and "schemas" not in given:
        help = f"name a folder of {_SCHEMAS[format]} files: schemas="
        raise _wrong(shown, f"there are no schemas for {format.capitalize()}", help)
    if format not in _SCHEMAS and "schemas" in given:
        raise _wrong(shown, "`schemas` are for Avro and Protobuf", "add format=, or leave it out")


def _no_key(shown: str) -> IngestError:
    return _wrong(
        shown,
        "a tombstone retracts by the key of its message",
        "name its column with key=COLUMN, or add keyFormat=json for a key that is an object",
    )


def _wrong(shown: str, what: str, help: str) -> IngestError:
    return IngestError(
        f"'{named(shown)}' cannot be the address of a topic: {what}", code="E0446", help=help
    )

"""Messages of a topic as lines of JSON: their value as it is, with columns for what is beside it.

A message without a value (tombstone) retracts the record of its key. Source: Kafka, "Log
Compaction".
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from odfbuild.ingest.fetch.kafka.address import Tombstones, Wanted
from odfbuild.ingest.fetch.kafka.problems import BadMessage, bad_message
from odfbuild.ingest.fetch.kafka.schemas import schemas_of
from odfbuild.odf.operation import APPEND, RETRACT
from odfbuild.values import Value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Message(Value, kw_only=True):
    """A message; `value` is `None` in a tombstone, `millis` since 1970 where it has a time."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    millis: int | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Lines:
    """Makes lines of messages; `operation` is the column of operations."""

    def __init__(
        self,
        asked: Wanted,
        root: Path,
        shown: str,
        *,
        tombstones: Tombstones,
        operation: str,
        keeps_bad: bool,
    ) -> None:
        self._asked = asked
        self._shown = shown
        self._tombstones = tombstones
        self._operation = operation
        self._keeps_bad = keeps_bad
        self._schemas = schemas_of(asked, root)

    def of(self, message: Message) -> Iterator[bytes]:
        """The lines of a message, without line breaks; none for one that is left out.

        Raises `IngestError` E0445. One that is no JSON is passed on where the read step skips bad
        records, and counts them.
        """
        try:
            yield from self._lines(message)
        except BadMessage as error:
            value = message.value
            if self._keeps_bad and value is not None and self._schemas is None:
                yield _in_one_line(value)
                return
            raise bad_message(
                self._shown, message.partition, message.offset, str(error), error.help
            ) from None

    def _lines(self, message: Message) -> Iterator[bytes]:
        value = message.value
        if value is None:
            yield from self._of_tombstone(message)
            return
        for text in self._texts(value):
            members = self._beside(message)
            if self._tombstones == "retract":
                members[self._operation] = APPEND
            yield _joined(text, self._key(message), members)

    def _texts(self, value: bytes) -> list[bytes]:
        if self._schemas is not None:
            return [_dumped(self._schemas.read(value))]
        if self._asked.format == "ndjson":
            return [line for line in value.splitlines() if line.strip()]
        return [value]

    def _of_tombstone(self, message: Message) -> Iterator[bytes]:
        if self._tombstones == "skip":
            return
        if self._tombstones == "fail":
            raise BadMessage(
                "it has no value (a tombstone)",
                "use `merge: {kind: UpsertStream}` with `key=COLUMN` in `fetch.url`, which "
                "retracts the record of the key, or add `tombstones=skip`",
            )
        key = self._key(message)
        if not key:
            raise BadMessage("it has neither a value nor a key", "add `tombstones=skip`")
        yield _dumped({**key, **self._beside(message), self._operation: RETRACT})

    def _key(self, message: Message) -> dict[str, Any]:
        """The columns that the key gives."""
        key, column = message.key, self._asked.columns.get("key")
        if key is None or (column is None and not self._asked.key_is_json):
            return {}
        found: Any = _text(key, "its key")
        if self._asked.key_is_json:
            try:
                found = json.loads(found, parse_float=Decimal)
            except (ValueError, RecursionError):
                raise BadMessage("its key is no JSON", "leave `keyFormat=json` out") from None
            if isinstance(found, dict):
                return found
        if column is None:
            raise BadMessage("its key is no object", "name a column for it with `key=COLUMN`")
        return {column: found}

    def _beside(self, message: Message) -> dict[str, Any]:
        """The columns for what is beside key and value."""
        made: dict[str, Any] = {}
        for what, column in self._asked.columns.items():
            match what:
                case "partition":
                    made[column] = message.partition
                case "offset":
                    made[column] = message.offset
                case "timestamp":
                    made[column] = _moment(message.millis)
                case "headers":
                    made[column] = {
                        name: None if value is None else value.decode(errors="replace")
                        for name, value in message.headers
                    }
        return made


def _joined(value: bytes, key: Mapping[str, Any], members: Mapping[str, Any]) -> bytes:
    """The object `value` in one line, with more members; its own come before those of the key."""
    text = _text(value, "it")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise BadMessage("it is no JSON") from None
    if not isinstance(found, dict):
        raise BadMessage("it is no object")
    for name in members:
        if name in found:
            raise BadMessage(
                f"it has a member '{name}' itself",
                "give the column another name in the parameters of `fetch.url`, or rename the "
                "system column with SetVocab",
            )
    more = {**{name: each for name, each in key.items() if name not in found}, **members}
    line = _in_one_line(value)
    if not more:
        return line
    return _dumped(more)[:-1] + (b", " if found else b"") + line[1:]


def _text(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BadMessage(f"{what} is not in UTF-8") from None


def _in_one_line(value: bytes) -> bytes:
    """JSON has line breaks between its tokens only; within texts they are escaped."""
    return value.strip().replace(b"\r", b" ").replace(b"\n", b" ")


def _dumped(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain).encode()
    except ValueError:
        raise BadMessage("it has a number that JSON has not, such as NaN") from None


def _plain(value: Any) -> Any:
    """What JSON has no form for, as text that the read step converts to declared types."""
    if isinstance(value, datetime):
        return _spelled(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, date | time_of_day):
        return value.isoformat()
    if isinstance(value, Decimal | UUID):
        return str(value)
    raise ValueError(f"{type(value).__name__} has no form in JSON")


def _moment(millis: int | None) -> str | None:
    return None if millis is None else _spelled(_EPOCH + timedelta(milliseconds=millis))


def _spelled(moment: datetime) -> str:
    text = moment.replace(tzinfo=None).isoformat(timespec="microseconds")
    return f"{text}Z" if moment.tzinfo is not None else text

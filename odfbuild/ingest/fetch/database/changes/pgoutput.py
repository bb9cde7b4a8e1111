"""Decode messages of PostgreSQL's plugin `pgoutput`, protocol version 1. Pure.

Source: PostgreSQL, "Logical Replication Message Formats".
"""

from __future__ import annotations

import struct

from odfbuild.ingest.fetch.database.changes.messages import (
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Insert,
    Message,
    Other,
    Relation,
    RelationColumn,
    Row,
    Truncate,
    Unchanged,
    Update,
)

EPOCH_MICROS = 946_684_800_000_000
"""The beginning of the year 2000, from which times in messages count, in microseconds."""


def decode(data: bytes) -> Message:
    """A message. Raises `ValueError` if it is none."""
    reader = _Reader(data)
    try:
        return _message(reader, reader.letter())
    except (struct.error, IndexError):
        raise ValueError("a message of logical replication is cut off") from None


def _message(reader: _Reader, kind: bytes) -> Message:
    match kind:
        case b"B":
            lsn, micros, xid = reader.take(">QqI")
            return Begin(lsn, micros + EPOCH_MICROS, xid)
        case b"C":
            _, lsn, end, micros = reader.take(">BQQq")
            return Commit(lsn, end, micros + EPOCH_MICROS)
        case b"R":
            return _relation(reader)
        case b"I":
            (number,) = reader.take(">I")
            return Insert(number, reader.row(b"N"))
        case b"U":
            return _update(reader)
        case b"D":
            (number,) = reader.take(">I")
            whole = reader.next_is(b"O")
            return Delete(number, reader.row(b"O" if whole else b"K"), whole)
        case b"T":
            count, _ = reader.take(">IB")
            return Truncate(reader.take(f">{count}I"))
        case b"Y" | b"O" | b"M":
            return Other()
    raise ValueError(f"a message of logical replication of the unknown kind {kind!r}")


def _relation(reader: _Reader) -> Relation:
    (number,) = reader.take(">I")
    schema, name = reader.name(), reader.name()
    _, count = reader.take(">BH")
    columns = []
    for _ in range(count):
        reader.take(">B")
        column = reader.name()
        kind, modifier = reader.take(">Ii")
        columns.append(RelationColumn(column, kind, modifier))
    return Relation(number, f"{schema}.{name}", tuple(columns))


def _update(reader: _Reader) -> Update:
    (number,) = reader.take(">I")
    whole = reader.next_is(b"O")
    old = reader.row(b"O" if whole else b"K") if whole or reader.next_is(b"K") else None
    return Update(number, old, reader.row(b"N"), whole)


class _Reader:
    """Bytes, and how far they were read."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return found

    def letter(self) -> bytes:
        return self._bytes(1)

    def next_is(self, letter: bytes) -> bool:
        return self._data[self._at : self._at + 1] == letter

    def name(self) -> str:
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise IndexError
        found = self._data[self._at : end]
        self._at = end + 1
        return found.decode()

    def row(self, mark: bytes) -> Row:
        if self.letter() != mark:
            raise ValueError("a message of logical replication has no row where one belongs")
        (count,) = self.take(">H")
        return tuple(self._value() for _ in range(count))

    def _value(self) -> bytes | Unchanged | None:
        match self.letter():
            case b"n":
                return None
            case b"u":
                return UNCHANGED
            case b"t":
                (length,) = self.take(">I")
                return self._bytes(length)
        raise ValueError("a message of logical replication has a value of an unknown kind")

    def _bytes(self, length: int) -> bytes:
        found = self._data[self._at : self._at + length]
        if len(found) < length:
            raise IndexError
        self._at += length
        return found

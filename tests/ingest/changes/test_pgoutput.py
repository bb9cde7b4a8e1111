"""Messages of logical replication are read as the server's documentation has them."""

from __future__ import annotations

import contextlib
import struct
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    Update,
)
from odfbuild.ingest.fetch.database.changes.pgoutput import EPOCH_MICROS, decode

_U32 = st.integers(0, 2**32 - 1)
_U64 = st.integers(0, 2**64 - 1)
_MICROS = st.integers(0, 2**62)
_NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9)
_VALUES: TypeAlias = st.SearchStrategy[Row]
ROWS: _VALUES = st.lists(
    st.one_of(st.none(), st.just(UNCHANGED), st.binary(max_size=9)), max_size=5
).map(tuple)
COLUMNS = st.lists(st.builds(RelationColumn, _NAMES, _U32, st.integers(-1, 2**31 - 1)), max_size=5)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(Begin, _U64, _MICROS, _U32),
    st.builds(Commit, _U64, _U64, _MICROS),
    st.builds(
        lambda number, schema, name, columns: Relation(number, f"{schema}.{name}", tuple(columns)),
        _U32,
        _NAMES,
        _NAMES,
        COLUMNS,
    ),
    st.builds(Insert, _U32, ROWS),
    st.builds(Update, _U32, st.none(), ROWS, st.just(False)),
    st.builds(Update, _U32, ROWS, ROWS, st.booleans()),
    st.builds(Delete, _U32, ROWS, st.booleans()),
    st.builds(Truncate, st.lists(_U32, max_size=4).map(tuple)),
)


def encode(message: Message) -> bytes:
    """As the documentation lays them out, written down a second time."""
    match message:
        case Begin(lsn, micros, xid):
            return b"B" + struct.pack(">QqI", lsn, micros - EPOCH_MICROS, xid)
        case Commit(lsn, end, micros):
            return b"C\0" + struct.pack(">QQq", lsn, end, micros - EPOCH_MICROS)
        case Relation(number, name, columns):
            schema, _, table = name.partition(".")
            head = struct.pack(">I", number) + schema.encode() + b"\0" + table.encode() + b"\0f"
            each = [
                b"\1" + c.name.encode() + b"\0" + struct.pack(">Ii", c.type, c.modifier)
                for c in columns
            ]
            return b"R" + head + struct.pack(">H", len(columns)) + b"".join(each)
        case Insert(number, new):
            return b"I" + struct.pack(">I", number) + b"N" + _row(new)
        case Update(number, old, new, whole):
            mark = b"" if old is None else (b"O" if whole else b"K") + _row(old)
            return b"U" + struct.pack(">I", number) + mark + b"N" + _row(new)
        case Delete(number, old, whole):
            return b"D" + struct.pack(">I", number) + (b"O" if whole else b"K") + _row(old)
        case Truncate(relations):
            numbers = struct.pack(f">{len(relations)}I", *relations)
            return b"T" + struct.pack(">IB", len(relations), 0) + numbers
    raise AssertionError(message)


def _row(row: Row) -> bytes:
    values = []
    for value in row:
        if value is None:
            values.append(b"n")
        elif value is UNCHANGED:
            values.append(b"u")
        else:
            values.append(b"t" + struct.pack(">I", len(value)) + value)
    return struct.pack(">H", len(row)) + b"".join(values)


@given(MESSAGES.filter(lambda each: not isinstance(each, Relation) or "." not in each.name[1:-1]))
def test_what_is_written_is_read(message: Message) -> None:
    assert decode(encode(message)) == message


@given(MESSAGES, st.data())
def test_a_message_that_is_cut_off_or_spoilt_is_refused_and_never_misread(
    message: Message, data: st.DataObject
) -> None:
    text = encode(message)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    with pytest.raises(ValueError, match="message of logical replication"):
        decode(cut)
    at = data.draw(st.integers(0, len(text) - 1))
    spoilt = text[:at] + bytes([data.draw(st.integers(0, 255))]) + text[at + 1 :]
    with contextlib.suppress(ValueError):
        decode(spoilt)


def test_types_origins_and_messages_of_programs_say_nothing_of_rows() -> None:
    for letter in (b"Y", b"O", b"M"):
        assert decode(letter + b"anything") == Other()
    with pytest.raises(ValueError, match="unknown kind"):
        decode(b"Z")

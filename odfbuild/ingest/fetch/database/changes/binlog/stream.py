"""The binary log of MariaDB as messages: of one table its rows, of others their transactions.

Source: MariaDB documentation, "Replication Protocol". Needs the extra `databases`.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from typing import Any, Literal

from odfbuild.errors import missing_extra
from odfbuild.ingest.fetch.database.changes.binlog.position import file_and_offset, place_in
from odfbuild.ingest.fetch.database.changes.binlog.values import (
    NotInLogError,
    relation_column,
    text_of,
)
from odfbuild.ingest.fetch.database.changes.messages import (
    Begin,
    Commit,
    Delete,
    Insert,
    Message,
    Relation,
    RelationColumn,
    Row,
    Update,
)
from odfbuild.values import Value

TABLE = 1
"""The number of the only table of which there are messages."""


class Unclear(Value):
    """Something may have changed the table, and the log does not tell its rows."""


def messages(
    login: Mapping[str, Any], schema: str, table: str, base: str, place: int
) -> Generator[Message | Unclear]:
    """What the log says behind a place, to its end. Raises errors of PyMySQL."""
    try:
        from pymysqlreplication import BinLogStreamReader
        from pymysqlreplication.event import (
            MariadbGtidEvent,
            NotImplementedEvent,
            QueryEvent,
            XAPrepareEvent,
            XidEvent,
        )
        from pymysqlreplication.row_event import (
            DeleteRowsEvent,
            TableMapEvent,
            UpdateRowsEvent,
            WriteRowsEvent,
        )
    except ImportError:
        raise missing_extra("databases", "changes of tables in MariaDB") from None

    file, offset = file_and_offset(base, place)
    reader = BinLogStreamReader(
        connection_settings=dict(login),
        # Of two readers with one number, the server ends the older one.
        server_id=1 + secrets.randbelow(2**32 - 1),
        log_file=file,
        log_pos=offset,
        resume_stream=True,
        blocking=False,
        filter_non_implemented_events=False,
        only_schemas=[schema],
        only_tables=[table],
        enable_logging=False,
    )
    columns: tuple[RelationColumn, ...] = ()
    with closing(reader):
        for event in reader:
            micros = event.timestamp * 1_000_000
            match event:
                case MariadbGtidEvent():
                    yield Begin(place_in(reader.log_file, reader.log_pos), micros, 0)
                case TableMapEvent():
                    found = tuple(map(relation_column, event.columns))
                    if found != columns:
                        columns = found
                        yield Relation(TABLE, f"{schema}.{table}", columns)
                case WriteRowsEvent() | UpdateRowsEvent() | DeleteRowsEvent():
                    yield from _changes(event)
                case XidEvent():
                    yield _commit(reader, micros)
                case QueryEvent():
                    meaning = meaning_of(event.query, table)
                    if meaning == "commit":
                        yield _commit(reader, micros)
                    elif meaning == "unclear":
                        yield Unclear()
                case XAPrepareEvent() | NotImplementedEvent():
                    # Rows that may never be committed, or that the library cannot read.
                    yield Unclear()


def _commit(reader: Any, micros: int) -> Commit:
    end = place_in(reader.log_file, reader.log_pos)
    return Commit(end, end, micros)


def _changes(event: Any) -> Iterator[Message | Unclear]:
    kind = type(event).__name__
    try:
        rows = event.rows
    except UnicodeDecodeError:  # bytes that Python does not know as text, and the server does
        yield Unclear()
        return
    for row in rows:
        try:
            if kind == "UpdateRowsEvent":
                old = _row(event, row["before_values"], row["before_none_sources"])
                new = _row(event, row["after_values"], row["after_none_sources"])
                yield Update(TABLE, old, new, True)
            else:
                values = _row(event, row["values"], row["none_sources"])
                is_new = kind == "WriteRowsEvent"
                yield Insert(TABLE, values) if is_new else Delete(TABLE, values, True)
        except NotInLogError:
            yield Unclear()


def _row(event: Any, values: Mapping[str, Any], nulls: Mapping[str, str]) -> Row:
    return tuple(
        text_of(values[each.name], each, nulls.get(each.name, "")) for each in event.columns
    )


Meaning = Literal["within", "commit", "unclear"]
"""`within` a transaction, the `commit` of one, which may be all of it, or `unclear`."""

_COMMENT = re.compile(r"(?:\s|--[ \t][^\n]*(?:\n|$)|/\*(?![!M]).*?\*/)+", re.DOTALL)
_WORD = re.compile(r"[A-Za-z]+")
_WITHIN = {"BEGIN", "START", "SAVEPOINT", "RELEASE"}
_OF_OTHERS = frozenset(
    {
        *("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "GRANT", "REVOKE"),
        *("ANALYZE", "OPTIMIZE", "REPAIR", "FLUSH"),
    }
)
"""Statements that change the table only if they name it."""


def meaning_of(statement: str, table: str) -> Meaning:
    """What a statement means for changes of `table`, which is its name without the database."""
    begin = _COMMENT.match(statement)
    found = _WORD.match(statement, begin.end() if begin else 0)
    word = found[0].upper() if found else ""
    if word in _WITHIN:
        return "within"
    if word == "COMMIT":
        return "commit"
    if word in _OF_OTHERS and not names(statement, table):
        return "commit"
    return "unclear"


def names(statement: str, table: str) -> bool:
    """Whether a name stands in a statement as a word, in any case of letters."""
    spelled = "|".join(re.escape(each) for each in (table, table.replace("`", "``")))
    return re.search(rf"(?<!\w)(?:{spelled})(?!\w)", statement, re.IGNORECASE) is not None

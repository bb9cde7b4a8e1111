"""PostgreSQL, by its ADBC driver: rows come as a binary COPY, and become Arrow in native code.

One transaction, repeatable read and read only, so all statements see one snapshot.
Source: PostgreSQL, "Transaction Isolation", "Numeric Types" (type modifiers of numeric).
Needs the extra `databases`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from odfbuild.errors import missing_extra
from odfbuild.ingest.fetch.database.address import Wanted, quoted
from odfbuild.ingest.fetch.database.contract import Column, CursorKind
from odfbuild.ingest.fetch.database.problems import not_connected, refused
from odfbuild.ingest.settings import IngestSettings

_BATCH_BYTES = 8 << 20
_MOST_DIGITS = 38
_CANCELLED, _OTHER = "57014", "HY000"
"""Codes of SQLSTATE."""

_TIMEOUT = re.compile(r"statement timeout|conflict with recovery")
_UTC = pa.timestamp("us", "UTC")
_AS_THEY_ARE: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "text": pa.string(),
    "varchar": pa.string(),
    "bpchar": pa.string(),
    "name": pa.string(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "timestamp": _UTC,
    "timestamptz": _UTC,
}
_CURSORS: dict[str, CursorKind] = {
    "int2": "number",
    "int4": "number",
    "int8": "number",
    "date": "date",
    "timestamp": "time",
    "timestamptz": "zoned time",
}


@contextmanager
def open_postgresql(asked: Wanted, settings: IngestSettings, shown: str) -> Iterator[Postgresql]:
    """Connect and begin a snapshot. Raises `OdfbuildError`."""
    try:
        from adbc_driver_manager.dbapi import Error
        from adbc_driver_postgresql.dbapi import connect
    except ImportError:
        raise missing_extra("databases", "sources in PostgreSQL") from None
    separator = "&" if urlsplit(asked.place).query else "?"
    seconds = max(2, round(settings.connect_seconds))
    try:
        connection = connect(f"{asked.place}{separator}connect_timeout={seconds}")
    except Error as error:
        raise not_connected(shown, _words(error)) from None
    try:
        found = Postgresql(connection, asked, shown)
        found.begin(settings)
        yield found
    finally:
        with suppress(Error):  # The connection may be lost, and there is nothing to keep.
            connection.rollback()
        with suppress(Error):
            connection.close()


class Postgresql:
    """A transaction that shows one moment."""

    def __init__(self, connection: Any, asked: Wanted, shown: str) -> None:
        self._connection = connection
        self._asked = asked
        self._shown = shown

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The few rows of a SELECT."""
        found: list[tuple[Any, ...]] = []
        for batch in self.batches(sql):
            found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        return found

    def carry_out(self, sql: str) -> None:
        """End the snapshot, and run a statement in a transaction of its own."""
        self._connection.rollback()
        self.run(sql)
        self._connection.commit()

    def begin(self, settings: IngestSettings) -> None:
        """Begin a snapshot, and bound how long statements run and wait for locks."""
        self._connection.rollback()
        limits = {
            "statement_timeout": settings.total_seconds,
            "lock_timeout": settings.idle_seconds,
            "idle_in_transaction_session_timeout": settings.total_seconds,
        }
        self.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for name, seconds in limits.items():
            self.run(f"SET LOCAL {name} = {min(round(seconds * 1000), 2**31 - 1)}")
        self.run("SET LOCAL client_encoding = 'UTF8'")
        # Text forms of times, numbers and bytes are the same in every session.
        self.run("SET LOCAL TimeZone = 'UTC'")
        self.run("SET LOCAL DateStyle = 'ISO, YMD'")
        self.run("SET LOCAL IntervalStyle = 'iso_8601'")
        self.run("SET LOCAL extra_float_digits = 1")
        self.run("SET LOCAL bytea_output = 'hex'")

    @cached_property
    def columns(self) -> Sequence[Column]:
        """The columns, by the types that the server tells."""
        schema = self._schema(f"SELECT * FROM {self._asked.relation} LIMIT 0")
        return [_column(field) for field in schema]

    @cached_property
    def key(self) -> Sequence[str]:
        """The columns of the primary key; a query has none."""
        if self._asked.query is not None:
            return ()
        name = self._asked.relation.replace("'", "''")
        sql = (
            "SELECT a.attname::text FROM pg_catalog.pg_index i "
            "JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid "
            "AND a.attnum = ANY (i.indkey) "
            f"WHERE i.indrelid = '{name}'::pg_catalog.regclass AND i.indisprimary "
            "ORDER BY array_position(i.indkey::int2[], a.attnum)"
        )
        return [name for batch in self.batches(sql) for name in batch.column(0).to_pylist()]

    @property
    def order_without_key(self) -> str:
        """The text of the whole row: some types, such as json, have no order of their own."""
        row = "source" if self._asked.query is not None else quoted(self._asked.table[-1])
        return f'({row}.*)::text COLLATE "C"'

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        """The rows of a SELECT, some megabytes at a time."""
        from adbc_driver_manager.dbapi import Error

        try:
            with self._connection.cursor() as cursor:
                cursor.adbc_statement.set_options(
                    **{"adbc.postgresql.batch_size_hint_bytes": str(_BATCH_BYTES)}
                )
                cursor.execute(sql)
                yield from cursor.fetch_record_batch()
        except (Error, pa.ArrowException, OSError) as error:
            raise self._refused(error) from None

    def _schema(self, sql: str) -> pa.Schema:
        from adbc_driver_manager.dbapi import Error

        try:
            with self._connection.cursor() as cursor:
                cursor.execute(sql)
                return cursor.fetch_arrow_table().schema
        except Error as error:
            raise self._refused(error) from None

    def run(self, sql: str) -> None:
        """Run a statement in the transaction."""
        from adbc_driver_manager.dbapi import Error

        try:
            with self._connection.cursor() as cursor:
                cursor.execute(sql)
        except Error as error:
            raise self._refused(error) from None

    def _refused(self, error: Exception) -> Exception:
        code = getattr(error, "sqlstate", None) or self._code_of_stream(str(error))
        return refused(self._shown, self._asked.called, _words(error), code)

    def _code_of_stream(self, said: str) -> str | None:
        """The SQLSTATE of an error between rows, for which the library tells none.

        `None` if the connection is lost: then the transaction, which has failed, cannot be ended.
        """
        from adbc_driver_manager.dbapi import Error

        try:
            self._connection.rollback()
        except Error:
            return None
        return _CANCELLED if _TIMEOUT.search(said) else _OTHER


def _words(error: Exception) -> str:
    """What the server says, else what the library says."""
    for name, said in getattr(error, "details", None) or ():
        if name == b"PG_DIAG_MESSAGE_PRIMARY":
            return bytes(said).decode(errors="replace").rstrip("\0")
    return str(error).partition("[libpq] ")[2] or str(error)


def _column(field: pa.Field) -> Column:
    about = field.metadata or {}
    declared = about.get(b"POSTGRESQL:type", b"").decode()
    if declared == "money":  # Its own text has the sign of a currency.
        name = f"{quoted(field.name)}::numeric::text"
        return Column(field.name, name, pa.string(), declared)
    modifier = int(about.get(b"POSTGRESQL:typmod", b"-1"))
    return column_of(field.name, declared or str(field.type), modifier)


def column_of(column: str, declared: str, modifier: int) -> Column:
    """A column by the name of its type; `modifier` is that of the type, -1 if it has none."""
    name = quoted(column)
    if declared == "numeric":
        return _number(column, modifier)
    kind = _AS_THEY_ARE.get(declared)
    if kind is not None:
        return Column(column, name, kind, declared, _CURSORS.get(declared))
    if declared == "oid":
        return Column(column, f"{name}::bigint", pa.int64(), declared)
    return Column(column, f"{name}::text", pa.string(), declared)


def _number(name: str, modifier: int) -> Column:
    """A `numeric`: a decimal where its digits are declared and fit, else text, which keeps all."""
    if modifier < 4:
        return Column(name, f"{quoted(name)}::text", pa.string(), "numeric")
    digits, places = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
    declared = f"numeric({digits}, {places})"
    if digits > _MOST_DIGITS or places > digits:
        return Column(name, f"{quoted(name)}::text", pa.string(), declared)
    # The server spells its digits faster than the driver does.
    return Column(name, f"{quoted(name)}::text", pa.decimal128(digits, places), declared)

"""Files of DuckDB, by its own library. Needs the extra `duckdb`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from odfbuild.errors import missing_extra
from odfbuild.ingest.fetch.database.address import Wanted, quoted
from odfbuild.ingest.fetch.database.contract import BATCH_ROWS, Column, CursorKind
from odfbuild.ingest.fetch.database.problems import missing_file, not_connected, refused

_UTC = pa.timestamp("us", "UTC")
_AS_THEY_ARE: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "UTINYINT": pa.int16(),
    "USMALLINT": pa.int32(),
    "UINTEGER": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "BLOB": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": _UTC,
    "TIMESTAMP WITH TIME ZONE": _UTC,
}
_CURSORS: dict[str, CursorKind] = {
    "TINYINT": "number",
    "SMALLINT": "number",
    "INTEGER": "number",
    "BIGINT": "number",
    "DATE": "date",
    "TIMESTAMP": "time",
    "TIMESTAMP WITH TIME ZONE": "zoned time",
}
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_NESTED = re.compile(r"(STRUCT|MAP|UNION)\(|.*\]$", re.DOTALL)
_OUTSIDE: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
}
"""A query reads the file that the address names, and no others."""


@contextmanager
def open_duckdb(asked: Wanted, root: Path, shown: str) -> Iterator[Duckdb]:
    """Open the file, and begin a snapshot. Raises `OdfbuildError`."""
    try:
        import duckdb
    except ImportError:
        raise missing_extra("duckdb", "sources in files of DuckDB") from None
    path = root / asked.place
    if not path.is_file():
        raise missing_file(shown)
    try:
        connection = duckdb.connect(str(path), read_only=True, config=_OUTSIDE)
    except duckdb.Error as error:
        raise not_connected(shown, str(error)) from None
    try:
        connection.execute("BEGIN TRANSACTION")
        connection.execute("SET TimeZone = 'UTC'")
        yield Duckdb(connection, asked)
    except duckdb.Error as error:
        raise refused(shown, asked.called, str(error), _sqlstate(error)) from None
    finally:
        connection.close()


def _sqlstate(error: Exception) -> str:
    """What PostgreSQL would say."""
    words = str(error)
    if words.startswith("Catalog Error") and "Table" in words:
        return "42P01"
    return "42703" if "Binder Error" in words and "column" in words else "HY000"


class Duckdb:
    """A transaction of a file."""

    def __init__(self, connection: Any, asked: Wanted) -> None:
        self._connection = connection
        self._asked = asked

    @cached_property
    def columns(self) -> Sequence[Column]:
        """The columns, by their types."""
        sql = f"DESCRIBE SELECT * FROM {self._asked.relation}"
        return [_column(row[0], row[1]) for row in self._connection.execute(sql).fetchall()]

    @cached_property
    def key(self) -> Sequence[str]:
        """The columns of the primary key; a query has none."""
        if self._asked.query is not None:
            return ()
        *schema, table = self._asked.table
        found = self._connection.execute(
            "SELECT constraint_column_names FROM duckdb_constraints() "
            "WHERE constraint_type = 'PRIMARY KEY' AND table_name = ? "
            "AND schema_name = coalesce(?, current_schema())",
            [table, schema[0] if schema else None],
        ).fetchall()
        return found[0][0] if found else ()

    @property
    def order_without_key(self) -> str:
        """All columns."""
        return ", ".join(quoted(each.name) for each in self.columns)

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        """The rows of a SELECT."""
        yield from self._connection.sql(sql).to_arrow_reader(BATCH_ROWS)


def _column(name: str, declared: str) -> Column:
    kind = _AS_THEY_ARE.get(declared)
    if kind is not None:
        return Column(name, quoted(name), kind, declared, _CURSORS.get(declared))
    if digits := _DECIMAL.fullmatch(declared):
        decimal = pa.decimal128(int(digits[1]), int(digits[2]))
        return Column(name, quoted(name), decimal, declared)
    if _NESTED.match(declared):
        return Column(name, f"CAST(to_json({quoted(name)}) AS VARCHAR)", pa.string(), declared)
    return Column(name, f"CAST({quoted(name)} AS VARCHAR)", pa.string(), declared)

"""SQLite, by Python's own library: every value has a type of its own there, so a column has one
only if all its values agree; else it is text, which the read step converts to what is declared.

Source: SQLite, "Datatypes In SQLite", "Transaction".
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from odfbuild.ingest.fetch.database.address import Wanted, quoted
from odfbuild.ingest.fetch.database.contract import BATCH_ROWS, Column
from odfbuild.ingest.fetch.database.problems import missing_file, missing_table, refused, unfit

_TYPES = {
    "integer": pa.int64(),
    "real": pa.float64(),
    "text": pa.string(),
    "blob": pa.binary(),
}
_FAILED = "HY000"
"""The SQLSTATE of a failure that has no other."""


@contextmanager
def open_sqlite(asked: Wanted, root: Path, shown: str) -> Iterator[Sqlite]:
    """Open the file, and begin a snapshot. Raises `OdfbuildError`."""
    path = root / asked.place
    if not path.is_file():
        raise missing_file(shown)
    uri = f"file:{quote(str(path))}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            connection.create_function("odfbuild_digits", 2, _all_digits, deterministic=True)
            connection.execute("BEGIN")
            connection.execute("PRAGMA query_only = ON")
            yield Sqlite(connection, asked, shown)
    except sqlite3.Error as error:
        raise refused(shown, asked.called, str(error), _FAILED) from None


class Sqlite:
    """A read transaction."""

    def __init__(self, connection: sqlite3.Connection, asked: Wanted, shown: str) -> None:
        self._connection = connection
        self._asked = asked
        self._shown = shown
        if asked.query is None:
            sql = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
            tables = [name for (name,) in connection.execute(sql)]
            if asked.table[0].lower() not in map(str.lower, tables):
                raise missing_table(shown, asked.called, tables, asked.table[0])

    @cached_property
    def columns(self) -> Sequence[Column]:
        """The columns, by the types of all their values."""
        found = self._connection.execute(f"SELECT * FROM {self._asked.relation} LIMIT 0")
        names = [each[0] for each in found.description]
        kinds = ", ".join(f"group_concat(DISTINCT typeof({quoted(each)}))" for each in names)
        (lists,) = self._connection.execute(f"SELECT {kinds} FROM {self._asked.relation}")
        return [
            self._column(name, set((kinds or "null").split(",")) - {"null"})
            for name, kinds in zip(names, lists, strict=True)
        ]

    @cached_property
    def key(self) -> Sequence[str]:
        """The columns of the primary key; a query has none."""
        if self._asked.query is not None:
            return ()
        found = self._connection.execute(f"PRAGMA table_info({self._asked.relation})")
        return [name for _, name in sorted((row[5], row[1]) for row in found if row[5])]

    @property
    def order_without_key(self) -> str:
        """All columns, by their numbers."""
        return ", ".join(quoted(each.name) for each in self.columns)

    def batches(self, sql: str) -> Iterator[pa.RecordBatch]:
        """The rows of a SELECT."""
        found = self._connection.execute(sql)
        names = [each[0] for each in found.description]
        while rows := found.fetchmany(BATCH_ROWS):
            arrays = [pa.array(values) for values in zip(*rows, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names=names)

    def _column(self, name: str, kinds: set[str]) -> Column:
        declared = " and ".join(sorted(kinds)) or "null"
        if len(kinds) == 1:
            kind = _TYPES[declared]
            cursor = "number" if declared == "integer" else None
            return Column(name, quoted(name), kind, declared, "number" if cursor else None)
        if "blob" in kinds:
            raise unfit(self._shown, name, declared, "bytes and other values are mixed")
        text = f"CAST({quoted(name)} AS TEXT)"
        if "real" in kinds:
            text = f"odfbuild_digits({quoted(name)}, {text})"
        return Column(name, text, pa.string(), declared)


def _all_digits(value: object, text: str | None) -> str | None:
    """`text`, unless it is a number of which SQLite, which writes 15 digits, left some out."""
    return (
        repr(value)
        if isinstance(value, float) and text is not None and float(text) != value
        else text
    )

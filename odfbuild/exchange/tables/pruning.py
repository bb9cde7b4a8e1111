"""Answer for few values of a dataset from a published table that has an inverted index on them.

Only what certainly gives the same records is used: a table of kartothek in a folder, of the same
view, that holds just the state that is asked about. Otherwise, and where anything about the table
is odd, all slices are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import types

from odfbuild.errors import OdfbuildError
from odfbuild.exchange.tables.behind import behind, pin_of
from odfbuild.exchange.tables.contract import TablePin
from odfbuild.fallbacks import fell_back
from odfbuild.records.duckdb_views import files_sql, literal, quote
from odfbuild.records.kartothek import names
from odfbuild.records.kartothek.dataset import DEFAULT_TABLE, Kartothek, find_metadata, opened
from odfbuild.store.place import Folder
from odfbuild.store.remote import scheme_of

if TYPE_CHECKING:
    import duckdb

    from odfbuild.project.tables import Table
    from odfbuild.records.records import Records

_MOST = 256
"""Partitions that are read from a table; of more, reading the slices takes no longer."""

Values = Mapping[str, Sequence[Any]]
"""By columns, in any letter case: the values that a record must have one of."""


@dataclass(frozen=True)
class Part:
    """Files of a table that hold all records with some values, by values of partition columns."""

    schema: pa.Schema
    files: Mapping[tuple[tuple[str, Any], ...], Sequence[Path]]

    @property
    def paths(self) -> list[Path]:
        """All files."""
        return [path for paths in self.files.values() for path in paths]

    def duckdb_view(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        """Make a view `name` of them, in the types of the dataset."""
        rest = files_sql((), self.schema, connection)
        parts = [
            _with_keys(files_sql(paths, self.schema, connection), keys)
            for keys, paths in self.files.items()
        ]
        query = " UNION ALL BY NAME ".join([f"({each})" for each in (rest, *parts)])
        connection.execute(f"CREATE OR REPLACE VIEW {quote(name)} AS {query}")


def part_with(tables: Iterable[Table], records: Records, asked: Values) -> Part | None:
    """The part of a table that holds all records with the `asked` values; `None`: none can tell."""
    columns = {each.name.lower(): each for each in records.schema}
    fitting = {
        columns[name.lower()].name: values
        for name, values in asked.items()
        if name.lower() in columns and _fits(columns[name.lower()].type, values)
    }
    nested = any(types.is_nested(each.type) for each in records.schema)
    if not fitting or nested or records.stored.since is not None:
        return None
    for table in tables:
        indexed = {*table.indices, *table.partition_by} & fitting.keys()
        if table.dataset != records.pin.dataset or table.view != records.pin.view or not indexed:
            continue
        if table.format != "kartothek" or scheme_of(table.location) is not None:
            continue
        try:
            found = _planned(table, records, {name: fitting[name] for name in indexed})
        except (OdfbuildError, OSError) as error:
            # What is wrong with a table is told where it is published.
            fell_back(__name__, f"the indices of table '{table.name}' are not used", error)
            continue
        if found is not None:
            return found
    return None


def _planned(table: Table, records: Records, asked: Values) -> Part | None:
    place = Folder(Path(table.location))
    uuid = names.uuid_of(table.group or table.name)
    own = DEFAULT_TABLE if table.group is None else names.table_of(table.name)
    found = find_metadata(place, uuid)
    dataset = None if found is None else opened(place, uuid, found)
    if dataset is None or not _holds(dataset, own, table, records):
        return None
    predicates = [[(name, "in", list(values)) for name, values in asked.items()]]
    chosen = dataset.plan(predicates, own)
    if len(chosen) > _MOST:
        return None
    files: dict[tuple[tuple[str, Any], ...], list[Path]] = {}
    for each in chosen:
        path = Path(table.location) / each.file
        if not path.is_file():
            return None
        files.setdefault(tuple(each.keys.items()), []).append(path)
    return Part(records.schema, files)


def _holds(dataset: Kartothek, own: str, table: Table, records: Records) -> bool:
    """Whether odfbuild made this state of the table, of just these records."""
    note = dataset.notes.tables.get(own)
    pin = None if note is None or not dataset.notes.is_ours else TablePin.from_text(note.pin)
    stored = records.stored
    if pin is None:
        return False
    store = stored.committed.store
    return behind(pin, pin_of(table, stored.state, store), stored.state, store) is None


def _fits(kind: pa.DataType, values: Sequence[Any]) -> bool:
    """Whether all values are of the type, so that no conversion decides what equals what."""
    import datetime as dt

    if types.is_integer(kind):
        low, high = (0, 64) if types.is_unsigned_integer(kind) else (-(1 << 63), 63)
        return all(type(each) is int and low <= each < 1 << high for each in values)
    if types.is_string(kind) or types.is_large_string(kind):
        return all(isinstance(each, str) for each in values)
    return types.is_date32(kind) and all(type(each) is dt.date for each in values)


def _with_keys(query: str, keys: tuple[tuple[str, Any], ...]) -> str:
    """Values of partition columns, which are not in files, in the types of the columns."""
    if not keys:
        return query
    given = ", ".join(f"{literal(str(value))} AS {quote(column)}" for column, value in keys)
    return f"SELECT * REPLACE ({given}) FROM ({query})"

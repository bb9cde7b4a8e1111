"""A dataset as it can be read: one state, that of the metadata file when it was opened.

`open_dataset` reads that file. A plan reads the schema of the table and the indices that its
predicates name, and lists nothing, however many partitions there are.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odfbuild.errors import Code, TableError
from odfbuild.records.kartothek import index as indices
from odfbuild.records.kartothek import metadata as metadata_form
from odfbuild.records.kartothek import names, schema
from odfbuild.records.kartothek.index import Index
from odfbuild.records.kartothek.metadata import Files, Metadata
from odfbuild.records.kartothek.notes import Notes, part
from odfbuild.records.kartothek.planner import plan
from odfbuild.records.kartothek.predicates import (
    Normal,
    Predicates,
    columns_of,
    holds,
    normal,
    unknown_column,
)
from odfbuild.store.place import Place
from odfbuild.values import Value

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_TABLE = "table"
_LIMIT = 1 << 32
"""Bytes that a file of a dataset may have."""


class Partition(Value):
    """A partition of one table: its label, the values of its keys, and its file."""

    label: str
    keys: Mapping[str, Any]
    file: str


class Found(Value):
    """The bytes of a metadata file, and which form they have."""

    data: bytes
    form: str

    @property
    def token(self) -> str:
        """Another one for any other state of the dataset."""
        return hashlib.sha256(self.data).hexdigest()


def find_metadata(place: Place, uuid: str) -> Found | None:
    """The metadata file of a dataset; `None` where none is there. JSON counts where both are."""
    for form in names.FORMS:
        data = place.read(names.metadata_file(uuid, form), _LIMIT)
        if data is not None:
            return Found(data, form)
    return None


def open_dataset(place: Place, uuid: str) -> Kartothek:
    """The present state of a dataset; `TableError` where there is none, or not one."""
    found = find_metadata(place, names.checked_uuid(uuid))
    if found is None:
        raise TableError(
            f"there is no kartothek dataset {uuid!r} at {place.address}",
            code="E1330",
            notes=(f"neither {' nor '.join(names.metadata_file(uuid, f) for f in names.FORMS)}",),
            help="check the address and the name behind `#`",
        )
    return opened(place, uuid, found)


def opened(place: Place, uuid: str, found: Found) -> Kartothek:
    """The state that a metadata file has."""
    name = names.metadata_file(uuid, found.form)
    metadata = metadata_form.decode(found.data, found.form, name)
    names.checked_uuid(metadata.uuid)
    return Kartothek(place, metadata, found)


class Kartothek:
    """One state of a dataset. Its files are read from `place` when they are needed."""

    def __init__(
        self, place: Place, metadata: Metadata, found: Found, notes: Notes | None = None
    ) -> None:
        self.place = place
        self.metadata = metadata
        self.found = found
        self.notes = notes or Notes.of(metadata)
        self._parts: dict[str, Mapping[str, str]] = {}
        self._schemas: dict[str, pa.Schema] = {}
        self._key_types: dict[str, Mapping[str, pa.DataType]] = {}
        self._partitions: Mapping[str, Files] | None = metadata.partitions

    @property
    def token(self) -> str:
        """Another one for any other state of the dataset."""
        return self.found.token

    @property
    def partitions(self) -> Mapping[str, Files]:
        """Files by label and table; listed where the metadata does not name them."""
        if self._partitions is None:
            self._partitions = _listed(self.place, self.metadata.uuid)
        return self._partitions

    def part(self, table: str) -> Mapping[str, str]:
        """Labels and files of the partitions that belong to `table`."""
        if table not in self._parts:
            self._parts[table] = part(self.partitions, table)
        return self._parts[table]

    @property
    def keys(self) -> tuple[str, ...]:
        """Partition columns, as the metadata says or the names of files."""
        first = next(iter(self.partitions.values()), {})
        named = names.key_texts(next(iter(first.values()), ""))
        return self.metadata.partition_keys or tuple(column for column, _ in named)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables, sorted."""
        found = set(next(iter(self.partitions.values()), {})) | set(self.notes.tables)
        if not found:
            found = {
                each.rstrip("/")
                for each in self.place.list(self.metadata.uuid)
                if each.endswith("/")
                and "_common_metadata" in self.place.list(f"{self.metadata.uuid}/{each}")
            }
        return tuple(sorted(found))

    def table(self, name: str | None = None) -> str:
        """The table of that name; without one, the only one or the one called `table`."""
        known = self.tables
        if name in known:
            return str(name)
        if name is None and (len(known) == 1 or DEFAULT_TABLE in known):
            return known[0] if len(known) == 1 else DEFAULT_TABLE
        raise TableError(
            f"dataset {self.metadata.uuid!r} has no table {name!r}"
            if name is not None
            else f"dataset {self.metadata.uuid!r} has several tables",
            code="E1334",
            notes=(f"its tables are {', '.join(known) or 'none'}",),
            help="name one of them",
        )

    def schema(self, table: str | None = None) -> pa.Schema:
        """Columns of a table, partition keys first."""
        name = self.table(table)
        if name not in self._schemas:
            noted = self.notes.schema(name)
            file = names.schema_file(self.metadata.uuid, name)
            self._schemas[name] = schema.decode(noted or self._bytes(file), file)
        return self._schemas[name]

    def plan(
        self, predicates: Predicates | None = None, table: str | None = None
    ) -> list[Partition]:
        """The partitions that can hold rows which fulfil `predicates`; all without any."""
        name = self.table(table)
        known = self.schema(name)
        return self._plan(None if predicates is None else normal(predicates, known), name, known)

    def read(
        self,
        table: str | None = None,
        columns: Sequence[str] | None = None,
        predicates: Predicates | None = None,
    ) -> pa.RecordBatchReader:
        """Rows that fulfil `predicates`, one data file in memory at a time."""
        import pyarrow as pa

        name = self.table(table)
        known = self.schema(name)
        for column in columns or ():
            if column not in known.names:
                raise unknown_column(column, known.names)
        asked = None if predicates is None else normal(predicates, known)
        shown = pa.schema(known.field(each) for each in (columns or known.names))

        def batches() -> Iterator[pa.RecordBatch]:
            for partition in self._plan(asked, name, known):
                needed = [*shown.names, *(columns_of(asked) if asked else ())]
                rows = self.rows(partition, pa.schema({n: known.field(n).type for n in needed}))
                if asked is not None:
                    rows = rows.filter(holds(asked, rows))
                yield from rows.select(shown.names).to_batches()

        return pa.RecordBatchReader.from_batches(shown, batches())

    def rows(self, partition: Partition, wanted: pa.Schema) -> pa.Table:
        """The columns `wanted` of one partition, in those types."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        data = self._bytes(partition.file)
        try:
            file = pq.ParquetFile(io.BytesIO(data))
            there = set(file.schema_arrow.names) - set(partition.keys)
            read = file.read([each for each in wanted.names if each in there])
            count = file.metadata.num_rows
            return pa.Table.from_arrays(
                [_column(each, read, partition.keys, count) for each in wanted], schema=wanted
            )
        except (pa.ArrowException, OSError, ValueError) as error:
            raise schema.damaged(partition.file, str(error)) from None

    def index(self, column: str, kind: pa.DataType) -> Index | None:
        """The inverted index of a column; `None` where there is none."""
        named = self.metadata.indices.get(column)
        if named is None:
            return None
        if isinstance(named, str):
            return indices.decode(self._bytes(named), column, kind, named)
        name = names.metadata_file(self.metadata.uuid, self.found.form)
        return indices.of_embedded(named, column, kind, name)

    def partition(self, label: str, table: str) -> Partition:
        """One partition of a table that has it."""
        file = self.partitions[label][table]
        kinds = self._kinds(table)
        return Partition(label, {key: _key(file, key, kind) for key, kind in kinds.items()}, file)

    def _plan(self, predicates: Normal | None, table: str, known: pa.Schema) -> list[Partition]:
        files = {label: each[table] for label, each in self.partitions.items() if table in each}
        if predicates is None:
            return [self.partition(label, table) for label in files]
        import pyarrow as pa

        asked = columns_of(predicates)
        keys = {
            column: pa.array([_key(file, column, kind) for file in files.values()], kind)
            for column, kind in self._kinds(table).items()
            if column in asked
        }

        def index_of(column: str) -> Index | None:
            return self.index(column, known.field(column).type)

        chosen = plan(predicates, list(files), keys, index_of, complete=self.notes.is_ours)
        return [self.partition(label, table) for label in chosen]

    def _kinds(self, table: str) -> Mapping[str, pa.DataType]:
        """Types of the partition columns."""
        if table not in self._key_types:
            known = self.schema(table)
            unknown = [each for each in self.keys if each not in known.names]
            if unknown:
                file = names.schema_file(self.metadata.uuid, table)
                raise schema.damaged(file, f"it has no column {unknown[0]!r}, a partition key")
            self._key_types[table] = {each: known.field(each).type for each in self.keys}
        return self._key_types[table]

    def _bytes(self, name: str) -> bytes:
        data = self.place.read(name, _LIMIT)
        if data is None:
            raise TableError(
                f"{name} is not there, but dataset {self.metadata.uuid!r} needs it",
                code=Code.KARTOTHEK_FILE_MISSING,
                notes=(f"the dataset lies at {self.place.address}",),
                help="open the dataset again if garbage was collected in the meantime; otherwise "
                "restore the file, or write a published table anew by `odfbuild table rebuild`",
            )
        return data


def _key(file: str, column: str, kind: pa.DataType) -> Any:
    """The value of a partition column, from the name of a data file."""
    try:
        return names.key_value(dict(names.key_texts(file))[column], kind)
    except (ValueError, KeyError, SyntaxError, ArithmeticError) as error:
        why = f"its name has no value of the partition key {column!r}: {error}"
        raise schema.damaged(file, why) from None


def _column(field: pa.Field, read: pa.Table, keys: Mapping[str, Any], count: int) -> Any:
    """A column of a data file in the type of the schema; a missing one is null."""
    import pyarrow as pa
    from pyarrow import types

    if field.name in keys:
        return pa.repeat(pa.scalar(keys[field.name], field.type), count)
    if field.name not in read.column_names:
        return pa.nulls(count, field.type)
    column = read.column(field.name)
    if types.is_timestamp(field.type) and types.is_timestamp(column.type):
        # naive times are those of UTC, which a cast between both forms keeps
        column = column.cast(pa.timestamp("us", column.type.tz))
    return column.cast(field.type)


def _listed(place: Place, uuid: str) -> Mapping[str, Files]:
    """Partitions as folders have them: what older datasets do not name in their metadata."""
    found: dict[str, dict[str, str]] = {}
    for file in sorted(each.name for each in place.files(uuid)):
        table, _, rest = file.removeprefix(f"{uuid}/").partition("/")
        if rest.endswith(names.DATA_SUFFIX) and table not in (names.INDICES, names.OWN):
            label = rest.removesuffix(names.DATA_SUFFIX)
            found.setdefault(label, {})[table] = file
    return found

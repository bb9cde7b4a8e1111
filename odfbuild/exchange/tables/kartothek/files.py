"""Data files of new partitions: written beside each other, split by size, and then uploaded."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odfbuild.errors import TableError
from odfbuild.records.kartothek import names
from odfbuild.records.kartothek.notes import base
from odfbuild.records.kartothek.schema import PANDAS, PARQUET
from odfbuild.store.place import Place

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_ROWS = 250_000
"""Rows in a row group: readers leave out those whose statistics exclude a predicate."""


@dataclass(frozen=True, slots=True)
class NewPartition:
    """A partition whose data file is at its place, and the values for the indices."""

    label: str
    file: str
    values: Mapping[str, pa.Array]


@dataclass(frozen=True, slots=True)
class DataWriter:
    """Writes partitions of one table. `schema` is that of data files, without partition keys."""

    place: Place
    uuid: str
    table: str
    keys: Sequence[str]
    schema: pa.Schema
    indexed: Sequence[str]
    target_bytes: int
    scratch: Path

    def written(
        self, key: Sequence[Any], batches: Iterable[pa.RecordBatch]
    ) -> Iterator[NewPartition]:
        """The partitions of one key: one, or several if there are more bytes than wanted."""
        self._check(key)
        rest = iter(batches)
        while (first := next(rest, None)) is not None:
            yield self._one(key, first, rest)

    def _check(self, key: Sequence[Any]) -> None:
        for column, value in zip(self.keys, key, strict=True):
            if value is None or (isinstance(value, float) and math.isnan(value)):
                raise TableError(
                    f"there are records without a value in the partition column {column!r}",
                    code="E1339",
                    notes=("kartothek cannot partition by a column that has nulls",),
                    help=f"give {column!r} a value in the query of the dataset, such as "
                    f"`coalesce({column}, ...)`, or remove it from `partitionBy`",
                )

    def _one(
        self, key: Sequence[Any], first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]
    ) -> NewPartition:
        unique = base(self.table, secrets.token_hex(8))
        label = names.label(list(zip(self.keys, key, strict=True)), unique)
        name = names.data_file(self.uuid, self.table, label)
        local = self.scratch / f"{unique}{names.DATA_SUFFIX}"
        try:
            values = self._write(local, first, rest)
            self.place.upload(local, name)
        finally:
            local.unlink(missing_ok=True)
        return NewPartition(label, name, values)

    def _write(
        self, file: Path, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]
    ) -> Mapping[str, pa.Array]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from odfbuild.records.slice_file import with_statistics

        distinct: dict[str, list[Any]] = {column: [] for column in self.indexed}
        nullable: set[str] = set()
        pending: list[pa.Table] = []
        batch: pa.RecordBatch | None = first
        rules = {**PARQUET, "write_statistics": with_statistics(self.schema)}
        with file.open("wb") as sink, pq.ParquetWriter(sink, self.schema, **rules) as writer:
            while batch is not None:
                rows = pa.table(
                    [_fitting(batch.column(each.name), each.type) for each in self.schema],
                    schema=self.schema,
                )
                for column, found in distinct.items():
                    found.append(rows.column(column).unique())
                nullable.update(each for each in self.schema.names if rows.column(each).null_count)
                pending.append(rows)
                if sum(map(len, pending)) >= _ROWS:
                    _flush(writer, pending)
                if sink.tell() >= self.target_bytes:
                    break
                batch = next(rest, None)
            _flush(writer, pending)
            writer.add_key_value_metadata({"pandas": _pandas(self.schema, nullable)})
        return {
            column: pa.concat_arrays(found).unique() if found else pa.array([], pa.null())
            for column, found in distinct.items()
        }


def empty(schema: pa.Schema) -> bytes:
    """The bytes of a data file without rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), file, **PARQUET)
    data: bytes = file.getvalue().to_pybytes()
    return data


def _flush(writer: pq.ParquetWriter, pending: list[pa.Table]) -> None:
    import pyarrow as pa

    if pending:
        writer.write_table(pa.concat_tables(pending), row_group_size=_ROWS)
        pending.clear()


def _fitting(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column of records in the type of data files; times with a zone become those of UTC."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_timestamp(column.type) and column.type.tz is not None:
        column = column.cast(pa.timestamp("us", "UTC"))
    return column.cast(kind)


def _pandas(schema: pa.Schema, nullable: Iterable[str]) -> str:
    """What pandas needs to know in order to read integers with nulls as integers."""
    from pyarrow import types

    columns = []
    for name in sorted(nullable):
        kind = schema.field(name).type
        if types.is_integer(kind):
            sign = "UInt" if types.is_unsigned_integer(kind) else "Int"
            columns.append(
                {
                    "name": name,
                    "field_name": name,
                    "pandas_type": str(kind),
                    "numpy_type": f"{sign}{kind.bit_width}",
                    "metadata": None,
                }
            )
    return json.dumps({**PANDAS, "columns": columns})

"""Rows of a database as Arrow: in the types of a file that Spark reads, and their digest.

Nothing is rounded and nothing is cut: a value that its type cannot hold is an error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.errors import IngestError
from odfbuild.ingest.fetch.database.contract import Column, Database
from odfbuild.ingest.fetch.database.problems import unfit
from odfbuild.ingest.fetch.download_cache import check_size
from odfbuild.odf.multihash import SHA2_256, Multihash

_FIRST, _LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS = "times and dates of the years 1 to 9999 are kept, and none that is infinite"


def rows_of(
    database: Database, sql: str, columns: Sequence[Column], shown: str
) -> Iterator[pa.RecordBatch]:
    """The rows of a SELECT of `columns`, in the types of the file. Raises `IngestError` E0466."""
    schema = schema_of(columns)
    for batch in database.batches(sql):
        arrays = [
            fitted(array, column, shown)
            for array, column in zip(batch.columns, columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """The columns of the file."""
    return pa.schema([(each.name, each.type) for each in columns])


def write_rows(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, target: Path, limit: int, shown: str
) -> str:
    """Write a Parquet file, a batch at a time; returns the digest of the rows.

    Raises `IngestError` E0409 if the file gets more than `limit` bytes.
    """
    digest = _Digest()
    # It is read once and deleted: what makes it smaller costs more than it saves.
    with pq.ParquetWriter(target, schema, compression="lz4", use_dictionary=False) as writer:
        for batch in batches:
            digest.add(batch)
            writer.write_batch(batch)
            check_size(target.stat().st_size, limit, shown)
    return digest.text()


def digest_of(batches: Iterator[pa.RecordBatch]) -> str:
    """The digest of rows that are not kept."""
    digest = _Digest()
    for batch in batches:
        digest.add(batch)
    return digest.text()


class _Digest:
    """SHA2-256 of rows in their order; another release of Arrow may spell them in other bytes."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, batch: pa.RecordBatch) -> None:
        self._hash.update(batch.serialize())

    def text(self) -> str:
        return str(Multihash.of(SHA2_256, self._hash.digest()))


def fitted(array: pa.Array, column: Column, shown: str) -> pa.Array:
    """Values in the type that a column has in the file. Raises `IngestError` E0466."""
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    kind = column.type
    if pa.types.is_temporal(array.type):
        _check_years(array, column, shown)
    if array.type == kind:
        return array
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(array.type) and array.type.tz is None:
        array = array.cast(pa.timestamp(kind.unit))  # of UTC, where the source says nothing
    try:
        return array.cast(kind)
    except pa.ArrowInvalid as error:
        raise _unfit(array, column, shown, str(error)) from None


def _unfit(array: pa.Array, column: Column, shown: str, said: str) -> IngestError:
    """The error, with the first value that cannot be converted."""
    for value in array:
        try:
            pa.array([value.as_py()], array.type).cast(column.type)
        except pa.ArrowInvalid:
            return unfit(
                shown, column.name, column.declared, f"'{value.as_py()}' is no {_kind(column)}"
            )
    return unfit(shown, column.name, column.declared, said)


def _kind(column: Column) -> str:
    kind = column.type
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return str(kind)


def _check_years(array: pa.Array, column: Column, shown: str) -> None:
    """Refuse infinite times, which databases give as the largest and the smallest number."""
    if pa.types.is_timestamp(array.type):
        first, last = (_in_units(each, array.type.unit) for each in (_FIRST, _LAST))
        numbers = array.cast(pa.int64())
    elif pa.types.is_date32(array.type):
        first, last = ((each - date(1970, 1, 1)).days for each in (date.min, date.max))
        numbers = array.cast(pa.int32())
    else:
        return
    found = pc.min_max(numbers)
    least, most = found["min"].as_py(), found["max"].as_py()
    if least is not None and (least < first or most > last):
        raise unfit(shown, column.name, column.declared, _YEARS)


def _in_units(moment: datetime, unit: str) -> int:
    since = moment - _EPOCH
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    per = {"s": 1_000_000, "ms": 1_000, "us": 1}
    return micros * 1_000 if unit == "ns" else micros // per[unit]

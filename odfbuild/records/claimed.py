"""Read records without more memory than a few of them take, whatever their file claims.

A value that is in a dictionary once can be in each of a million records: a few bytes in the file,
and any number in memory. So text that may be long is kept as a dictionary while it is read, and is
written out for a few records at a time; and so many records are read at once as their pages allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from odfbuild.errors import RecordsError
from odfbuild.records.bounds import Claims

AT_ONCE = 256 << 20
"""Bytes of the records that are read at once."""

_COPIES = 4
"""Batches that a condition holds at once: those that are read ahead, and what it leaves."""

_WRITTEN_OUT = 64 << 20
"""Bytes of text that is written out at once."""

MOST = 1 << 30
"""Bytes of one record, or of all records that are shown together."""


def rows_at_once(claims: Claims, rows: int) -> int:
    """How many records to read at once, at most `rows`, where dictionaries are kept as such."""
    return max(1, min(rows, AT_ONCE // max(1, claims.record)))


def rows_written_out(claims: Claims, rows: int) -> int:
    """The same where dictionaries are written out, and each value may be the longest."""
    longest = claims.record + sum(claims.dictionaries.values())
    return max(1, min(rows, AT_ONCE // _COPIES // max(1, longest)))


def long_dictionaries(claims: Claims, rows: int) -> list[str]:
    """Paths of the columns whose text may take too much in `rows` records."""
    return [path for path, size in claims.dictionaries.items() if size * rows > _WRITTEN_OUT]


def written_out(batch: pa.RecordBatch, schema: pa.Schema, dataset: str) -> Iterator[pa.RecordBatch]:
    """A batch in parts of a bounded size, with columns of the types in `schema`.

    `RecordsError` E1210 for a single record that is too large.
    """
    if not batch.num_columns:
        yield batch
        return
    size = sum(map(_text, batch.columns))
    if size > _WRITTEN_OUT and batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from written_out(batch.slice(0, half), schema, dataset)
        yield from written_out(batch.slice(half), schema, dataset)
        return
    if size > MOST:
        raise too_large(dataset, "a record takes", size)
    arrays = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def size_of(batch: pa.RecordBatch) -> int:
    """Bytes of a batch when its text is written out."""
    return sum(
        _text(column) if has_dictionary(column.type) else column.nbytes for column in batch.columns
    )


def too_large(dataset: str, what: str, size: int) -> RecordsError:
    """E1210 for records of so many bytes."""
    return RecordsError(
        f"{what} {size / (1 << 30):,.1f} GiB of memory, which is too much to show",
        code="E1210",
        dataset=dataset,
        help="ask for fewer records, or for columns without the longest values: "
        f"odfbuild sql --engine duckdb 'SELECT ... FROM \"{dataset}\"'",
    )


def _text(column: Any) -> int:
    """Bytes of values that are in dictionaries, when they are written out."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        lengths = pc.binary_length(column.dictionary).cast(pa.int64())
        found: int | None = pc.sum(pc.take(lengths, column.indices)).as_py()
        return found or 0
    if not has_dictionary(kind):
        return 0
    if pa.types.is_struct(kind):
        return sum(map(_text, column.flatten()))
    if pa.types.is_map(kind):
        first, last = column.offsets[0].as_py(), column.offsets[-1].as_py()
        return sum(_text(each.slice(first, last - first)) for each in (column.keys, column.items))
    return _text(column.flatten())


def has_dictionary(kind: pa.DataType) -> bool:
    """Whether values of a type, or of a part of it, are in a dictionary."""
    if pa.types.is_dictionary(kind):
        return True
    return any(has_dictionary(kind.field(each).type) for each in range(kind.num_fields))

"""Parquet files with other values in their personal columns, for whoever reads files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.records.personal.values import PREFIX, Convert
from odfbuild.store.personal import PersonalColumns

_BATCH_ROWS = 131_072


def converted(file: Path, scope: PersonalColumns, convert: Convert, folder: Path) -> Path:
    """A copy of a file in `folder`, for this user only; the file itself if it has no such column.

    The name is that of the file, so that a file is converted once.
    """
    target = folder / file.name
    if target.exists():
        return target
    with pq.ParquetFile(file, pre_buffer=False) as source:
        columns = source.schema_arrow
        if scope.within(columns.names) is None:
            return file
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        batches = source.iter_batches(_BATCH_ROWS)
        staged = target.with_suffix(f".{os.getpid()}")
        rewrite(batches, columns, scope, convert, staged)
    staged.replace(target)
    return target


def rewrite(
    batches: Sequence[pa.RecordBatch],
    columns: pa.Schema,
    scope: PersonalColumns,
    convert: Convert,
    target: Path,
) -> None:
    """Write records with other values in their personal columns."""
    for name in scope.subjects:
        at = columns.get_field_index(name)
        if at >= 0:
            columns = columns.set(at, columns.field(at).with_type(pa.string()).with_nullable(True))
    with pq.ParquetWriter(target, columns, compression="lz4") as writer:
        for batch in batches:
            changed = convert(batch)
            writer.write_batch(pa.RecordBatch.from_arrays(changed.columns, schema=columns))


def holds_plain_values(file: Path, scope: PersonalColumns) -> tuple[str, ...]:
    """The personal columns of a slice that have values which are not encrypted.

    Statistics tell: least and most value begin alike only if all values do. Columns without them
    do not count.
    """
    found = []
    metadata = pq.read_metadata(file)
    names = metadata.schema.names
    for column in scope.subjects:
        for group in range(metadata.num_row_groups) if column in names else ():
            told = metadata.row_group(group).column(names.index(column)).statistics
            if told is None or not told.has_min_max:
                continue
            if not all(str(each).startswith(PREFIX) for each in (told.min, told.max)):
                found.append(column)
                break
    return tuple(found)

"""What an input that takes records back amounts to, found by Arrow.

Spark would compare all records of the input with each other, in all columns, to tell which ones
stay. Few of them can be affected, and the columns of fixed length tell most of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.contract import InputSlices
from odfbuild.engine.spark.results.local_rows import is_alike
from odfbuild.fallbacks import fell_back
from odfbuild.odf.operation import APPEND, CORRECT_TO
from odfbuild.records.arrays import of_numbers
from odfbuild.records.equal_rows import numbered
from odfbuild.records.key_hash import comparable_type, hash_rows
from odfbuild.records.key_index import comparable

_MOST_BYTES = 512 << 20
"""Of an input in memory; Spark finds out about larger ones in parallel."""


def write_state(each: InputSlices, files: Sequence[Path], target: Path) -> bool:
    """Write it to `target`; `False`, and nothing written, where Spark has to find it."""
    records = _read(each, files)
    if records is None:
        return False
    pq.write_table(
        staying(records, each),
        target,
        compression="none",
        write_statistics=False,
        store_decimal_as_integer=True,  # Spark reads these faster
    )
    return True


def _read(each: InputSlices, files: Sequence[Path]) -> pa.Table | None:
    """All records; `None` for too many, and for columns that Arrow and Spark hold differently."""
    try:
        if not all(map(is_alike, each.schema)):
            return None
        size, batches = 0, []
        for path in files:
            with pq.ParquetFile(path, pre_buffer=False) as file:
                if _columns(file.schema_arrow) != _columns(each.schema):
                    return None
                for batch in file.iter_batches():
                    size += batch.nbytes
                    if size > _MOST_BYTES:
                        return None
                    batches.append(batch)
    except (OSError, pa.ArrowException) as error:  # Spark tells what is wrong with a file
        fell_back(__name__, f"Spark reads all of '{each.alias}'", error, foreseen=True)
        return None
    schema = pa.schema(_columns(each.schema))
    return pa.Table.from_batches(
        [pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in batches], schema
    )


def _columns(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in schema]


def staying(records: pa.Table, each: InputSlices) -> pa.Table:
    """The records that stay, as appended ones, in order of offsets.

    Each retraction takes away the oldest equal record. Compare `inputs.folded`, and
    `records.retracted`.
    """
    vocab = each.vocab
    offsets = records[vocab.offset].cast(pa.int64()).to_numpy()
    if each.last is not None and (offsets > each.last).any():
        records = records.filter(pa.array(offsets <= each.last))
        offsets = records[vocab.offset].cast(pa.int64()).to_numpy()
    codes = records[vocab.operation_type].cast(pa.int32()).to_numpy()
    adds = (codes == APPEND) | (codes == CORRECT_TO)
    system = (vocab.offset, vocab.operation_type, vocab.system_time)
    values = records.select([name for name in records.column_names if name not in system])
    marks = hash_rows(_quickly_compared(values))
    near = np.flatnonzero(np.isin(marks, marks[~adds]))
    same = numbered(values.take(of_numbers(near, pa.int64())))
    left = np.bincount(same, np.where(adds[near], 1, -1)).astype(np.int64)
    # The newest of equal records come first.
    order = np.lexsort((-offsets[near], same))
    near, same = near[order], same[order]
    is_first = np.flatnonzero(np.diff(same, prepend=-1))
    adds_near = adds[near].astype(np.int64)
    rank = np.cumsum(adds_near)
    before = np.repeat((rank - adds_near)[is_first], np.diff([*is_first, len(same)]))
    stay = adds.copy()
    stay[near] = adds[near] & (rank - before <= left[same])
    kept = records.take(of_numbers(np.flatnonzero(stay), pa.int64()))
    at = kept.schema.get_field_index(vocab.operation_type)
    operations = of_numbers(np.zeros(len(kept), np.int32), pa.int32())
    return kept.set_column(at, vocab.operation_type, operations.cast(kept.schema.field(at).type))


_SLOW = (pa.large_string(), pa.large_binary())


def _quickly_compared(values: pa.Table) -> pa.Table:
    """Columns of fixed length, or all where there are none, in the types they are compared in.

    Records that differ elsewhere are few, and told apart later.
    """
    kinds = {field.name: comparable_type(field.type) for field in values.schema}
    quick = {name: kind for name, kind in kinds.items() if kind not in _SLOW}
    return comparable(values, pa.schema(quick or kinds))

"""Build the records of a changelog from differences, in memory.

What Spark does with two more shuffles and a sort is little work once records that did not change
are gone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odfbuild.odf.operation import APPEND, CORRECT_FROM, CORRECT_TO, RETRACT

_OPERATION = "__odf_op"

Rows = npt.NDArray[np.int64]


def changes(
    difference: pa.Table, more: str, key: Sequence[str] | None, order: Sequence[str], operation: str
) -> pa.Table:
    """Records to append, in order, with the column `operation` in front.

    `difference` holds distinct records and, in the column `more`, by how many there are more of
    them than before. One record that goes and one that comes, alone with their `key`, are a
    correction. It stands where its first record belongs in the order of the columns `order`, which
    are all there are. Nulls come first.
    """
    table = difference.sort_by([(name, "ascending") for name in (*(key or ()), more)])
    counts = table[more].to_numpy()
    records = table.drop_columns([more])
    first = np.zeros(len(table), bool) if key is None else _pairs(records.select(key), counts)
    second = np.roll(first, 1)
    alone = np.flatnonzero(~first & ~second)
    singles = np.repeat(alone, np.abs(counts[alone]))
    old = np.flatnonzero(first)

    lead = np.concatenate([singles, old])
    operations = np.concatenate(
        [np.where(counts[singles] > 0, APPEND, RETRACT), np.full(len(old), CORRECT_FROM)]
    )
    placed = _in_order(records, lead, operations, order)
    lead, operations = lead[placed], operations[placed]
    # The other half of a correction stands behind its first record.
    halves = np.where(operations == CORRECT_FROM, 2, 1)
    rows = np.repeat(lead, halves)
    values = np.repeat(operations, halves)
    behind = np.cumsum(halves)[halves == 2] - 1
    rows[behind] += 1
    values[behind] = CORRECT_TO
    return records.take(rows).add_column(0, operation, pa.array(values, pa.int32()))


def _pairs(keys: pa.Table, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Rows, sorted by key and count, that one alone goes of its key where the next alone comes."""
    rows = len(counts)
    if rows < 2:
        return np.zeros(rows, bool)
    begins = np.ones(rows + 1, bool)
    begins[1:rows] = ~_same_as_next(keys)
    found = np.zeros(rows, bool)
    found[:-1] = (
        begins[: rows - 1]
        & ~begins[1:rows]
        & begins[2 : rows + 1]
        & (counts[:-1] == -1)
        & (counts[1:] == 1)
    )
    return found


def _same_as_next(keys: pa.Table) -> npt.NDArray[np.bool_]:
    """Whether a row has the key of the next; nulls are the same. Without columns all are."""
    same = np.ones(len(keys) - 1, bool)
    for column in keys.columns:
        values = column.combine_chunks()
        here, there = values.slice(0, len(values) - 1), values.slice(1)
        equal = pc.fill_null(pc.equal(here, there), False)
        both_null = pc.and_(pc.is_null(here), pc.is_null(there))
        same &= pc.or_(equal, both_null).to_numpy(zero_copy_only=False)
    return same


def _in_order(
    records: pa.Table, rows: Rows, operations: npt.NDArray[np.int64], order: Sequence[str]
) -> Rows:
    table = records.take(rows).append_column(_OPERATION, pa.array(operations))
    keys = [(name, "ascending", "at_start") for name in (*order, _OPERATION)]
    found: Rows = pc.sort_indices(table, sort_keys=keys).to_numpy()
    return found

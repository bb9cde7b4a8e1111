"""Merges of several small files that look at the state, which each of them changes for the next.

Rows of the files and the state are in memory. Values that a merge takes for equal get the same
number, so that comparing rows is comparing numbers. `changes` does this for one file, in Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from odfbuild.engine.spark.results.hidden import FILE, OP, ROW
from odfbuild.odf.operation import APPEND, CORRECT_FROM, CORRECT_TO, RETRACT

MOST_ROWS = 500_000
"""The limit for rows of the state and all files; more are merged by Spark."""
TIMED = "__odfbuild_timed"
"""Whether a row had an event time before it got that of its file."""


def are_comparable(schema: pa.Schema) -> bool:
    """Whether values are committed as they are read, and equal ones are told by a number."""
    t = pa.types
    numbers = (t.is_boolean, t.is_integer, t.is_float32, t.is_float64, t.is_decimal128)
    others = (t.is_string, t.is_binary, t.is_date32, t.is_timestamp)
    return all(any(test(field.type) for test in (*numbers, *others)) for field in schema)


def differences_in_turn(
    rows: pa.Table,
    state: pa.Table,
    files: int,
    key: Sequence[str],
    compared: Sequence[str],
    event_time: str,
    *,
    absent: Literal["retracted", "kept"],
) -> pa.Table:
    """Operations, with `FILE` and `OP`, that bring `state` up to each file after the one before.

    `rows` of all files have an event time, and `TIMED`. Of those of a file that share a key the
    last one counts. Keys that a file has not are `absent`.
    """
    rows = rows.sort_by([(FILE, "ascending"), (ROW, "ascending")])
    data = rows.drop_columns([FILE, ROW, OP, TIMED])
    whole = pa.concat_tables([state.select(data.column_names).cast(data.schema), data])
    keys = numbers_of(whole, key)
    values = numbers_of(whole, [name for name in compared if name != event_time])
    times = numbers_of(whole, [name for name in compared if name == event_time])
    before = state.num_rows
    timed = [True] * before + rows[TIMED].to_pylist()
    operations = [APPEND] * before + rows[OP].to_pylist()
    ends = before + np.searchsorted(rows[FILE].to_numpy(), np.arange(files + 1), side="right")

    current = {keys[row]: row for row in range(before)}
    found: list[tuple[int, int, int]] = []
    for file in range(1, files + 1):
        last = {keys[row]: row for row in range(ends[file - 1], ends[file])}
        gone = [each for each, row in last.items() if operations[row] == RETRACT]
        if absent == "retracted":
            gone += current.keys() - last.keys()
        found += [(file, RETRACT, current.pop(each)) for each in gone if each in current]
        for each in last.keys() - set(gone):
            row, old = last[each], current.get(each)
            if old is None:
                found.append((file, APPEND, row))
            elif values[row] != values[old] or (timed[row] and times[row] != times[old]):
                found += [(file, CORRECT_FROM, old), (file, CORRECT_TO, row)]
            else:
                continue
            current[each] = row
    told = np.array(found, np.int64).reshape(-1, 3)
    result = whole.take(pa.array(told[:, 2]))
    result = result.append_column(FILE, pa.array(told[:, 0], pa.int32()))
    return result.append_column(OP, pa.array(told[:, 1], pa.int32()))


def numbers_of(table: pa.Table, names: Sequence[str]) -> list[int]:
    """A number for each row, the same for those that are equal in these columns."""
    numbers = np.zeros(table.num_rows, np.int64)
    for name in names:
        pairs = numbers * (table.num_rows + 1) + _value_numbers(table[name])
        numbers = np.unique(pairs, return_inverse=True)[1]
    found: list[int] = numbers.tolist()
    return found


def _value_numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """A number for each value; NULL is equal to NULL, NaN to NaN, and 0.0 to -0.0."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), float("nan"), pc.add(column, 0.0))
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    numbers: NDArray[np.int64] = encoded.indices.to_numpy().astype(np.int64)
    return numbers

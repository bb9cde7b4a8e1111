"""Which rows are equal, as GROUP BY of Spark has it: NULL, NaN and zero of either sign are values.

For columns whose values Arrow and Spark both hold as they are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]


def numbered(rows: pa.Table) -> Numbers:
    """A number for each row: equal rows have the same one, and no others. They count from zero."""
    found = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        values = column.combine_chunks()
        if pa.types.is_floating(values.type):
            values = _one_of_each(values)
        encoded = pc.dictionary_encode(values, null_encoding="encode")
        if len(encoded.dictionary) > 1:
            pairs = found * len(encoded.dictionary) + encoded.indices.to_numpy()
            found = np.unique(pairs, return_inverse=True)[1]
    return found


def _one_of_each(values: pa.Array) -> pa.Array:
    """Floating point numbers with one NaN and one zero: there are many NaNs."""
    zero, nan = (pa.scalar(each, values.type) for each in (0.0, float("nan")))
    return pc.if_else(pc.is_nan(values), nan, pc.add(values, zero))

"""Numbers between Arrow and NumPy, without pandas.

`pa.array`, `pa.scalar` and `to_numpy` import pandas where it is installed, to know values that are
of it. That takes as long as all else that a small command imports.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

T = TypeVar("T", bound=np.number[Any])


def of_numbers(numbers: np.ndarray[Any, Any], kind: pa.DataType) -> pa.Array:
    """The array of type `kind` whose values are stored as `numbers`; none is null."""
    stored = np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(kind, len(stored), [None, pa.py_buffer(stored)])


def one_of(number: int, kind: pa.DataType) -> pa.Scalar:
    """The value of a type of 64 bits that is stored as `number`."""
    return of_numbers(np.array([number], np.int64), kind)[0]


def numbers_in(array: pa.Array, stored: type[T]) -> np.ndarray[Any, np.dtype[T]]:
    """The numbers of an array without nulls, whose values are stored as `stored`."""
    if not len(array):
        return np.empty(0, stored)
    found = np.frombuffer(array.buffers()[1], stored)
    return found[array.offset : array.offset + len(array)]

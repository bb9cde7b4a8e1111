"""Find the first record in which two data files differ."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.values import Value

_WINDOW = 65_536


class ValueDifference(Value):
    """A value that was recorded and another one that the same step gives; both as text."""

    column: str
    recorded: str
    replayed: str


class RecordDifference(Value):
    """`row` counts from 0; `values` are those that differ."""

    row: int
    values: tuple[ValueDifference, ...]


def first_difference(recorded: Path, replayed: Path) -> RecordDifference | None:
    """The first row in which two Parquet files differ; `None` when all values are the same."""
    row = 0
    for one, other in zip_longest(_windows(recorded), _windows(replayed)):
        if one is None or other is None or not one.equals(other):
            found = _in_window(one, other)
            if found is not None:
                return RecordDifference(row + found[0], found[1])
        row += _WINDOW
    return None


def _windows(file: Path) -> Iterator[pa.Table]:
    """The file in tables of `_WINDOW` rows, but for the last, whatever its row groups are."""
    with pq.ParquetFile(file) as opened:
        waiting = opened.schema_arrow.empty_table()
        for batch in opened.iter_batches(_WINDOW):
            waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch])])
            while waiting.num_rows >= _WINDOW:
                yield waiting.slice(0, _WINDOW)
                waiting = waiting.slice(_WINDOW)
        if waiting.num_rows:
            yield waiting


def _in_window(
    one: pa.Table | None, other: pa.Table | None
) -> tuple[int, tuple[ValueDifference, ...]] | None:
    left = one.to_pylist() if one is not None else []
    right = other.to_pylist() if other is not None else []
    for number, (a, b) in enumerate(zip_longest(left, right)):
        values = _differences(a, b)
        if values:
            return number, values
    return None


def _differences(a: dict[str, Any] | None, b: dict[str, Any] | None) -> tuple[ValueDifference, ...]:
    if a is None or b is None:
        return (ValueDifference("record", _text(a, "none"), _text(b, "none")),)
    return tuple(
        ValueDifference(
            name,
            _text(a[name]) if name in a else "no such column",
            _text(b[name]) if name in b else "no such column",
        )
        for name in (*a, *(n for n in b if n not in a))
        if name not in a or name not in b or not _same(a[name], b[name])
    )


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        # The sign of a zero is part of the data, and so is NaN, which is unlike itself.
        return (math.isnan(a) and math.isnan(b)) or (
            a == b and math.copysign(1, a) == math.copysign(1, b)
        )
    return bool(a == b)


def _text(value: Any, nothing: str = "NULL") -> str:
    if value is None:
        return nothing
    if isinstance(value, dict):
        return ", ".join(f"{key}={_text(each)}" for key, each in value.items())
    return value if isinstance(value, str) else str(value)

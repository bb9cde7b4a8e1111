"""Write a sorted result without computing it twice.

Spark sorts by ranges, and finds these by computing the rows once more. For a file that is parsed
that costs as much again, so rows are written as they come: those in order already stay as they are,
what fits in memory is sorted there, and only more than that is sorted by Spark, from what was
written.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.engine.spark.results.executor import write_parts
from odfbuild.engine.spark.results.frames import quote, to_arrow_schema
from odfbuild.engine.spark.results.order import total_order
from odfbuild.records.sorted_runs import is_sorted, sorts_alike

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

IN_MEMORY = 1 << 30
"""Bytes of records that are sorted in memory; twice as much is used while doing it."""
MOST_RUNS = 64
"""Files that are merged while they are read; each takes some memory."""


def sorted_parts(
    spark: SparkSession, frame: DataFrame, order: Sequence[str], folder: Path
) -> tuple[Path, ...]:
    """Parquet files that, one after the other, hold `frame` in the order of the columns `order`.

    Ascending, nulls first. Rows that are equal in all of these columns come in any order.
    """
    folder.mkdir()
    parts = write_parts(frame, folder / "rows")
    if is_sorted(parts, order):
        return parts
    if sorts_alike(pq.read_schema(parts[0]), order) and fit_in_memory(parts):
        return (_sorted_in_memory(parts, order, folder / "sorted.parquet"),)
    from pyspark.sql.functions import expr

    written = spark.read.schema(frame.schema).parquet(*map(str, parts))
    keys = [expr(quote(name)).asc_nulls_first() for name in order]
    return write_parts(written.orderBy(*keys), folder / "sorted")


def sorted_runs(
    spark: SparkSession, frame: DataFrame, order: Sequence[str], folder: Path
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Parquet files, each in order, and the columns by which they are to be merged.

    No columns: one after the other, they are in order. Each task sorts what it reads, so that
    neither computes a row twice nor holds all of them in memory.
    """
    from pyspark.sql.functions import expr

    if not sorts_alike(to_arrow_schema(frame), order):
        return sorted_parts(spark, frame, order, folder), ()
    keys = [expr(quote(name)).asc_nulls_first() for name in order]
    parts = write_parts(frame.sortWithinPartitions(*keys), folder)
    if len(parts) <= MOST_RUNS:
        return parts, tuple(order)
    written = spark.read.schema(frame.schema).parquet(*map(str, parts))
    return write_parts(written.orderBy(*keys), folder / "sorted"), ()


def ordered_parts(frame: DataFrame, order: Sequence[str], folder: Path) -> tuple[Path, ...]:
    """Parquet files that hold `frame` in the order of the columns `order`, which are all it has."""
    spark = frame.sparkSession
    if sorts_alike(to_arrow_schema(frame), order):
        return sorted_parts(spark, frame, order, folder)
    return write_parts(total_order(frame, order), folder)


def in_memory(parts: Sequence[Path]) -> pa.Table | None:
    """Rows of Parquet files; `None` where they are too many to sort in memory."""
    if not fit_in_memory(parts):
        return None
    return pa.concat_tables(pq.read_table(part) for part in parts)


def split_in_order(
    whole: pa.Table, number: str, order: Sequence[str], most: int
) -> list[pa.Table] | None:
    """Rows by the column `number`, which goes from 1 to `most`.

    Each table is in the order of the columns `order`. `None` where a row has no number, or Arrow
    has another order.
    """
    if not sorts_alike(whole.schema, order) or whole[number].null_count:
        return None
    keys = [(name, "ascending", "at_start") for name in (number, *order)]
    whole = whole.take(pc.sort_indices(whole, sort_keys=keys)).combine_chunks()
    ends = np.searchsorted(whole[number].to_numpy(), np.arange(most + 1), side="right")
    return [whole.slice(start, end - start) for start, end in pairwise(ends)]


def fit_in_memory(parts: Sequence[Path]) -> bool:
    """Whether all records together do, judged by those of the first group of each file.

    Files cannot tell: values that repeat take hardly any space there.
    """
    total = 0
    for part in parts:
        with pq.ParquetFile(part, pre_buffer=False) as file:
            if file.metadata.num_rows:
                first = file.read_row_group(0)
                total += first.nbytes * file.metadata.num_rows // first.num_rows
    return total <= IN_MEMORY


def _sorted_in_memory(parts: Sequence[Path], order: Sequence[str], target: Path) -> Path:
    whole = pa.concat_tables(pq.read_table(part) for part in parts)
    keys = [(name, "ascending", "at_start") for name in order]
    indices = pc.sort_indices(whole, sort_keys=keys)
    pq.write_table(whole.take(indices), target, compression="lz4", use_dictionary=False)
    return target

"""Split a file so that every core reads the same number of parts.

Spark cuts a file into parts of 128 MiB, so that of five parts on four cores one is read while three
cores wait. Smaller parts are also sorted sooner.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from odfbuild.engine.spark.results.sorted_parts import MOST_RUNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALLEST = 32 << 20
"""Bytes of a part; files that are not larger than so much for each core stay as they are."""
_SETTING = "spark.sql.files.maxPartitionBytes"
_LARGEST = 128 << 20
_OPENING = 4 << 20
"""What Spark counts for opening a file (`spark.sql.files.openCostInBytes`)."""


def cut_evenly(spark: SparkSession, size: int) -> None:
    """Let the session of a request cut a file of `size` bytes evenly, if it is not told how."""
    if size <= SMALLEST or spark.conf.get(_SETTING) != f"{_LARGEST}b":
        return
    part = even_part(size + _OPENING, spark.sparkContext.defaultParallelism)
    spark.conf.set(_SETTING, f"{part}b")


@contextmanager
def one_part(spark: SparkSession) -> Iterator[None]:
    """Let the session of a request read files whole, by one task, until the end of the block."""
    whole = {_SETTING: f"{1 << 60}b", "spark.sql.files.minPartitionNum": "1"}
    before = {name: spark.conf.get(name, None) for name in whole}
    for name, value in whole.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


def even_part(size: int, cores: int) -> int:
    """Bytes of a part, of which each core reads as many: about 32 MiB, more for very large files.

    Not more than are merged in one go, as long as 128 MiB suffice for that.
    """
    wanted = min(_LARGEST, max(SMALLEST, size // MOST_RUNS))
    rounds = max(1, round(size / cores / wanted))
    while rounds > 1 and rounds * cores > MOST_RUNS:
        rounds -= 1
    return min(_LARGEST, math.ceil(size / cores / rounds))

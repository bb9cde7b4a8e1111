"""Settings for small jobs, whose time is mostly overhead.

A stage that has to be planned again, a class that has to be compiled and a folder of output files
each cost more than some thousand records. None of what is set here changes a result.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.spark.internals.catalyst import Catalyst, plan_of
from odfbuild.engine.spark.internals.process import set_up
from odfbuild.engine.spark.internals.records import IN_PLACE
from odfbuild.engine.spark.results.local_rows import MOST_BYTES, collected, computed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from odfbuild.engine.spark.internals.node import Node

_FEW_BYTES = 8 << 20
"""Input files up to this size, a few 100 000 records, are read and grouped by one task."""
COLLECTED_ROWS = 20_000
"""Up to so many rows of each partition are collected; more would take memory, so Spark writes
them.
"""
MARK = "odfbuild.few"
"""Setting of a session: whether its results are collected."""
_LEAVES = "spark.sql.leafNodeDefaultParallelism"
_ONE_TASK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    _LEAVES: "1",
    # Spark would hold each plan that its optimiser makes against the one before.
    "spark.sql.lightweightPlanChangeValidation": "false",
}
_INTERPRETED = {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_COMPILED = {"spark.sql.codegen.factoryMode": "FALLBACK"}
_SHORT = {MARK: "true", "spark.sql.codegen.wholeStage": "false", **_INTERPRETED}
_IN_ONE_PART = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
"""To hand one side of a join around takes a job of its own."""


def compute_in_place(spark: SparkSession) -> None:
    """Let the optimiser compute the records at hand, before a query of quick expressions runs."""
    set_up(spark, IN_PLACE)


def tune(spark: SparkSession, files: Iterable[Path]) -> None:
    """Set up the session of a request that reads `files`, before it runs a query.

    One in which somebody has said what to do (`MARK`) stays as it is.
    """
    if spark.conf.get(MARK, None) is not None:
        return
    size = sum(file.stat().st_size for file in files)
    if size > _FEW_BYTES:
        return
    settings = _ONE_TASK if size > MOST_BYTES else _ONE_TASK | _SHORT
    set_up(spark, settings)


def tune_anew(spark: SparkSession) -> None:
    """Take back what `tune` set up, for a step that reads more than was thought."""
    for name in _ONE_TASK | _SHORT:
        spark.conf.unset(name)


def is_short(spark: SparkSession) -> bool:
    """Whether the session of a request was set up for few records, and collects its results."""
    marked: str | None = spark.conf.get(MARK, None)
    return marked == "true"


def is_one_task(spark: SparkSession) -> bool:
    """Whether one task reads and groups what a request of this session reads."""
    parts: str | None = spark.conf.get(_LEAVES, None)
    return parts == _ONE_TASK[_LEAVES]


def in_one_part(spark: SparkSession, plan: Node) -> Node:
    """Few records in one partition: nothing has to be exchanged to join, group or sort them."""
    if is_short(spark):
        set_up(spark, _IN_ONE_PART)
    return Catalyst(spark).build.in_one_part(plan)


def collect(frame: DataFrame, folder: Path) -> bool:
    """Write a result of few records to a Parquet file in a new `folder`, in its order.

    `False`, and no folder, where the session does not collect, or where there are too many.
    """
    return _kept(few_records(frame, folder.parent), folder)


def collect_computed(frame: DataFrame, folder: Path) -> bool:
    """As `collect`, without a job; `False` where not all of the result comes of records at hand.

    For results of quick expressions, because nothing can cancel it.
    """
    spark = frame.sparkSession
    if spark.conf.get(MARK, None) == "false":
        return False
    set_up(spark, IN_PLACE | _INTERPRETED)
    if _kept(computed(frame, folder.parent), folder):
        return True
    set_up(spark, _COMPILED)
    return False


def _kept(found: pa.Table | None, folder: Path) -> bool:
    if found is None:
        return False
    folder.mkdir()
    target = folder / "part-0.parquet"
    # Statistics of Arrow leave NaN out, which Spark takes for a number above all others.
    pq.write_table(found, target, compression="lz4", use_dictionary=False, write_statistics=False)
    return True


def few_records(frame: DataFrame, scratch: Path) -> pa.Table | None:
    """The records of `frame`; `None` where the session does not collect, or for too many.

    `scratch` is a folder that they pass through.
    """
    if not is_short(frame.sparkSession):
        return None
    return bounded_records(bounded(frame), scratch)


def bounded(frame: DataFrame) -> DataFrame:
    """`frame` with so many records of each partition that one can tell whether there are few."""
    catalyst = Catalyst(frame.sparkSession)
    limited = catalyst.build.limit_of_each_partition(COLLECTED_ROWS + 1, plan_of(frame))
    return catalyst.frame(limited)


def bounded_records(frame: DataFrame, scratch: Path) -> pa.Table | None:
    """The records of a frame that is `bounded`, unless these are too many."""
    found = computed(frame, scratch)
    if found is None:
        found = collected(frame, scratch)
    return found if found.num_rows <= COLLECTED_ROWS else None

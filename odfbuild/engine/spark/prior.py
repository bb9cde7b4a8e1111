"""What a merge must know of earlier records: keys that were seen, and the current state.

The one place that decides which slices of the history are read, and which of their columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.frames import quote, read_slices
from odfbuild.engine.spark.merge_changes import project

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def seen_keys(
    spark: SparkSession, batch: DataFrame, task: IngestTask, key: Sequence[str]
) -> DataFrame | None:
    """Keys of earlier records, whatever their operation; at least those that `batch` holds too.

    Columns are those of `key`, rows may repeat. `None` when no earlier record can match.
    """
    history = _history(spark, task)
    return None if history is None else history.selectExpr(*map(quote, key))


def current_state(
    spark: SparkSession, batch: DataFrame, task: IngestTask, key: Sequence[str]
) -> DataFrame | None:
    """The current state: the latest record of each key, unless that is a retraction.

    Columns are those of the dataset. `None` when there are no earlier records.
    """
    history = _history(spark, task)
    return None if history is None else project(history, key, task.vocab)


def _history(spark: SparkSession, task: IngestTask) -> DataFrame | None:
    if task.history_schema is None or not task.history:
        return None
    return read_slices(spark, task.history, task.history_schema, task.vocab)

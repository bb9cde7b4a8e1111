"""Records whose personal columns are encrypted before they are compared with committed ones.

They are computed once, into files that Arrow reads and writes again: keys never reach Spark, its
plans or its event log, and equal values of one subject are equal on both sides of the comparison.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.results.executor import write_parts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH_ROWS = 131_072


def sealed(spark: SparkSession, frame: DataFrame, task: IngestTask) -> DataFrame:
    """The records of `frame` as `task.seal` encrypts them; `frame` where it does not."""
    if task.seal is None:
        return frame
    plain, folder = task.scratch / "plain", task.scratch / "sealed"
    folder.mkdir()
    for part in write_parts(frame, plain):
        with pq.ParquetFile(part) as source:
            columns = source.schema_arrow
            with pq.ParquetWriter(folder / part.name, columns, compression="lz4") as writer:
                for batch in source.iter_batches(_BATCH_ROWS):
                    writer.write_batch(task.seal(batch).cast(columns))
    shutil.rmtree(plain)
    return spark.read.schema(frame.schema).parquet(str(folder))

"""Records handed to Spark, and taken from it, without a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfbuild.engine.spark.internals.jvm import classes_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_EXCLUDED = "spark.sql.optimizer.excludedRules"
BY_JOBS_ONLY = {_EXCLUDED: "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"}
"""Settings: the optimiser computes no records."""
IN_PLACE = {_EXCLUDED: ""}
"""Settings: it does."""


def empty_frame(spark: SparkSession, schema: StructType) -> DataFrame:
    """A frame without records.

    Made in the JVM: `createDataFrame([], …)` starts Python workers to serialise nothing.
    """
    from pyspark.sql import DataFrame

    session = spark._jsparkSession
    rows = classes_in(spark._jvm).new("ArrayList")
    return DataFrame(session.createDataFrame(rows, session.parseDataType(schema.json())), spark)


def frame_of(spark: SparkSession, stream: str, schema: StructType) -> DataFrame:
    """The records in the file `stream`, in Arrow's format of streams."""
    from pyspark.sql import DataFrame

    python = classes_in(spark._jvm).python
    batches = python.readArrowStreamFromFile(stream)
    return DataFrame(python.toDataFrame(batches, schema.json(), spark._jsparkSession), spark)


def write_computed(frame: DataFrame, stream: str, rows_at_once: int) -> bool:
    """Write the records of a result that the optimiser has computed already to a file `stream`.

    In Arrow's format of streams. `False`, and nothing written, where it has not.
    """
    known = classes_in(frame.sparkSession._jvm)
    plan = frame._jdf.queryExecution().optimizedPlan()
    if not known.local.isInstance(plan):
        return False
    schema = frame._jdf.schema()
    rows = known.batches.toBatchIterator(
        plan.data().iterator(), schema, rows_at_once, "UTC", False, False, None
    )
    output = known.new("FileOutputStream", stream)
    try:
        writer = known.new("ArrowBatchStreamWriter", schema, output, "UTC", False, False)
        writer.writeBatches(rows)
        writer.end()
    finally:
        output.close()
    return True

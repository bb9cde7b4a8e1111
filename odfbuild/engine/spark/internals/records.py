"""Records handed to Spark, and taken from it, in files of Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odfbuild.engine.spark.internals.jvm import Classes, classes_in, items

if TYPE_CHECKING:
    import pyarrow as pa
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

    known = classes_in(spark._jvm)
    # By its settings, which are those of no request, nothing is compiled to copy the records.
    known.sessions.setActiveSession(known.main)
    python = known.python
    batches = python.readArrowStreamFromFile(stream)
    return DataFrame(python.toDataFrame(batches, schema.json(), spark._jsparkSession), spark)


def layout_of(schema: StructType) -> pa.Schema:
    """The columns that batches of Arrow have which a task gives to Spark."""
    from pyspark.sql.pandas.types import to_arrow_schema

    layout: pa.Schema = to_arrow_schema(schema, timezone="UTC")
    return layout


def write_computed(frame: DataFrame, stream: str, most: int) -> bool:
    """Write the records of a result that the optimiser has computed already to a file `stream`.

    In Arrow's format of streams. `False`, and nothing written, where it has not, or where there are
    more than `most`.
    """
    known = classes_in(frame.sparkSession._jvm)
    rows = _computed(known, frame._jdf.queryExecution().optimizedPlan())
    if rows is None or rows.size() > most:
        return False
    batches = known.batches.toBatchIterator(
        rows.iterator(), frame._jdf.schema(), most, "UTC", False, False, None
    )
    _write(frame, batches, stream)
    return True


def _computed(known: Classes, plan: Any) -> Any:
    """The rows of an optimised plan in which nothing is left to compute, in order; else `None`."""
    if known.local.isInstance(plan):
        return plan.data()
    if not known.union.isInstance(plan):
        return None
    found = known.no_items
    for child in items(plan.children()):
        rows = _computed(known, child)
        if rows is None:
            return None
        found = found.concat(rows)
    return found


def write_collected(frame: DataFrame, stream: str) -> None:
    """Compute a result in a job, and write its records to a file `stream` as `write_computed` does.

    Spark's own way draws the plan as a text for those who watch, and hands the records over through
    a socket with two threads: more than a small job takes.
    """
    from pyspark.errors.exceptions.captured import unwrap_spark_exception

    known = classes_in(frame.sparkSession._jvm)
    session = frame.sparkSession._jsparkSession
    context = session.sparkContext()
    before = context.getLocalProperties()
    # Tasks see the settings of a session in the properties of their job.
    properties = before.clone()
    properties.putAll(known.as_java(session.sessionState().conf().getAllConfs()))
    known.sessions.setActiveSession(session)
    context.setLocalProperties(properties)
    try:
        with unwrap_spark_exception():
            batches = frame._jdf.toArrowBatchRdd().collect()
    finally:
        context.setLocalProperties(before)
    _write(frame, known.wrapped(batches).iterator(), stream)


def _write(frame: DataFrame, batches: Any, stream: str) -> None:
    known = classes_in(frame.sparkSession._jvm)
    output = known.new("FileOutputStream", stream)
    try:
        schema = frame._jdf.schema()
        writer = known.new("ArrowBatchStreamWriter", schema, output, "UTC", False, False)
        writer.writeBatches(batches)
        writer.end()
    finally:
        output.close()

"""Read steps: a prepared file becomes a frame in file order, preprocessed.

Declared columns of CSV match by position, as in the reference, which skips the header; here a
header that disagrees with the schema is an error. Rows that do not fit the schema are errors, found
when the frame is computed (`malformed.explain` then says where). Timestamps without a zone are UTC
and empty cells are null. Source: specification, `ReadStep`; reference behaviour, read steps.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.csv_header import check_header, first_row
from odfbuild.engine.spark.csv_options import csv_options, refuse_formats
from odfbuild.engine.spark.frames import quote, to_spark_schema, to_spark_type
from odfbuild.engine.spark.malformed import CORRUPT, guard
from odfbuild.engine.spark.ndjson_lines import refuse_crowded_lines
from odfbuild.engine.spark.order import total_order
from odfbuild.engine.spark.transform import preprocess
from odfbuild.errors import IngestError
from odfbuild.odf.arrow_schema import from_odf
from odfbuild.odf.ddl import parse_ddl
from odfbuild.odf.model import ReadStep, ReadStepCsv, ReadStepNdJson, ReadStepParquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def read_source(spark: SparkSession, task: IngestTask) -> DataFrame:
    """The records of a file in file order, behind the preprocessing query if there is one.

    A query that does not handle each record alone gives a total order instead. Raises `IngestError`
    and, for the query, `Errors` of `QueryError`.
    """
    frame = _read(spark, task)
    if task.preprocess is None:
        return frame
    frame.createOrReplaceTempView("input")
    result, row_wise = preprocess(spark, task.dataset, task.preprocess)
    return result if row_wise else total_order(result)


def declared_columns(read: ReadStep) -> pa.Schema | None:
    """The columns that a read step declares; `None` when the data decides."""
    if read.schema is not None:
        return from_odf(read.schema)
    return parse_ddl(read.ddl_schema) if read.ddl_schema else None


def _read(spark: SparkSession, task: IngestTask) -> DataFrame:
    read = task.read
    columns = declared_columns(read)
    if isinstance(read, ReadStepParquet):
        return _in_order(_parquet(spark, task, columns))
    if task.file.stat().st_size == 0 and columns is None:
        raise IngestError(
            f"'{task.source_name}' is empty, and no schema is declared",
            code="E0423",
            dataset=task.dataset,
            help="declare the columns in `read.schema`",
        )
    if isinstance(read, ReadStepCsv):
        return _in_order(_csv(spark, task, read, columns))
    if isinstance(read, ReadStepNdJson):
        return _in_order(_ndjson(spark, task, read, columns))
    # Refused when the project is checked; a chain may still hold such a step.
    raise IngestError(
        f"the read step '{read.KIND}' is not supported by this version of odfbuild",
        code="E0410",
        dataset=task.dataset,
        help="use one of: Csv, NdJson, Parquet",
    )


def _csv(
    spark: SparkSession, task: IngestTask, read: ReadStepCsv, columns: pa.Schema | None
) -> DataFrame:
    options = csv_options(read, task.dataset)
    if columns is not None:
        if read.header:
            check_header(task, read, columns.names)
        schema = to_spark_schema(columns)
    else:
        schema = _csv_schema(spark, task, read, options)
    reader = spark.read.schema(_with_corrupt(schema)).options(**options)
    return guard(reader.csv(str(task.file)))


def _csv_schema(
    spark: SparkSession, task: IngestTask, read: ReadStepCsv, options: dict[str, str]
) -> StructType:
    from pyspark.sql import types

    row = first_row(task, read)
    names = row if read.header else [f"column_{n}" for n in range(1, len(row) + 1)]
    _check_unique(task, names)
    if not read.infer_schema:
        return types.StructType([types.StructField(name, types.StringType()) for name in names])
    inferred = spark.read.options(**options, inferSchema="true").csv(str(task.file)).schema
    return types.StructType(
        [
            types.StructField(name, _widest(field.dataType))
            for name, field in zip(names, inferred.fields, strict=True)
        ]
    )


def _ndjson(
    spark: SparkSession, task: IngestTask, read: ReadStepNdJson, columns: pa.Schema | None
) -> DataFrame:
    refuse_formats(read, task.dataset)
    refuse_crowded_lines(task)
    options = {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": CORRUPT,
        "encoding": read.encoding or "UTF-8",
        "lineSep": "\n",
    }
    declared = None if columns is None else to_spark_schema(columns)
    schema = declared or _ndjson_schema(spark, task, options)
    reader = spark.read.schema(_with_corrupt(schema)).options(**options)
    return guard(reader.json(str(task.file)))


def _ndjson_schema(spark: SparkSession, task: IngestTask, options: dict[str, str]) -> StructType:
    from pyspark.sql import types

    inferred = spark.read.options(**options).json(str(task.file)).schema
    fields = {f.name: f for f in inferred.fields if f.name != CORRUPT}
    # Spark sorts by name; columns belong in the order in which the file first has them.
    names: dict[str, None] = {}
    with task.file.open(encoding=options["encoding"]) as lines:
        for line in lines:
            try:
                names |= dict.fromkeys(json.loads(line))
            except (ValueError, TypeError):
                continue  # reading reports it with its place
            if len(names) >= len(fields):
                break
    return types.StructType([fields[name] for name in names if name in fields])


def _parquet(spark: SparkSession, task: IngestTask, columns: pa.Schema | None) -> DataFrame:
    try:
        found = pq.read_schema(task.file)
    except (pa.ArrowException, OSError) as error:
        raise IngestError(
            f"'{task.source_name}' is not a readable Parquet file: {error}",
            code="E0423",
            dataset=task.dataset,
            help="check the file and the `prepare` steps before it",
        ) from None
    frame = spark.read.parquet(str(task.file))
    if columns is None:
        return frame
    expressions = []
    for field in columns:
        kind = to_spark_type(field.type).simpleString()
        if field.name in found.names:
            expressions.append(f"CAST({quote(field.name)} AS {kind}) AS {quote(field.name)}")
        elif field.nullable:
            expressions.append(f"CAST(NULL AS {kind}) AS {quote(field.name)}")
        else:
            raise missing_column(task, field.name, found.names)
    return frame.selectExpr("*").selectExpr(*expressions)


def missing_column(task: IngestTask, name: str, found: Sequence[str]) -> IngestError:
    """The error for a declared column that the source has not."""
    from difflib import get_close_matches

    close = get_close_matches(name, found, n=1)
    return IngestError(
        f"'{task.source_name}' has no column '{name}'",
        code="E0420",
        dataset=task.dataset,
        notes=(f"its columns are: {', '.join(found)}",),
        help=f"did you mean '{close[0]}'?" if close else "correct `read.schema` or the source",
    )


def _in_order(frame: DataFrame) -> DataFrame:
    """Impose file order where Spark reads a file in several pieces."""
    if frame.rdd.getNumPartitions() <= 1:
        return frame
    names = [quote(name) for name in frame.columns]
    return (
        frame.selectExpr(
            *names,
            "input_file_block_start() AS __odfbuild_start",
            "monotonically_increasing_id() AS __odfbuild_row",
        )
        .orderBy("__odfbuild_start", "__odfbuild_row")
        .selectExpr(*names)
    )


def _with_corrupt(schema: StructType) -> StructType:
    from pyspark.sql import types

    return types.StructType([*schema.fields, types.StructField(CORRUPT, types.StringType())])


def _widest(kind: object) -> object:
    """Inference looks at the values of one file; a later one may hold larger integers."""
    from pyspark.sql import types

    return types.LongType() if isinstance(kind, types.IntegerType) else kind


def _check_unique(task: IngestTask, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen or not name:
            what = f"two columns called '{name}'" if name else "a column without a name"
            raise IngestError(
                f"the header of '{task.source_name}' has {what}",
                code="E0420",
                dataset=task.dataset,
                help="declare the columns in `read.schema`, or correct the header",
            )
        seen.add(name.lower())

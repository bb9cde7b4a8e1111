"""Process few records in Spark without a job.

To open one small file, Spark lists it, sends its settings around and schedules a task: most of what
a step of few records costs. Here records are read by Arrow and stand in the plan themselves, where
the optimiser computes what a query makes of each. That cannot be cancelled, so it is done only with
expressions that take no longer than their arguments are long; all others run as a job.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.spark.internals.records import frame_of, write_collected, write_computed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

MOST_BYTES = 256 << 10
"""Up to this size of the files, starting a Spark job costs more than it saves."""
_UNPACKED_BYTES = 2 << 20
_READ_BYTES = 16 << 20
"""Values that repeat take hardly any space in a file."""
_MOST_ROWS = 20_000
_ROWS_AT_ONCE = 1024
_MICROS_UTC = pa.timestamp("us", "UTC")

_QUICK = """Alias AttributeReference Literal Cast
    Add Subtract Multiply Divide IntegralDivide Remainder Pmod UnaryMinus UnaryPositive Abs
    Round BRound RoundCeil RoundFloor Ceil Floor Greatest Least
    And Or Not EqualTo EqualNullSafe LessThan LessThanOrEqual GreaterThan GreaterThanOrEqual
    IsNull IsNotNull IsNaN In InSet Coalesce If CaseWhen
    With CommonExpressionDef CommonExpressionRef
    Upper Lower Length OctetLength Substring StringTrim StringTrimLeft StringTrimRight
    Concat Contains StartsWith EndsWith
    Year Quarter Month DayOfMonth DayOfWeek DayOfYear WeekDay WeekOfYear Hour Minute Second
    DateAdd DateSub DateDiff TruncDate TruncTimestamp PreciseTimestampConversion
    CreateNamedStruct GetStructField"""
QUICK = frozenset(_QUICK.split())
"""Classes of expressions that take no longer than their arguments are long."""


def handed_over(
    spark: SparkSession, files: Sequence[Path], schema: StructType, scratch: Path
) -> DataFrame | None:
    """The records of data files, all laid out as `schema`, in their order; `None` for too many.

    Also `None` where a column has a type that Arrow and Spark do not both hold as it is.
    """
    if sum(file.stat().st_size for file in files) > MOST_BYTES:
        return None
    table = _read(files)
    return None if table is None else _given(spark, table, schema, scratch)


def given_back(frame: DataFrame, table: pa.Table, scratch: Path) -> DataFrame | None:
    """`frame`, whose records Spark has computed and `table` holds; `None` as for `handed_over`."""
    if table.nbytes > _READ_BYTES or not all(map(is_alike, table.schema)):
        return None
    return _given(frame.sparkSession, table, frame.schema, scratch)


def _given(spark: SparkSession, table: pa.Table, schema: StructType, scratch: Path) -> DataFrame:
    with tempfile.NamedTemporaryFile(dir=scratch, suffix=".arrow") as file:
        with pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table)
        file.flush()
        return frame_of(spark, file.name, schema)


def computed(frame: DataFrame, scratch: Path) -> pa.Table | None:
    """The records of a result that the optimiser has computed already, if it has."""
    with tempfile.NamedTemporaryFile(dir=scratch, suffix=".arrow") as file:
        if not write_computed(frame, file.name, _MOST_ROWS):
            return None
        found: pa.Table = pa.ipc.open_stream(file).read_all()
    return found


def collected(frame: DataFrame, scratch: Path) -> pa.Table:
    """The records of a result, as a job computes them."""
    with tempfile.NamedTemporaryFile(dir=scratch, suffix=".arrow") as file:
        write_collected(frame, file.name)
        found: pa.Table = pa.ipc.open_stream(file).read_all()
    return found


def _read(files: Sequence[Path]) -> pa.Table | None:
    """All records, with times as Spark has them; `None` where they are too many or too large."""
    batches: list[pa.RecordBatch] = []
    rows = unpacked = size = 0
    schema: pa.Schema | None = None
    for path in files:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            found = file.metadata
            rows += found.num_rows
            groups = range(found.num_row_groups)
            unpacked += sum(found.row_group(number).total_byte_size for number in groups)
            schema = file.schema_arrow.remove_metadata()
            if rows > _MOST_ROWS or unpacked > _UNPACKED_BYTES or not all(map(is_alike, schema)):
                return None
            for batch in file.iter_batches(_ROWS_AT_ONCE):
                size += batch.nbytes
                if size > _READ_BYTES:
                    return None
                batches.append(batch.replace_schema_metadata(None))
    if schema is None:
        return None
    micros = pa.schema([f.with_type(_MICROS_UTC) if _is_instant(f) else f for f in schema])
    try:
        return pa.Table.from_batches(batches, schema).cast(micros).combine_chunks()
    except pa.ArrowInvalid:  # an instant that no microseconds hold
        return None


def is_alike(field: pa.Field) -> bool:
    """Whether Arrow and Spark both hold values of this type as they are."""
    t = pa.types
    same = (t.is_boolean, t.is_signed_integer, t.is_float32, t.is_float64, t.is_string, t.is_binary)
    kind = field.type
    if t.is_decimal128(kind):
        return True
    return _is_instant(field) or t.is_date32(kind) or any(test(kind) for test in same)


def _is_instant(field: pa.Field) -> bool:
    kind = field.type
    return pa.types.is_timestamp(kind) and kind.tz == "UTC" and kind.unit in ("ms", "us")

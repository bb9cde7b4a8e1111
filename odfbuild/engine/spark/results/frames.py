"""Conversion between Spark frames and Arrow: schemas, views of slices, ordered results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as spark_types

from odfbuild.engine.precision import Micros
from odfbuild.engine.spark.internals.records import empty_frame
from odfbuild.engine.spark.results.executor import computes_here
from odfbuild.engine.spark.results.local_rows import handed_over
from odfbuild.errors import QueryError
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.records.slice_file import has_floating
from odfbuild.records.uuids import Uuids, is_uuid, uuids_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SIMPLE: list[tuple[pa.DataType, spark_types.DataType]] = [
    (pa.bool_(), spark_types.BooleanType()),
    (pa.int8(), spark_types.ByteType()),
    (pa.int16(), spark_types.ShortType()),
    (pa.int32(), spark_types.IntegerType()),
    (pa.int64(), spark_types.LongType()),
    (pa.float32(), spark_types.FloatType()),
    (pa.float64(), spark_types.DoubleType()),
    (pa.string(), spark_types.StringType()),
    (pa.binary(), spark_types.BinaryType()),
    (pa.date32(), spark_types.DateType()),
    (pa.timestamp("ms", "UTC"), spark_types.TimestampType()),
]
_TO_SPARK = dict(_SIMPLE)
UUID_MARK = "odfbuild.uuid"
PRUNING = "spark.sql.parquet.filterPushdown"
"""The setting by which Spark leaves out what statistics of a file rule out."""
"""Metadata of columns of text that hold UUIDs."""
_DIGITS = 38
"""How many digits a decimal of Spark has at most."""
_WIDER = {
    pa.uint8(): spark_types.ShortType(),
    pa.uint16(): spark_types.IntegerType(),
    pa.uint32(): spark_types.LongType(),
    pa.uint64(): spark_types.DecimalType(20, 0),
}


def to_spark_type(kind: pa.DataType) -> spark_types.DataType:
    """Spark's type for columns of Arrow type `kind`; unsigned integers widen."""
    types = pa.types
    if kind in _TO_SPARK:
        return _TO_SPARK[kind]
    if kind in _WIDER:
        return _WIDER[kind]
    if is_uuid(kind):
        return spark_types.StringType()
    if types.is_timestamp(kind):
        return spark_types.TimestampType() if kind.tz else spark_types.TimestampNTZType()
    if types.is_decimal(kind) and kind.precision <= _DIGITS:
        return spark_types.DecimalType(kind.precision, kind.scale)
    if types.is_time(kind):
        return spark_types.TimeType(6)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return spark_types.StringType()
    if (
        types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    ):
        return spark_types.BinaryType()
    if types.is_list(kind) or types.is_large_list(kind):
        return spark_types.ArrayType(to_spark_type(kind.value_type))
    if types.is_struct(kind):
        return spark_types.StructType(
            [spark_types.StructField(field.name, to_spark_type(field.type)) for field in kind]
        )
    raise QueryError(
        f"columns of type {kind} cannot be read by Spark",
        code="E0512",
        help="cast the column to another type where it enters",
    )


def to_spark_schema(schema: pa.Schema) -> spark_types.StructType:
    """Spark's schema for data with Arrow schema `schema`."""
    return spark_types.StructType(
        [spark_types.StructField(field.name, to_spark_type(field.type)) for field in schema]
    )


def to_arrow_type(kind: spark_types.DataType, unit: str = "ms") -> pa.DataType:
    """Arrow's type for a column of a Spark result; `unit` is that of its times."""
    if isinstance(kind, spark_types.TimestampType | spark_types.TimestampNTZType):
        return pa.timestamp(unit, "UTC")
    for arrow, spark in _SIMPLE:
        if type(kind) is type(spark):
            return arrow
    if isinstance(kind, spark_types.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, spark_types.TimeType):
        return pa.time64("us")
    if isinstance(kind, spark_types.ArrayType):
        return pa.list_(to_arrow_type(kind.elementType, unit))
    if isinstance(kind, spark_types.StructType):
        return pa.struct([pa.field(f.name, to_arrow_type(f.dataType, unit)) for f in kind.fields])
    raise QueryError(
        f"results of type {kind.simpleString()} cannot be committed",
        code="E0510",
        help="cast the column to another type",
    )


def can_be_committed(kind: spark_types.DataType) -> bool:
    """Whether `to_arrow_type` has a type for it: not for intervals and maps, for example."""
    try:
        to_arrow_type(kind)
    except QueryError:
        return False
    return True


def to_arrow_schema(
    frame: DataFrame,
    required: Sequence[str] = (),
    micros: Micros = frozenset(),
    uuids: Uuids = frozenset(),
) -> pa.Schema:
    """Arrow schema of a result; columns are optional unless they are in `required`.

    Times of columns in `micros` keep microseconds, others milliseconds; texts in `uuids` are UUIDs.
    """
    fields = []
    for field in frame.schema.fields:
        name = field.name
        if name in uuids:
            kind = pa.uuid()
        else:
            kind = to_arrow_type(field.dataType, "us" if name in micros else "ms")
        fields.append(pa.field(name, kind, nullable=name not in required))
    return pa.schema(fields)


def marked(frame: DataFrame, schema: pa.Schema | None) -> DataFrame:
    """`frame` with marks on the columns that hold UUIDs by `schema`."""
    uuids = uuids_in(schema)
    for name in uuids & set(frame.columns) if uuids else ():  # Spark is asked for the columns
        frame = frame.withMetadata(name, {UUID_MARK: True})
    return frame


def marked_uuids(frame: DataFrame) -> Uuids:
    """The columns of a result that hold UUIDs, by their marks."""
    fields = frame.schema.fields
    return frozenset(
        each.name
        for each in fields
        if UUID_MARK in each.metadata and isinstance(each.dataType, spark_types.StringType)
    )


def read_slices(
    spark: SparkSession,
    files: Sequence[Path],
    schema: pa.Schema,
    vocab: Vocabulary,
    scratch: Path | None = None,
) -> DataFrame:
    """Records of data files in the shape of `schema`, whatever physical form each file has.

    With a folder `scratch`, few of them are read here, and handed over. Offsets are bigint and
    operations int, also where a peer wrote unsigned ones; columns that were added later are null in
    older files.
    """
    if not files:
        return marked(empty_frame(spark, in_views(schema, vocab)), schema)
    groups: dict[tuple[tuple[str, str], ...], list[Path]] = {}
    layouts: dict[tuple[tuple[str, str], ...], pa.Schema] = {}
    for file in files:
        layout = pq.read_schema(file)
        key = tuple((field.name, str(field.type)) for field in layout)
        groups.setdefault(key, []).append(file)
        layouts[key] = layout
    frames = [_read(spark, each, layouts[k], schema, vocab, scratch) for k, each in groups.items()]
    return marked(union(frames), schema)


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows, those of one frame after those of the one before."""
    result = frames[0]
    for frame in frames[1:]:
        result = result.unionAll(frame)
    return result


def _read(
    spark: SparkSession,
    files: Sequence[Path],
    layout: pa.Schema,
    schema: pa.Schema,
    vocab: Vocabulary,
    scratch: Path | None,
) -> DataFrame:
    """Records of files that are all laid out as `layout`, in the shape of `schema`."""
    wanted = in_views(schema, vocab)
    names = [str(file) for file in files]
    read_every_row(spark, layout)
    if any(field.type in _WIDER for field in layout):
        frame = spark.read.parquet(*names)  # Spark knows best what it can read these as
    else:
        found = to_spark_schema(_stored(layout))
        frame = None
        if scratch is not None and computes_here(spark):
            frame = handed_over(spark, files, found, scratch)
        if frame is None:
            frame = spark.read.schema(found).parquet(*names)
        if found == wanted:
            return frame
    return frame.selectExpr(*_conform(layout, wanted))


def read_every_row(spark: SparkSession, layout: pa.Schema) -> None:
    """Let Spark trust no statistics of files with floating numbers, from here on in its session.

    Writers leave NaN out of the least and the greatest value, and Spark, for which NaN is greater
    than all others, would pass over it where a query asks for `x > 1`.
    """
    if has_floating(layout):
        spark.conf.set(PRUNING, "false")


def _stored(layout: pa.Schema) -> pa.Schema:
    """What Spark can read of a file: of UUIDs their bytes."""
    return pa.schema([f.with_type(pa.binary()) if is_uuid(f.type) else f for f in layout])


def uuid_text(bytes: str) -> str:
    """SQL for the text of a UUID, of SQL for its 16 bytes."""
    groups = "'^(.{8})(.{4})(.{4})(.{4})(.{12})$', '$1-$2-$3-$4-$5'"
    return f"regexp_replace(lower(hex({bytes})), {groups})"


def in_views(schema: pa.Schema, vocab: Vocabulary) -> spark_types.StructType:
    """Spark's schema for `schema`, with the one form that system columns have in views."""
    system = {vocab.offset: pa.int64(), vocab.operation_type: pa.int32()}
    return to_spark_schema(
        pa.schema([field.with_type(system.get(field.name, field.type)) for field in schema])
    )


def _conform(layout: pa.Schema, wanted: spark_types.StructType) -> list[str]:
    bytes = [f.name for f in layout if is_uuid(f.type) or pa.types.is_fixed_size_binary(f.type)]
    columns = []
    for field in wanted:
        name = quote(field.name)
        value = name if field.name in layout.names else "NULL"
        if field.name in bytes and isinstance(field.dataType, spark_types.StringType):
            value = uuid_text(name)
        if value == name and pa.types.is_struct(layout.field(field.name).type):
            found = to_spark_type(layout.field(field.name).type)
            columns.append(f"{in_members(name, found, field.dataType)} AS {name}")
            continue
        columns.append(f"CAST({value} AS {sql_type(field.dataType)}) AS {name}")
    return columns


# --- Structures ---


def in_members(value: str, found: spark_types.DataType, wanted: spark_types.DataType) -> str:
    """SQL for a `value` of type `found` in the type `wanted`: members by name, NULL if missing."""
    structs = isinstance(found, spark_types.StructType), isinstance(wanted, spark_types.StructType)
    if not all(structs) or found == wanted:
        return f"CAST({value} AS {sql_type(wanted)})"
    members = []
    for field in wanted:
        member = f"CAST(NULL AS {sql_type(field.dataType)})"
        if field.name in found.names:
            inner = f"{value}.{quote(field.name)}"
            member = in_members(inner, found[field.name].dataType, field.dataType)
        members.append(f"{literal(field.name)}, {member}")
    return f"CASE WHEN {value} IS NOT NULL THEN named_struct({', '.join(members)}) END"


def more_members(
    new: spark_types.DataType, old: spark_types.DataType, path: str
) -> tuple[str, ...] | None:
    """Paths of the members that structures of `new` have beside those of `old`.

    `None` where that is not the only difference: values of `old` cannot join those of `new` then.
    """
    if not isinstance(new, spark_types.StructType) or not isinstance(old, spark_types.StructType):
        return () if new.simpleString() == old.simpleString() else None
    if [name for name in new.names if name in old.names] != old.names:
        return None
    found: list[str] = []
    for field in new:
        at = f"{path}.{field.name}"
        more = (
            more_members(field.dataType, old[field.name].dataType, at)
            if (field.name in old.names)
            else (at,)
        )
        if more is None:
            return None
        found += more
    return tuple(found)


# --- Text ---


def literal(text: str) -> str:
    """Text as a value in SQL text."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def sql_type(kind: spark_types.DataType) -> str:
    """A type for use in SQL text: Spark's own short form leaves names of members without quotes."""
    if isinstance(kind, spark_types.StructType):
        members = ", ".join(f"{quote(each.name)}: {sql_type(each.dataType)}" for each in kind)
        return f"struct<{members}>"
    if isinstance(kind, spark_types.ArrayType):
        return f"array<{sql_type(kind.elementType)}>"
    if isinstance(kind, spark_types.MapType):
        return f"map<{sql_type(kind.keyType)}, {sql_type(kind.valueType)}>"
    return str(kind.simpleString())


def quote(name: str) -> str:
    """A column name for use in SQL text."""
    return "`" + name.replace("`", "``") + "`"

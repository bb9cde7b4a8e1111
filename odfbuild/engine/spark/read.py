"""Read a prepared source file into columns, in the order of the file.

Rows that do not fit are an error that names file and line. Source: metadata reference, `ReadStep`.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.frames import quote, to_spark_schema
from odfbuild.errors import IngestError, Location
from odfbuild.odf.arrow_schema import from_odf
from odfbuild.odf.ddl import parse_ddl
from odfbuild.odf.model import ReadStep, ReadStepCsv, ReadStepNdJson, ReadStepParquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

POSITION = "__odfbuild_position"
"""Column that numbers rows in the order of the file; gone before a result is written."""
_CORRUPT = "__odfbuild_corrupt"
_SHOWN = 5


def declared_columns(read: ReadStep) -> pa.Schema | None:
    """Columns that the read step declares; `None`: they are whatever the source has."""
    if read.schema is not None:
        return from_odf(read.schema)
    return parse_ddl(read.ddl_schema) if read.ddl_schema else None


def read_source(spark: SparkSession, task: IngestTask) -> DataFrame:
    """The rows of the task's file with `POSITION`; raises `IngestError` for what does not fit."""
    read = task.read
    columns = declared_columns(read)
    match read:
        case ReadStepCsv():
            frame = _read_csv(spark, task, read, columns)
        case ReadStepNdJson():
            frame = _read_ndjson(spark, task, read, columns)
        case ReadStepParquet():
            frame = _read_parquet(spark, task, columns)
        case _:
            raise IngestError(
                f"read step {read.KIND} is not supported by this release",
                code="E0420",
                dataset=task.dataset,
                help="supported are Csv, NdJson and Parquet",
            )
    return _numbered(frame)


def _numbered(frame: DataFrame) -> DataFrame:
    from pyspark.sql.functions import monotonically_increasing_id

    # Parts of a large file are packed by size, not by place, so the place comes first.
    if frame.rdd.getNumPartitions() > 1:
        names = [quote(name) for name in frame.columns]
        frame = frame.selectExpr(*names, "_metadata.file_block_start AS __block")
        frame = frame.withColumn("__row", monotonically_increasing_id())
        frame = frame.orderBy("__block", "__row").drop("__block", "__row")
    return frame.withColumn(POSITION, monotonically_increasing_id())


def _read_csv(
    spark: SparkSession, task: IngestTask, read: ReadStepCsv, columns: pa.Schema | None
) -> DataFrame:
    options: dict[str, Any] = {
        "sep": read.separator or ",",
        "quote": '"' if read.quote is None else read.quote or "\0",
        "escape": "\\" if read.escape is None else read.escape or "\0",
        "encoding": read.encoding or "utf-8",
        "nullValue": read.null_value or "",
        "header": bool(read.header),
        "enforceSchema": True,
        "mode": "PERMISSIVE",
    }
    if read.date_format and read.date_format.lower() != "rfc3339":
        options["dateFormat"] = read.date_format
    if read.timestamp_format and read.timestamp_format.lower() != "rfc3339":
        options["timestampFormat"] = read.timestamp_format
    path = str(task.file)
    if columns is None:
        names = _header(task, read) if read.header else None
        frame = spark.read.options(**options).csv(path, inferSchema=bool(read.infer_schema))
        if names is None:
            frame = frame.toDF(*[f"column_{index + 1}" for index in range(len(frame.columns))])
        return frame
    if read.header:
        _check_header(task, _header(task, read), columns.names)
    schema = to_spark_schema(columns).add(_CORRUPT, "string")
    frame = (
        spark.read.options(**options)
        .option("columnNameOfCorruptRecord", _CORRUPT)
        .schema(schema)
        .csv(path)
    )
    return _without_corrupt(frame, task, columns)


def _header(task: IngestTask, read: ReadStepCsv) -> list[str]:
    import csv

    with task.file.open(encoding=read.encoding or "utf-8", errors="replace", newline="") as file:
        rows = csv.reader(file, delimiter=read.separator or ",", quotechar=read.quote or '"')
        return [name.strip().removeprefix("\ufeff") for name in next(rows, [])]


def _check_header(task: IngestTask, found: list[str], expected: list[str]) -> None:
    """Columns are read by position, so a file whose header says something else is refused."""
    if not found or [n.lower() for n in found] == [n.lower() for n in expected]:
        return
    missing = [name for name in expected if name.lower() not in {n.lower() for n in found}]
    extra = [name for name in found if name.lower() not in {n.lower() for n in expected}]
    notes = []
    for name in missing:
        close = get_close_matches(name, extra, n=1)
        notes.append(
            f"column '{name}' is missing" + (f"; there is '{close[0]}'" if close else "")
        )
    notes += [f"column '{name}' is not in the schema" for name in extra]
    if not notes:
        notes = [f"the file has: {', '.join(found)}", f"expected: {', '.join(expected)}"]
    raise IngestError(
        f"{task.source_name} does not have the columns that `read.schema` lists",
        code="E0421",
        location=Location(task.source_name, 1, 1),
        notes=tuple(notes),
        help="correct the file, or change `read.schema` to what the source has now",
        dataset=task.dataset,
    )


def _read_ndjson(
    spark: SparkSession, task: IngestTask, read: ReadStepNdJson, columns: pa.Schema | None
) -> DataFrame:
    options: dict[str, Any] = {"mode": "PERMISSIVE", "encoding": read.encoding or "utf-8"}
    if read.date_format and read.date_format.lower() != "rfc3339":
        options["dateFormat"] = read.date_format
    if read.timestamp_format and read.timestamp_format.lower() != "rfc3339":
        options["timestampFormat"] = read.timestamp_format
    reader = spark.read.options(**options)
    if columns is None:
        return reader.option("mode", "FAILFAST").json(str(task.file))
    schema = to_spark_schema(columns).add(_CORRUPT, "string")
    frame = (
        reader.option("columnNameOfCorruptRecord", _CORRUPT).schema(schema).json(str(task.file))
    )
    return _without_corrupt(frame, task, columns)


def _without_corrupt(frame: DataFrame, task: IngestTask, columns: pa.Schema) -> DataFrame:
    # Spark refuses to look at the column of corrupt records alone, which caching works around.
    kept = frame.cache()
    bad = [
        row[0] for row in kept.where(f"{_CORRUPT} IS NOT NULL").select(_CORRUPT).take(_SHOWN)
    ]
    if bad:
        kept.unpersist()
        raise _malformed(task, bad, columns)
    return frame.drop(_CORRUPT)


def _malformed(task: IngestTask, bad: list[str], columns: pa.Schema) -> IngestError:
    """The error for rows that do not fit, with the line of the first in the source."""
    wanted = {text.rstrip("\r\n"): None for text in bad}
    places: list[tuple[int, str]] = []
    with task.file.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            text = line.rstrip("\r\n")
            if text in wanted:
                places.append((number, text))
                if len(places) == len(bad):
                    break
    line_number, text = places[0] if places else (None, bad[0])
    more = [f"line {number} does not fit either" for number, _ in places[1:]]
    expected = ", ".join(f"{field.name} {field.type}" for field in columns)
    return IngestError(
        f"a row of {task.source_name} does not fit the schema",
        code="E0422",
        location=Location(task.source_name, line_number, 1, text, len(text)),
        notes=(*more, f"expected {len(columns)} columns: {expected}"),
        help="correct the row, or change `read.schema` so that it fits",
        dataset=task.dataset,
    )


def _read_parquet(
    spark: SparkSession, task: IngestTask, columns: pa.Schema | None
) -> DataFrame:
    frame = spark.read.parquet(str(task.file))
    if columns is None:
        return frame
    missing = [name for name in columns.names if name not in frame.columns]
    if missing:
        raise IngestError(
            f"{task.source_name} has no column '{missing[0]}'",
            code="E0421",
            dataset=task.dataset,
            notes=(f"it has: {', '.join(frame.columns)}",),
            help="correct `read.schema`",
        )
    types = to_spark_schema(columns)
    return frame.selectExpr(
        *(f"CAST({quote(f.name)} AS {f.dataType.simpleString()}) AS {quote(f.name)}" for f in types)
    )

"""Read steps: convert a prepared file to a frame in file order, and preprocess it.

Declared columns of CSV match by position, as in the reference, which skips the header; here a
header that disagrees with the schema is an error. Records that do not fit the schema are bad
(`malformed`); a value fits when nothing of it would be lost (`values`). Timestamps without a zone
are UTC and empty cells are null. A file without records and without declared columns has no frame.
Source: specification, `ReadStep`; reference behaviour, read steps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib import parse

import pyarrow as pa

from odfbuild.engine.contract import Drift, IngestTask
from odfbuild.engine.csv_records import unfolding_sql
from odfbuild.engine.read_options import refuse_formats
from odfbuild.engine.spark.internals.records import empty_frame
from odfbuild.engine.spark.queries.checked import preprocess
from odfbuild.engine.spark.queries.hidden_columns import hide
from odfbuild.engine.spark.reading.bad_places import Source
from odfbuild.engine.spark.reading.bad_records import BadRecords
from odfbuild.engine.spark.reading.changed_columns import committed_names, expected_columns, fitted
from odfbuild.engine.spark.reading.csv_header import check_header, named_header
from odfbuild.engine.spark.reading.csv_options import csv_options
from odfbuild.engine.spark.reading.csv_quotes import (
    quote_of,
    refuse_open_quotes,
    with_empty_rows,
    with_line_breaks,
)
from odfbuild.engine.spark.reading.inference import check_unique, csv_schema, ndjson_schema
from odfbuild.engine.spark.reading.json_depth import refuse_deep
from odfbuild.engine.spark.reading.json_records import (
    geojson_records,
    json_records,
    ndgeojson_records,
)
from odfbuild.engine.spark.reading.malformed import guard, guard_times
from odfbuild.engine.spark.reading.ndjson_text import ndjson_text
from odfbuild.engine.spark.reading.parquet_source import missing_column, readable_parquet
from odfbuild.engine.spark.reading.read_count import with_count
from odfbuild.engine.spark.reading.same_columns import have_same_columns
from odfbuild.engine.spark.reading.shapefile_records import shapefile_records
from odfbuild.engine.spark.reading.source_text import SourceText, utf8_text
from odfbuild.engine.spark.reading.splits import cut_evenly
from odfbuild.engine.spark.reading.values import (
    UUID,
    converted,
    misfit,
    undeclared_operation,
    with_text,
    with_time,
    with_values,
    without_operation,
)
from odfbuild.engine.spark.results.frames import (
    literal,
    marked,
    quote,
    read_every_row,
    sql_type,
    to_spark_schema,
    to_spark_type,
)
from odfbuild.engine.spark.results.hidden import CORRUPT, FILE, MISFIT, OF_READING, ROW
from odfbuild.engine.spark.results.order import total_order
from odfbuild.errors import IngestError, Location, QueryError
from odfbuild.odf.model import (
    MergeStrategyUpsertStream,
    ReadStepCsv,
    ReadStepEsriShapefile,
    ReadStepGeoJson,
    ReadStepJson,
    ReadStepNdGeoJson,
    ReadStepNdJson,
    ReadStepParquet,
)
from odfbuild.odf.schema.arrow_schema import declared_columns
from odfbuild.records.uuids import is_uuid, uuids_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def read_source(
    spark: SparkSession,
    task: IngestTask,
    bad: BadRecords,
    *,
    numbered: bool = False,
    others: Sequence[IngestTask] = (),
) -> tuple[DataFrame, Source] | None:
    """The records of a file in file order, behind the preprocessing query if there is one.

    A query that does not handle each record alone gives a total order instead. `None` when the file
    is empty and declares no columns. Raises `IngestError` and, for the query, `Errors` of
    `QueryError`.

    With `numbered`, of a file in `one_part`, `ROW` is the number, from 0, of the record that each
    was made of; it is absent behind such a query.

    With `others`, tasks like this one for further small files, `FILE` tells their records apart;
    `None` where a query does not handle each record alone, or the files differ in their columns.
    """
    found = _read(spark, task, bad, others)
    if found is None:
        return None
    frame, source = found
    if not others and task.file.stat().st_size:
        frame, count = with_count(frame, task, source.text.file if source.text else None)
        source = replace(source, read=count)
    frame = marked(frame, source.columns)
    if numbered and ROW not in frame.columns:
        frame = frame.selectExpr("*", f"monotonically_increasing_id() AS {ROW}")
    if task.preprocess is None and declared_columns(task.read) is None:
        source = replace(source, columns=expected_columns(frame, task, source.columns))
        frame, drift = fitted(frame, task, convert=True)
        source = replace(source, drift=drift)
    if task.preprocess is None:
        if task.read.schema is None:
            frame = _with_event_time(frame, task)
        frame = guard(frame, task, source, bad)
        return _renamed(frame, task, source) if task.read.schema is None else (frame, source)
    frame = guard(frame, task, source, bad)
    hide(frame, "input")
    carried = ((ROW,) if numbered else ()) + ((FILE,) if others else ())
    result, row_wise = preprocess(spark, task.dataset, task.preprocess, carried)
    if not row_wise:  # it may stop reading before the end
        source = replace(source, read=None)
    if others and not row_wise:
        return None
    result, drift = fitted(result if row_wise else total_order(result), task, convert=False)
    result = guard_times(result, task, source, bad)
    return result, replace(source, drift=source.drift.and_then(drift))


def can_be_together(tasks: Sequence[IngestTask]) -> bool:
    """Whether their files can be read in one job, as far as the tasks tell.

    Of several datasets, what is appended depends on nothing but the file.
    """
    first, names = tasks[0], {each.dataset for each in tasks}
    if len(names) > 1:
        known = first.history_schema is None or first.merge.KEEPS_ALL
        by_file = known and not first.merge.COMPARES
        if len(names) < len(tasks) or not by_file or not all(map(first.is_like, tasks)):
            return False
        # Of each dataset the columns would be inferred from its own file.
        return declared_columns(first.read) is not None and all(map(is_regular, tasks))
    return first.history_schema is not None and all(map(is_regular, tasks))


def is_regular(task: IngestTask) -> bool:
    """Whether a file is read as it is declared, with nothing left out or fitted."""
    return (
        not isinstance(task.read, ReadStepEsriShapefile)
        and task.on_schema_change == "fail"
        and not task.skip_bad_records
    )


def _read(
    spark: SparkSession, task: IngestTask, bad: BadRecords, others: Sequence[IngestTask]
) -> tuple[DataFrame, Source] | None:
    """Records as they are, with `CORRUPT` where the format can tell."""
    read, tasks = task.read, (task, *others)
    columns = declared_columns(read)
    cut_evenly(spark, task.file.stat().st_size)
    if columns is not None:
        check_unique(task, columns.names, "`read.schema`", "give each column a name of its own")
    if not others and task.file.stat().st_size == 0:
        if columns is None:
            return None
        return empty_frame(spark, to_spark_schema(columns)), Source(None, columns)
    match read:
        case ReadStepParquet():
            return _parquet(spark, tasks, columns)
        case ReadStepCsv():
            return _csv(spark, task, read, columns, others)
        case ReadStepNdJson():
            refuse_formats(read, task.dataset)
            texts = [ndjson_text(each, read.encoding, bad) for each in tasks]
        case ReadStepJson():
            refuse_formats(read, task.dataset)
            texts = [json_records(each, read) for each in tasks]
        case ReadStepGeoJson():
            texts = [geojson_records(each, bad) for each in tasks]
        case ReadStepNdGeoJson():
            texts = [ndgeojson_records(each, bad) for each in tasks]
        case ReadStepEsriShapefile():
            texts = [shapefile_records(task, read, columns)]
    return _ndjson(spark, tasks, texts, columns)


def _csv(
    spark: SparkSession,
    task: IngestTask,
    read: ReadStepCsv,
    columns: pa.Schema | None,
    others: Sequence[IngestTask],
) -> tuple[DataFrame, Source] | None:
    options = csv_options(read, task.dataset, folded=_may_fold(task, read))
    text, *more = (_csv_text(each, read) for each in (task, *others))
    if columns is not None:
        _refuse_nested(task, columns)
        if read.header and task.on_schema_change != "fail":
            return _csv_by_name(spark, task, read, text, columns)
        if read.header:
            for each, its_text in zip((task, *others), (text, *more), strict=True):
                check_header(each, read, its_text, columns.names)
        schema = to_spark_schema(columns)
    elif not have_same_columns([text, *more], read):
        return None
    else:
        schema = csv_schema(spark, task, read, text, options)
        if not schema.fields:
            return None
    reader = spark.read.schema(_with_corrupt(with_text(schema, "csv"))).options(**options)
    files = [each.file for each in (text, *more)]
    frame = _told_apart(reader.csv([*map(str, files)]), files)
    frame = _unfolded(frame) if text.folded else frame
    return with_values(frame, schema, "csv", uuids_in(columns), task.local_times), Source(
        text, columns
    )


def _csv_text(task: IngestTask, read: ReadStepCsv) -> SourceText:
    """The records of a file, one a line."""
    if _may_fold(task, read):
        text = with_line_breaks(task, utf8_text(task, read.encoding), read)
    else:
        text = utf8_text(task, read.encoding, any_line_end=True)
        refuse_open_quotes(task, text, read)
    return with_empty_rows(task, text, read)


def _may_fold(task: IngestTask, read: ReadStepCsv) -> bool:
    return task.line_breaks and quote_of(read) is not None


def _unfolded(frame: DataFrame) -> DataFrame:
    """`frame`, read of records that are `folded`, with texts as they were."""
    return frame.selectExpr(
        *(
            f"{unfolding_sql(quote(field.name))} AS {quote(field.name)}"
            if field.dataType.typeName() == "string"
            else quote(field.name)
            for field in frame.schema
        )
    )


def _uri(file: Path) -> str:
    """What Spark calls a file, as long as there is nothing unusual in its name."""
    return "file:" + re.sub(
        r"[^\w!.~'()*,;:$&+=/@-]", lambda found: parse.quote(found[0]), str(file)
    )


def _told_apart(frame: DataFrame, files: Sequence[Path]) -> DataFrame:
    """`frame`, with the number of the file of each record where there are several."""
    if len(files) == 1:
        return frame
    pairs = (f"{literal(_uri(file))}, {number}" for number, file in enumerate(files, 1))
    return frame.selectExpr(
        "*", f"element_at(map({', '.join(pairs)}), _metadata.file_path) AS {FILE}"
    )


def _csv_by_name(
    spark: SparkSession, task: IngestTask, read: ReadStepCsv, text: SourceText, columns: pa.Schema
) -> tuple[DataFrame, Source]:
    """Declared columns wherever the header has them; others are left out, absent ones are empty."""
    header = named_header(read, text, columns)
    check_unique(task, header.names, "the header")
    known = {name for name in header.names if name in columns.names}
    missing = tuple(name for name in columns.names if name not in known)
    expressions = []
    for field in columns:
        kind = sql_type(to_spark_type(field.type))
        if field.name in known or not header.names:
            expressions.append(quote(field.name))
        elif field.nullable:
            expressions.append(f"CAST(NULL AS {kind}) AS {quote(field.name)}")
        else:
            raise missing_column(task, field.name, header.names)
    in_file = header if header.names else columns
    schema = to_spark_schema(in_file)
    reader = spark.read.schema(_with_corrupt(with_text(schema, "csv")))
    options = csv_options(read, task.dataset, folded=text.folded)
    frame = reader.options(**options).csv(str(text.file))
    frame = _unfolded(frame) if text.folded else frame
    frame = with_values(frame, schema, "csv", uuids_in(in_file), task.local_times)
    operation = _undeclared(task, columns)
    if operation is not None and operation in header.names:
        frame = without_operation(frame, operation)
    hidden = [name for name in OF_READING if name in frame.columns]
    new = tuple(name for name in header.names if name not in known)
    drift = Drift(new, missing if header.names else ())
    return frame.selectExpr(*expressions, *hidden), Source(text, in_file, drift=drift)


def _refuse_nested(task: IngestTask, columns: pa.Schema) -> None:
    for field in columns:
        if pa.types.is_nested(field.type):
            raise IngestError(
                f"column '{field.name}' is {to_spark_type(field.type).simpleString().upper()}, "
                "which a cell of CSV cannot hold",
                code="E0422",
                dataset=task.dataset,
                help="declare it as STRING and take it apart in `preprocess`, such as "
                f"from_json({field.name}, '…')",
            )


def _ndjson(
    spark: SparkSession,
    tasks: Sequence[IngestTask],
    texts: Sequence[SourceText],
    columns: pa.Schema | None,
) -> tuple[DataFrame, Source] | None:
    task, text = tasks[0], texts[0]
    options = {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": CORRUPT,
        # No encoding: only from bytes does Spark take over numbers into text as they are written.
        "lineSep": "\n",
        "allowNonNumericNumbers": "false",
        "allowSingleQuotes": "false",
    }
    for each, its_text in zip(tasks, texts, strict=True):
        refuse_deep(each, its_text)
    if columns is not None:
        schema = to_spark_schema(columns)
    elif not have_same_columns(texts, task.read):
        return None
    else:
        schema = ndjson_schema(spark, task, text, options)
        if not schema.fields:
            return None
    operation = _undeclared(task, columns)
    read = with_text(schema, "json")
    if operation is not None:
        read = read.add(operation, "string")
    reader = spark.read.schema(_with_corrupt(read)).options(**options)
    files = [each.file for each in texts]
    frame = _told_apart(reader.json([*map(str, files)]), files)
    frame = with_values(frame, schema, "json", uuids_in(columns), task.local_times)
    if operation is not None:
        frame = without_operation(frame, operation)
    return frame, Source(text, columns)


def _parquet(
    spark: SparkSession, tasks: Sequence[IngestTask], columns: pa.Schema | None
) -> tuple[DataFrame, Source] | None:
    task = tasks[0]
    (file, found), *more = map(readable_parquet, tasks)
    if not all(found.equals(schema, check_metadata=True) for _, schema in more):
        return None
    files = [file, *(each for each, _ in more)]
    check_unique(task, found.names, "the schema")
    for field in found if columns is None else [f for f in found if f.name in columns.names]:
        _check_readable(task, field)
    operation = _undeclared(task, columns)
    if operation in found.names and not pa.types.is_integer(found.field(operation).type):
        operation = None
    known = found
    if columns is not None:
        known = pa.schema([f for f in found if f.name in (*columns.names, operation)])
    unsigned = any(pa.types.is_unsigned_integer(field.type) for field in known)
    read_every_row(spark, known)
    reader = spark.read if unsigned else spark.read.schema(to_spark_schema(known))
    frame = _told_apart(reader.parquet(*map(str, files)), files)
    if columns is None:
        return frame, Source(None, found)
    expressions, misfits, missing = [FILE] if more else [], [], []
    for field in columns:
        name, kind = quote(field.name), to_spark_type(field.type)
        if field.name in found.names:
            before = frame.schema[field.name].dataType
            becomes_uuid = is_uuid(field.type) and not is_uuid(found.field(field.name).type)
            if before == kind and not becomes_uuid:
                expressions.append(name)
                continue
            becomes = UUID if becomes_uuid else kind
            value, lost = converted(field.name, before, becomes, task.local_times)
            expressions.append(f"{value} AS {name}")
            misfits.append(lost)
        elif field.nullable and (task.on_schema_change != "fail" or not _is_committed(field, task)):
            missing.append(field.name)
            expressions.append(f"CAST(NULL AS {sql_type(kind)}) AS {name}")
        else:
            raise missing_column(task, field.name, found.names)
    if operation is not None and operation in found.names:
        misfits.append(undeclared_operation(operation))
    if misfits:
        row = "CAST(_metadata.row_index AS STRING)"
        expressions.append(f"{misfit(misfits, row)} AS {MISFIT}")
    return frame.selectExpr(*expressions), Source(None, columns, Drift((), tuple(missing)))


def _check_readable(task: IngestTask, field: pa.Field) -> None:
    try:
        to_spark_type(field.type)
    except QueryError:
        raise IngestError(
            f"column '{field.name}' of '{task.source_name}' is {field.type}, which no dataset "
            "can hold",
            code="E0422",
            location=Location(task.source_name),
            dataset=task.dataset,
            help="write it with another type, or leave it out: declare the other columns in "
            "`read.schema`",
        ) from None


def _undeclared(task: IngestTask, columns: pa.Schema | None) -> str | None:
    """The column that would say what a row does, where `columns` leave it out and nothing asks."""
    name = task.vocab.operation_type
    if columns is None or name in columns.names:
        return None
    queries = task.preprocess.queries or () if task.preprocess else ()
    if not isinstance(task.merge, MergeStrategyUpsertStream) or any(
        re.search(rf"\b{re.escape(name)}\b", each.query) for each in queries
    ):
        return None
    return name


def _is_committed(field: pa.Field, task: IngestTask) -> bool:
    """Whether earlier files may have had the column: a dataset that has it cannot lose it."""
    return task.history_schema is not None and field.name in task.history_schema.names


# --- Without an ODF schema and without preprocessing ---


def _with_event_time(frame: DataFrame, task: IngestTask) -> DataFrame:
    """`frame` with an event time that was text or a number as a time."""
    name = task.vocab.event_time
    kinds = {field.name: field.dataType.typeName() for field in frame.schema.fields}
    if kinds.get(name) not in ("string", "byte", "short", "integer", "long"):
        return frame
    return with_time(frame, name, kinds[name], task.local_times)


def _renamed(frame: DataFrame, task: IngestTask, source: Source) -> tuple[DataFrame, Source]:
    """Columns called like system columns get an underscore."""
    new = committed_names(frame, task)
    check_unique(task, list(new.values()), "the schema")
    columns = source.columns
    if columns is not None:
        columns = pa.schema([f.with_name(new.get(f.name, f.name)) for f in columns])
    changed = {old: name for old, name in new.items() if old != name}
    frame = frame.withColumnsRenamed(changed) if changed else frame
    return frame, replace(source, columns=columns)


def _with_corrupt(schema: StructType) -> StructType:
    from pyspark.sql import types

    return types.StructType([*schema.fields, types.StructField(CORRUPT, types.StringType())])

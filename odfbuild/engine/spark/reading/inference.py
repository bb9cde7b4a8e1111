"""The columns of text that declares none: names from the file, types from its values.

Types are found over the whole file. Whole numbers are BIGINT, because a later file may hold larger
ones; CSV columns are STRING unless `inferSchema` asks for more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from odfbuild.engine.contract import IngestTask
from odfbuild.engine.spark.reading.csv_header import first_row
from odfbuild.engine.spark.reading.source_text import SourceText
from odfbuild.engine.spark.results.hidden import CORRUPT
from odfbuild.errors import IngestError, Location
from odfbuild.odf.model import ReadStepCsv

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType


def csv_schema(
    spark: SparkSession,
    task: IngestTask,
    read: ReadStepCsv,
    text: SourceText,
    options: dict[str, str],
) -> StructType:
    """Columns named by the header, or `column_1` and so on; none when the file is blank."""
    from pyspark.sql import types

    row = first_row(text, read)
    names = row if read.header else [f"column_{n}" for n in range(1, len(row) + 1)]
    check_unique(task, names, "the header")
    kinds: list[DataType] = [types.StringType()] * len(names)
    if read.infer_schema and names:
        found = spark.read.options(**options, inferSchema="true").csv(str(text.file)).schema
        kinds = [_widest(field.dataType) for field in found.fields]
    return types.StructType(
        [types.StructField(name, kind) for name, kind in zip(names, kinds, strict=True)]
    )


def ndjson_schema(
    spark: SparkSession, task: IngestTask, text: SourceText, options: dict[str, str]
) -> StructType:
    """Columns in the order in which the file first has them; none when it has no records."""
    from pyspark.sql import types

    inferred = _inferred(spark, task, text, options)
    fields = {f.name: f for f in inferred.fields if f.name != CORRUPT}
    if not fields:
        _refuse_records(task, text, objects=CORRUPT not in inferred.names)
    names: dict[str, None] = {}
    for found in _keys(text):
        names |= dict.fromkeys(found)
        if len(names) >= len(fields):
            break
    if "" in names:  # which Spark leaves out in silence
        check_unique(task, list(names), "the file")
    return types.StructType([fields[name] for name in names if name in fields])


def _inferred(
    spark: SparkSession, task: IngestTask, text: SourceText, options: dict[str, str]
) -> StructType:
    from pyspark.errors import AnalysisException

    try:
        return spark.read.options(**options).json(str(text.file)).schema
    except AnalysisException:
        check_unique(task, list({name: None for keys in _keys(text) for name in keys}), "the file")
        for keys in _keys(text):
            check_unique(task, keys, "an object")
        raise


def _keys(text: SourceText) -> Iterator[list[str]]:
    for _, line in text.lines():
        try:
            # Of a whole object: its pairs, in which a name may come twice.
            found = json.loads(line, object_pairs_hook=_Pairs)
        except (ValueError, RecursionError):
            continue  # reading reports it with its place
        if isinstance(found, _Pairs):
            yield [name for name, _ in found]


class _Pairs(list[tuple[str, object]]):
    """The members of an object."""


def _refuse_records(task: IngestTask, text: SourceText, *, objects: bool) -> None:
    """Raise `IngestError` where there are records, which have no columns, at the first of them."""
    number, line = next(((n, line) for n, line in text.lines() if line.strip()), (0, ""))
    if not number:
        return
    if objects:
        problem = f"the objects of '{task.source_name}' have no names, which would be its columns"
        help = "declare the columns in `read.schema`, or correct the source"
    else:
        problem = f"no {text.unit} of '{task.source_name}' is a JSON object"
        help = "write one object a line, or use `Json` for one document"
    raise IngestError(
        problem,
        code="E0423",
        location=text.place(task.source_name, number, 1, line),
        dataset=task.dataset,
        help=help,
    )


def check_unique(
    task: IngestTask,
    names: Sequence[str],
    where: str,
    help: str = "declare the columns in `read.schema`, or correct the source",
) -> None:
    """Raise `IngestError` for columns without a name, or with the same but for letter case."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen or not name:
            what = f"two columns called '{name}'" if name else "a column without a name"
            raise IngestError(
                f"{where} of '{task.source_name}' has {what}",
                code="E0420",
                location=Location(task.source_name),
                dataset=task.dataset,
                notes=("names that differ only in letter case are the same",) if name else (),
                help=help,
            )
        seen.add(name.lower())


def _widest(kind: DataType) -> DataType:
    """Inference looks at the values of one file; a later one may hold larger integers."""
    from pyspark.sql import types

    return types.LongType() if isinstance(kind, types.IntegerType) else kind

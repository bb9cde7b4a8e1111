"""Rows that do not fit their schema: noticed while they are read, explained afterwards.

Spark keeps the text of such a row in a column of its own. A filter raises on it, because a filter
is computed whatever columns a query asks for; the place in the file is looked up only then.
"""

from __future__ import annotations

import base64
import json
import re
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

import pyarrow as pa

from odfbuild.engine.contract import IngestTask
from odfbuild.errors import IngestError, Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CORRUPT = "__odfbuild_corrupt"
_MARK = "odfbuild-malformed-row"
_BAD_OPERATION = "odfbuild-bad-operation"
_FOUND = re.compile(_MARK + r":([A-Za-z0-9+/=\s]*):")
_SHOWN = 200


def guard(frame: DataFrame) -> DataFrame:
    """`frame` without its column `CORRUPT`; computing it raises where that column has a value."""
    from odfbuild.engine.spark.frames import quote

    names = [quote(name) for name in frame.columns if name != CORRUPT]
    # All columns are part of the message: Spark converts only cells that are asked for, and a cell
    # that is never converted is never found to be wrong.
    every = f"CAST(struct({', '.join(names)}) AS STRING)"
    text = f"concat('{_MARK}:', base64(encode({CORRUPT}, 'utf-8')), ':')"
    checked = frame.where(
        f"CASE WHEN {CORRUPT} IS NULL THEN true "
        f"ELSE raise_error(concat({text}, {every})) IS NULL END"
    )
    return checked.selectExpr(*names)


def bad_operation(column: str) -> str:
    """SQL that raises because `column` holds no operation; `explain` says so."""
    found = f"coalesce(CAST({column} AS STRING), 'NULL')"
    return f"CAST(raise_error(concat('{_BAD_OPERATION}:', {found}, ':')) AS INT)"


def explain(error: Exception, task: IngestTask, columns: pa.Schema | None) -> IngestError | None:
    """What `error` says about a malformed row, with its place; `None` when it is something else."""
    operation = re.search(_BAD_OPERATION + r":(NULL|-?\d+):", str(error))
    if operation is not None:
        return IngestError(
            f"a row of '{task.source_name}' has {operation.group(1)} in the column "
            f"'{task.vocab.operation_type}', which is no operation",
            code="E0434",
            dataset=task.dataset,
            notes=("0 appends, 1 retracts, 2 and 3 correct from and to",),
            help="translate it in `preprocess`",
        )
    found = _FOUND.search(str(error))
    if found is None:
        return None
    row = base64.b64decode(found.group(1)).decode("utf-8", "replace").rstrip("\r\n")
    line = _line_of(task, row)
    reason, column = _reason(task, row, columns)
    shown = row if len(row) <= _SHOWN else row[:_SHOWN] + "…"
    return IngestError(
        f"{reason} in '{task.source_name}'",
        code="E0421",
        location=Location(task.source_name, line, column, shown),
        notes=(f"the row is: {shown}",),
        help="correct the row, or declare the column with a type that holds it, "
        "such as STRING, and convert it in `preprocess`",
        dataset=task.dataset,
    )


def _line_of(task: IngestTask, row: str) -> int | None:
    encoding = getattr(task.read, "encoding", None) or "utf-8"
    with task.file.open(encoding=encoding, errors="replace", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            if line.rstrip("\r\n") == row:
                return number
    return None


def _reason(task: IngestTask, row: str, columns: pa.Schema | None) -> tuple[str, int | None]:
    from odfbuild.odf.model import ReadStepCsv

    if isinstance(task.read, ReadStepCsv):
        return _csv_reason(task.read, row, columns)
    return _json_reason(row, columns), None


def _csv_reason(read: object, row: str, columns: pa.Schema | None) -> tuple[str, int | None]:
    from odfbuild.engine.spark.csv_header import split

    try:
        cells = split(row, read)  # type: ignore[arg-type]
    except Exception:
        return "a row is not valid CSV", None
    if columns is None:
        return "a row has another number of cells than the header", None
    if len(cells) != len(columns):
        return f"a row has {len(cells)} cells where {len(columns)} are expected", None
    nulls = {"", getattr(read, "null_value", None)}
    at = 1
    for cell, field in zip(cells, columns, strict=True):
        if cell not in nulls and not _fits(cell, field.type):
            return f"'{cell}' in column '{field.name}' is not {_name(field.type)}", at
        at += len(cell) + 1
    return "a row does not fit the schema", None


def _json_reason(row: str, columns: pa.Schema | None) -> str:
    try:
        value = json.loads(row)
    except ValueError as error:
        return f"a line is not valid JSON ({error})"
    if not isinstance(value, dict):
        return "a line is not a JSON object"
    for field in columns or ():
        cell = value.get(field.name)
        if cell is not None and not _fits(str(cell), field.type):
            return f"{json.dumps(cell)} in column '{field.name}' is not {_name(field.type)}"
    return "a line does not fit the schema"


def _fits(text: str, kind: pa.DataType) -> bool:
    types = pa.types
    try:
        if types.is_integer(kind):
            low = -(2 ** (kind.bit_width - 1)) if types.is_signed_integer(kind) else 0
            bits = kind.bit_width - types.is_signed_integer(kind)
            return bool(low <= int(text) < 2**bits)
        if types.is_floating(kind):
            float(text)
        elif types.is_decimal(kind):
            Decimal(text)
        elif types.is_boolean(kind):
            return text.lower() in ("true", "false")
        elif types.is_date(kind):
            date.fromisoformat(text)
        elif types.is_timestamp(kind):
            datetime.fromisoformat(text)
        elif types.is_nested(kind):
            return False
    except (ValueError, InvalidOperation):
        return False
    return True


def _name(kind: pa.DataType) -> str:
    from odfbuild.engine.spark.frames import to_spark_type

    return str(to_spark_type(kind).simpleString()).upper()

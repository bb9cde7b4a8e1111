"""Mode `map` (row-wise): every record is handled alone, so only new records are read.

Records keep their order and their operations: a retracted record retracts what was made of it.
Where a query drops one half of a correction, the other half alone is a retraction or an appended
record. Sources: Open Data Fabric, "Retractions and corrections"; RFC-015.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.contract import InputSlices, TransformTask
from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.queries.hidden_columns import PREFIX, Carrier, hide
from odfbuild.engine.spark.queries.inputs import new_records
from odfbuild.engine.spark.results.executor import write_parts
from odfbuild.engine.spark.results.frames import quote
from odfbuild.odf.operation import APPEND, CORRECT_FROM, CORRECT_TO, RETRACT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OPERATION = PREFIX + "op"
_OFFSET = PREFIX + "offset"
_INPUT = PREFIX + "input"
_HIDDEN = (_OPERATION, _OFFSET, _INPUT)


def increment_view(scratch: Path, spark: SparkSession, each: InputSlices) -> None:
    """Make a view of the new records of an input, in order; few of them pass through `scratch`."""
    Catalyst(spark).show(new_records(spark, each, scratch), each.alias)


def traced_view(
    spark: SparkSession, number: int, each: InputSlices, scratch: Path | None = None
) -> None:
    """Make the view of `increment_view` for input `number`, with the records' origins hidden."""
    operation, offset = quote(each.vocab.operation_type), quote(each.vocab.offset)
    frame = new_records(spark, each, scratch).selectExpr(
        "*", f"{operation} AS {_OPERATION}", f"{offset} AS {_OFFSET}", f"{number} AS {_INPUT}"
    )
    hide(frame, each.alias)


def with_operations(spark: SparkSession, plan: Node, task: TransformTask) -> DataFrame:
    """The result of a row-wise plan over traced views, each record's origin behind its columns."""
    catalyst = Catalyst(spark)
    carrier = Carrier(catalyst, [each.alias for each in task.inputs], _HIDDEN)
    return catalyst.frame(carrier.carry(catalyst.inline(plan)))


def write_with_operations(frame: DataFrame, operation: str, folder: Path) -> tuple[Path, ...]:
    """Write a result of `with_operations` with the column `operation` instead of the origins."""
    rows = write_parts(frame, folder / "rows")
    target = folder / "parts"
    target.mkdir()
    return tuple(_with_whole_pairs(rows, operation, target))


def split(rows: pa.Table, ends: Sequence[Sequence[int]]) -> list[tuple[pa.Table, pa.Table]]:
    """The records of each of several steps in their order, and their origins.

    `ends` are the offsets, one for each step, with which what they read of each input ends.
    """
    number, offset = rows[_INPUT].to_numpy(), rows[_OFFSET].to_numpy()
    step = np.zeros(len(rows), np.int64)
    for each, last in enumerate(ends):
        step[number == each] = np.searchsorted(last, offset[number == each])
    order = np.argsort(step, kind="stable")
    cuts = np.searchsorted(step[order], np.arange(len(ends[0]) + 1))
    parts = [rows.take(order[start:end]) for start, end in pairwise(cuts)]
    return [(part.drop_columns(list(_HIDDEN)), part.select(_HIDDEN)) for part in parts]


def _with_whole_pairs(rows: Sequence[Path], operation: str, target: Path) -> list[Path]:
    origins = [pq.read_table(part, columns=list(_HIDDEN)) for part in rows]
    if not origins:
        return []
    operations = whole_pairs(pa.concat_tables(origins))
    written = []
    start = 0
    for part in rows:
        table = pq.read_table(part).drop_columns(list(_HIDDEN))
        values = pa.array(operations[start : start + table.num_rows], pa.int32())
        start += table.num_rows
        file = target / part.name
        pq.write_table(table.append_column(operation, values), file)
        written.append(file)
    return written


def whole_pairs(origins: pa.Table) -> npt.NDArray[np.int32]:
    """Operations of result records, in order, such that corrections come in whole pairs.

    `origins` says which operation, offset and input each was made of. A correction survives where
    exactly its two records follow each other; one that lost a half becomes a retraction or an
    appended record.
    """
    operation = origins[_OPERATION].to_numpy()
    offset = origins[_OFFSET].to_numpy()
    number = origins[_INPUT].to_numpy()
    opens = (
        (operation[:-1] == CORRECT_FROM)
        & (operation[1:] == CORRECT_TO)
        & (offset[1:] == offset[:-1] + 1)
        & (number[1:] == number[:-1])
    )
    first = np.append(opens, False)
    second = np.insert(opens, 0, False)
    result: npt.NDArray[np.int32] = operation.astype(np.int32)
    result[(operation == CORRECT_FROM) & ~first] = RETRACT
    result[(operation == CORRECT_TO) & ~second] = APPEND
    return result

"""What to append where a result of few records is computed over all: compared by Arrow.

Spark would read each slice of the result so far, and group all records, to tell what is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.contract import TransformTask
from odfbuild.engine.spark.queries.inputs import may_be_kept
from odfbuild.engine.spark.queries.modes import corrections
from odfbuild.engine.spark.queries.modes.changelog import MORE
from odfbuild.engine.spark.queries.step import tuned
from odfbuild.engine.spark.results import small_jobs as few
from odfbuild.engine.spark.results.executor import computes_here
from odfbuild.engine.spark.results.local_rows import is_alike
from odfbuild.engine.spark.results.order import time_first
from odfbuild.odf.operation import APPEND, CORRECT_TO
from odfbuild.records.arrays import of_numbers
from odfbuild.records.equal_rows import numbered
from odfbuild.records.sorted_runs import sorts_alike

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOOKED_AT = 200_000
"""Records of the result so far, retracted ones included."""


def few_changes(
    result: DataFrame, task: TransformTask, schema: pa.Schema, key: Sequence[str] | None
) -> tuple[Path, ...] | None:
    """As `changelog.write_changes` of the difference; `None` where Spark has to compare.

    `result` is in committed form, and `schema` that of it.
    """
    order = time_first(schema.names, task.vocab.event_time)
    spark = result.sparkSession
    is_here = computes_here(spark) and few.is_one_task(spark)
    if not is_here or not all(map(may_be_kept, task.inputs)) or not sorts_alike(schema, order):
        return None
    before = _so_far(task, schema)
    if before is None:
        return None
    bounded = few.bounded(result)
    tuned(bounded, task)
    after = few.bounded_records(bounded, task.scratch)
    if after is None or not all(map(is_alike, after.schema)):
        return None
    return (_write(_difference(after, before), task, key, order),)


def _so_far(task: TransformTask, schema: pa.Schema) -> pa.Table | None:
    """The records of the result so far, with their weights as `MORE`; `None` for too many."""
    operation = task.vocab.operation_type
    files = task.result_files()
    if sum(pq.read_metadata(file).num_rows for file in files) > _LOOKED_AT:
        return None
    tables = []
    for file in files:
        found = pq.read_table(file, columns=[operation, *schema.names])
        if found.num_columns <= len(schema) or not all(map(is_alike, found.schema)):
            return None
        codes = found[operation].cast(pa.int32()).to_numpy()
        weights = np.where((codes == APPEND) | (codes == CORRECT_TO), 1, -1)
        tables.append(found.select(schema.names).append_column(MORE, pa.array(weights)))
    if sum(int(each[MORE].to_numpy().sum()) for each in tables) > few.COLLECTED_ROWS:
        return None
    return pa.concat_tables(tables, promote_options="permissive")


def _difference(after: pa.Table, before: pa.Table) -> pa.Table:
    """Distinct records, and by how many there are `MORE` of them now."""
    earlier = before.drop_columns([MORE]).select(after.column_names).cast(after.schema)
    records = pa.concat_tables([after, earlier])
    same = numbered(records)
    more = np.concatenate([np.ones(len(after), np.int64), -before[MORE].to_numpy()])
    total = np.bincount(same, more).astype(np.int64)
    first = np.unique(same, return_index=True)[1]
    kept = first[total != 0]
    found = records.take(of_numbers(kept, pa.int64()))
    return found.append_column(MORE, of_numbers(total[total != 0], pa.int64()))


def _write(
    difference: pa.Table, task: TransformTask, key: Sequence[str] | None, order: Sequence[str]
) -> Path:
    target = task.scratch / "changes.parquet"
    changes = corrections.changes(difference, MORE, key, order, task.vocab.operation_type)
    pq.write_table(changes, target, compression="lz4", use_dictionary=False)
    return target

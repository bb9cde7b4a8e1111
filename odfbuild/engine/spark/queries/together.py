"""Many steps of one derivative in one job, where every record is handled alone.

To check, plan and run a query costs as much for a hundred records as for all that several steps
read. What comes of a record does not depend on the others (mode `map`), so that the records of all
steps are read as those of one, and told apart by the offsets that they come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.contract import InputSlices, SliceFile, TransformResult, TransformTask
from odfbuild.engine.precision import micros_of_step
from odfbuild.engine.spark.queries.checked import checked, known_plan, known_result
from odfbuild.engine.spark.queries.inputs import has_operations
from odfbuild.engine.spark.queries.modes import map
from odfbuild.engine.spark.queries.transform import mapped
from odfbuild.engine.spark.results.frames import marked_uuids, to_arrow_schema
from odfbuild.engine.spark.results.local_rows import is_alike
from odfbuild.engine.spark.results.sorted_parts import fit_in_memory
from odfbuild.sql.mode import RECORD_BY_RECORD

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def derive_together(
    spark: SparkSession, tasks: Sequence[TransformTask]
) -> list[TransformResult] | None:
    """What `derive` gives for each of several steps; `None` where that cannot be told from one job.

    The steps have the same transformation and columns, and those that come later read later
    records.
    """
    task = tasks[0]
    inputs = [_joined(of, task.scratch / f"input-{n}.parquet") for n, of in enumerate(_each(tasks))]
    whole = replace(task, inputs=tuple(each for each in inputs if each is not None))
    if len(whole.inputs) < len(inputs):
        return None
    numbers = count()

    def view(spark: SparkSession, each: InputSlices) -> None:
        map.traced_view(spark, next(numbers), each, task.scratch)

    report = checked(spark, task.dataset, task.transform, whole.inputs, task.vocab, view=view)
    result = known_result(report)
    operation = task.vocab.operation_type
    if not report.row_wise or operation in result.columns:
        return None
    names = [name for name in result.columns if name != task.vocab.event_time]
    micros = micros_of_step(names, whole.inputs)
    schema = to_arrow_schema(result, [task.vocab.event_time], micros, marked_uuids(result))
    frame = map.with_operations(spark, known_plan(report), whole)
    parts, _ = mapped(frame, whole, quick=report.quick)
    if not parts or not fit_in_memory(parts):
        return None
    rows = pa.concat_tables([pq.read_table(part) for part in parts])
    retracts = any(has_operations(each.files, each.vocab) for each in whole.inputs)
    return [
        TransformResult(
            parts=(),
            rows=_with_operations(found, origins, operation) if retracts else found,
            schema=schema,
            choice=RECORD_BY_RECORD,
        )
        for found, origins in map.split(rows, [_ends(of) for of in _each(tasks)])
    ]


def _each(tasks: Sequence[TransformTask]) -> list[list[InputSlices]]:
    """What the steps read of each input."""
    return [list(of) for of in zip(*(task.inputs for task in tasks), strict=True)]


def _joined(steps: Sequence[InputSlices], target: Path) -> InputSlices | None:
    """An input with what all steps read of it, in one file, whose order Spark keeps.

    `None` where that is another question than each step's own: they differ in columns, or a slice
    holds more than a step reads, or types that may not come out of a file as they went in.
    """
    alike = all((e.schema, e.vocab) == (steps[0].schema, steps[0].vocab) for e in steps)
    slices = [one for each in steps for one in each.slices]
    if not slices:
        return steps[0] if alike else None
    tables = [pq.read_table(one.path) for one in slices]
    layout = tables[0].schema
    read = [(e.first, e.last) for e in steps if e.first is not None and e.last is not None]
    if (
        not alike
        or not all(is_alike(field) for field in layout)
        or not all(table.schema.equals(layout) for table in tables)
        or sum(table.num_rows for table in tables) != sum(last - first + 1 for first, last in read)
        or any(first <= last for (_, last), (first, _) in pairwise(read))
    ):
        return None
    pq.write_table(pa.concat_tables(tables), target, compression="lz4")
    return replace(steps[0], slices=(SliceFile(target),), first=read[0][0], last=read[-1][1])


def _ends(steps: Sequence[InputSlices]) -> list[int]:
    """The last offset that each step may have read of an input."""
    ends: list[int] = []
    for each in steps:
        ends.append(each.last if each.last is not None else ends[-1] if ends else -1)
    return ends


def _with_operations(rows: pa.Table, origins: pa.Table, operation: str) -> pa.Table:
    values = pa.array(map.whole_pairs(origins), pa.int32())
    return rows.append_column(operation, values)

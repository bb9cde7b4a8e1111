"""What new records change in a result, computed over few records.

Totals of new records are added to those before. Else the query runs twice over the records of the
keys that new records have: as they were before the step, and as they are now. Its two results
differ as those over all records do, because what other records give is the same in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.affected_records import LARGEST_SHARE, affected, new_records_of, records_of
from odfbuild.engine.contract import Extent, SliceFile, TransformTask
from odfbuild.engine.precision import Micros
from odfbuild.engine.spark.internals.catalyst import Catalyst, optimised_plan_of
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.queries.inputs import has_operations
from odfbuild.engine.spark.queries.modes import changelog
from odfbuild.engine.spark.queries.modes.affected_keys import parts_of
from odfbuild.engine.spark.queries.modes.choose import key_of
from odfbuild.engine.spark.queries.modes.map import increment_view
from odfbuild.engine.spark.queries.modes.plan_inputs import Undivided, Views
from odfbuild.engine.spark.queries.modes.totals import Totals, totals_of
from odfbuild.engine.spark.queries.step import history_views, steps_of, tuned
from odfbuild.engine.spark.queries.validate import result_of
from odfbuild.engine.spark.results import small_jobs as few
from odfbuild.engine.spark.results.executor import write_parts
from odfbuild.engine.spark.results.frames import quote
from odfbuild.engine.spark.results.order import committed_form
from odfbuild.odf.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def changes_of_parts(
    spark: SparkSession, task: TransformTask, schema: pa.Schema, micros: Micros
) -> tuple[tuple[Path, ...] | None, Extent]:
    """What to append, computed over new records, or over those of the keys that these have.

    `schema` is that of the result. `None` where all records are needed; the extent says why.
    """
    catalyst = Catalyst(spark)
    plan, views = _plan(spark, task)
    totals = totals_of(catalyst, plan, views) if _may_add_up(task) else None
    if totals is not None:
        return _added(spark, task, totals, schema, micros)
    total = records_of(task.inputs)
    try:
        parts = parts_of(catalyst, plan, views)
    except Undivided as why:
        return None, Extent(total, total, str(why))
    folder = task.scratch / "affected"
    folder.mkdir()
    found = affected(task.inputs, parts, folder)
    if found is None:
        return None, Extent(total, total, "many keys are affected, or keys cannot be compared")
    few.tune(spark, {file for each in found.after for file in each.all_files()})
    results = []
    for inputs in (found.before, found.after):
        step = replace(task, inputs=inputs, scratch=folder)
        history_views(spark, step, folder)
        query, result = result_of(spark, steps_of(task.transform))
        results.append(committed_form(result, micros))
    before, after = results
    frame = changelog.difference(after, before)
    tuned(frame, step)
    return changelog.write_changes(frame, step, key_of(query)), found.extent


def _may_add_up(task: TransformTask) -> bool:
    """Whether records are only appended, and the result so far is read faster than the inputs."""
    if task.transform.temporal_tables:
        return False
    if any(has_operations(each.files, each.vocab) for each in task.inputs):
        return False
    left = records_of(task.inputs) * LARGEST_SHARE
    for file in task.previous():
        left -= pq.read_metadata(file).num_rows
        if left < 0:
            return False
    return True


def _added(
    spark: SparkSession, task: TransformTask, totals: Totals, schema: pa.Schema, micros: Micros
) -> tuple[tuple[Path, ...], Extent]:
    """The records of groups that have new records, with these added to their totals."""
    for each in task.inputs:
        if each.alias in totals.whole:
            changelog.history_view(spark, each, task.scratch)
        else:
            increment_view(task.scratch, spark, each)
    query, result = result_of(spark, steps_of(task.transform))
    result = committed_form(result, micros)
    tuned(result, task)
    files = write_parts(result, task.scratch / "totals")
    few.tune(spark, {*files, *task.previous()})
    new = spark.read.schema(result.schema).parquet(*map(str, files))
    before = _of_same_groups(changelog.committed(spark, task, schema), new, totals.keys)
    after = _combined(new.unionByName(before), totals, new.schema)
    records = sum(
        records_of([each]) if each.alias in totals.whole else new_records_of(each)
        for each in task.inputs
    )
    changes = changelog.write_changes(changelog.difference(after, before), task, key_of(query))
    return changes, Extent(records, records_of(task.inputs))


def _of_same_groups(committed: DataFrame, new: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The records of a result so far whose keys `new` ones have."""
    from pyspark.sql.functions import expr

    same = " AND ".join(f"old.{quote(key)} <=> new.{quote(key)}" for key in keys)
    found = committed.alias("old").join(new.alias("new"), expr(same or "true"), "left_semi")
    names = [*map(quote, new.columns)]
    counted = found.groupBy(*names).agg(expr(f"SUM({changelog.MORE}) AS {changelog.MORE}"))
    return counted.where(f"{changelog.MORE} > 0").select(*names)


def _combined(groups: DataFrame, totals: Totals, types: StructType) -> DataFrame:
    """One record of each group; sums of sums keep their type, or fail where Spark's own would."""
    from pyspark.sql.functions import expr

    combined = []
    for name, function in totals.functions.items():
        kind = types[name].dataType.simpleString()
        combined.append(expr(f"CAST({function}({quote(name)}) AS {kind}) AS {quote(name)}"))
    if not combined:
        return groups.distinct()
    one = groups.groupBy(*map(quote, totals.keys)).agg(*combined)
    return one.select(*map(quote, types.names))


def _plan(spark: SparkSession, task: TransformTask) -> tuple[Node, Views]:
    """The optimised plan of the query over empty files, and which of them stands for what."""
    aliases = {}
    layouts = []
    for number, each in enumerate(task.inputs):
        file = task.scratch / f"layout-{number}.parquet"
        pq.ParquetWriter(file, each.schema).close()
        aliases[file.name] = each.alias
        slices = (SliceFile(file),)
        layouts.append(replace(each, slices=slices, first=0, last=-1, earlier=lambda: ()))
    history_views(spark, replace(task, inputs=tuple(layouts)))
    _, result = result_of(spark, steps_of(task.transform))
    views = Views(
        aliases,
        frozenset(each.alias for each in task.inputs if each.first is None),
        {each.alias: _system_names(each.vocab) for each in task.inputs},
        {each.alias: _to_milliseconds(each.schema) for each in task.inputs},
    )
    return optimised_plan_of(result), views


def _system_names(vocab: Vocabulary) -> frozenset[str]:
    return frozenset({vocab.offset, vocab.operation_type, vocab.system_time})


def _to_milliseconds(schema: pa.Schema) -> frozenset[str]:
    return frozenset(each.name for each in schema if each.type == pa.timestamp("ms", "UTC"))

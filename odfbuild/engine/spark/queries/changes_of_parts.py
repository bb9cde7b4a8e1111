"""What new records change in a result, computed over few records.

Where new records add to the result, the query runs over these alone. Else it runs twice over the
records of the keys that new records have: as they were before the step, and as they are now. Its
two results differ as those over all records do, because what other records give is the same in
both.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.affected_records import affected, records_of
from odfbuild.engine.contract import Extent, SliceFile, TransformTask
from odfbuild.engine.precision import Micros
from odfbuild.engine.spark.internals.catalyst import Catalyst, optimised_plan_of
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.queries.added import added, cut, is_appended, may_be_added
from odfbuild.engine.spark.queries.kept_totals import KeptTotals, kept_totals
from odfbuild.engine.spark.queries.modes import changelog
from odfbuild.engine.spark.queries.modes.choose import key_of
from odfbuild.engine.spark.queries.step import history_views, steps_of, tuned
from odfbuild.engine.spark.queries.validate import result_of
from odfbuild.engine.spark.results import small_jobs as few
from odfbuild.engine.spark.results.order import committed_form
from odfbuild.engine.unread_corrections import without_unread
from odfbuild.odf.vocabulary import Vocabulary
from odfbuild.sql.increments.affected_keys import parts_of
from odfbuild.sql.increments.one_by_one import additions_of
from odfbuild.sql.increments.plan_inputs import Undivided, Views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def changes_of_parts(
    spark: SparkSession, task: TransformTask, schema: pa.Schema, micros: Micros
) -> tuple[tuple[Path, ...] | None, Extent, KeptTotals | None]:
    """What to append, computed over new records, or over those of the keys that these have.

    `schema` is that of the result. `None` where all records are needed; the extent says why, and
    totals of groups may help.
    """
    catalyst = Catalyst(spark)
    given, (task, unread) = task, without_unread(task)
    query, plan, views = _plan(spark, task)
    additions = additions_of(catalyst, plan, views) if is_appended(task) else None
    if additions is not None and may_be_added(additions, task):
        beside, read = cut(catalyst, additions, views, task, task.scratch)
        changes = added(spark, task, additions, beside, schema, micros)
        return changes, Extent(read, records_of(task.inputs)), None
    totals = kept_totals(spark, task, given, query, views, unread)
    if totals is not None and totals.are_held:
        found = totals.changes(micros)
        if found is not None:
            return *found, None
    total = records_of(task.inputs)
    try:
        parts = parts_of(catalyst, plan, views)
    except Undivided as why:
        return None, Extent(total, total, _why(str(why), totals)), totals
    folder = task.scratch / "affected"
    folder.mkdir()
    records = affected(task.inputs, parts, folder, unread)
    if records is None:
        why_all = "many keys are affected, or keys cannot be compared"
        return None, Extent(total, total, _why(why_all, totals)), totals
    few.tune(spark, {file for each in records.after for file in each.all_files()})
    results = []
    for inputs in (records.before, records.after):
        step = replace(task, inputs=inputs, scratch=folder)
        history_views(spark, step, folder)
        query, result = result_of(spark, steps_of(task.transform))
        results.append(committed_form(result, micros))
    before, after = results
    frame = changelog.difference(after, before)
    tuned(frame, step)
    if totals is not None and totals.are_held:
        totals.keep_changed(query)
    return changelog.write_changes(frame, step, key_of(query)), records.extent, None


def _why(all_records: str, totals: KeptTotals | None) -> str:
    if totals is None:
        return all_records
    if totals.are_held:
        return f"{all_records}, and a retraction leaves its totals open"
    return f"{all_records}, and its totals are not kept yet"


def _plan(spark: SparkSession, task: TransformTask) -> tuple[Node, Node, Views]:
    """The analysed and the optimised plan over empty files, and which of them stands for what."""
    aliases = {}
    layouts = []
    for number, each in enumerate(task.inputs):
        file = task.scratch / f"layout-{number}.parquet"
        pq.ParquetWriter(file, each.schema).close()
        aliases[file.name] = each.alias
        slices = (SliceFile(file),)
        layouts.append(replace(each, slices=slices, first=0, last=-1, earlier=lambda: ()))
    history_views(spark, replace(task, inputs=tuple(layouts)))
    query, result = result_of(spark, steps_of(task.transform))
    views = Views(
        aliases,
        frozenset(each.alias for each in task.inputs if each.first is None),
        {each.alias: _system_names(each.vocab) for each in task.inputs},
        {each.alias: _to_milliseconds(each.schema) for each in task.inputs},
    )
    return query, optimised_plan_of(result), views


def _system_names(vocab: Vocabulary) -> frozenset[str]:
    return frozenset({vocab.offset, vocab.operation_type, vocab.system_time})


def _to_milliseconds(schema: pa.Schema) -> frozenset[str]:
    return frozenset(each.name for each in schema if each.type == pa.timestamp("ms", "UTC"))

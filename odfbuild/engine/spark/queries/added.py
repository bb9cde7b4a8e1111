"""What new records add to a result, computed over these records alone.

Inputs without new records are read beside them, by the keys that the new records have where a join
tells these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.engine.affected_records import affected, new_records_of, records_like, records_of
from odfbuild.engine.contract import InputSlices, SliceFile, TransformTask
from odfbuild.engine.precision import Micros
from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.queries.inputs import has_operations
from odfbuild.engine.spark.queries.modes import changelog
from odfbuild.engine.spark.queries.modes.choose import key_of
from odfbuild.engine.spark.queries.modes.map import increment_view
from odfbuild.engine.spark.queries.step import steps_of, tuned
from odfbuild.engine.spark.queries.validate import result_of
from odfbuild.engine.spark.results import small_jobs as few
from odfbuild.engine.spark.results.executor import write_parts
from odfbuild.engine.spark.results.frames import quote
from odfbuild.engine.spark.results.order import committed_form
from odfbuild.odf.operation import CORRECT_FROM, RETRACT
from odfbuild.records.key_hash import comparable_type, hash_rows
from odfbuild.records.key_index import comparable
from odfbuild.records.segments import records_in
from odfbuild.sql.increments.affected_keys import parts_of
from odfbuild.sql.increments.one_by_one import Additions, Totals
from odfbuild.sql.increments.parts import most_affected
from odfbuild.sql.increments.plan_inputs import Undivided, Views
from odfbuild.store.merged_copies import NO_COPIES

_TAKING = pa.array([RETRACT, CORRECT_FROM], pa.int32())

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def is_appended(task: TransformTask) -> bool:
    """Whether the new records are all appended ones, and each is one more."""
    if task.transform.temporal_tables:
        return False
    return not any(
        has_operations(each.files, each.vocab) or _may_cancel(each) for each in task.inputs
    )


def _may_cancel(each: InputSlices) -> bool:
    """Whether a new record equals one that was retracted, perhaps without having been there.

    Then it counts as nothing.
    """
    if each.is_exact or each.first is None:
        return False
    taking = [file.path for file in each.earlier() if has_operations((file.path,), each.vocab)]
    if not taking:
        return False
    system = (each.vocab.offset, each.vocab.operation_type, each.vocab.system_time)
    types = {f.name: comparable_type(f.type) for f in each.schema if f.name not in system}
    kept = pa.schema([(name, kind) for name, kind in types.items() if kind is not None])
    new = [hash_rows(comparable(t, kept)) for t in records_in(each.files, kept.names)]
    operation = each.vocab.operation_type
    for table in records_in(taking, [*kept.names, operation]):
        taken = pc.is_in(table[operation].cast(pa.int32()), value_set=_TAKING)
        hashes = hash_rows(comparable(table.filter(taken), kept))
        if any(np.isin(hashes, found).any() for found in new):
            return True
    return False


def may_be_added(additions: Additions, task: TransformTask) -> bool:
    """Whether what new records are added to is read faster than the inputs."""
    left = most_affected(records_of(task.inputs))
    for file in task.previous() if additions.totals else ():
        left -= pq.read_metadata(file).num_rows
        if left < 0:
            return False
    return True


def cut(
    catalyst: Catalyst, additions: Additions, views: Views, task: TransformTask, folder: Path
) -> tuple[Mapping[str, InputSlices], int]:
    """Inputs without new records, by alias, with the records alone that new ones of others meet.

    These are in files in `folder`. And the number of these and of the new ones.
    """
    unchanged = {each.alias: each for each in task.inputs if each.first is None}
    # Nothing looks at the earlier records of inputs with news.
    inputs = [
        each if each.alias in unchanged else replace(each, earlier=lambda: (), copies=NO_COPIES)
        for each in task.inputs
    ]
    folder = folder / "met"
    folder.mkdir()
    try:
        parts = parts_of(catalyst, additions.rows, views)
        # Subqueries of the totals stand above the rows.
        parts = replace(parts, whole=parts.whole | additions.whole)
        found = affected(inputs, parts, folder)
    except Undivided:
        found = None
    if found is None:
        new = sum(map(new_records_of, task.inputs))
        return unchanged, new + records_of([*unchanged.values()])
    met = {each.alias: each for each in found.after if each.alias in unchanged}
    return met, found.extent.records


def added(
    spark: SparkSession,
    task: TransformTask,
    additions: Additions,
    beside: Mapping[str, InputSlices],
    schema: pa.Schema,
    micros: Micros,
) -> tuple[Path, ...]:
    """What to append; `schema` is that of the result, `beside` the inputs without news."""
    for each in task.inputs:
        if each.alias in beside:
            changelog.history_view(spark, beside[each.alias], task.scratch)
        else:
            increment_view(task.scratch, spark, each)
    query, result = result_of(spark, steps_of(task.transform))
    after = committed_form(result, micros)
    read = replace(task, inputs=tuple(beside.get(each.alias, each) for each in task.inputs))
    tuned(after, read)
    before = None
    if additions.totals is not None:
        files = write_parts(after, task.scratch / "totals")
        result, folder = _result(task, schema), task.scratch / "own"
        own = records_like(result, additions.totals.keys, files, folder)
        task = replace(task, previous=lambda: own, copies=NO_COPIES)
        few.tune(spark, {*files, *own})
        new = spark.read.schema(after.schema).parquet(*map(str, files))
        committed = changelog.committed(spark, task, schema)
        before = _of_same_groups(committed, new, additions.totals.keys)
        after = _combined(new.unionByName(before), additions.totals, new.schema)
    return changelog.write_changes(changelog.difference(after, before), task, key_of(query))


def _result(task: TransformTask, schema: pa.Schema) -> InputSlices:
    """The records of a dataset so far, as those of an input."""
    return InputSlices(
        alias=task.dataset,
        schema=schema,
        vocab=task.vocab,
        earlier=lambda: tuple(map(SliceFile, task.previous())),
        copies=task.copies,
    )


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

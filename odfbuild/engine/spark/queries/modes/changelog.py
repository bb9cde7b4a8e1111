"""Mode `changelog`: compute over the whole history, append how the result differs.

Any deterministic query can be kept this way, also over inputs that retract. Where the result has a
key, the old and the new record of one key stand side by side as a correction; other differences are
retractions and appended records. Sources: Open Data Fabric, "Retractions and corrections"; RFC-015
(two-event changelog stream).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.contract import InputSlices, TransformTask
from odfbuild.engine.spark.internals.catalyst import Catalyst, plan_of
from odfbuild.engine.spark.queries.hidden_columns import PREFIX
from odfbuild.engine.spark.queries.inputs import state, weight
from odfbuild.engine.spark.queries.modes import corrections
from odfbuild.engine.spark.queries.shared_states import state_plan
from odfbuild.engine.spark.results.executor import in_one_part, write_parts
from odfbuild.engine.spark.results.frames import quote, read_slices, to_arrow_schema
from odfbuild.engine.spark.results.order import time_first, total_order
from odfbuild.engine.spark.results.sorted_parts import fit_in_memory
from odfbuild.odf.operation import APPEND, CORRECT_FROM, CORRECT_TO, RETRACT
from odfbuild.records.sorted_runs import sorts_alike

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


MORE = PREFIX + "more"
"""By how many there are more of a record."""


def history_view(spark: SparkSession, each: InputSlices, scratch: Path | None = None) -> None:
    """Make a view of what the whole history of an input amounts to.

    With a folder `scratch`, few records pass through it.
    """
    if scratch is None:
        plan = plan_of(state(spark, each, each.all_files()))
    else:
        plan = in_one_part(spark, state_plan(spark, each, scratch))
    Catalyst(spark).show_plan(plan, each.alias)


def committed(spark: SparkSession, task: TransformTask, schema: pa.Schema) -> DataFrame:
    """The records of a result so far, with their weights as `MORE`; `schema` is that of it."""
    operation = pa.field(task.vocab.operation_type, pa.int32())
    files, columns = task.result_files(), schema.append(operation)
    before = read_slices(spark, files, columns, task.vocab, task.scratch)
    return before.selectExpr(*map(quote, schema.names), f"{weight(task.vocab)} AS {MORE}")


def difference(after: DataFrame, before: DataFrame | None) -> DataFrame:
    """Distinct records, and by how many there are `MORE` of them in `after` than in `before`.

    Records of `after` are in committed form. Those of `before`, if any, may have weights as `MORE`.
    """
    names = [quote(name) for name in after.columns]
    counted = after.selectExpr(*names, f"1 AS {MORE}")
    if before is not None:
        weights = MORE if MORE in before.columns else "1"
        counted = counted.unionAll(before.selectExpr(*names, f"-{weights} AS {MORE}"))
    return counted.groupBy(*names).agg(*_as_columns([f"SUM({MORE}) AS {MORE}"])).where(f"{MORE}<>0")


def write_changes(
    frame: DataFrame, task: TransformTask, key: Sequence[str] | None
) -> tuple[Path, ...]:
    """Write what to append so that the dataset amounts to a result, in order.

    `frame` is the difference; `key` are columns that no two records of the result share (`()`:
    there is one record at most, `None`: none are known).
    """
    columns = [name for name in frame.columns if name != MORE]
    order = time_first(columns, task.vocab.event_time)
    operation = task.vocab.operation_type
    if not sorts_alike(to_arrow_schema(frame), order):
        changed = changes_of(frame, columns, key, order, operation)
        return write_parts(changed, task.scratch / "parts")
    parts = write_parts(frame, task.scratch / "difference")
    if fit_in_memory(parts):
        whole = pa.concat_tables(pq.read_table(part) for part in parts)
        target = task.scratch / "changes.parquet"
        changes = corrections.changes(whole, MORE, key, order, operation)
        pq.write_table(changes, target, compression="lz4", use_dictionary=False)
        return (target,)
    written = frame.sparkSession.read.schema(frame.schema).parquet(*map(str, parts))
    return write_parts(changes_of(written, columns, key, order, operation), task.scratch / "parts")


def changes_of(
    found: DataFrame,
    columns: Sequence[str],
    key: Sequence[str] | None,
    order: Sequence[str],
    operation: str,
    arranged: Callable[[DataFrame, Sequence[str]], DataFrame] = total_order,
) -> DataFrame:
    """`corrections.changes`, by Spark; `arranged` sorts by columns."""
    units = _units(found, columns, key)
    # The first record of a unit decides where all of it stands; expanding keeps that order.
    placed = units.selectExpr(
        *(f"unit[0].record.{quote(name)} AS {quote(name)}" for name in columns),
        "unit[0].op AS __odf_op",
        "unit AS __odf_unit",
    )
    return (
        arranged(placed, [*order, "__odf_op"])
        .selectExpr("explode(__odf_unit) AS change")
        .selectExpr(
            f"change.op AS {quote(operation)}",
            *(f"change.record.{quote(name)} AS {quote(name)}" for name in columns),
        )
    )


def _units(found: DataFrame, columns: Sequence[str], key: Sequence[str] | None) -> DataFrame:
    """Changes as `unit`: an array with a correction's two records, or with any other one."""
    record = f"struct({', '.join(map(quote, columns))}) AS record"
    counted = found.selectExpr(record, f"CAST({MORE} AS INT) AS more")
    single = (
        f"array_repeat(array(named_struct('op', IF(more > 0, {APPEND}, {RETRACT}),"
        " 'record', record)), abs(more))"
    )
    if key is None:
        return counted.selectExpr(f"explode({single}) AS unit")
    keys = [f"record.{quote(name)}" for name in key]
    same_key = counted.groupBy(*_as_columns(keys)).agg(*_as_columns([_COLLECTED]))
    correction = (
        f"array(array(named_struct('op', {CORRECT_FROM}, 'record', found[0].record),"
        f" named_struct('op', {CORRECT_TO}, 'record', found[1].record)))"
    )
    others = single.replace("more", "one.more").replace("record)", "one.record)")
    is_correction = "size(found) = 2 AND found[0].more = -1 AND found[1].more = 1"
    return same_key.selectExpr(
        f"explode(CASE WHEN {is_correction} THEN {correction}"
        f" ELSE flatten(transform(found, one -> {others})) END) AS unit"
    )


_COLLECTED = "sort_array(collect_list(struct(more, record))) AS found"


def _as_columns(expressions: Sequence[str]) -> list[object]:
    from pyspark.sql.functions import expr

    return [expr(each) for each in expressions]

"""Where records of a recorded step come from: do it again with a query that tells.

The step runs in the mode in which it was made, over the same records; `witnesses` puts the query in
terms of where rows come from, and the rows are found among the committed records by their values.
Source: Open Data Fabric, "Engine Contract", derive provenance.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from odfbuild.engine.contract import (
    Origin,
    Provenance,
    ProvenanceTask,
    TransformTask,
)
from odfbuild.engine.mode import Mode
from odfbuild.engine.operation import APPEND, CORRECT_FROM, CORRECT_TO, RETRACT
from odfbuild.engine.ranges import Ranges, ranges_of
from odfbuild.engine.spark import few
from odfbuild.engine.spark.carry import PREFIX
from odfbuild.engine.spark.catalyst import Catalyst, Node
from odfbuild.engine.spark.frames import quote, read_slices, write_parts
from odfbuild.engine.spark.limits import files_read
from odfbuild.engine.spark.modes import stream
from odfbuild.engine.spark.modes.shape import Windowed
from odfbuild.engine.spark.order import committed_form
from odfbuild.engine.spark.temporal import versions_of
from odfbuild.engine.spark.transform import Decision, decide, history_views, pairs, steps_of
from odfbuild.engine.spark.validate import result_of
from odfbuild.engine.spark.witnesses import Witnesses

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Records = Any
"""Inputs and offsets of records, as an Arrow array of structs."""

_FROM = PREFIX + "records"
_RANK = PREFIX + "rank"
_OFFSET = PREFIX + "offset"
_ROW = PREFIX + "row"
_GIVEN = (APPEND, CORRECT_TO)
_TAKEN = (RETRACT, CORRECT_FROM)
_NOT_FOUND = "the step, done again, gives no such record"


def trace(spark: SparkSession, task: ProvenanceTask) -> Provenance:
    """See `contract.Engine.provenance`."""
    found = decide(spark, task.step)
    wanted = replace(task, step=found.task)
    if found.choice.mode is not Mode.CHANGELOG:
        return Provenance(found.choice, _origins(spark, wanted, found))
    # What a changelog takes back was in the result before the step, and is not in it any more.
    given = _origins(spark, wanted, found, _GIVEN)
    taken = _origins(spark, replace(wanted, step=_before(found.task)), found, _TAKEN)
    before = {offset: replace(origin, before=True) for offset, origin in taken.items()}
    return Provenance(found.choice, {**given, **before})


def _before(step: TransformTask) -> TransformTask:
    """A step that finds nothing new."""
    inputs = tuple(replace(each, slices=(), first=None, last=None) for each in step.inputs)
    return replace(step, inputs=inputs)


def _origins(
    spark: SparkSession,
    task: ProvenanceTask,
    decision: Decision,
    operations: tuple[int, ...] | None = None,
) -> dict[int, Origin]:
    """Where those records come from that have one of `operations`."""
    step = task.step
    wanted = _asked(task, operations)
    if not wanted:
        return {}
    committed = read_slices(spark, [task.file], task.schema, step.vocab)
    if operations is not None:
        kinds = ", ".join(map(str, operations))
        committed = committed.where(f"{quote(step.vocab.operation_type)} IN ({kinds})")
    result, whole_inputs = _result(spark, step, decision)
    in_order = decision.choice.mode is Mode.MAP
    found = _found(result, committed, step, wanted, in_order=in_order) if result is not None else {}
    whole = {step.inputs[number].alias: why for number, why in whole_inputs.items()}
    not_found = Origin({}, dict.fromkeys((each.alias for each in step.inputs), _NOT_FOUND))
    return {
        offset: Origin(_by_input(found[offset], step), whole) if offset in found else not_found
        for offset in wanted
    }


def _asked(task: ProvenanceTask, operations: Container[int] | None) -> list[int]:
    """The offsets that are asked for, of records that have one of `operations`."""
    vocab = task.step.vocab
    names = [vocab.offset, vocab.operation_type]
    offsets, kinds = (pq.read_table(task.file, columns=names)[name].to_pylist() for name in names)
    asked = frozenset(task.offsets)
    return [
        offset
        for offset, kind in zip(offsets, kinds, strict=True)
        if offset in asked and (operations is None or kind in operations)
    ]


def _result(
    spark: SparkSession, step: TransformTask, decision: Decision
) -> tuple[DataFrame | None, Mapping[int, str]]:
    """The rows of a step with what they come from behind them, and the inputs that count whole."""
    catalyst = Catalyst(spark)
    witnesses = Witnesses(catalyst, _views(step))

    def traced() -> tuple[Node, str]:
        plan, _ = result_of(spark, steps_of(step.transform))
        return witnesses.traced(catalyst.inline(plan))

    def in_frame() -> DataFrame:
        plan, name = traced()
        return _renamed(catalyst.frame(plan), name)

    frame: DataFrame | None
    match decision.choice.mode:
        case Mode.MAP:
            frame = in_frame()
        case Mode.STREAM if isinstance(decision.shape, Windowed):
            span = stream.closing(step)
            if span is None:
                return None, {}
            for each in step.inputs:
                stream.window_view(spark, each, span, decision.shape.length)
            plan, name = traced()
            frame = _renamed(stream.closed_windows(spark, plan, step), name)
        case Mode.STREAM:
            frame = pairs(spark, step, in_frame)
        case Mode.CHANGELOG:
            history_views(spark, step)
            frame = in_frame()
    if frame is not None:
        few.tune(spark, files_read(frame, step))
    return frame, witnesses.whole


def _views(step: TransformTask) -> dict[str, tuple[int, str]]:
    """Views whose rows are records of an input: its number and its column of offsets."""
    number = {each.alias: at for at, each in enumerate(step.inputs)}
    views = {each.alias: (number[each.alias], each.vocab.offset) for each in step.inputs}
    for table in versions_of(step.dataset, step.transform, step.inputs):
        views[table.view] = (number[table.input.alias], table.input.vocab.offset)
    return views


def _renamed(frame: DataFrame, name: str) -> DataFrame:
    return frame.withColumnRenamed(name, _FROM)


def _found(
    result: DataFrame,
    committed: DataFrame,
    step: TransformTask,
    wanted: Sequence[int],
    *,
    in_order: bool,
) -> dict[int, Records]:
    """The records behind each of the `wanted` ones, as far as `result` has it.

    Records of equal values are interchangeable: each gets one of the rows with its values, the last
    record the last row, where the result stands `in_order`.
    """
    from pyspark.sql.functions import expr

    names = [quote(name) for name in result.columns if name != _FROM]
    equals = f"PARTITION BY {', '.join(names)} ORDER BY"
    same = " AND ".join(f"made.{name} <=> kept.{name}" for name in names)
    offset = quote(step.vocab.offset)
    asked = step.scratch / "asked.parquet"
    pq.write_table(pa.table({_OFFSET: pa.array(wanted, pa.int64())}), asked)
    kept = (
        committed.selectExpr(
            *names,
            f"{offset} AS {_OFFSET}",
            f"ROW_NUMBER() OVER ({equals} {offset} DESC) AS {_RANK}",
        )
        .join(result.sparkSession.read.parquet(str(asked)), _OFFSET, "left_semi")
        .alias("kept")
    )
    # Where it stands in no order, nothing must keep Spark from looking at the wanted rows alone.
    row = "monotonically_increasing_id()" if in_order else "0"
    rows = committed_form(result.selectExpr("*", f"{row} AS {_ROW}")).alias("made")
    made = (
        rows.join(kept, expr(same), "left_semi")
        .selectExpr("*", f"ROW_NUMBER() OVER ({equals} {_ROW} DESC, {_FROM} DESC) AS {_RANK}")
        .alias("made")
    )
    both = made.join(kept, expr(f"{same} AND made.{_RANK} = kept.{_RANK}"))
    found = both.selectExpr(f"kept.{_OFFSET}", f"made.{_FROM}")
    parts = [pq.read_table(part) for part in write_parts(found, step.scratch / "from")]
    return {
        offset.as_py(): records.values
        for part in parts
        for offset, records in zip(part[_OFFSET], part[_FROM], strict=True)
    }


def _by_input(records: Records, step: TransformTask) -> dict[str, Ranges]:
    """Offsets by the alias of the input."""
    numbers = records.field("input").to_numpy(zero_copy_only=False)
    offsets = records.field("offset").to_numpy(zero_copy_only=False)
    return {
        each.alias: ranges_of(offsets[numbers == number].tolist())
        for number, each in enumerate(step.inputs)
        if (numbers == number).any()
    }

"""Provenance of records of a committed step: recompute it with an extended query.

The step runs in the mode in which it was made, over the same records; `witnesses` puts the query in
terms of where rows come from, and the rows are found among the committed records by their values.
Source: Open Data Fabric, "Engine Contract", derive provenance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfbuild.engine.contract import (
    Origin,
    Provenance,
    ProvenanceTask,
    TransformTask,
)
from odfbuild.engine.precision import Micros, micros_in
from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.queries.checked import known_plan
from odfbuild.engine.spark.queries.column_sources import ColumnSources
from odfbuild.engine.spark.queries.hidden_columns import PREFIX
from odfbuild.engine.spark.queries.modes import stream
from odfbuild.engine.spark.queries.modes.shape import Windowed
from odfbuild.engine.spark.queries.row_sources import RowSources
from odfbuild.engine.spark.queries.step import history_views, steps_of
from odfbuild.engine.spark.queries.temporal import versions_of
from odfbuild.engine.spark.queries.transform import Decision, decide, pairs
from odfbuild.engine.spark.queries.validate import result_of
from odfbuild.engine.spark.results import small_jobs as few
from odfbuild.engine.spark.results.executor import write_parts
from odfbuild.engine.spark.results.frames import quote, read_slices
from odfbuild.engine.spark.results.order import committed_form
from odfbuild.engine.spark.session.limits import files_read
from odfbuild.odf.operation import APPEND, CORRECT_FROM, CORRECT_TO, RETRACT
from odfbuild.records.ranges import Ranges, offsets_of, ranges_of, union_of
from odfbuild.sql.lineage import Lineage
from odfbuild.sql.mode import Mode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FROM = PREFIX + "records"
_RANK = PREFIX + "rank"
_OFFSET = PREFIX + "offset"
_QUESTION = PREFIX + "question"
_ROW = PREFIX + "row"
_GIVEN = (APPEND, CORRECT_TO)
_TAKEN = (RETRACT, CORRECT_FROM)
_NO_RECORDS = pa.table({_QUESTION: pa.array([], pa.int32()), _FROM: pa.array([], pa.null())})
_NOT_FOUND = "the recomputed step gives no such record"


def trace(spark: SparkSession, task: ProvenanceTask) -> Provenance:
    """See `contract.Engine.provenance`."""
    found = decide(spark, task.step)
    step = found.task
    lineage = _lineage(spark, found) if task.columns else None
    if not task.asked:
        return Provenance(found.choice, (), lineage)
    wanted: list[tuple[TransformTask, Sequence[int] | None, bool]] = [(step, None, False)]
    if found.choice.mode is Mode.CHANGELOG:
        # What it takes back was in the result before the step, and is not in it any more.
        wanted = [(step, _GIVEN, False), (_before(step), _TAKEN, True)]
    parts = [
        _origins(spark, replace(task, step=each), found, operations, before=before)
        for each, operations, before in wanted
    ]
    origins = tuple(_together(pieces) for pieces in zip(*parts, strict=True))
    return Provenance(found.choice, origins, lineage)


def _lineage(spark: SparkSession, found: Decision) -> Lineage:
    """What the columns of a step are made of, by its analysed query."""
    catalyst = Catalyst(spark)
    aliases = [each.alias for each in found.task.inputs]
    views = {view: aliases[number] for view, (number, _) in _views(found.task).items()}
    times = {each.alias: each.vocab.event_time for each in found.task.inputs}
    return ColumnSources(catalyst, views, times).of(catalyst.inline(known_plan(found.report)))


def _before(step: TransformTask) -> TransformTask:
    """A step that finds nothing new."""
    inputs = tuple(replace(each, slices=(), first=None, last=None) for each in step.inputs)
    scratch = step.scratch / "before"
    scratch.mkdir()
    return replace(step, inputs=inputs, scratch=scratch)


def _together(origins: Sequence[Origin]) -> Origin:
    """What some records and others come from."""
    aliases = dict.fromkeys(alias for each in origins for alias in each.records)
    return Origin(
        {
            alias: union_of([each.records[alias] for each in origins if alias in each.records])
            for alias in aliases
        },
        {alias: why for each in origins for alias, why in each.whole.items()},
        before=any(each.before for each in origins),
    )


def _origins(
    spark: SparkSession,
    task: ProvenanceTask,
    decision: Decision,
    operations: Sequence[int] | None,
    *,
    before: bool,
) -> list[Origin]:
    """Where those of the records come from that have one of `operations`, for each question."""
    step = task.step
    asked = _asked(task, operations)
    if not asked.num_rows:
        return [Origin({}) for _ in task.asked]
    committed = read_slices(spark, [task.file], task.schema, step.vocab)
    if operations is not None:
        kinds = ", ".join(map(str, operations))
        committed = committed.where(f"{quote(step.vocab.operation_type)} IN ({kinds})")
    result, whole_inputs = _result(spark, step, decision)
    in_order = decision.choice.mode is Mode.MAP
    micros = micros_in(task.schema)
    found = _NO_RECORDS
    if result is not None:
        found = _found(result, committed, step, asked, micros=micros, in_order=in_order)
    whole = {step.inputs[number].alias: why for number, why in whole_inputs.items()}
    origins = []
    for question in range(len(task.asked)):
        wanted = asked.filter(pc.field(_QUESTION) == question)
        rows = found.filter(pc.field(_QUESTION) == question)
        if not wanted.num_rows:
            origins.append(Origin({}))
        elif rows.num_rows < wanted.num_rows:
            aliases = [each.alias for each in step.inputs]
            origins.append(Origin({}, dict.fromkeys(aliases, _NOT_FOUND), before))
        else:
            origins.append(Origin(_by_input(rows[_FROM], step), whole, before))
    return origins


def _asked(task: ProvenanceTask, operations: Sequence[int] | None) -> pa.Table:
    """The records that are asked for and have one of `operations`: question and offset."""
    vocab = task.step.vocab
    records = pq.read_table(task.file, columns=[vocab.offset, vocab.operation_type])
    if operations is not None:
        records = records.filter(
            pc.is_in(
                records[vocab.operation_type].cast(pa.int32()), pa.array(operations, pa.int32())
            )
        )
    present = records[vocab.offset].cast(pa.int64())
    asked = []
    for question, ranges in enumerate(task.asked):
        offsets = present.filter(pc.is_in(present, pa.array(offsets_of(ranges), pa.int64())))
        numbers = pa.array([question] * len(offsets), pa.int32())
        asked.append(pa.table({_QUESTION: numbers, _OFFSET: offsets}))
    return pa.concat_tables(asked)


def _result(
    spark: SparkSession, step: TransformTask, decision: Decision
) -> tuple[DataFrame | None, Mapping[int, str]]:
    """The rows of a step with what they come from behind them, and the inputs that count whole."""
    catalyst = Catalyst(spark)
    witnesses = RowSources(catalyst, len(step.inputs), _views(step))

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
            frame = _renamed(stream.closed_windows(spark, plan, step, decision.shape), name)
        case Mode.STREAM:
            frame, _ = pairs(spark, step, in_frame)
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
    asked: pa.Table,
    *,
    micros: Micros,
    in_order: bool,
) -> pa.Table:
    """For each record that is `asked` for, as far as `result` has it, its question and list.

    Records of equal values are interchangeable: each gets one of the rows with its values, the last
    record the last row, where the result stands `in_order`.
    """
    from pyspark.sql.functions import expr

    names = [quote(name) for name in result.columns if name != _FROM]
    equals = f"PARTITION BY {', '.join(names)} ORDER BY"
    same = " AND ".join(f"made.{name} <=> kept.{name}" for name in names)
    offset = quote(step.vocab.offset)
    file = step.scratch / "asked.parquet"
    pq.write_table(asked, file)
    kept = (
        committed.selectExpr(
            *names,
            f"{offset} AS {_OFFSET}",
            f"ROW_NUMBER() OVER ({equals} {offset} DESC) AS {_RANK}",
        )
        .join(result.sparkSession.read.parquet(str(file)), _OFFSET)
        .alias("kept")
    )
    # Where it stands in no order, nothing must keep Spark from looking at the wanted rows alone.
    row = "monotonically_increasing_id()" if in_order else "0"
    values = committed_form(result.selectExpr("*", f"{row} AS {_ROW}"), micros)
    rows = values.alias("made")
    made = (
        rows.join(kept, expr(same), "left_semi")
        .selectExpr("*", f"ROW_NUMBER() OVER ({equals} {_ROW} DESC, {_FROM} DESC) AS {_RANK}")
        .alias("made")
    )
    both = made.join(kept, expr(f"{same} AND made.{_RANK} = kept.{_RANK}"))
    found = both.selectExpr(f"kept.{_QUESTION}", f"made.{_FROM}")
    parts = [pq.read_table(part) for part in write_parts(found, step.scratch / "from")]
    return pa.concat_tables(parts) if parts else _NO_RECORDS


def _by_input(lists: pa.ChunkedArray, step: TransformTask) -> dict[str, Ranges]:
    """The offsets in lists of records, by the alias of the input."""
    numbers = pc.unique(pa.chunked_array([pc.list_flatten(chunk) for chunk in lists.chunks]))
    told = numbers.to_numpy(zero_copy_only=False)
    found = {}
    for number, each in enumerate(step.inputs):
        offsets = told[told % len(step.inputs) == number] // len(step.inputs)
        if len(offsets):
            found[each.alias] = ranges_of(offsets.tolist())
    return found

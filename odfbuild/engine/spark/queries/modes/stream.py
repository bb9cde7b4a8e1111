"""Mode `stream`: append final results, and never retract them.

A window is computed once, in the step in which the watermark of the result passes its end, from
all records that came before the watermark of their own input had passed it; later ones are left
out. A join appends the pairs that new records make. Which records count is decided by the chains
of the inputs alone, so that many small steps give what one large step gives, and nothing but the
inputs has to be kept from step to step. Sources: Open Data Fabric, "Watermark"; RFC-015.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from odfbuild.engine.contract import InputSlices, SliceFile, TransformTask
from odfbuild.engine.event_times import ALWAYS, Times, covering, event_times
from odfbuild.engine.spark.internals.catalyst import Builder, Catalyst
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.queries.hidden_columns import PREFIX, Carrier, hide
from odfbuild.engine.spark.queries.inputs import from_first, upto_last
from odfbuild.engine.spark.queries.modes.bounds import Bounds
from odfbuild.engine.spark.queries.modes.shape import Windowed
from odfbuild.engine.spark.results.frames import quote, read_slices, union
from odfbuild.odf.chain.step import output_watermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_AFTER = PREFIX + "after"
_UPTO = PREFIX + "upto"
_NOT_BEFORE = PREFIX + "not_before"
_IN_TIME = PREFIX + "in_time"
_HIDDEN = (_AFTER, _UPTO, _NOT_BEFORE, _IN_TIME)
_MICROS = 1000
_NEVER = -62_135_596_800_000
"""Milliseconds of the year 1: before the end of any window."""


# --- Windows that close ---


def closing(task: TransformTask) -> tuple[int, int] | None:
    """The span `(after, upto]` of milliseconds in which windows end in this step, if there is one.

    The watermark of the result moves from `after` to `upto`.
    """
    reached = output_watermark(task.watermark_before, [each.watermark for each in task.inputs])
    if reached is None or reached == task.watermark_before:
        return None
    before = task.watermark_before
    return (_NEVER if before is None else before.millis, reached.millis)


def window_view(
    spark: SparkSession, each: InputSlices, span: tuple[int, int], length: int | None
) -> None:
    """Make a view of the records that may lie in a window, at most `length` µs long, that closes.

    Hidden behind each record stand what `_closes` asks for: the times between which its windows
    have to end, and whether its own tells that all of them end after the first of these, and until
    the second. Where a file tells it of all its records, none of them is asked.
    """
    after, upto = span
    open_since = after - length // _MICROS - 1 if length is not None else ALWAYS.first
    needed = Times(open_since, upto)
    over = None if length is None else upto - length // _MICROS - 1
    groups: dict[tuple[int, bool, bool], list[Path]] = {}
    for file in (*each.earlier(), *each.slices):
        times = event_times(file.path, each.vocab.event_time)
        if not times.meets(needed):
            continue
        late = file.promised is not None and times.first < file.promised.millis
        since = max(after, file.promised.millis) if late and file.promised else after
        # Statistics are not exact to the last digit.
        none_before = times.first >= since + 1
        all_in_time = over is not None and times.last <= over - 1
        groups.setdefault((since, none_before, all_in_time), []).append(file.path)
    if not groups:
        groups[after, True, True] = []
    frames = [
        (upto_last(read_slices(spark, files, each.schema, each.vocab), each), *known)
        for known, files in groups.items()
    ]
    show_windows(frames, each.alias, each.vocab.event_time, upto, length)


def show_windows(
    frames: Sequence[tuple[DataFrame, int, bool, bool]],
    alias: str,
    event_time: str,
    upto: int,
    length: int | None,
) -> None:
    """Make the view of `window_view` of records, with the time after which windows have to end.

    Then whether it is known of all of them that they lie behind it, and long enough before `upto`.
    """
    over = None if length is None else upto - length // _MICROS - 1
    time = f"CAST({quote(event_time)} AS TIMESTAMP)"
    whole = [
        frame.selectExpr(
            "*",
            f"{_moment(since)} AS {_AFTER}",
            f"{_moment(upto)} AS {_UPTO}",
            f"{'TRUE' if none_before else f'{time} >= {_moment(since)}'} AS {_NOT_BEFORE}",
            f"{'TRUE' if all_in_time else f'{time} <= {_moment(over)}'} AS {_IN_TIME}",
        )
        for frame, since, none_before, all_in_time in frames
    ]
    hide(union(whole), alias)


def _moment(millis: int | None) -> str:
    return f"timestamp_millis(CAST({'NULL' if millis is None else millis} AS BIGINT))"


def closed_windows(
    spark: SparkSession, plan: Node, task: TransformTask, shape: Windowed
) -> DataFrame:
    """The result of `plan`, analysed over views of `window_view`, for the windows that close.

    `shape` is that of the same query over other views.
    """
    catalyst = Catalyst(spark)
    plan = catalyst.inline(plan)
    carrier = Carrier(catalyst, [each.alias for each in task.inputs], _HIDDEN)
    return catalyst.frame(_only_closed(catalyst, plan, shape, carrier))


def _only_closed(catalyst: Catalyst, plan: Node, shape: Windowed, carrier: Carrier) -> Node:
    build = catalyst.build
    if plan.kind != "Aggregate":
        return build.with_children(plan, [_only_closed(catalyst, plan.child, shape, carrier)])
    child = carrier.carry(plan.child)
    hidden = {column.name: column for column in child.output}
    window = plan.grouping[shape.grouping]
    return build.with_children(plan, [build.filter(_closes(build, window, hidden), child)])


def _closes(build: Builder, window: Node, hidden: Mapping[str, Node]) -> Node:
    """Whether the window of a row closes: its end lies in `(after, upto]`.

    The time of a record in it tells for most rows, at a fraction of the price: it lies before the
    end, by no more than the length of the window.
    """
    end = build.field_of(window, "end")
    not_before = build.either(hidden[_NOT_BEFORE], build.greater(end, hidden[_AFTER]))
    in_time = build.either(hidden[_IN_TIME], build.at_most(end, hidden[_UPTO]))
    return build.both(not_before, in_time)


# --- Pairs that new records make ---


def new_pairs(
    spark: SparkSession,
    inputs: Sequence[InputSlices],
    bounds: Bounds,
    result_of: Callable[[], DataFrame],
    scratch: Path,
) -> tuple[DataFrame | None, set[Path]]:
    """What new records add to a join in which each of `inputs` stands once; `None` for nothing.

    Also the files that are read.

    Input by input: its new records joined with what the inputs before it held already, and with all
    that those behind it hold now. `bounds` say how far apart in time two records of a pair may be,
    so that only files with such records are read. `result_of` is the query over the views.
    Few records pass through the folder `scratch`.
    """
    found: DataFrame | None = None
    seen: set[Path] = set()
    for number, fresh in enumerate(inputs):
        if not fresh.slices:
            continue
        span = covering(event_times(file, fresh.vocab.event_time) for file in fresh.files)
        read = [
            each.slices
            if other == number
            else _within(
                each.earlier() if other < number else (*each.earlier(), *each.slices),
                bounds.reach(fresh.alias, each.alias, span),
                each,
            )
            for other, each in enumerate(inputs)
        ]
        if not all(read):  # nothing to join with
            continue
        seen.update(file.path.resolve() for files in read for file in files)
        for other, (each, files) in enumerate(zip(inputs, read, strict=True)):
            _join_view(spark, each, files, scratch, new=other == number)
        pairs = result_of()
        found = pairs if found is None else found.unionAll(pairs)
    return found, seen


def _within(files: Iterable[SliceFile], span: Times, each: InputSlices) -> list[SliceFile]:
    """Those of `files` of an input that hold records of `span`."""
    return [file for file in files if span.meets(event_times(file.path, each.vocab.event_time))]


def _join_view(
    spark: SparkSession,
    each: InputSlices,
    files: Sequence[SliceFile],
    scratch: Path,
    *,
    new: bool,
) -> None:
    paths = [file.path for file in files]
    frame = upto_last(read_slices(spark, paths, each.schema, each.vocab, scratch), each)
    if new:
        frame = from_first(frame, each)
    Catalyst(spark).show(frame, each.alias)

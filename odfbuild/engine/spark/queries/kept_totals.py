"""What a step changes in a result that follows from totals of groups, which are kept.

The totals of the new records, and of those that are taken back, are put together with the kept ones
of the same groups. Then what the query makes of totals is computed twice, over these groups as they
were and as they are. Where nothing is kept, a step over all records computes the totals of all
groups first, and keeps them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from odfbuild.engine.affected_records import affected, records_of
from odfbuild.engine.contract import Extent, InputSlices, TransformTask
from odfbuild.engine.precision import Micros
from odfbuild.engine.spark.internals.catalyst import Catalyst, plan_of
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.queries.added import cut
from odfbuild.engine.spark.queries.hidden_columns import PREFIX
from odfbuild.engine.spark.queries.inputs import (
    changes,
    has_operations,
    only_new,
    takes_too_much,
)
from odfbuild.engine.spark.queries.modes import changelog
from odfbuild.engine.spark.queries.modes.choose import key_of
from odfbuild.engine.spark.queries.step import steps_of, tuned
from odfbuild.engine.spark.queries.validate import result_of
from odfbuild.engine.spark.results import small_jobs as few
from odfbuild.engine.spark.results.executor import write_parts
from odfbuild.engine.spark.results.order import committed_form
from odfbuild.records.kept_groups import KeptGroups
from odfbuild.records.key_hash import comparable_type
from odfbuild.sql.increments.kept_totals import (
    AVERAGES,
    EXTREMES,
    NARROW,
    aggregation_in,
    calls_in,
    kept_totals_of,
)
from odfbuild.sql.increments.one_by_one import Additions
from odfbuild.sql.increments.parts import KeyColumn, Parts, Reading, most_affected
from odfbuild.sql.increments.plan_inputs import Views
from odfbuild.store.side_cars import by_key_folder
from odfbuild.values import Value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS = PREFIX + "rows"
_SIDE = PREFIX + "side"
_UNSURE = PREFIX + "unsure"
_BEFORE, _NEW, _TAKEN = range(3)
_EXACT = 1 << 53
"""Sums of floating point numbers are exact where those of the absolute values are less."""


class _Total(Value):
    """A column of totals, by an aggregate of SQL.

    An `extreme` one is the least or greatest value. One that has to be `small` bounds a sum.
    """

    name: str
    sql: str
    extreme: str = ""
    small: bool = False


_COUNT = _Total(_ROWS, "COUNT(1)")


def kept_totals(
    spark: SparkSession, task: TransformTask, query: Node, views: Views
) -> KeptTotals | None:
    """The totals that the result of an analysed `query` follows from, if it does.

    `None` also where none can be kept.
    """
    catalyst = Catalyst(spark)
    plan = _plain(catalyst, query)
    grouped = aggregation_in(plan)
    if grouped is None or task.transform.temporal_tables:
        return None
    keys = [f"{PREFIX}k{n}" for n in range(len(grouped.grouping))]
    groups = _kept_groups(task, keys)
    if groups is None:
        return None
    additions = kept_totals_of(catalyst, plan, views, catalyst.optimised)
    if additions is None:
        return None
    return KeptTotals(spark, task, additions, views, grouped, groups)


class KeptTotals:
    """The totals of a step's query: how they are computed, and what is kept of them."""

    def __init__(
        self,
        spark: SparkSession,
        task: TransformTask,
        additions: Additions,
        views: Views,
        grouped: Node,
        groups: KeptGroups,
    ) -> None:
        self._spark = spark
        self._task = task
        self._additions = additions
        self._views = views
        self._catalyst = Catalyst(spark)
        calls = enumerate(calls_in(grouped))
        self._totals = [_COUNT, *(t for n, c in calls for t in _totals_of(n, c))]
        self._groups = groups
        self._keys = groups.keys
        self._changed: Sequence[Path] = ()

    @property
    def are_held(self) -> bool:
        """Whether the totals over all earlier records are kept."""
        return self._groups.are_held

    def changes(self, micros: Micros) -> tuple[tuple[Path, ...] | None, Extent]:
        """What to append, and how many records that takes; `None` where totals do not tell it.

        They do not where the least or the greatest value of a group is taken back, and where more
        of a record is taken back than there is.
        """
        task, spark = self._task, self._spark
        beside, read = cut(self._catalyst, self._additions, self._views, task)
        for alias in beside:
            changelog.history_view(spark, beside[alias], task.scratch)
        retracting = [each for each in task.inputs if has_operations(each.files, each.vocab)]
        looked_at = self._looked_at(retracting) if retracting else 0
        total = records_of(task.inputs)
        extent = Extent(min(total, read + (looked_at or 0)), total)
        if looked_at is None:
            return None, extent
        sides: dict[int, tuple[Path, ...]] = {}
        for side in (_NEW, _TAKEN) if retracting else (_NEW,):
            query, sides[side] = self._of_side(side, beside)
        self._changed = [file for files in sides.values() for file in files]
        changed = [pq.read_table(file) for file in self._changed]
        before = task.scratch / "groups-before.parquet"
        pq.write_table(self._groups.like(changed), before, compression="snappy")
        sides[_BEFORE] = (before,)
        few.tune(spark, [file for files in sides.values() for file in files])
        after = write_parts(self._put_together(sides), task.scratch / "groups-after")
        groups = [pq.read_table(file) for file in after]
        if any(True in each[_UNSURE].to_pylist() for each in groups):
            return None, extent
        results = (
            committed_form(self._result(query, self._read(files)), micros)
            for files in (after, (before,))
        )
        found = changelog.write_changes(changelog.difference(*results), task, key_of(query))
        self._groups.keep([each.drop_columns([_UNSURE]) for each in groups], _new(task))
        return found, extent

    def _looked_at(self, retracting: Sequence[InputSlices]) -> int | None:
        """How many records may equal new ones; `None` where some that are taken back are not there.

        Or where nobody knows.
        """
        spaces = []
        for each in retracting:
            system = (each.vocab.offset, each.vocab.operation_type, each.vocab.system_time)
            names = [name for name in each.schema.names if name not in system]
            kinds = {name: each.schema.field(name).type for name in names}
            plain = [KeyColumn(n) for n in names if comparable_type(kinds[n]) is not None]
            spaces.append((Reading(each.alias, tuple(plain)),))
        folder = self._task.scratch / "taken"
        folder.mkdir()
        found = affected(retracting, Parts(tuple(spaces)), folder)
        if found is None:
            return None
        few.tune(self._spark, [file for each in found.after for file in each.all_files()])
        if any(takes_too_much(self._spark, each, each.all_files()) for each in found.after):
            return None
        return found.extent.records

    def keep_changed(self, query: Node) -> None:
        """Keep the totals of the groups that `changes` was not sure of.

        `query` stands over all records of these.
        """
        from pyspark.sql.functions import expr

        if not self._changed:
            return
        keys = self._read(self._changed).selectExpr(*self._keys).distinct()
        groups = self._grouped(query)
        same = " AND ".join(f"changed.{key} <=> found.{key}" for key in self._keys)
        both = keys.alias("changed").join(groups.alias("found"), expr(same), "left")
        counted = (each.name for each in self._totals if each.sql.startswith("COUNT"))
        none = {name: f"COALESCE({name}, 0) AS {name}" for name in counted}
        frame = both.selectExpr(
            *(f"changed.{key} AS {key}" for key in self._keys),
            *(none.get(each.name, each.name) for each in self._totals),
        )
        files = write_parts(frame, self._task.scratch / "groups-changed")
        self._groups.keep([pq.read_table(file) for file in files], _new(self._task))

    def of_all(self, query: Node) -> DataFrame | None:
        """The result of `query` over all records; keeps the totals. `None` where it needs more."""
        task = self._task
        frame = self._grouped(query)
        tuned(frame, task)
        files = write_parts(frame, task.scratch / "groups")
        groups = self._read(files)
        small = [each.name for each in self._totals if each.small]
        if small and groups.where(" OR ".join(f"{e} >= {_EXACT}" for e in small)).limit(1).count():
            return None
        count = sum(pq.read_metadata(file).num_rows for file in files)
        # From now on a record that comes is one more.
        exact = not any(takes_too_much(self._spark, e, e.all_files()) for e in task.inputs)
        if exact and count <= most_affected(records_of(task.inputs)):
            tables = [pq.read_table(file) for file in files]
            self._groups.keep(tables, [*_earlier(task), *_new(task)], instead=True)
        return self._result(query, groups)

    def _of_side(
        self, side: int, beside: Mapping[str, InputSlices]
    ) -> tuple[Node, tuple[Path, ...]]:
        """The query, over the new records of one side, and the totals of these."""
        task = self._task
        for each in task.inputs:
            if each.alias not in beside:
                frame = changes(self._spark, each, taken=side == _TAKEN)
                self._catalyst.show(frame, each.alias)
        query, _ = result_of(self._spark, steps_of(task.transform))
        frame = self._grouped(query)
        read = tuple(beside.get(each.alias, each) for each in task.inputs)
        tuned(frame, replace(task, inputs=read))
        return query, write_parts(frame, task.scratch / f"groups-{side}")

    def _grouped(self, query: Node) -> DataFrame:
        """The totals of each group of a query."""
        from pyspark.sql.functions import expr

        build = self._catalyst.build
        grouped = _aggregation(_plain(self._catalyst, query))
        keys = zip(grouped.grouping, self._keys, strict=True)
        columns = [build.alias(key, name) for key, name in keys]
        for number, call in enumerate(calls_in(grouped)):
            given = [call.function.children[0], *call.children[1:]]
            names = (_argument(number), _filter(number))
            columns += [build.alias(e, name) for e, name in zip(given, names, strict=False)]
        rows = self._catalyst.frame(build.project(columns, grouped.child))
        made = [expr(f"{each.sql} AS {each.name}") for each in self._totals]
        frame = rows.groupBy(*self._keys).agg(*made)
        self._types = frame.schema
        return frame

    def _read(self, files: Sequence[Path]) -> DataFrame:
        return self._spark.read.schema(self._types).parquet(*map(str, files))

    def _put_together(self, sides: Mapping[int, Sequence[Path]]) -> DataFrame:
        """The totals of groups after the step, and whether these `sides` do not tell them."""
        from pyspark.sql.functions import expr

        frames = [self._read(sides[e]).selectExpr("*", f"{e} AS {_SIDE}") for e in sorted(sides)]
        whole = frames[0]
        for each in frames[1:]:
            whole = whole.unionAll(each)
        made, unsure = [], ["FALSE"]
        for each in self._totals:
            kind = self._types[each.name].dataType.simpleString()
            made.append(expr(f"CAST({_sum(each)} AS {kind}) AS {each.name}"))
            if each.small:
                unsure.append(f"{_sum(each)} >= {_EXACT}")
            if each.extreme and _TAKEN in sides:
                unsure.append(f"({_sum(_COUNT)} > 0 AND {_may_be_gone(each)})")
        made.append(expr(f"COALESCE({' OR '.join(unsure)}, FALSE) AS {_UNSURE}"))
        return whole.groupBy(*self._keys).agg(*made)

    def _result(self, query: Node, groups: DataFrame) -> DataFrame:
        """What a query makes of the totals of groups; those without rows are gone."""
        build = self._catalyst.build
        plan = _plain(self._catalyst, query)
        grouped = _aggregation(plan)
        calls = calls_in(grouped)
        if self._keys:
            groups = groups.where(f"{_ROWS} > 0")
        made = groups.selectExpr(
            *self._keys, *(sql for n, call in enumerate(calls) for sql in _values_of(n, call))
        )
        below = plan_of(made)
        values = {each.name: each for each in below.output}
        for number, call in enumerate(calls):
            if call.function.function_name in AVERAGES:
                buffers = call.function.buffers
                value = build.alias(call.function.evaluated, _value(number))
                given = (values[_sum_of(number)], values[_count_of(number)])
                instead = dict(zip(buffers, given, strict=True))
                below = build.with_expressions(
                    build.project([*below.output, value], below), instead
                )
                values[_value(number)] = below.output[-1]
        keys = [(k, values[n]) for k, n in zip(grouped.grouping, self._keys, strict=True)]
        totals = [(call, values[_value(n)]) for n, call in enumerate(calls)]
        columns: list[Node] = []
        parts: dict[Node, Node] = {}
        for column in grouped.columns:
            inside = dict(_instead(column, [*keys, *totals]))
            if column in inside:
                columns.append(build.alias(inside[column], column.name, like=column))
            else:
                columns.append(column)
                parts.update(inside)
        projected = build.with_expressions(build.project(columns, below), parts)
        return self._catalyst.frame(self._over(plan, projected))

    def _over(self, plan: Node, projected: Node) -> Node:
        """What stands above the aggregation, over what stands for that."""
        if plan.kind == "Aggregate":
            return projected
        below = self._over(plan.child, projected)
        if plan.kind in ("Project", "Filter"):
            return self._catalyst.build.with_children(plan, [below])
        return below


def _plain(catalyst: Catalyst, query: Node) -> Node:
    """An analysed query without names of subqueries and functions that stand for others."""
    return catalyst.replaced(catalyst.inline(query))


def _aggregation(plan: Node) -> Node:
    found = aggregation_in(plan)
    assert found is not None
    return found


def _argument(number: int) -> str:
    return f"{PREFIX}a{number}"


def _filter(number: int) -> str:
    return f"{PREFIX}f{number}"


def _value(number: int) -> str:
    return f"{PREFIX}v{number}"


def _sum_of(number: int) -> str:
    return f"{PREFIX}s{number}"


def _count_of(number: int) -> str:
    return f"{PREFIX}n{number}"


def _totals_of(number: int, call: Node) -> Iterator[_Total]:
    """What is kept for a call of an aggregate."""
    name, given = call.function.function_name, _argument(number)
    where = f" FILTER (WHERE {_filter(number)})" if len(call.children) > 1 else ""
    if name in EXTREMES:
        yield _Total(_value(number), f"{name}({given}){where}", extreme=name)
        return
    yield _Total(_count_of(number), f"COUNT({given}){where}")
    if name != "count":
        yield _Total(_sum_of(number), f"SUM({given}){where}")
    if name in AVERAGES and call.function.children[0].full_type in NARROW:
        sizes = f"SUM(ABS(CAST({given} AS BIGINT))){where}"
        yield _Total(f"{PREFIX}m{number}", sizes, small=True)


def _values_of(number: int, call: Node) -> Iterator[str]:
    """What is kept as the value of a call, or as the columns that an average is computed of."""
    name = call.function.function_name
    total, count, value = _sum_of(number), _count_of(number), _value(number)
    if name in EXTREMES:
        yield value
    elif name == "count":
        yield f"{count} AS {value}"
    elif name == "sum":
        yield f"IF({count} > 0, {total}, NULL) AS {value}"
    else:
        [kind, _] = [each.full_type for each in call.function.buffers]
        yield f"CAST({total} AS {kind}) AS {total}"
        yield count


def _sum(total: _Total) -> str:
    if total.extreme:
        # A group that is gone may come again.
        found = f"{total.extreme}({total.name}) FILTER (WHERE {_SIDE} <> {_TAKEN})"
        return f"IF({_sum(_COUNT)} > 0, {found}, NULL)"
    return f"SUM(IF({_SIDE} = {_TAKEN}, -{total.name}, {total.name}))"


def _may_be_gone(total: _Total) -> str:
    """Whether the extreme value of a group is taken back, and no new one stands in its place."""
    before, new, taken = (
        f"MAX({total.name}) FILTER (WHERE {_SIDE} = {side})" for side in (_BEFORE, _NEW, _TAKEN)
    )
    inner, beyond = (">", "<=") if total.extreme == "min" else ("<", ">=")
    stays = f"COALESCE({taken} {inner} {before}, FALSE)"
    return f"({taken} IS NOT NULL AND NOT {stays} AND NOT COALESCE({new} {beyond} {taken}, FALSE))"


def _instead(node: Node, pairs: Sequence[tuple[Node, Node]]) -> Iterator[tuple[Node, Node]]:
    """The parts of an expression that mean the first one of a pair, with the second one."""
    for part, value in pairs:
        if node.means(part):
            yield node, value
            return
    for child in node.children:
        yield from _instead(child, pairs)


def _kept_groups(task: TransformTask, keys: Sequence[str]) -> KeptGroups | None:
    """What is kept of the totals; `None` where slices do not tell what a step has read."""
    names = _earlier(task)
    is_told = names.isdisjoint(_new(task)) and all(map(only_new, task.inputs))
    if task.copies.side_cars is None or not is_told:
        return None
    inputs = [(each.alias, str(each.schema.remove_metadata())) for each in task.inputs]
    query = repr(([each.sql for each in steps_of(task.transform)], inputs))
    name = "totals " + hashlib.sha256(query.encode()).hexdigest()
    return KeptGroups(by_key_folder(task.copies.side_cars, name), name, keys, names)


def _earlier(task: TransformTask) -> frozenset[str]:
    """Names of the slices before the new ones."""
    return frozenset(f"{each.alias}/{e.path.name}" for each in task.inputs for e in each.earlier())


def _new(task: TransformTask) -> tuple[str, ...]:
    return tuple(f"{each.alias}/{e.path.name}" for each in task.inputs for e in each.slices)

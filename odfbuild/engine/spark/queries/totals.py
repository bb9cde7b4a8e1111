"""Totals of the groups of a query: how Spark computes them, and the result of the query from them.

An aggregate of the query becomes columns that add up, such as a sum and a count. The result is what
the query's own plan makes of these: its aggregates give way to expressions over the columns, that
of an average to Spark's own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as File
from typing import TYPE_CHECKING

from odfbuild.engine.spark.internals.catalyst import Catalyst, plan_of
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.queries.hidden_columns import PREFIX
from odfbuild.sql.increments.kept_totals import (
    AVERAGES,
    EXTREMES,
    NARROW,
    Path,
    calls_in,
    located,
)
from odfbuild.values import Value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS = PREFIX + "rows"
_SIDE = PREFIX + "side"
UNSURE = PREFIX + "unsure"
"""The column that says whether totals are not those of the records."""
BEFORE, NEW, TAKEN = range(3)
"""Sides of a step: what is kept, what comes, and what is retracted."""
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


class Totals:
    """The totals of a level of a query, whose aggregation is `grouped` and stands at `paths`.

    `keys` are the columns that tell groups apart.
    """

    def __init__(self, spark: SparkSession, grouped: Node, paths: Sequence[Path]) -> None:
        self._spark = spark
        self._catalyst = Catalyst(spark)
        self._paths = paths
        calls = enumerate(calls_in(grouped))
        self._totals = [_COUNT, *(t for n, c in calls for t in _totals_of(n, c))]
        self.keys = [f"{PREFIX}k{n}" for n in range(len(grouped.grouping))]
        self.columns = [*self.keys, *(each.name for each in self._totals)]

    def are_exact(self, groups: DataFrame) -> bool:
        """Whether sums of floating point numbers are, in all groups."""
        small = [f"{each.name} >= {_EXACT}" for each in self._totals if each.small]
        return not small or not groups.where(" OR ".join(small)).limit(1).count()

    def of_keys(self, keys: DataFrame, groups: DataFrame) -> DataFrame:
        """The totals of the groups with these keys: those in `groups`, or none at all."""
        from pyspark.sql.functions import expr

        same = " AND ".join(f"asked.{key} <=> found.{key}" for key in self.keys)
        asked = keys.select(*self.keys).distinct().alias("asked")
        both = asked.join(groups.alias("found"), expr(same), "left")
        counts = {each.name for each in self._totals if each.sql.startswith("COUNT")}
        return both.selectExpr(
            *(f"asked.{key} AS {key}" for key in self.keys),
            *(
                f"COALESCE({each.name}, 0) AS {each.name}" if each.name in counts else each.name
                for each in self._totals
            ),
        )

    def grouped(self, query: Node) -> DataFrame:
        """The totals of each group of a query, which is `plain`."""
        from pyspark.sql.functions import expr

        build = self._catalyst.build
        grouped = self._aggregation(query)
        keys = zip(grouped.grouping, self.keys, strict=True)
        columns = [build.alias(key, name) for key, name in keys]
        for number, call in enumerate(calls_in(grouped)):
            given = [call.function.children[0], *call.children[1:]]
            names = (_argument(number), _filter(number))
            columns += [build.alias(e, name) for e, name in zip(given, names, strict=False)]
        rows = self._catalyst.frame(build.project(columns, grouped.child))
        made = [expr(f"{each.sql} AS {each.name}") for each in self._totals]
        frame = rows.groupBy(*self.keys).agg(*made)
        self._types = frame.schema
        return frame

    def read(self, files: Sequence[File]) -> DataFrame:
        """Totals in files; those of some query were computed before."""
        return self._spark.read.schema(self._types).parquet(*map(str, files))

    def put_together(self, sides: Mapping[int, Sequence[File]]) -> DataFrame:
        """The totals of groups after the step, and whether these `sides` do not tell them."""
        from pyspark.sql.functions import expr

        frames = [self.read(sides[e]).selectExpr("*", f"{e} AS {_SIDE}") for e in sorted(sides)]
        whole = frames[0]
        for each in frames[1:]:
            whole = whole.unionAll(each)
        made, unsure = [], ["FALSE"]
        for each in self._totals:
            kind = self._types[each.name].dataType.simpleString()
            made.append(expr(f"CAST({_sum(each)} AS {kind}) AS {each.name}"))
            if each.small:
                unsure.append(f"{_sum(each)} >= {_EXACT}")
            if each.extreme and TAKEN in sides:
                unsure.append(f"({_sum(_COUNT)} > 0 AND {_may_be_gone(each)})")
        made.append(expr(f"COALESCE({' OR '.join(unsure)}, FALSE) AS {UNSURE}"))
        return whole.groupBy(*self.keys).agg(*made)

    def instead(self, query: Node, groups: DataFrame) -> Mapping[Path, Node]:
        """What stands for the aggregation of a query, which is `plain`, by its places.

        Groups without rows are gone.
        """
        build = self._catalyst.build
        grouped = self._aggregation(query)
        calls = calls_in(grouped)
        if self.keys:
            groups = groups.where(f"{_ROWS} > 0")
        made = groups.selectExpr(
            *self.keys, *(sql for n, call in enumerate(calls) for sql in _values_of(n, call))
        )
        below = plan_of(made)
        values = {each.name: each for each in below.output}
        for number, call in enumerate(calls):
            if call.function.function_name in AVERAGES:
                buffers = call.function.buffers
                value = build.alias(call.function.evaluated, _value(number))
                given = (values[_sum_of(number)], values[_count_of(number)])
                held = dict(zip(buffers, given, strict=True))
                below = build.with_expressions(build.project([*below.output, value], below), held)
                values[_value(number)] = below.output[-1]
        keys = [(k, values[n]) for k, n in zip(grouped.grouping, self.keys, strict=True)]
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
        return dict.fromkeys(self._paths, projected)

    def _aggregation(self, query: Node) -> Node:
        return located(self._catalyst, query, self._paths[0])


def result(spark: SparkSession, query: Node, instead: Mapping[Path, Node]) -> DataFrame:
    """What a query, which is `plain`, makes of what stands for its aggregations."""
    catalyst = Catalyst(spark)
    return catalyst.frame(_with(catalyst, query, instead))


def _with(catalyst: Catalyst, plan: Node, instead: Mapping[Path, Node]) -> Node:
    """A plan with others at some places of it."""
    if () in instead:
        return instead[()]
    below: defaultdict[int, dict[Path, Node]] = defaultdict(dict)
    for (step, *rest), node in instead.items():
        below[step][tuple(rest)] = node
    if not below:
        return plan
    build = catalyst.build
    made = [_with(catalyst, each, below[n]) for n, each in enumerate(plan.children)]
    if plan.kind in _NAMES:
        return made[0]
    found = {
        each: build.over(each, _with(catalyst, each.plan, below[-1 - n]))
        for n, each in enumerate(catalyst.subqueries(plan) if min(below) < 0 else ())
        if -1 - n in below
    }
    return build.with_expressions(build.with_children(plan, made), found)


_NAMES = frozenset(("SubqueryAlias", "View"))


def plain(catalyst: Catalyst, query: Node) -> Node:
    """An analysed query without names of subqueries and functions that stand for others."""
    return catalyst.replaced(catalyst.inline(query))


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
    once = "DISTINCT " if call.is_distinct else ""
    yield _Total(_count_of(number), f"COUNT({once}{given}){where}")
    if name != "count":
        yield _Total(_sum_of(number), f"SUM({once}{given}){where}")
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
        found = f"{total.extreme}({total.name}) FILTER (WHERE {_SIDE} <> {TAKEN})"
        return f"IF({_sum(_COUNT)} > 0, {found}, NULL)"
    return f"SUM(IF({_SIDE} = {TAKEN}, -{total.name}, {total.name}))"


def _may_be_gone(total: _Total) -> str:
    """Whether the extreme value of a group is retracted, and no new one stands in its place."""
    before, new, taken = (
        f"MAX({total.name}) FILTER (WHERE {_SIDE} = {side})" for side in (BEFORE, NEW, TAKEN)
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

"""Which results follow from totals of groups that are kept, whatever the query makes of these.

An aggregation is a level of a query. If what its rows change by can be told, because each comes
from one new record or because they fall into parts by keys, its totals are kept beside the chain,
with how many rows each group has. So rows may go, too: counts and sums become less, and a group
without rows is gone. Only the least and the greatest value of a group cannot be told where that one
goes. The query may choose among the groups and compute with their totals (`HAVING`, `AVG`,
`SUM(a) / COUNT(*)`), which concerns changed groups alone, or take all groups into account (`LIMIT`,
a further aggregation, a join of levels, a subquery that is a level itself). Source: Gupta, Mumick,
"Maintenance of Materialized Views" (self-maintenance with auxiliary views).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from odfbuild.sql.increments.affected_keys import is_plain, parts_of
from odfbuild.sql.increments.nodes import Node, Reader
from odfbuild.sql.increments.one_by_one import Additions, Rows
from odfbuild.sql.increments.parts import Parts
from odfbuild.sql.increments.plan_inputs import PlanInputs, Undivided, Views

AVERAGES = ("avg", "mean")
EXTREMES = ("min", "max")
NARROW = ("tinyint", "smallint", "int")
"""Integers whose averages are exact: Spark adds them as floating point numbers."""
_ABOVE = frozenset({"Project", "Filter", "Sort", "SubqueryAlias", "View"})
"""What handles each group alone."""


AnyNode = TypeVar("AnyNode", bound=Node)
Path = tuple[int, ...]
"""The way down a plan: which child, or counted from -1 downwards, which subquery."""


@dataclass(frozen=True, slots=True)
class Level:
    """An aggregation `grouped`, which stands in the plan at `paths`, each time the same.

    What its rows change by is told by `additions`, or by their `parts`.
    """

    grouped: Node
    paths: tuple[Path, ...]
    additions: Additions | None
    parts: Parts | None


@dataclass(frozen=True, slots=True)
class KeptLevels:
    """The levels that a plan follows from.

    `of_all`: it takes all groups into account. `reads_more`: beside groups, it reads inputs that
    have no new records.
    """

    levels: tuple[Level, ...]
    of_all: bool
    reads_more: bool


def kept_totals_of(
    reader: Reader,
    plan: AnyNode,
    views: Views,
    rows_of: Callable[[AnyNode], Node] = lambda plan: plan,
) -> KeptLevels | None:
    """The levels whose totals a plan follows from.

    `None`: the plan follows from more, or nobody can tell. It is an analysed one; `rows_of` gives
    the optimised form of the part that is grouped.
    """
    found = _Levels(reader, views, rows_of)
    try:
        found.look(plan, ())
    except Undivided:
        return None
    if not found.levels:
        return None
    return KeptLevels(tuple(found.levels), found.of_all, found.reads_more)


class _Levels(PlanInputs):
    """Looks for the topmost aggregations whose totals can be kept."""

    def __init__(self, reader: Reader, views: Views, rows_of: Callable[..., Node]) -> None:
        super().__init__(reader, views)
        self._rows_of = rows_of
        self.levels: list[Level] = []
        self.of_all = False
        self.reads_more = False

    def look(self, plan: Node, at: Path) -> None:
        """Find the levels of a plan at a path; `Undivided` where it reads changed records."""
        if self.is_static(plan):
            self.reads_more = True
            return
        if not all(map(self.is_static, self._reader.correlated_plans(plan))):
            raise Undivided("a subquery compares groups with records", plan, "")
        for number, inner in enumerate(self._reader.inner_plans(plan)):
            self.of_all |= not self.is_static(inner)
            self.look(inner, (*at, -1 - number))
        if plan.kind == "Aggregate":
            level = self._level(plan, at)
            if level is not None:
                self._add(level)
                return
        if not plan.children:
            raise Undivided("it reads records, not groups", plan, "")
        self.of_all |= plan.kind not in _ABOVE
        for number, child in enumerate(plan.children):
            self.look(child, (*at, number))

    def _add(self, level: Level) -> None:
        for number, each in enumerate(self.levels):
            if each.grouped == level.grouped:
                self.levels[number] = replace(each, paths=(*each.paths, *level.paths))
                return
        self.levels.append(level)

    def _level(self, grouped: Node, at: Path) -> Level | None:
        calls = calls_in(grouped)
        if not all(is_plain(each.full_type) for each in grouped.grouping):
            return None
        if not calls or not all(map(_adds_up, calls)):
            return None
        rows = Rows(self._reader, self._views)
        once = [call.function.children[0] for call in calls if call.is_distinct]
        try:
            rows.refuse_subqueries(grouped)
            whole = frozenset(rows.whole)
            below = self._rows_of(grouped.child)
            if not once and _come_one_by_one(rows, below):
                additions = Additions(below, None, frozenset(rows.whole))
                return Level(grouped, (at,), additions, None)
            parts = parts_of(self._reader, below, self._views, once)
        except Undivided:
            return None
        if any(c.function.function_name in EXTREMES for c in calls) and not _are_complete(parts):
            return None
        return Level(grouped, (at,), None, replace(parts, whole=parts.whole | whole))


def _are_complete(parts: Parts) -> bool:
    """Whether affected records never are some of those of a key.

    Else they give rows that the query does not give: as many before as after the step, which counts
    and sums do not notice, but one of them may have the least value.
    """
    readings = [each for space in parts.spaces for each in space]
    is_read_once = len({each.alias for each in readings}) == len(readings)
    return is_read_once and not any(c.length for each in readings for c in each.columns)


def _come_one_by_one(rows: Rows, plan: Node) -> bool:
    try:
        return rows.come_one_by_one(plan)
    except Undivided:
        return False


def calls_in(grouped: AnyNode) -> tuple[AnyNode, ...]:
    """The calls of aggregates in an aggregation, each meaning once."""
    found: list[AnyNode] = []
    for column in grouped.columns:
        for call in _calls(cast("AnyNode", column)):
            if not any(call.means(each) for each in found):
                found.append(call)
    return tuple(found)


def _calls(node: AnyNode) -> Iterator[AnyNode]:
    if node.kind == "AggregateExpression":
        yield node
    else:
        for each in node.children:
            yield from _calls(cast("AnyNode", each))


def _adds_up(call: Node) -> bool:
    """Whether a total over some rows and that over others tell the one over both, exactly.

    One of distinct values does where equal values are among the same rows.
    """
    name = call.function.function_name
    given = [each for each in call.function.children if each.kind != "Where"]
    if len(given) != 1:
        return False
    if name == "count":
        return True
    kind = given[0].full_type
    if name == "sum":
        return kind in (*NARROW, "bigint") or kind.startswith("decimal")
    if name in AVERAGES:
        return kind in NARROW or kind.startswith("decimal")
    return name in EXTREMES and is_plain(kind)


def located(reader: Reader, plan: AnyNode, path: Path) -> AnyNode:
    """The node at a path."""
    for step in path:
        below = plan.children if step >= 0 else [*reader.inner_plans(plan)]
        plan = cast("AnyNode", below[step if step >= 0 else -1 - step])
    return plan

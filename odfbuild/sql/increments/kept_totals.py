"""Which results follow from totals of groups that are kept, whatever the query makes of these.

A query may group rows that each come from one new record, and choose among the groups (HAVING), or
compute with their totals: `AVG`, `SUM(a) / COUNT(*)`, `CASE WHEN COUNT(*) > 3 …`. The totals of all
groups are then kept beside the chain, with how many rows each group has. So records may be
retracted, too: counts and sums become less, and a group without rows is gone. Only the least and
the greatest value of a group cannot be told where that one is retracted. Source: Gupta, Mumick,
"Maintenance of Materialized Views" (self-maintenance with auxiliary views).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar, cast

from odfbuild.sql.increments.affected_keys import is_plain
from odfbuild.sql.increments.nodes import Node, Reader
from odfbuild.sql.increments.one_by_one import Additions, Rows
from odfbuild.sql.increments.plan_inputs import Undivided, Views

AVERAGES = ("avg", "mean")
EXTREMES = ("min", "max")
NARROW = ("tinyint", "smallint", "int")
"""Integers whose averages are exact: Spark adds them as floating point numbers."""
_ABOVE = frozenset({"Project", "Filter", "Sort", "SubqueryAlias", "View"})


AnyNode = TypeVar("AnyNode", bound=Node)


def kept_totals_of(
    reader: Reader,
    plan: AnyNode,
    views: Views,
    rows_of: Callable[[AnyNode], Node] = lambda plan: plan,
) -> Additions | None:
    """What new records add to the totals that a plan follows from.

    `None`: the plan follows from more, or nobody can tell. It is an analysed one; `rows_of` gives
    the optimised form of the part that is grouped.
    """
    rows = Rows(reader, views)
    grouped = aggregation_in(plan)
    if grouped is None or not all(is_plain(each.full_type) for each in grouped.grouping):
        return None
    calls = calls_in(grouped)
    if not calls or not all(map(_adds_up, calls)):
        return None
    above: Node = plan
    try:
        rows.refuse_subqueries(grouped)
        while above is not grouped:
            rows.refuse_subqueries(above)
            above = above.child
        below = rows_of(cast("AnyNode", grouped.child))
        if not rows.come_one_by_one(below):
            return None
    except Undivided:
        return None
    return Additions(below, None, frozenset(rows.whole))


def aggregation_in(plan: AnyNode) -> AnyNode | None:
    """The aggregation whose groups a plan only filters and computes with, if there is one."""
    while plan.kind in _ABOVE:
        plan = cast("AnyNode", plan.child)
    return plan if plan.kind == "Aggregate" else None


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
    """Whether a total over some rows and that over others tell the one over both, exactly."""
    name = call.function.function_name
    given = [each for each in call.function.children if each.kind != "Where"]
    if call.is_distinct or len(given) != 1:
        return False
    if name == "count":
        return True
    kind = given[0].full_type
    if name == "sum":
        return kind in (*NARROW, "bigint") or kind.startswith("decimal")
    if name in AVERAGES:
        return kind in NARROW or kind.startswith("decimal")
    return name in EXTREMES and is_plain(kind)

"""Which results follow from the result so far, and that over the new records alone.

Where each row is made of one new record and of inputs that do not change, new records add rows. If
such rows are grouped, counts, sums, minima and maxima add up: the earlier record of a group and
that over its new rows make the one over both. So no earlier record of the inputs is read. This
holds as long as records are only appended: a group whose records are retracted may vanish, and no
total says so. Source: Gupta, Mumick, "Maintenance of Materialized Views" (self-maintainable
aggregates).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from odfbuild.sql.increments.nodes import Node, Reader, ids_of
from odfbuild.sql.increments.plan_inputs import (
    ROW_WISE,
    PlanInputs,
    Undivided,
    Views,
    made_of,
    place_of,
    sides,
)
from odfbuild.values import Value

_ADD_UP = {
    "count": "sum",
    "sum": "sum",
    "min": "min",
    "max": "max",
    "bit_and": "bit_and",
    "bit_or": "bit_or",
    "bit_xor": "bit_xor",
}
"""The functions of SQL that combine totals, by those that give them. `bool_and` and others that
Spark replaces are among them; `try_sum` forgets what it had when it overflows."""
_NESTED = ("struct", "array", "map", "variant")
"""Types that hold others, which chains may keep less of."""


class Totals(Value):
    """How records of one group become one: `functions` by the columns that are no `keys`.

    Groups differ in their keys.
    """

    keys: tuple[str, ...]
    functions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Additions:
    """The plan of `rows` that each come from one new record, and the `totals` of them, if any.

    Subqueries of either read inputs without new records as a `whole`.
    """

    rows: Node
    totals: Totals | None
    whole: frozenset[str]


def additions_of(reader: Reader, plan: Node, views: Views) -> Additions | None:
    """What new records add to the result of an optimised plan; `None`: more, or nobody can tell."""
    rows = Rows(reader, views)
    totals = _totals_of(plan, rows) if plan.kind == "Aggregate" else None
    if plan.kind == "Aggregate" and totals is None:
        return None
    below = plan if totals is None else plan.child
    try:
        rows.refuse_subqueries(plan)
        if not rows.come_one_by_one(below):
            return None
    except Undivided:
        return None
    return Additions(below, totals, frozenset(rows.whole))


def _totals_of(plan: Node, rows: Rows) -> Totals | None:
    keys, functions = [], {}
    shown = [(each.name, each.child if each.kind == "Alias" else each) for each in plan.columns]
    for name, made in shown:
        if made.full_type.startswith(_NESTED):
            return None
        if made.is_constant or any(made.means(each) for each in plan.grouping):
            keys.append(name)
        elif function := _combining(made):
            functions[name] = function
        else:
            return None
    # A group that the result does not name cannot be found again.
    if not all(any(made.means(each) for _, made in shown) for each in plan.grouping):
        return None
    if not all(rows.are_told_apart(plan.child, each) for each in plan.grouping):
        return None
    return Totals(tuple(keys), functions)


def _combining(made: Node) -> str | None:
    """The function that combines totals; sums of floating point depend on the order of rows."""
    if made.kind != "AggregateExpression" or made.is_distinct:
        return None
    name, kind = made.function.function_name, made.full_type
    if name == "sum" and kind != "bigint" and not kind.startswith("decimal"):
        return None
    return _ADD_UP.get(name)


class Rows(PlanInputs):
    """Asks whether the rows that are grouped come from new records one by one."""

    def are_told_apart(self, plan: Node, key: Node) -> bool:
        """Whether chains keep all of a key: they may keep milliseconds of times alone."""
        if not key.full_type.startswith("timestamp"):
            return True
        match key.kind:
            case "TruncTimestamp":
                unit = self._reader.constant(key.children[0]) or ""
                return unit.upper() not in ("", "MICROSECOND")
            case "Cast":
                return key.child.full_type == "date"
            case "AttributeReference":
                return self._column_is_told_apart(plan, key)
        return False

    def _column_is_told_apart(self, plan: Node, key: Node) -> bool:
        alias = self.input_of(plan)
        if alias is not None:
            names = {each.id: each.name for each in plan.output}
            return names.get(key.id) in self._views.millis[alias]
        match plan.kind:
            case "Project" | "Aggregate":
                made = made_of(plan.columns, key)
                return made is not None and self.are_told_apart(plan.child, made)
            case "Union":
                at = place_of(plan, key)
                return all(self.are_told_apart(each, each.output[at]) for each in plan.children)
        below = [each for each in plan.children if key.id in ids_of(each.output)]
        return len(below) == 1 and self.are_told_apart(below[0], key)

    def come_one_by_one(self, plan: Node) -> bool:
        """Whether each row of a plan is made of one new record, and of what does not change."""
        self.refuse_subqueries(plan)
        if self.is_static(plan):
            return False
        if self.input_of(plan) is not None:
            return True
        match plan.kind:
            case "Union":
                return all(map(self.come_one_by_one, plan.children))
            case "Join":
                for side, other, kinds in sides(plan):
                    if plan.join_type in kinds and self.is_static(other):
                        return self.come_one_by_one(side)
                return False
            case kind:
                return kind in ROW_WISE and self.come_one_by_one(plan.child)

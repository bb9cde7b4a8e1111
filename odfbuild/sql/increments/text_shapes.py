"""Nodes of plans as Spark's optimiser leaves them: filters below, projections in groupings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from odfbuild.sql.increments.text_expressions import references, substituted
from odfbuild.sql.increments.text_nodes import ABOVE, Origin, TextNode

HALF = ("LeftSemi", "LeftAnti")
"""Joins that give no column of the right side."""


def inner_of(columns: Sequence[TextNode]) -> list[TextNode]:
    """Plans of subqueries in the entries of a projection."""
    return [plan for each in columns for plan in each.inner]


def value_of(column: TextNode) -> TextNode:
    """What an entry of a projection is made of."""
    return column.child if column.kind == "Alias" else column


def shown(column: TextNode) -> TextNode:
    """The column that an entry of a projection gives."""
    if column.kind == "AttributeReference":
        return column
    return TextNode(kind="AttributeReference", id=column.id, name=column.name, type=column.type)


def project(columns: Sequence[TextNode], child: TextNode) -> TextNode:
    """A projection; one that only chooses among what is grouped becomes part of the grouping."""
    plan = TextNode(
        kind="Project",
        children=[child],
        columns=columns,
        output=[shown(each) for each in columns],
        inner=inner_of(columns),
    )
    if child.kind != "Aggregate":
        return plan
    made = {each.id: each for each in child.columns}
    chosen = []
    for each in columns:
        value = value_of(each)
        if value.kind == "AttributeReference" and value.id in made:
            below = made[value.id]
            value = value_of(below)
        elif not value.is_constant:
            return plan
        if each.kind == "Alias" or value.kind != "AttributeReference":
            value = replace(each, kind="Alias", children=[value], inner=value.inner)
        chosen.append(value)
    return replace(child, columns=chosen, output=plan.output, inner=inner_of(chosen))


def distinct(child: TextNode, place: Origin, *, repeated: bool = False) -> TextNode:
    """The records of a plan without equal ones, or with as many as a set operation repeats."""
    columns = list(child.output)
    is_key = [any(value_of(c).means(key) for c in child.columns) for key in child.grouping]
    if child.kind == "Aggregate" and not repeated and all(is_key):
        return child  # no two groups are equal
    made = TextNode(
        kind="Aggregate",
        children=[child],
        grouping=columns,
        columns=columns,
        output=columns,
        origin=place,
    )
    return TextNode(kind="Generate", children=[made], output=columns) if repeated else made


def filtered(condition: TextNode, child: TextNode) -> TextNode:
    """The records of a plan that meet a condition."""
    return TextNode(
        kind="Filter",
        children=[child],
        condition=condition,
        output=child.output,
        inner=condition.inner,
    )


def joined(
    left: TextNode,
    right: TextNode,
    kind: str,
    conditions: Sequence[TextNode],
    place: Origin,
    tag: str = "",
) -> TextNode:
    """Two plans, joined where all conditions hold."""
    if kind in HALF and left.kind == "Aggregate":
        keys = _ids_of_keys(left)
        asked = frozenset[int]().union(*map(references, conditions))
        if asked & {each.id for each in left.output} <= keys:
            # Groups that go have no other rows than those that go.
            pairs = [(shown(each), value_of(each)) for each in left.columns if each.id in keys]
            below = [substituted(each, pairs) for each in conditions]
            return replace(left, children=[joined(left.child, right, kind, below, place, ABOVE)])
    output = [*left.output] if kind in (*HALF, "ExistenceJoin") else [*left.output, *right.output]
    return TextNode(
        kind="Join",
        children=[left, right],
        join_type=kind,
        tag=tag,
        condition=_all(conditions),
        output=output,
        inner=inner_of(conditions),
        origin=place,
    )


def _all(conditions: Sequence[TextNode]) -> TextNode | None:
    found: TextNode | None = None
    for each in conditions:
        found = each if found is None else TextNode(kind="And", children=[found, each])
    return found


def pushed_down(condition: TextNode, plan: TextNode) -> TextNode:
    """A plan with a condition as far down as it can stand."""
    asked = references(condition)
    if plan.kind == "Filter":
        below = pushed_down(condition, plan.child)
        return replace(plan, children=[below], output=below.output)
    if plan.kind == "Join" and not condition.inner:
        left, right = ({each.id for each in side.output} for side in plan.children)
        kind = plan.join_type
        if asked <= left and kind not in ("RightOuter", "FullOuter"):
            return replace(plan, children=[pushed_down(condition, plan.left), plan.right])
        if asked <= right and kind in ("Inner", "Cross", "RightOuter"):
            return replace(plan, children=[plan.left, pushed_down(condition, plan.right)])
        if kind in ("Inner", "Cross"):
            before = [] if plan.condition is None else [plan.condition]
            return replace(plan, join_type="Inner", condition=_all([*before, condition]))
    if plan.kind == "Aggregate" and asked <= _ids_of_keys(plan):
        return replace(plan, children=[filtered(condition, plan.child)])
    return filtered(condition, plan)


def _ids_of_keys(plan: TextNode) -> frozenset[int]:
    return frozenset(
        each.id for each in plan.columns if any(value_of(each).means(key) for key in plan.grouping)
    )

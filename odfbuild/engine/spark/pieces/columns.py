"""Which columns of its inputs an optimised plan reads; pure, but for what Spark says of a plan."""

from __future__ import annotations

from odfbuild.engine.spark.internals.node import Node, ids_of

_NAMED = frozenset(
    {"Project", "Filter", "Join", "Aggregate", "Sort", "Window", "Generate", "Expand"}
)
"""Nodes that name each column of which they make anything; others read all below them."""
_PLANS = frozenset({"Exists", "ListQuery", "ScalarSubquery", "LateralSubquery"})
_INPUT = "MapInArrow"


def columns_read(plan: Node) -> frozenset[str]:
    """The names of all columns of inputs, which tasks give, on which the result may depend."""
    ids = set(ids_of(plan.output))
    inputs: list[Node] = []
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if node.kind == _INPUT:
            inputs.append(node)
            continue
        ids |= ids_of(node.references)
        if node.kind not in _NAMED:
            ids.update(*(ids_of(child.output) for child in node.children))
        for expression in node.expressions:
            for inner in _plans(expression):
                ids |= ids_of(inner.output)
                waiting.append(inner)
        waiting += node.children
    return frozenset(column.name for node in inputs for column in node.output if column.id in ids)


def _plans(expression: Node) -> list[Node]:
    """Plans within an expression."""
    found = [plan for child in expression.children for plan in _plans(child)]
    if expression.kind in _PLANS:
        found.append(expression.plan)
    return found

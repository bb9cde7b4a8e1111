"""Recognise queries whose results only grow, so that `stream` can append what is new.

Two shapes do: an aggregation over windows of event time, whose results are final when a watermark
passes the end of their window, and a join of inputs, where new records only make further pairs.
Pure: looks at analysed plans, runs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.queries.hidden_columns import is_input

_ABOVE = frozenset({"Project", "Filter", "SubqueryAlias", "View"})
_BELOW = frozenset({"Project", "Filter", "SubqueryAlias", "View", "Union", "Generate", "Expand"})
_JOINED = frozenset({"Project", "Filter", "SubqueryAlias", "View", "Generate", "Join"})


@dataclass(frozen=True, slots=True)
class Windowed:
    """An aggregation; its `grouping` by that number is a window, no longer than `length` (µs)."""

    grouping: int
    length: int | None


@dataclass(frozen=True, slots=True)
class Joined:
    """`plan` joins inputs, each of them once."""

    plan: Node


def shape_of(plan: Node, event_times: Mapping[str, str]) -> Windowed | Joined | None:
    """The shape of a query without subqueries in expressions and without references to CTEs.

    `event_times` are the names of the event time columns by input.
    """
    inputs = tuple(event_times)
    node = plan
    while node.kind in _ABOVE and not is_input(node, inputs):
        node = node.child
    if node.kind == "Aggregate":
        return _windowed(node, event_times)
    leaves = Counter(_leaves(plan, inputs, _JOINED))
    joins = [each for each in _nodes(plan, inputs) if each.kind == "Join"]
    if joins and None not in leaves and max(leaves.values()) == 1:
        return Joined(plan) if all(_is_inner(join) for join in joins) else None
    return None


def _windowed(aggregate: Node, event_times: Mapping[str, str]) -> Windowed | None:
    groupings = aggregate.grouping
    columns = [each for each in groupings if each.kind == "AttributeReference"]
    if any(column.name == "spark_grouping_id" for column in columns):
        return None  # a sum over all windows is never final
    if None in _leaves(aggregate.child, tuple(event_times), _BELOW):
        return None
    for number, window in enumerate(groupings):
        if not window.is_time_window:
            continue
        made = _definition(aggregate.child, window.id, tuple(event_times))
        if made is None:
            continue
        place, value = made
        source = _source(value)
        if source is not None and _is_event_time(place, source, event_times):
            return Windowed(number, _length(value))
    return None


def inputs_of(plan: Node, inputs: tuple[str, ...]) -> set[str]:
    """The inputs that a plan reads, in lower case; a transformation may list more."""
    return {node.view for node in _nodes(plan, inputs) if is_input(node, inputs)}


def stands_for(output: Node, grouping: Node) -> bool:
    """Whether an output column tells groups of `grouping` apart: itself, or a window's bound."""
    value = output.child if output.kind == "Alias" else output
    if value.means(grouping):
        return True
    if value.kind != "GetStructField" or not value.child.means(grouping):
        return False
    return grouping.is_time_window or grouping.is_session_window


def _leaves(plan: Node, inputs: tuple[str, ...], through: frozenset[str]) -> Iterator[str | None]:
    """The inputs that a plan reads, `None` for any node that is neither input nor in `through`."""
    for node in _nodes(plan, inputs):
        if is_input(node, inputs):
            yield node.view
        elif node.kind not in through:
            yield None


def _nodes(plan: Node, inputs: tuple[str, ...]) -> Iterator[Node]:
    """A plan and all below it, down to the inputs."""
    yield plan
    if not is_input(plan, inputs):
        for child in plan.children:
            yield from _nodes(child, inputs)


def _is_inner(join: Node) -> bool:
    return join.join_type in ("Inner", "Cross")


def _definition(plan: Node, id: int, inputs: tuple[str, ...]) -> tuple[Node, Node] | None:
    """Where a column is made, and of what: the node below, and the expression."""
    for node in _nodes(plan, inputs):
        if node.kind == "Project":
            rows = [node.columns]
        elif node.kind == "Expand":
            rows = node.projections
        else:
            continue
        outputs = node.output
        for number, column in enumerate(outputs):
            value = rows[0][number]
            if column.id != id or value.kind == "AttributeReference":
                continue
            return node.child, value.child if value.kind == "Alias" else value
    return None


def _is_event_time(plan: Node, id: int, event_times: Mapping[str, str]) -> bool:
    """Whether a column of `plan` is, in every record, the event time of the record's input."""
    inputs = tuple(event_times)
    outputs = plan.output
    at = next((n for n, column in enumerate(outputs) if column.id == id), None)
    if at is None:
        return False
    if is_input(plan, inputs):
        names = {alias.lower(): name.lower() for alias, name in event_times.items()}
        return outputs[at].name.lower() == names[plan.view]
    if plan.kind == "Union":
        children = plan.children
        ids = [child.output[at].id for child in children]
        return all(_is_event_time(*each, event_times) for each in zip(children, ids, strict=True))
    if plan.kind == "Project":
        value = plan.columns[at]
        value = value.child if value.kind == "Alias" else value
        if value.kind != "AttributeReference":
            return False
        id = value.id
    return _is_event_time(plan.child, id, event_times)


def _source(window: Node) -> int | None:
    """The column in whose time a window lies; `None` when it is computed from columns."""
    for node in _inside(window):
        if node.kind != "PreciseTimestampConversion" or node.type != "long":
            continue
        column = node.child
        column = column.child if column.kind == "Cast" else column
        return column.id if column.kind == "AttributeReference" else None
    return None


def _inside(expression: Node) -> Iterator[Node]:
    yield expression
    for child in expression.children:
        yield from _inside(child)


def _length(window: Node) -> int | None:
    """Microseconds from start to end: what is added to the start to get the end."""
    node = window.children[-1]
    while node.kind != "Add":
        children = node.children
        if len(children) != 1:
            return None
        node = children[0]
    right = node.right
    return right.number if right.kind == "Literal" else None

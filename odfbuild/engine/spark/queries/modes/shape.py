"""Recognise queries whose results only grow, so that `stream` can append what is new.

Two shapes do: an aggregation over windows of event time, whose results are final when a watermark
passes the end of their window, and a join of inputs, where new records only make further pairs.
Pure: looks at analysed plans, runs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from odfbuild.engine.spark.internals.catalyst import Node, items, name_of
from odfbuild.engine.spark.queries.hidden_columns import is_input, name_of_input

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
    while name_of(node) in _ABOVE and not is_input(node, inputs):
        node = node.child()
    if name_of(node) == "Aggregate":
        return _windowed(node, event_times)
    leaves = Counter(_leaves(plan, inputs, _JOINED))
    joins = [each for each in _nodes(plan, inputs) if name_of(each) == "Join"]
    if joins and None not in leaves and max(leaves.values()) == 1:
        return Joined(plan) if all(_is_inner(join) for join in joins) else None
    return None


def _windowed(aggregate: Node, event_times: Mapping[str, str]) -> Windowed | None:
    groupings = list(items(aggregate.groupingExpressions()))
    columns = [each for each in groupings if name_of(each) == "AttributeReference"]
    if any(str(column.name()) == "spark_grouping_id" for column in columns):
        return None  # a sum over all windows is never final
    if None in _leaves(aggregate.child(), tuple(event_times), _BELOW):
        return None
    for number, window in enumerate(groupings):
        if not is_time_window(window):
            continue
        made = _definition(aggregate.child(), window.exprId().id(), tuple(event_times))
        if made is None:
            continue
        place, value = made
        source = _source(value)
        if source is not None and _is_event_time(place, source, event_times):
            return Windowed(number, _length(value))
    return None


def is_time_window(attribute: Node) -> bool:
    """Whether a column is made by `window(...)`: all its values are equally long."""
    return name_of(attribute) == "AttributeReference" and bool(
        attribute.metadata().contains("spark.timeWindow")
    )


def is_session_window(attribute: Node) -> bool:
    """Whether a column is made by `session_window(...)`: those of a key do not overlap."""
    return name_of(attribute) == "AttributeReference" and bool(
        attribute.metadata().contains("spark.sessionWindow")
    )


def stands_for(output: Node, grouping: Node) -> bool:
    """Whether an output column tells groups of `grouping` apart: itself, or a window's bound."""
    value = output.child() if name_of(output) == "Alias" else output
    if value.semanticEquals(grouping):
        return True
    if name_of(value) != "GetStructField" or not value.child().semanticEquals(grouping):
        return False
    return is_time_window(grouping) or is_session_window(grouping)


def _leaves(plan: Node, inputs: tuple[str, ...], through: frozenset[str]) -> Iterator[str | None]:
    """The inputs that a plan reads, `None` for any node that is neither input nor in `through`."""
    for node in _nodes(plan, inputs):
        if is_input(node, inputs):
            yield name_of_input(node)
        elif name_of(node) not in through:
            yield None


def _nodes(plan: Node, inputs: tuple[str, ...]) -> Iterator[Node]:
    """A plan and all below it, down to the inputs."""
    yield plan
    if not is_input(plan, inputs):
        for child in items(plan.children()):
            yield from _nodes(child, inputs)


def _is_inner(join: Node) -> bool:
    return str(join.joinType()) in ("Inner", "Cross")


def _definition(plan: Node, id: int, inputs: tuple[str, ...]) -> tuple[Node, Node] | None:
    """Where a column is made, and of what: the node below, and the expression."""
    for node in _nodes(plan, inputs):
        if name_of(node) == "Project":
            rows = [list(items(node.projectList()))]
        elif name_of(node) == "Expand":
            rows = [list(items(row)) for row in items(node.projections())]
        else:
            continue
        outputs = list(items(node.output()))
        for number, column in enumerate(outputs):
            value = rows[0][number]
            if column.exprId().id() != id or name_of(value) == "AttributeReference":
                continue
            return node.child(), value.child() if name_of(value) == "Alias" else value
    return None


def _is_event_time(plan: Node, id: int, event_times: Mapping[str, str]) -> bool:
    """Whether a column of `plan` is, in every record, the event time of the record's input."""
    inputs = tuple(event_times)
    outputs = list(items(plan.output()))
    at = next((n for n, column in enumerate(outputs) if column.exprId().id() == id), None)
    if at is None:
        return False
    if is_input(plan, inputs):
        names = {alias.lower(): name.lower() for alias, name in event_times.items()}
        return str(outputs[at].name()).lower() == names[name_of_input(plan)]
    if name_of(plan) == "Union":
        children = list(items(plan.children()))
        ids = [list(items(child.output()))[at].exprId().id() for child in children]
        return all(_is_event_time(*each, event_times) for each in zip(children, ids, strict=True))
    if name_of(plan) == "Project":
        value = list(items(plan.projectList()))[at]
        value = value.child() if name_of(value) == "Alias" else value
        if name_of(value) != "AttributeReference":
            return False
        id = value.exprId().id()
    return _is_event_time(plan.child(), id, event_times)


def _source(window: Node) -> int | None:
    """The column in whose time a window lies; `None` when it is computed from columns."""
    for node in _inside(window):
        if name_of(node) != "PreciseTimestampConversion" or name_of(node.dataType()) != "LongType":
            continue
        column = node.child()
        column = column.child() if name_of(column) == "Cast" else column
        return column.exprId().id() if name_of(column) == "AttributeReference" else None
    return None


def _inside(expression: Node) -> Iterator[Node]:
    yield expression
    for child in items(expression.children()):
        yield from _inside(child)


def _length(window: Node) -> int | None:
    """Microseconds from start to end: what is added to the start to get the end."""
    node = list(items(window.children()))[-1]
    while name_of(node) != "Add":
        children = list(items(node.children()))
        if len(children) != 1:
            return None
        node = children[0]
    right = node.right()
    return int(right.value()) if name_of(right) == "Literal" else None

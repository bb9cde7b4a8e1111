"""The maximum distance in event time between joined records, from the join conditions.

It only reduces what is read: a condition that is not understood gives no bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from odfbuild.engine.event_times import Times
from odfbuild.engine.spark.internals.catalyst import Catalyst
from odfbuild.engine.spark.internals.node import Node
from odfbuild.engine.spark.queries.hidden_columns import is_input

Column = tuple[str, int]
"""An input's event time, plus milliseconds."""

_INFINITE = float("inf")


@dataclass(slots=True)
class Bounds:
    """`latest[a, b]`: how many milliseconds `b` is behind `a` at most."""

    latest: dict[tuple[str, str], float] = field(default_factory=dict)

    def reach(self, fresh: str, other: str, span: Times) -> Times:
        """Where records of `other` lie that may be joined with records of `fresh` in `span`."""
        a, b = fresh.lower(), other.lower()
        return Times(
            span.first - self.latest.get((b, a), _INFINITE),
            span.last + self.latest.get((a, b), _INFINITE),
        )


def bounds_of(catalyst: Catalyst, plan: Node, event_times: Mapping[str, str]) -> Bounds:
    """The bounds that the conditions of inner joins and filters in `plan` set."""
    bounds = Bounds()
    inputs = tuple(event_times)
    columns = dict(_event_times(plan, event_times))
    for condition in _conditions(catalyst, plan, inputs):
        kind = condition.kind
        if kind not in ("GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual"):
            continue
        low = _shifted(catalyst, condition.left, columns)
        high = _shifted(catalyst, condition.right, columns)
        if kind.startswith("Greater"):
            low, high = high, low
        if low is None or high is None or low[0] == high[0]:
            continue
        # low + x <= high + y: low is at most y - x behind high.
        pair = (high[0], low[0])
        distance = high[1] - low[1]
        bounds.latest[pair] = min(bounds.latest.get(pair, _INFINITE), distance)
    return bounds


def _event_times(plan: Node, event_times: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Ids of all columns that pass on an input's event time, with the input in lower case."""
    names = {alias.lower(): name.lower() for alias, name in event_times.items()}
    known: dict[int, str] = {}
    for node in _bottom_up(plan, tuple(event_times)):
        if is_input(node, tuple(event_times)):
            alias = node.view
            for column in node.output:
                if column.name.lower() == names[alias]:
                    known[column.id] = alias
        elif node.kind == "Project":
            for each in node.columns:
                if each.kind == "Alias" and each.child.kind == "AttributeReference":
                    source = known.get(each.child.id)
                    if source is not None:
                        known[each.id] = source
    yield from known.items()


def _bottom_up(plan: Node, inputs: tuple[str, ...]) -> Iterator[Node]:
    if not is_input(plan, inputs):
        for child in plan.children:
            yield from _bottom_up(child, inputs)
    yield plan


def _conditions(catalyst: Catalyst, plan: Node, inputs: tuple[str, ...]) -> Iterator[Node]:
    for node in _bottom_up(plan, inputs):
        condition = node.condition if node.kind in ("Filter", "Join") else None
        if condition is not None:
            yield from _conjuncts(catalyst, condition)


def _conjuncts(catalyst: Catalyst, condition: Node) -> Iterator[Node]:
    replaced = catalyst.replacement(condition)
    if replaced is not None:
        yield from _conjuncts(catalyst, replaced)
    elif condition.kind == "And":
        yield from _conjuncts(catalyst, condition.left)
        yield from _conjuncts(catalyst, condition.right)
    else:
        yield condition


def _shifted(catalyst: Catalyst, value: Node, columns: Mapping[int, str]) -> Column | None:
    """An event time plus or minus a constant interval."""
    value = catalyst.replacement(value) or value
    kind = value.kind
    if kind == "AttributeReference":
        source = columns.get(value.id)
        return None if source is None else (source, 0)
    if kind == "Cast" and value.type == "timestamp":
        return _shifted(catalyst, value.child, columns)
    children = value.children
    if kind == "TimestampAddInterval" and len(children) == 2:
        start, shift = _shifted(catalyst, children[0], columns), _interval(children[1])
        return None if start is None or shift is None else (start[0], start[1] + shift)
    return None


def _interval(value: Node) -> int | None:
    """Milliseconds of a constant interval of days to seconds."""
    negative = value.kind == "UnaryMinus"
    micros = (value.child if negative else value).interval
    if micros is None:
        return None
    return (-micros if negative else micros) // 1000

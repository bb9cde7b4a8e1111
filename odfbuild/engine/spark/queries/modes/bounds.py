"""The maximum distance in event time between joined records, from the join conditions.

It only reduces what is read: a condition that is not understood gives no bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from odfbuild.engine.spark.internals.catalyst import Catalyst, Node, items, name_of
from odfbuild.engine.spark.queries.hidden_columns import is_input, name_of_input
from odfbuild.engine.spark.queries.modes.times import Times

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
        kind = name_of(condition)
        if kind not in ("GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual"):
            continue
        low = _shifted(catalyst, condition.left(), columns)
        high = _shifted(catalyst, condition.right(), columns)
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
            alias = name_of_input(node)
            for column in items(node.output()):
                if str(column.name()).lower() == names[alias]:
                    known[column.exprId().id()] = alias
        elif name_of(node) == "Project":
            for each in items(node.projectList()):
                if name_of(each) == "Alias" and name_of(each.child()) == "AttributeReference":
                    source = known.get(each.child().exprId().id())
                    if source is not None:
                        known[each.exprId().id()] = source
    yield from known.items()


def _bottom_up(plan: Node, inputs: tuple[str, ...]) -> Iterator[Node]:
    if not is_input(plan, inputs):
        for child in items(plan.children()):
            yield from _bottom_up(child, inputs)
    yield plan


def _conditions(catalyst: Catalyst, plan: Node, inputs: tuple[str, ...]) -> Iterator[Node]:
    for node in _bottom_up(plan, inputs):
        if name_of(node) == "Filter":
            yield from _conjuncts(catalyst, node.condition())
        elif name_of(node) == "Join" and node.condition().isDefined():
            yield from _conjuncts(catalyst, node.condition().get())


def _conjuncts(catalyst: Catalyst, condition: Node) -> Iterator[Node]:
    replaced = catalyst.replacement(condition)
    if replaced is not None:
        yield from _conjuncts(catalyst, replaced)
    elif name_of(condition) == "And":
        yield from _conjuncts(catalyst, condition.left())
        yield from _conjuncts(catalyst, condition.right())
    else:
        yield condition


def _shifted(catalyst: Catalyst, value: Node, columns: Mapping[int, str]) -> Column | None:
    """An event time plus or minus a constant interval."""
    value = catalyst.replacement(value) or value
    kind = name_of(value)
    if kind == "AttributeReference":
        source = columns.get(value.exprId().id())
        return None if source is None else (source, 0)
    if kind == "Cast" and str(value.dataType().typeName()) == "timestamp":
        return _shifted(catalyst, value.child(), columns)
    children = list(items(value.children()))
    if kind in ("TimestampAddInterval", "TimeAdd") and len(children) == 2:
        start, shift = _shifted(catalyst, children[0], columns), _interval(children[1])
        return None if start is None or shift is None else (start[0], start[1] + shift)
    return None


def _interval(value: Node) -> int | None:
    """Milliseconds of a constant interval of days to seconds."""
    negative = name_of(value) == "UnaryMinus"
    literal = next(items(value.children())) if negative else value
    if not literal.foldable():
        return None
    if name_of(literal.dataType()) != "DayTimeIntervalType":
        return None
    micros = int(literal.eval(None))
    return (-micros if negative else micros) // 1000

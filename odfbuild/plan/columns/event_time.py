"""Whether records of a result are late only where records of its inputs are, told by the query.

A record is late if its event time lies before the watermark that held when it came. A query that
gives records the event time of what they are made of makes no late record of records in time: one
that takes the time as it is, or joins records and takes the latest of their times. Judged on the
safe side: what is not understood counts as a query that may make late records of any.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from math import gcd
from typing import TYPE_CHECKING

from odfbuild.engine.event_windows import EventWindows, windows_of
from odfbuild.odf.model import TransformSql
from odfbuild.sql.columns.of_query import Column, Columns, Reader, Sources, Within
from odfbuild.sql.forecast import Steps, steps_of, window_call
from odfbuild.sql.query_text import is_call

if TYPE_CHECKING:
    from sqlglot import exp

_NAME = "event_time"


def keeps_event_time(transform: TransformSql, inputs: Collection[str]) -> bool:
    """Whether a transformation without groups, over `inputs`, makes no late record of others."""
    return _keep(steps_of(transform) or (), frozenset(each.lower() for each in inputs))


def groups_event_time(transform: TransformSql, inputs: Collection[str]) -> bool:
    """Whether a transformation by windows groups by the event time of its inputs as it is."""
    kept = frozenset(each.lower() for each in inputs)
    return _keep(steps_of(transform) or (), kept, by_windows=True)


def comes_in_time(transform: TransformSql, readers: Collection[EventWindows | None]) -> bool:
    """Whether the records of a transformation by windows are in time for windows that read them.

    A record is appended when the watermark passes the end of its window. It is in time if its event
    time is that end, or the beginning, and none of `readers` ends within the window.
    """
    own, call = windows_of(transform), window_call(transform)
    bound = _bound(call) if call is not None else None
    if own is None or bound is None:
        return False
    return bound == "end" or all(
        each is not None and not _ends_within(own, each) for each in readers
    )


def _bound(window: exp.Anonymous) -> str | None:
    """`start` or `end`, which of a window's bounds is the event time of the query at the top."""
    from sqlglot import exp

    top = window.root()
    named = [each for each in top.find_all(exp.Alias) if each.alias.lower() == _NAME]
    value = named[0].this if len(named) == 1 and window.parent_select is top else None
    name = ""
    if isinstance(value, exp.Column) and value.table.lower() == "window":
        name = value.name.lower()
    elif isinstance(value, exp.Dot) and is_call(value.this, "window"):
        name = value.expression.name.lower()
    return name if name in ("start", "end") else None


def _ends_within(own: EventWindows, reader: EventWindows) -> bool:
    """Whether a window of `reader` ends behind the start of one of `own`, and before its end."""
    apart = gcd(own.slide, reader.slide)
    behind = (reader.start + reader.length - own.start) % apart
    return (behind or apart) < own.length


@lru_cache(maxsize=1_000)
def _keep(steps: Steps, inputs: frozenset[str], *, by_windows: bool = False) -> bool:
    from odfbuild.sql.parsed import parsed

    reader = _Times(dict.fromkeys(inputs, _KEPT), meanings=False)
    reader.by_windows = by_windows
    columns: Columns | None = None
    for query, alias in steps:
        tree = parsed(query)
        if tree is None:
            return False
        columns = reader.step(tree, alias)
    return columns is not None


_KEPT: Columns = (Column(_NAME, None),)
"""All that is known of a relation that keeps event times; of others nothing is."""


class _Times(Reader):
    """Tells which relations keep event times; with `by_windows` those that group by them do."""

    by_windows = False

    def selected(self, node: exp.Select, sources: Sources, within: Within) -> Columns | None:
        """See `Reader.selected`."""
        given, joins = node.args.get("from_"), node.args.get("joins") or []
        names = [each.this.alias_or_name.lower() for each in (given, *joins) if each is not None]
        if given is None or any(sources.tables[name] != _KEPT for name in names):
            return None
        group = node.args.get("group")
        if self.by_windows and group is not None:
            windows = [each for each in group.walk() if is_call(each, "window")]
            is_one = len(windows) == 1 and not joins
            return _KEPT if is_one and _relation(windows[0].expressions[0], names) else None
        return _KEPT if _selects(node, names) else None

    def united(self, node: exp.SetOperation, left: Columns, right: Columns) -> Columns | None:
        """See `Reader.united`."""
        from sqlglot import exp

        place = _place(node.left)
        is_same = isinstance(node, exp.Union) and place is not None and place == _place(node.right)
        return left if is_same else None


def _place(query: exp.Expression) -> int | None:
    """Where the event time stands in a list of columns, -1 where it is one of `*`."""
    from sqlglot import exp

    while isinstance(query, exp.Subquery | exp.SetOperation):
        query = query.this
    names = [each.alias_or_name.lower() for each in query.selects]
    stars = [n for n, each in enumerate(query.selects) if each.is_star]
    if _NAME in names and not (stars and stars[0] < names.index(_NAME)):
        return names.index(_NAME)
    return -1 if stars == [0] and _NAME not in names else None


def _selects(select: exp.Select, names: list[str]) -> bool:
    """Whether a SELECT keeps the event times of the relations that it reads, by name."""
    joins = select.args.get("joins") or []
    found = [each for each in select.selects if each.alias_or_name.lower() == _NAME]
    if not found:
        stars = [each for each in select.selects if each.is_star]
        return not joins and len(stars) == 1 and _NAME not in stars[0].sql().lower()
    value = found[0].unalias() if len(found) == 1 else None
    if value is not None and is_call(value, "greatest"):
        return {_relation(each, names) for each in value.expressions} == set(names)
    one = _relation(value, names)
    if one is None or not joins:
        return one is not None
    conditions = [each.args["on"] for each in joins if each.args.get("on")]
    conditions += [select.args["where"].this] if select.args.get("where") else []
    parts = [part for each in conditions for part in _parts(each)]
    return {one, *_earlier(one, parts, names)} == set(names)


def _relation(value: exp.Expression | None, names: list[str]) -> str | None:
    """The relation whose event time an expression is, as it is."""
    from sqlglot import exp

    if not isinstance(value, exp.Column) or value.name.lower() != _NAME:
        return None
    table = value.table.lower()
    if not table:
        return names[0] if len(names) == 1 else None
    return table if table in names else None


def _parts(condition: exp.Expression) -> Iterator[exp.Expression]:
    from sqlglot import exp

    condition = condition.unnest()
    if isinstance(condition, exp.And):
        yield from _parts(condition.left)
        yield from _parts(condition.right)
    else:
        yield condition


def _earlier(one: str, parts: list[exp.Expression], names: list[str]) -> Iterator[str]:
    """Relations whose event time is not behind that of `one` where all `parts` hold."""
    from sqlglot import exp

    for part in parts:
        match part:
            case exp.Between():
                pairs = [(part.this, part.args["low"]), (part.args["high"], part.this)]
            case exp.GTE() | exp.GT():
                pairs = [(part.left, part.right)]
            case exp.LTE() | exp.LT():
                pairs = [(part.right, part.left)]
            case exp.EQ():
                pairs = [(part.left, part.right), (part.right, part.left)]
            case _:
                continue
        for later, earlier in pairs:
            relation = _relation(earlier, names)
            if _relation(later, names) == one and relation is not None:
                yield relation

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
from odfbuild.engine.forecast import Steps, steps_of, window_call
from odfbuild.engine.query_text import is_call
from odfbuild.odf.model import TransformSql

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
    from odfbuild.engine.parsed import parsed

    keeping = set(inputs)
    found = False
    for number, (query, alias) in enumerate(steps, 1):
        tree = parsed(query)
        judge = _groups if by_windows and number == len(steps) else _keeps
        found = tree is not None and judge(tree, frozenset(keeping))
        if alias is not None:
            keeping -= {alias.lower()}
            keeping |= {alias.lower()} if found else set()
    return found


def _keeps(tree: exp.Expression, keeping: frozenset[str]) -> bool:
    """Whether a query keeps event times, over relations of which those `keeping` do."""
    from sqlglot import exp

    if isinstance(tree, exp.Subquery):
        return isinstance(tree.this, exp.Query) and _keeps(tree.this, keeping)
    keeping = _with_ctes(tree, keeping)
    if isinstance(tree, exp.Union):
        branches = list(_branches(tree))
        places = {_place(each) for each in branches}
        return len(places) == 1 and None not in places and all(_keeps(b, keeping) for b in branches)
    return isinstance(tree, exp.Select) and _selects(tree, keeping)


def _groups(tree: exp.Expression, keeping: frozenset[str]) -> bool:
    """Whether the windows of a query are of event times, over relations `keeping` them."""
    from sqlglot import exp

    keeping = _with_ctes(tree, keeping)
    given = tree.args.get("from_")
    if not isinstance(tree, exp.Select) or given is None or tree.args.get("joins"):
        return False
    group = tree.args.get("group")
    windows = [each for each in group.walk() if is_call(each, "window")] if group else []
    names = [given.this.alias_or_name.lower()]
    return (
        len(windows) == 1
        and _relation(windows[0].expressions[0], names) is not None
        and _source_keeps(given.this, keeping)
    )


def _with_ctes(tree: exp.Expression, keeping: frozenset[str]) -> frozenset[str]:
    for cte in tree.args["with_"].expressions if tree.args.get("with_") else ():
        name = frozenset([cte.alias.lower()])
        keeping = keeping | name if _keeps(cte.this, keeping) else keeping - name
    return keeping


def _branches(tree: exp.Expression) -> Iterator[exp.Expression]:
    from sqlglot import exp

    if isinstance(tree, exp.Union):
        yield from _branches(tree.this)
        yield from _branches(tree.expression)
    elif isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.Query):
        yield from _branches(tree.this)
    else:
        yield tree


def _place(select: exp.Expression) -> int | None:
    """Where the event time stands in a list of columns, -1 where it is one of `*`."""
    if not hasattr(select, "selects"):
        return None
    names = [each.alias_or_name.lower() for each in select.selects]
    stars = [n for n, each in enumerate(select.selects) if each.is_star]
    if _NAME in names and not (stars and stars[0] < names.index(_NAME)):
        return names.index(_NAME)
    return -1 if stars == [0] and _NAME not in names else None


def _selects(select: exp.Select, keeping: frozenset[str]) -> bool:

    joins = select.args.get("joins") or []
    given = select.args.get("from_")
    if given is None:
        return False
    sources = [given.this, *(each.this for each in joins)]
    if not all(_source_keeps(each, keeping) for each in sources):
        return False
    names = [each.alias_or_name.lower() for each in sources]
    found = [each for each in select.selects if each.alias_or_name.lower() == _NAME]
    if not found:
        stars = [each for each in select.selects if each.is_star]
        return not joins and len(stars) == 1 and _NAME not in stars[0].sql().lower()
    value = found[0].unalias() if len(found) == 1 else None
    if value is not None and is_call(value, "greatest"):
        return {_relation(each, names) for each in value.expressions} == set(names)
    one = _relation(value, names)
    if one is None:
        return False
    if not joins:
        return True
    conditions = [each.args["on"] for each in joins if each.args.get("on")]
    conditions += [select.args["where"].this] if select.args.get("where") else []
    parts = [part for each in conditions for part in _parts(each)]
    return {one, *_earlier(one, parts, names)} == set(names)


def _source_keeps(source: exp.Expression, keeping: frozenset[str]) -> bool:
    from sqlglot import exp

    if isinstance(source, exp.Table):
        plain = not any(source.args.get(each) for each in ("joins", "laterals", "db"))
        return plain and source.name.lower() in keeping
    return isinstance(source, exp.Subquery) and _keeps(source, keeping)


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

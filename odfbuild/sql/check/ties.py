"""Window functions that tell rows apart which tie in their ORDER BY, where the text alone shows it.

Looks at a SELECT over one dataset, at the top or in the FROM of the query at the top; the rest is
left to the engine (`engine/spark/queries/ties.py`), which knows where every column comes from.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from odfbuild.errors import Code
from odfbuild.sql.check.select import Select, names_in

_NAMES = "row_number lag lead ntile nth_value first_value last_value first last any_value"
_BOUND = frozenset(_NAMES.split())
"""Functions that are ambiguous where the ORDER BY of their window has ties."""
_MORE = ("joins", "laterals", "group", "distinct", "pivots", "windows", "connect", "match")


def check_ties(select: Select, offset: str) -> None:
    """Tell of windows whose order leaves open which row comes first.

    `offset` is the column in which no two records agree.
    """
    names = _columns_of_one_input(select, offset)
    used = _used(select, names) if names else None
    if not names or used is None:
        return
    for _, part in select.own():
        if not isinstance(part, exp.Window) or not _is_bound(part):
            continue
        given = _given(part)
        if given is None or offset in given:
            continue
        missing = [name for name in names if name in (used | names_in(part.this)) - given]
        if missing:
            order = [each.sql("spark") for each in part.args["order"].expressions]
            function = next(part.find_all(exp.Anonymous)).name.lower()
            select.tell(
                Code.ORDER_MATTERS,
                f"{function}() OVER is ambiguous where its ORDER BY has ties",
                f"name every column that is used: ORDER BY {', '.join([*order, *missing])}",
                part.this,
            )


def _columns_of_one_input(select: Select, offset: str) -> list[str]:
    """The names of all columns of the one dataset that is read; none where more is read."""
    if any(select.node.args.get(each) for each in _MORE) or select.within.outer:
        return []
    source = select.node.args.get("from_")
    if source is None or not isinstance(source.this, exp.Table) or len(select.sources.tables) != 1:
        return []
    (columns,) = select.sources.tables.values()
    names = [each.name.lower() for each in columns or ()]
    return names if offset in names else []


def _used(select: Select, names: list[str]) -> frozenset[str] | None:
    """The columns that the result depends on, windows aside; `None` where that cannot be told."""
    node, around = select.node, select.node.parent
    wanted: frozenset[str] | None = None
    if isinstance(around, exp.Subquery) and isinstance(around.parent, exp.From):
        outer = around.parent.parent
        if not isinstance(outer, exp.Select) or outer.parent or outer.args.get("joins"):
            return None
        wanted = None if any(each.is_star for each in outer.expressions) else _beside(outer, node)
    elif around is not None:
        return None
    used: set[str] = set()
    for item in node.expressions:
        if item.is_star:
            if any(item.find(exp.Star).args.values()):  # EXCEPT and the like
                return None
            used.update(names if wanted is None else wanted.intersection(names))
        elif wanted is None or item.alias_or_name.lower() in wanted:
            used.update(_without_windows(item))
    return frozenset(used)


def _beside(outer: exp.Expression, inner: exp.Expression) -> frozenset[str]:
    """The names that a query uses outside of the one inside."""
    return frozenset(
        each.name.lower()
        for each in outer.walk(prune=lambda part: part is inner)
        if isinstance(each, exp.Column)
    )


def _without_windows(item: exp.Expression) -> Iterator[str]:
    for each in item.walk(prune=lambda part: isinstance(part, exp.Window)):
        if isinstance(each, exp.Column):
            yield each.name.lower()


def _is_bound(window: exp.Window) -> bool:
    call = window.this
    while isinstance(call, exp.IgnoreNulls | exp.RespectNulls):
        call = call.this
    is_known = isinstance(call, exp.Anonymous) and call.name.lower() in _BOUND
    return is_known and window.args.get("order") is not None and not window.alias


def _given(window: exp.Window) -> frozenset[str] | None:
    """The columns in which rows that tie agree; `None` where they are not plain columns."""
    parts = [*(window.args.get("partition_by") or ())]
    parts += [each.this for each in window.args["order"].expressions]
    if not all(isinstance(each, exp.Column) for each in parts):
        return None
    return frozenset(each.name.lower() for each in parts)

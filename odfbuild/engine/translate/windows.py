"""Group windows of Flink as Spark's `window`.

Two forms become one. `GROUP BY TUMBLE(time, INTERVAL …)` with `TUMBLE_START(…)` and the like beside
it, and the table function `TABLE(TUMBLE(TABLE t, DESCRIPTOR(time), INTERVAL …))` whose columns
`window_start`, `window_end` and `window_time` are grouped by. In all of them windows begin at
multiples of their length since 1970 and are final when the watermark passes their end; those of
RisingWave change until then, which a result that is only appended to cannot tell. Source: Apache
Flink, "Group Window Aggregation", "Windowing table-valued functions".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

Refuse = Callable[[exp.Expression, str], None]

_SHAPES = ("TUMBLE", "HOP")
_COLUMNS = ("window_start", "window_end", "window_time")
_PARTS = {"START": "start", "END": "end", "ROWTIME": "time"}
_UNITS = frozenset({"SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MILLISECOND"})
_WAY_OUT = "Spark's own form is GROUP BY window(time, '1 hour')"
_UNKNOWN = frozenset({"SESSION", "CUMULATE"})


def to_spark_windows(tree: exp.Expression, engine: str, refuse: Refuse) -> None:
    """Put windows of `engine` in Spark's terms, in place; `refuse` is told of what cannot be."""
    if engine == "flink":
        for select in list(tree.find_all(exp.Select)):
            _functions(select, refuse)
            _tables(select, refuse)
    for node in tree.find_all(exp.Anonymous):
        name = node.name.upper()
        if name in (*_SHAPES, *_UNKNOWN, "DESCRIPTOR") or name.partition("_")[0] in _UNKNOWN:
            refuse(node, f"{name} of {engine} has no translation here: {_WAY_OUT}")


# --- GROUP BY TUMBLE(…) ---


def _functions(select: exp.Select, refuse: Refuse) -> None:
    group = select.args.get("group")
    found = [each for each in (group.expressions if group else ()) if _shape(each)]
    if not found:
        return
    if len(found) > 1:
        refuse(found[1], "a query groups by one window")
        return
    call = found[0]
    shape, arguments = call.name.upper(), call.expressions
    window = _window(shape, arguments[0], arguments[1:], refuse)
    if window is None:
        return
    wanted = [each.sql() for each in arguments]
    for node in list(_of(select, exp.Anonymous)):
        head, _, part = node.name.upper().partition("_")
        if head != shape or part not in _PARTS:
            continue
        if [each.sql() for each in node.expressions] != wanted:
            refuse(node, f"{node.name}() is of another window than the one that is grouped by")
            return
        node.replace(_part(_PARTS[part]))
    call.replace(window)


def _shape(node: exp.Expression) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() in _SHAPES


# --- TABLE(TUMBLE(…)) ---


def _tables(select: exp.Select, refuse: Refuse) -> None:
    source = select.args.get("from_")
    table = source.this if source else None
    call = _table_call(table)
    if table is None or call is None:
        return
    arguments = call.expressions
    if len(arguments) < 3 or not isinstance(arguments[0], exp.Column):
        refuse(call, "write TUMBLE(TABLE t, DESCRIPTOR(time), INTERVAL …), in this order")
        return
    name, time = arguments[0], arguments[1]
    if isinstance(time, exp.Anonymous) and time.name.upper() == "DESCRIPTOR":
        time = time.expressions[0]
    group = select.args.get("group")
    grouped = {e.name: e for e in (group.expressions if group else ()) if _is_column(e)}
    if not {"window_start", "window_end"} <= grouped.keys():
        refuse(call, "group by window_start, window_end: windows without that have no translation")
        return
    window = _window(call.name.upper(), time, arguments[2:], refuse)
    if window is None or group is None:
        return
    rest = [each for each in group.expressions if each not in grouped.values()]
    group.set("expressions", [window, *rest])
    for node in list(_of(select, exp.Column)):
        if node.name in _COLUMNS and node.find_ancestor(exp.Group) is None:
            part = _part(node.name.removeprefix("window_"))
            is_named = isinstance(node.parent, exp.Alias) or node.parent is not select
            node.replace(part if is_named else exp.alias_(part, node.name))
    parts = [each.copy() for each in name.parts]
    alias = table.args.get("alias")
    fields = ("this", "db", "catalog")
    named = dict(zip(fields, reversed(parts), strict=False))
    table.replace(exp.Table(**named, alias=alias))


def _table_call(table: exp.Expression | None) -> exp.Anonymous | None:
    """The window function that a table is made by."""
    node = table.this if isinstance(table, exp.Table) else None
    if isinstance(node, exp.Anonymous) and node.name.upper() == "TABLE" and node.expressions:
        node = node.expressions[0]
    return node if isinstance(node, exp.Anonymous) and _shape(node) else None


def _is_column(node: exp.Expression) -> bool:
    return isinstance(node, exp.Column) and node.name in _COLUMNS


# --- Both ---


def _of(select: exp.Select, kind: type[exp.Expression]) -> Iterator[exp.Expression]:
    """Nodes of a query that are not those of a query in it."""
    for node in select.find_all(kind):
        if node.find_ancestor(exp.Select) is select:
            yield node


def _window(
    shape: str, time: exp.Expression, lengths: list[exp.Expression], refuse: Refuse
) -> exp.Expression | None:
    """`window(time, length, slide, offset)`; HOP says the slide first."""
    words = []
    for each in lengths:
        duration = _duration(each)
        if duration is None:
            refuse(each, "the length of a window is an interval of days or less, as a constant")
            return None
        words.append(duration)
    steps = 1 if shape == "TUMBLE" else 2
    if not steps <= len(words) <= steps + 1:
        refuse(time, f"{shape} takes a time and {steps} interval{'s' * (steps > 1)}")
        return None
    length, slide = words[steps - 1], words[0]
    given = [length]
    if len(words) > steps:
        given = [length, slide, words[steps]]
    elif steps > 1:
        given = [length, slide]
    texts = [exp.Literal.string(each) for each in given]
    return exp.Anonymous(this="window", expressions=[time.copy(), *texts])


def _duration(node: exp.Expression) -> str | None:
    if not isinstance(node, exp.Interval) or not isinstance(node.this, exp.Literal):
        return None
    unit = node.args.get("unit")
    if not isinstance(unit, exp.Var) or not node.name.isdigit():
        return None
    word = unit.name.upper().removesuffix("S")
    return f"{node.name} {word.lower()}" if word in _UNITS else None


def _part(part: str) -> exp.Expression:
    if part != "time":
        return exp.column(part, table="window")
    # The last millisecond that belongs to the window.
    millisecond = exp.Interval(this=exp.Literal.string("0.001"), unit=exp.var("SECOND"))
    return exp.paren(exp.Sub(this=exp.column("end", table="window"), expression=millisecond))
